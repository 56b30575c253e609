"""A whole configuration file: every setting, once, with its default, its range and one line that
says what it does. Each section has a module of its own beside this one.

A module is given its own section, never the whole configuration. The example file, the reference
page, the error messages and the checks are all made from what stands there.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import Field

from ragdocs.config.choices import EmbeddingProvider, Fusion
from ragdocs.config.chunking_section import ChunkingConfig
from ragdocs.config.context_section import ContextConfig
from ragdocs.config.embedding_section import EmbeddingConfig
from ragdocs.config.indexing_section import IndexingConfig, TreeConfig
from ragdocs.config.search_section import SearchConfig
from ragdocs.config.values import MAX_TREES, Section, TreeKey, setting


class Settings(Section):
    """A whole file."""

    root: bool = setting(
        False, "Look for no further configuration in the folders above this file's."
    )
    indexing: IndexingConfig = Field(default_factory=IndexingConfig)
    tree: dict[TreeKey, TreeConfig] = Field(
        default_factory=dict[str, TreeConfig], max_length=MAX_TREES
    )
    context: ContextConfig = Field(default_factory=ContextConfig)
    chunking: ChunkingConfig = Field(default_factory=ChunkingConfig)
    search: SearchConfig = Field(default_factory=SearchConfig)
    embedding: EmbeddingConfig = Field(default_factory=EmbeddingConfig)


@dataclass(frozen=True, slots=True)
class Need:
    """What must hold for a setting to have an effect: `is_met` gets the values of the other
    settings that it names; `trees` are those of the whole configuration.

    `words` stand for the values where these say too little; `still` is what the setting does even
    then.
    """

    keys: tuple[str, ...]
    is_met: Callable[..., bool]
    words: str = ""
    still: str = ""


def _on(key: str, still: str = "") -> Need:
    return Need((key,), bool, still=still)


def _off(key: str) -> Need:
    return Need((key,), _is_off)


def _is_off(value: object) -> bool:
    return not value


def _is(key: str, *values: object) -> Need:
    def is_one(value: object) -> bool:
        return value in values

    return Need((key,), is_one)


def _is_inherited(include: object, trees: tuple[Any, ...]) -> bool:
    return any(tree.include == include for tree in trees)


def _has_several(trees: tuple[Any, ...]) -> bool:
    return len(trees) > 1


def _has_both_scopes(trees: tuple[Any, ...]) -> bool:
    return len({tree.scope for tree in trees}) > 1


def _loads_a_model(provider: object, rerank: object) -> bool:
    return bool(rerank) or provider in (
        EmbeddingProvider.BUILTIN,
        EmbeddingProvider.HUGGINGFACE,
        EmbeddingProvider.ONNX,
    )


_UNIQUE = 'a request with uniqueness = "content" uses it'
_WATCHED = _on("indexing.watch")
_PARENTS = _on("chunking.parent_retrieval_enabled")
_LEAVES = _off("chunking.parent_retrieval_enabled")
_BY_SCORE = _is("search.fusion", Fusion.SCORE)
_MERGING = _on("search.merge_threshold")
_LINKS = _on("search.graph_weight")
_RERANKING = _on("search.rerank_enabled")
_EXPANDING = _on("search.query_expansion_enabled")
_SPREAD = _on("search.advanced.dynamic_weights_enabled")
_HTTP = _is("embedding.provider", EmbeddingProvider.HTTP)
_CLASS = _is("embedding.provider", EmbeddingProvider.LLAMA_INDEX)
_FETCHED = _is("embedding.provider", EmbeddingProvider.HUGGINGFACE)
_NOT_BUILTIN = _is(
    "embedding.provider",
    EmbeddingProvider.HUGGINGFACE,
    EmbeddingProvider.LLAMA_INDEX,
    EmbeddingProvider.HTTP,
    EmbeddingProvider.ONNX,
)
_ONNX = _is("embedding.provider", EmbeddingProvider.ONNX)
_LOADED = Need(("embedding.provider", "search.rerank_enabled"), _loads_a_model)

NEEDS: Mapping[str, tuple[Need, ...]] = {
    "indexing.include": (
        Need(
            ("indexing.include", "trees"),
            _is_inherited,
            "while every tree has an `include` of its own",
        ),
    ),
    "indexing.debounce_seconds": (_WATCHED,),
    "indexing.rescan_interval_seconds": (_WATCHED,),
    "chunking.min_leaf_chars": (_LEAVES,),
    "chunking.max_leaf_chars": (_LEAVES,),
    "chunking.parent_chunk_min_chars": (_PARENTS,),
    "chunking.parent_chunk_max_chars": (_PARENTS,),
    "chunking.parent_overlap_chars": (_PARENTS,),
    "chunking.child_chunk_min_chars": (_PARENTS,),
    "chunking.child_chunk_max_chars": (_PARENTS,),
    "search.balance_enabled": (_BY_SCORE,),
    "search.closeness_weight": (_BY_SCORE, _on("search.keyword_weight")),
    "search.resemblance_weight": (_BY_SCORE, _on("search.semantic_weight")),
    "search.rrf_k_constant": (_is("search.fusion", Fusion.RRF),),
    "search.code_search_weight": (_on("search.code_search_enabled"),),
    "search.graph_weight": (_on("search.graph_depth"),),
    "search.graph_depth": (_LINKS,),
    "search.graph_neighbor_weight": (_LINKS, _on("search.graph_depth")),
    "search.dedup_enabled": (_off("search.mmr_enabled"),),
    "search.dedup_similarity_threshold": (
        _on("search.dedup_enabled", _UNIQUE),
        Need(("search.mmr_enabled",), _is_off, still=_UNIQUE),
    ),
    "search.ngram_dedup_threshold": (_on("search.ngram_dedup_enabled", _UNIQUE),),
    "search.mmr_lambda": (_on("search.mmr_enabled"),),
    "search.rerank_model": (_RERANKING,),
    "search.rerank_top_n": (_RERANKING,),
    "search.rerank_weight": (_RERANKING,),
    "search.query_expansion_max_words": (_EXPANDING,),
    "search.query_expansion_max_terms": (_EXPANDING,),
    "search.merge_bonus": (_MERGING,),
    "search.max_merge_depth": (_MERGING,),
    "search.max_merge_bytes": (_MERGING,),
    "search.local_boost": (
        Need(("trees",), _has_both_scopes, "while all trees are the project's, or all the user's"),
    ),
    "search.tree_normalisation": (Need(("trees",), _has_several, "while there is one tree"),),
    "search.advanced.community_boost_factor": (_on("search.advanced.community_detection_enabled"),),
    "search.advanced.variance_threshold": (_SPREAD,),
    "search.advanced.min_weight_factor": (_SPREAD,),
    "embedding.model": (
        _is(
            "embedding.provider",
            EmbeddingProvider.BUILTIN,
            EmbeddingProvider.HUGGINGFACE,
            EmbeddingProvider.HTTP,
            EmbeddingProvider.ONNX,
        ),
    ),
    "embedding.model_file": (_ONNX,),
    "embedding.pooling": (_ONNX,),
    "embedding.query_prefix": (_NOT_BUILTIN,),
    "embedding.passage_prefix": (_NOT_BUILTIN,),
    "embedding.batch_size": (_NOT_BUILTIN,),
    "embedding.threads": (_LOADED,),
    "embedding.cache_folder": (_LOADED,),
    "embedding.device": (_FETCHED,),
    "embedding.local_files_only": (_FETCHED,),
    "embedding.url": (_HTTP,),
    "embedding.allow_remote": (_HTTP,),
    "embedding.timeout_seconds": (_HTTP,),
    "embedding.retries": (_HTTP,),
    "embedding.class_name": (_CLASS,),
    "embedding.arguments": (_CLASS,),
}
"""Setting → all that must hold for it to have an effect; one that is not here always has one.
`check-config` names those that are set to another value than the default and have none."""
