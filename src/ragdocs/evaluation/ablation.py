"""One part of the search at a time is switched off, to see what it is worth."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import cast

from ragdocs.config.notation import toml_value
from ragdocs.config.resolved import Config
from ragdocs.config.values import Section

_OFF: MappingProxyType[str, tuple[str, object]] = MappingProxyType(
    {
        "vectors": ("search.semantic_weight", 0.0),
        "keywords": ("search.keyword_weight", 0.0),
        "code": ("search.code_search_enabled", False),
        "graph": ("search.graph_weight", 0.0),
        "balance": ("search.balance_enabled", False),
        "document meaning": ("search.document_weight", 0.0),
        "closeness": ("search.closeness_weight", 0.0),
        "resemblance": ("search.resemblance_weight", 0.0),
        "adaptive weights": ("search.adaptive_weights_enabled", False),
        "dynamic weights": ("search.advanced.dynamic_weights_enabled", False),
        "expansion": ("search.query_expansion_enabled", False),
        "synonyms": ("search.synonyms_enabled", False),
        "fuzzy words": ("search.fuzzy_distance", 0),
        "communities": ("search.advanced.community_detection_enabled", False),
        "recency": ("search.recency_bias", 0.0),
        "confidence": ("search.min_confidence", 0.0),
        "cutoff": ("search.cutoff_ratio", 0.0),
        "n-gram dedup": ("search.ngram_dedup_enabled", False),
        "semantic dedup": ("search.dedup_enabled", False),
        "MMR": ("search.mmr_enabled", False),
        "document limit": ("search.max_chunks_per_doc", 0),
        "re-ranking": ("search.rerank_enabled", False),
        "merging": ("search.merge_threshold", 0),
        "parents": ("chunking.parent_retrieval_enabled", False),
    }
)
"""Part → the setting that switches it, and the value that means off."""


@dataclass(frozen=True, slots=True)
class Variant:
    """The configuration without one part."""

    part: str
    setting: str
    config: Config


def without_each(config: Config) -> Iterator[Variant]:
    """Only of what is on."""
    for part, (key, off) in _OFF.items():
        changed = _with(config, key.split("."), off)
        if changed != config:
            yield Variant(part, f"{key} = {toml_value(off)}", changed)


def _with(config: Config, path: Sequence[str], value: object) -> Config:
    section, *inner, setting = path
    chosen = cast("Section", getattr(config, section))
    changes: dict[str, object] = {setting: value}
    for name in inner:
        changes = {name: getattr(chosen, name).model_copy(update=changes)}
    return replace(config, **{section: chosen.model_copy(update=changes)})
