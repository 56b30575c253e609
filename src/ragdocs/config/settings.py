"""Every setting, defined once: one frozen model per section, with default, range and
description.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, NamedTuple, cast

from pydantic import Field

from ragdocs.config.choices import (
    EmbeddingProvider,
    Fusion,
    KeywordEngineName,
    LintRule,
    Pooling,
    Stemmer,
)
from ragdocs.config.values import (
    AUTO,
    LINK_FORMATS,
    MAX_TREES,
    NO_LINKS,
    SHORTEST_PAUSE,
    Authority,
    Device,
    Disagreement,
    FilterText,
    Folder,
    Inclusions,
    Lax,
    LinkFormat,
    ModelFile,
    NameOrFolder,
    OptionalFolder,
    PatternOrPatterns,
    Patterns,
    Prefix,
    SettingsSection,
    Strings,
    TreeKey,
    is_hasty,
    is_more,
    leaves_project,
    setting,
)

# [chunking]: how documents are split into passages.

MAX_CHARS = 100_000


class ChunkingConfig(SettingsSection):
    """How documents are split into the passages that searches find and return."""

    min_leaf_chars: int = setting(
        250,
        "Smaller sections are merged into their parent or a neighbour.",
        least=0,
        most=MAX_CHARS,
        aliases=("chunking.min_chunk_chars",),
    )
    max_leaf_chars: int = setting(
        1000,
        "Larger sections are split at paragraphs, then at sentences.",
        least=50,
        most=MAX_CHARS,
        aliases=("chunking.max_chunk_chars",),
    )
    min_document_chars: int = setting(
        1200, "Smaller documents are a single passage.", least=0, most=MAX_CHARS
    )
    overlap_chars: int = setting(
        100,
        "When a section is split, embed each part with this much of the previous part.",
        least=0,
        most=10_000,
    )
    parent_retrieval_enabled: bool = setting(
        False,
        "Search small passages (child sizes) but return the section around them (parent sizes).",
        aliases=("search.parent_retrieval_enabled",),
    )
    parent_chunk_min_chars: int = setting(
        1500, "Widen the returned section to at least this size.", least=0, most=MAX_CHARS
    )
    parent_chunk_max_chars: int = setting(
        2000, "Maximum size of the returned section.", least=50, most=MAX_CHARS
    )
    parent_overlap_chars: int = setting(
        200,
        "Start the returned section with this much of the text before it.",
        least=0,
        most=10_000,
    )
    child_chunk_min_chars: int = setting(
        400, "Replaces min_leaf_chars when parent retrieval is on.", least=0, most=MAX_CHARS
    )
    child_chunk_max_chars: int = setting(
        600, "Replaces max_leaf_chars when parent retrieval is on.", least=50, most=MAX_CHARS
    )

    def disagreements(self) -> Iterator[Disagreement]:
        yield from self.in_order("min_leaf_chars", "max_leaf_chars")
        yield from self.in_order("parent_chunk_min_chars", "parent_chunk_max_chars")
        yield from self.in_order("child_chunk_min_chars", "child_chunk_max_chars")
        longest = "max_leaf_chars"
        if self.parent_retrieval_enabled:
            longest = "child_chunk_max_chars"
            yield from self.in_order(longest, "parent_chunk_max_chars")
        if self.overlap_chars >= getattr(self, longest):
            yield Disagreement(
                f"overlap_chars must be less than {longest}", ("overlap_chars", longest)
            )


# [context] and [[context.rules]]: how `context` finds the documentation for source files.


class ContextRule(SettingsSection):
    """What `context` adds for source files whose path matches. All matching rules apply."""

    match: PatternOrPatterns = Field(
        description="Pattern, or list of patterns, for the paths of source files.",
        min_length=1,
        json_schema_extra={"aliases": [], "allowed": "a pattern or a list of patterns"},
    )
    trees: Strings = setting((), "Search only these trees; empty means all trees.")
    filter: FilterText = setting("", "Search only documents that satisfy this filter.")
    terms: Strings = setting((), "Words added to the query.")
    include: Inclusions = setting(
        (),
        "Documents to always include: `tree:path`, or a file relative to the configuration folder.",
    )


class ContextConfig(SettingsSection):
    """How `context` turns source files into a query."""

    terms: int = setting(50, "Maximum number of terms in the query.", least=1, most=1000)
    min_term_frequency: int = setting(
        2, "Ignore terms that occur less often than this in the source file.", least=1, most=1000
    )
    min_word_length: int = setting(4, "Ignore shorter words.", least=1, most=1000)
    max_word_length: int = setting(30, "Ignore longer words.", least=1, most=1000)
    rules: Annotated[tuple[ContextRule, ...], Lax] = setting(
        (), "Rules by file pattern; see [[context.rules]].", allowed="[[context.rules]] tables"
    )

    def disagreements(self) -> Iterator[Disagreement]:
        return self.in_order("min_word_length", "max_word_length")


# [embedding]: what turns text into vectors.


class EmbeddingConfig(SettingsSection):
    """What turns text into vectors."""

    provider: Annotated[EmbeddingProvider, Lax] = setting(
        EmbeddingProvider.BUILTIN,
        "The built-in model, an ONNX model, one of the extras, or a local HTTP endpoint.",
        authority=Authority("chooses the program that is given the text of your documents"),
    )
    model: NameOrFolder = setting(
        "all-MiniLM-L6-v2",
        "The model: a name, or a folder (starting with /, ./, ../ or ~).",
        allowed="a name or a path",
        authority=Authority("names a model to download or load", is_loaded=True),
    )
    model_file: ModelFile = setting(
        AUTO,
        'For provider = "onnx": the file to load, e.g. "onnx/model.onnx"; "auto" prefers a '
        "quantised file.",
        allowed='"auto" or an .onnx file in the model folder',
        authority=Authority("chooses which model file is loaded"),
    )
    pooling: Annotated[Pooling, Lax] = setting(
        Pooling.AUTO,
        'For provider = "onnx": how token vectors are combined into one; "auto" follows the '
        "model's own files.",
    )
    query_prefix: Prefix = setting(
        AUTO, 'Text put before each query; "auto" is what the model is known to need, "" is none.'
    )
    passage_prefix: Prefix = setting(AUTO, "Text put before each passage; like query_prefix.")
    batch_size: int = setting(32, "Texts per embedding batch.", least=1, most=1024)
    threads: int = setting(0, "CPU threads for bulk work; 0 is automatic.", least=0, most=64)
    device: Device = setting(
        AUTO,
        "Where the model runs; the built-in model always uses the CPU.",
        allowed='"auto", "cpu", "mps", "cuda" or "cuda:N"',
    )
    cache_folder: OptionalFolder = setting(
        None,
        'Where prepared and downloaded models are kept; "" is the user\'s cache.',
        authority=Authority("names a folder that models are loaded from", is_loaded=True),
    )
    local_files_only: bool = setting(
        False,
        "Never download a model; the built-in model never needs a download.",
        authority=Authority("decides whether models are downloaded"),
    )
    url: str = setting(
        "",
        'For provider = "http": the endpoint, e.g. "http://127.0.0.1:11434/v1".',
        authority=Authority("is an address to which passages and queries are sent"),
    )
    allow_remote: bool = setting(
        False,
        "Allow a `url` on another machine; passages and queries are then sent there.",
        authority=Authority("lets passages and queries leave this machine"),
    )
    timeout_seconds: float = setting(
        20.0, "Timeout for one batch sent to the endpoint.", least=0.1, most=600
    )
    retries: int = setting(2, "How many times a failed batch is sent again.", least=0, most=10)
    class_name: str = setting(
        "",
        'For provider = "llama-index": the embedding class, as "module:Class".',
        aliases=("embedding.class",),
        authority=Authority("names Python code to import and run", is_loaded=True),
    )
    arguments: dict[str, Any] = setting(
        {},
        "Keyword arguments for that class.",
        allowed="a table",
        authority=Authority("is passed to that code", is_loaded=True),
    )

    def disagreements(self) -> Iterator[Disagreement]:
        if self.provider is EmbeddingProvider.LLAMA_INDEX and not self.class_name:
            yield Disagreement("the embedding class is missing", ("class_name", "provider"))


# [indexing] and [tree.NAME]: which files are indexed, where the index is, how it stays up to date.

DEFAULT_INCLUDE = ("**/*.md", "**/*.markdown", "**/*.mdx", "**/*.canvas", "**/*.txt")
_READS_ELSEWHERE = Authority(
    "reads a folder outside the project, or a hidden folder inside it",
    leaves_project,
    "outside the project folder or in a hidden folder inside it",
)


class IndexingConfig(SettingsSection):
    """Which files are indexed, where the index is kept, and how it stays up to date."""

    documents_path: Folder = setting(
        Path(),
        "Folder of documents: a tree named after it, if this is set or there is no [tree.NAME].",
        authority=_READS_ELSEWHERE,
    )
    index_path: OptionalFolder = setting(
        None,
        'The index folder; "" is a folder in the user\'s cache, one per set of index settings.',
        authority=Authority("names a folder to which the text of all documents is written"),
    )
    include: Patterns = setting(
        DEFAULT_INCLUDE, "Files to index in every tree without its own `include`."
    )
    exclude: Patterns = setting(
        (), "Files to skip in every tree, in addition to its own `exclude`."
    )
    respect_gitignore: bool = setting(
        True,
        "Skip files that .gitignore excludes.",
        authority=Authority("decides whether files that git ignores are read"),
    )
    max_file_bytes: int = setting(
        10_000_000,
        "Larger files are skipped with a warning.",
        least=1,
        most=1_000_000_000,
        authority=Authority(
            "lets larger files be read into memory", is_more, "larger than it would be otherwise"
        ),
    )
    debounce_seconds: float = setting(
        0.5, "Read changed files only after they have been quiet this long.", least=0, most=60
    )
    rescan_interval_seconds: float = setting(
        300.0,
        "How often all files are compared with the index; 0 means never.",
        least=0,
        most=86_400,
        authority=Authority(
            "keeps the CPU busy with repeated scans of all files",
            is_hasty,
            f"below {SHORTEST_PAUSE:g}",
        ),
    )
    watch: bool = setting(True, "Watch files for changes while the server runs.")


class TreeConfig(SettingsSection):
    """A folder of documents. A table of the same name in a nearer file replaces the whole table."""

    path: Folder = Field(
        description="The folder.",
        json_schema_extra=cast(
            "Any", {"aliases": [], "allowed": "", "authority": _READS_ELSEWHERE}
        ),
    )
    include: Patterns | None = setting(
        None, "Files to index; defaults to `include` of [indexing].", allowed="a list of strings"
    )
    exclude: Patterns = setting((), "Files to skip, in addition to `exclude` of [indexing].")
    description: str = setting(
        "",
        "What is in it, in a sentence: tells an agent when to search it.",
        allowed="a text",
        authority=Authority("is part of the instructions that a model reads"),
    )


# [lint]: what `ragdocs lint` looks for.


class LintConfig(SettingsSection):
    """Which problems `ragdocs lint` reports."""

    select: Annotated[tuple[Annotated[LintRule, Lax], ...], Lax] = setting(
        (),
        "Run only these rules, on every page; empty runs all rules, each where it applies.",
        allowed="a list of rules",
    )
    ignore: Annotated[tuple[Annotated[LintRule, Lax], ...], Lax] = setting(
        (), "Never run these rules.", allowed="a list of rules"
    )
    stale_days: int = setting(
        0, "Report pages that are older than this many days; 0 means never.", least=0, most=36_500
    )
    near_copy_threshold: float = setting(
        0.9, "Report passages whose wordings are at least this similar.", least=0.8, most=1
    )


# [search], [search.boosts] and [search.advanced]: how results are found, ranked and deduplicated.

RANK_SUM_THRESHOLD, RANK_SUM_STEEPNESS = 0.035, 150.0
"""The seeds' curve over rank sums: with rank fusion, the defaults of the two calibration settings
if the user has set only one of them."""


class RankSumCurve(NamedTuple):
    """The seeds' sigmoid over a rank sum; `first` is the rank sum of a passage that one index alone
    puts first."""

    threshold: float
    steepness: float
    first: float

    @property
    def words(self) -> str:
        """Describes the curve and its effect on `min_confidence`."""
        exponent = min(700.0, self.steepness * (self.threshold - self.first))
        confidence = 1.0 / (1.0 + math.exp(exponent))
        return (
            f"rank sum, by a sigmoid with threshold {self.threshold:g} and steepness "
            f"{self.steepness:g}: a relative number; a passage that only one index ranks first has "
            f"{confidence:.3f}, so a higher min_confidence drops exact hits"
        )


class BoostsConfig(SettingsSection):
    """Weights of words by the field they occur in, before saturation (BM25F)."""

    title: float = setting(3.0, "The document's title.", least=0, most=100)
    headers: float = setting(2.5, "The headings above the passage.", least=0, most=100)
    keywords: float = setting(2.5, "Front matter `keywords`.", least=0, most=100)
    description: float = setting(2.0, "Front matter `description` or `summary`.", least=0, most=100)
    tags: float = setting(2.0, "Front matter `tags` and inline #tags.", least=0, most=100)
    path: float = setting(2.0, "The file's path and its parts.", least=0, most=100)
    aliases: float = setting(1.5, "Front matter `aliases`.", least=0, most=100)
    author: float = setting(1.0, "Front matter `author`.", least=0, most=100)
    content: float = setting(1.0, "The text itself.", least=0, most=100)


class AdvancedSearchConfig(SettingsSection):
    """Graph communities, weights by score spread, and HyDE."""

    community_detection_enabled: bool = setting(
        True, "Boost documents in the same cluster of linked documents as the best hits."
    )
    community_boost_factor: float = setting(1.1, "The factor of that boost.", least=1, most=10)
    dynamic_weights_enabled: bool = setting(
        False, "Lower the weight of an index whose scores hardly differ."
    )
    variance_threshold: float = setting(
        0.1, "Lower the weight of an index below this variance of scores.", least=0, most=1
    )
    min_weight_factor: float = setting(
        0.5, "Never multiply a weight by less than this.", least=0, most=1
    )
    hyde_enabled: bool = setting(True, "Offer search by a hypothetical answer (HyDE).")


_ORDERING = frozenset(
    {
        "semantic_weight",
        "keyword_weight",
        "graph_weight",
        "graph_neighbor_weight",
        "code_search_weight",
        "balance_enabled",
        "adaptive_weights_enabled",
        "closeness_weight",
        "resemblance_weight",
        "recency_bias",
        "local_boost",
        "tree_normalisation",
        "merge_bonus",
        "boosts",
    }
)
"""A user who sets one of these wants an order other than by confidence."""


class SearchConfig(SettingsSection):
    """How results are found, ranked, deduplicated and returned."""

    semantic_weight: float = setting(1.0, "Weight of vector search.", least=0, most=100)
    keyword_weight: float = setting(1.0, "Weight of keyword search.", least=0, most=100)
    balance_enabled: bool = setting(
        True,
        "Balance vector and keyword search by a query's length and its best similarity (score "
        "fusion).",
    )
    document_weight: float = setting(
        0.5, "Share of the whole document in a passage's similarity.", least=0, most=1
    )
    closeness_weight: float = setting(
        0.5, "Weight of words being as close together as in the query.", least=0, most=1
    )
    resemblance_weight: float = setting(
        0.15, "Weight of a passage's similarity to the best passage.", least=0, most=1
    )
    filter: FilterText = setting(
        "",
        "Search only documents that satisfy this filter; each answer says so.",
        authority=Authority("hides documents from every answer"),
    )
    graph_weight: float = setting(1.0, "Weight of documents linked to hits.", least=0, most=100)
    code_search_enabled: bool = setting(True, "Search code blocks in a separate index.")
    code_search_weight: float = setting(0.3, "Weight of code search.", least=0, most=100)
    fusion: Annotated[Fusion, Lax] = setting(
        Fusion.SCORE, "How the rankings are merged: by scaled scores, or by ranks."
    )
    rrf_k_constant: int = setting(
        60, "The constant of rank fusion; a larger one flattens the ranking.", least=0, most=10_000
    )
    recency_bias: float = setting(
        0.5, "Boost for recent documents; 0.5 is 1.2x within a week, 0 is off.", least=0, most=1
    )
    min_confidence: float = setting(
        0.0, "Drop results below this confidence; 0 keeps all.", least=0, most=1
    )
    score_calibration_threshold: float = setting(
        0.446,
        "The evidence (mostly in [0, 1]) that means 50 % confidence; if set with rank fusion, the "
        "rank sum.",
        least=0,
        most=10,
    )
    score_calibration_steepness: float = setting(
        12.83,
        "How steeply confidence rises around that evidence; if set with rank fusion, around that "
        "rank sum.",
        least=0.01,
        most=10_000,
    )
    max_chunks_per_doc: int = setting(
        2, "Maximum passages from one document; 0 is no limit.", least=0, most=100
    )
    dedup_enabled: bool = setting(False, "Drop passages with nearly the same vector.")
    dedup_similarity_threshold: float = setting(
        0.85,
        "Cosine similarity at which two passages count as the same.",
        least=0,
        most=1,
        aliases=("search.dedup_threshold",),
    )
    ngram_dedup_enabled: bool = setting(True, "Drop passages with nearly the same wording.")
    ngram_dedup_threshold: float = setting(
        0.85, "Jaccard similarity of character trigrams for that.", least=0, most=1
    )
    mmr_enabled: bool = setting(
        False, "Choose results for diversity (MMR) instead of dropping similar vectors."
    )
    mmr_lambda: float = setting(0.7, "1 is relevance only, 0 is diversity only.", least=0, most=1)
    rerank_enabled: bool = setting(False, "Rerank the best results with a cross-encoder.")
    rerank_model: NameOrFolder = setting(
        "cross-encoder/ms-marco-MiniLM-L-6-v2",
        "The cross-encoder: a name or a folder, like `model` in [embedding].",
        allowed="a name or a path",
        authority=Authority("names a model to load", is_loaded=True),
    )
    rerank_top_n: int = setting(10, "How many results are reranked.", least=1, most=100)
    rerank_weight: float = setting(
        0.05,
        "Weight of the cross-encoder's score against the search's own; 1 ignores the search's.",
        least=0,
        most=1,
    )
    adaptive_weights_enabled: bool = setting(
        True, "Adjust the weights to the type of query: factual, navigational, exploratory."
    )
    query_expansion_enabled: bool = setting(
        True, "Expand queries with the nearest terms from the documents' own vocabulary."
    )
    query_expansion_max_words: int = setting(
        2,
        "Expand only queries of at most this many words that hardly any document contains; 0 "
        "expands every query.",
        least=0,
        most=100,
    )
    query_expansion_max_terms: int = setting(
        10_000, "Maximum number of terms in that vocabulary.", least=0, most=1_000_000
    )
    synonyms_enabled: bool = setting(False, "Add WordNet synonyms (extra `synonyms`).")
    keyword_engine: Annotated[KeywordEngineName, Lax] = setting(
        KeywordEngineName.FTS5, "The keyword engine; tantivy is an extra, for very large folders."
    )
    stemmer: Annotated[Stemmer, Lax] = setting(
        Stemmer.ENGLISH, "Language for stemming: its word endings are ignored."
    )
    fuzzy_distance: int = setting(
        1, "Typos allowed in words that no document contains; 0 is none.", least=0, most=2
    )
    merge_threshold: int = setting(
        2,
        "Merge this many or more matching sibling sections into their parent; 0 means never.",
        least=0,
        most=100,
    )
    merge_bonus: float = setting(0.02, "Boost for a merged section per child.", least=0, most=10)
    max_merge_depth: int = setting(
        2, "Do not merge above this depth; 0 allows the whole document.", least=0, most=6
    )
    max_merge_bytes: int = setting(
        4_000,
        "Do not merge into a larger section; return its parts.",
        least=0,
        most=10**9,
    )
    first_result_tokens: int = setting(
        500,
        "Approximate size of the first passage, which is given with its section, or the whole "
        "document, as far as they fit; 0 treats it like the others.",
        least=0,
        most=10_000,
    )
    result_tokens: int = setting(
        120,
        "Approximate size of a returned passage: the matching lines and their surroundings; 0 "
        "returns all of it.",
        least=0,
        most=10_000,
    )
    cutoff_ratio: float = setting(
        0.3,
        "Stop at a score below this fraction of the previous one; 0 is off.",
        least=0,
        most=1,
    )
    candidate_limit: int = setting(
        0, "Maximum number of candidates to evaluate; 0 is no limit.", least=0, most=10_000
    )
    local_boost: float = setting(
        1.5, "Boost for the project's trees over the user's.", least=0, most=100
    )
    tree_normalisation: float = setting(
        0.0, "How far to equalise the best scores of all trees; 0 is off.", least=0, most=1
    )
    graph_depth: int = setting(1, "How many links away a neighbour may be.", least=0, most=5)
    graph_neighbor_weight: float = setting(
        0.5, "A neighbour starts with this fraction of its hit's score.", least=0, most=1
    )
    boosts: BoostsConfig = Field(default_factory=BoostsConfig)
    advanced: AdvancedSearchConfig = Field(default_factory=AdvancedSearchConfig)

    @property
    def is_ordered_by_confidence(self) -> bool:
        """False with rank fusion, or when the user has set a weight that affects the order."""
        return self.fusion is Fusion.SCORE and not self.model_fields_set & _ORDERING

    @property
    def rank_sum_curve(self) -> RankSumCurve | None:
        """Set with rank fusion if the user has set either calibration setting: confidence is then
        computed from the rank sum. If None, it is computed from the evidence, with any fusion."""
        given = self.model_fields_set & {
            "score_calibration_threshold",
            "score_calibration_steepness",
        }
        if self.fusion is not Fusion.RRF or not given:
            return None
        threshold, steepness = RANK_SUM_THRESHOLD, RANK_SUM_STEEPNESS
        if "score_calibration_threshold" in given:
            threshold = self.score_calibration_threshold
        if "score_calibration_steepness" in given:
            steepness = self.score_calibration_steepness
        best = max(self.semantic_weight, self.keyword_weight)
        return RankSumCurve(threshold, steepness, best / (self.rrf_k_constant + 1))


# [terminal]: how the command line shows results to a person.


class TerminalConfig(SettingsSection):
    """How the command line shows results on a terminal."""

    links: LinkFormat = setting(
        AUTO,
        'What a click on a result opens: a program or an address; "auto" is Obsidian for a vault, '
        "otherwise the file.",
        allowed=", ".join(f'"{name}"' for name in (AUTO, NO_LINKS, *LINK_FORMATS))
        + ', or an address with {path}, such as "myeditor://open{path}:{line}"',
        authority=Authority("decides which program a click on a result opens"),
    )


# A whole configuration file: every setting, once, with its default, its range and one line that
# says what it does.
#
# A module gets its own section, never the whole configuration. The example file, the reference
# page, the error messages and the checks are all generated from these definitions.


class Settings(SettingsSection):
    """A whole file."""

    root: bool = setting(
        False, "Do not look for configuration files in the folders above this one."
    )
    indexing: IndexingConfig = Field(default_factory=IndexingConfig)
    tree: dict[TreeKey, TreeConfig] = Field(
        default_factory=dict[str, TreeConfig], max_length=MAX_TREES
    )
    context: ContextConfig = Field(default_factory=ContextConfig)
    chunking: ChunkingConfig = Field(default_factory=ChunkingConfig)
    search: SearchConfig = Field(default_factory=SearchConfig)
    embedding: EmbeddingConfig = Field(default_factory=EmbeddingConfig)
    lint: LintConfig = Field(default_factory=LintConfig)
    terminal: TerminalConfig = Field(default_factory=TerminalConfig)


@dataclass(frozen=True, slots=True)
class Need:
    """A condition for a setting to have an effect: `is_met` gets the values of the settings in
    `keys`; the key `trees` means the trees of the whole configuration.

    `words` replace the values in messages where the values would explain too little; `still` is
    what the setting does even when the condition is not met.
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
            "while every tree has its own `include`",
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
        Need(
            ("trees",), _has_both_scopes, "while all trees are the project's or all are the user's"
        ),
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
"""Setting → all conditions for it to have an effect; a setting not listed here always has one.
`check-config` names settings without effect that differ from their default."""
