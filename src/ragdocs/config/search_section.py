"""[search], [search.boosts] and [search.advanced]: how results are found, ranked and thinned."""

import math
from typing import Annotated, NamedTuple

from pydantic import Field

from ragdocs.config.choices import Fusion, KeywordEngine, Stemmer
from ragdocs.config.values import Authority, Lax, NameOrFolder, Section, setting

RANK_SUM_THRESHOLD, RANK_SUM_STEEPNESS = 0.035, 150.0
"""The seeds' curve over rank sums: with rank fusion, what counts for the one of the two settings
that the user has left out."""


class RankSumCurve(NamedTuple):
    """The seeds' sigmoid over a rank sum; `first` is the rank sum of a passage that one index alone
    puts first."""

    threshold: float
    steepness: float
    first: float

    @property
    def words(self) -> str:
        """What it is, and what that means for whoever sets a least confidence."""
        exponent = min(700.0, self.steepness * (self.threshold - self.first))
        confidence = 1.0 / (1.0 + math.exp(exponent))
        return (
            f"rank sum, by a sigmoid with threshold {self.threshold:g} and steepness "
            f"{self.steepness:g}: a relative number; a passage that one index alone puts first has "
            f"{confidence:.3f}, so a least confidence above that drops exact hits"
        )


class BoostsConfig(Section):
    """How much a word counts by the field it stands in, before saturation (BM25F)."""

    title: float = setting(3.0, "The document's title.", within=(0, 100))
    headers: float = setting(2.5, "The headings above the passage.", within=(0, 100))
    keywords: float = setting(2.5, "Front matter `keywords`.", within=(0, 100))
    description: float = setting(2.0, "Front matter `description` or `summary`.", within=(0, 100))
    tags: float = setting(2.0, "Front matter `tags` and inline #tags.", within=(0, 100))
    path: float = setting(2.0, "The file's path and its parts.", within=(0, 100))
    aliases: float = setting(1.5, "Front matter `aliases`.", within=(0, 100))
    author: float = setting(1.0, "Front matter `author`.", within=(0, 100))
    content: float = setting(1.0, "The text itself.", within=(0, 100))


class AdvancedSearchConfig(Section):
    """Graph communities, weights by score spread, and HyDE."""

    community_detection_enabled: bool = setting(
        True, "Raise documents of the communities that the best hits belong to."
    )
    community_boost_factor: float = setting(1.1, "By how much they are raised.", within=(1, 10))
    dynamic_weights_enabled: bool = setting(
        False, "Give an index less say when its scores hardly differ."
    )
    variance_threshold: float = setting(
        0.1, "Below this variance of scores an index loses weight.", within=(0, 1)
    )
    min_weight_factor: float = setting(
        0.5, "An index never loses more than down to this factor.", within=(0, 1)
    )
    hyde_enabled: bool = setting(True, "Offer search by a hypothetical answer.")


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
"""Who sets one of these wants another order than that of the confidence."""


class SearchConfig(Section):
    """How results are found, ranked, thinned and returned."""

    semantic_weight: float = setting(1.0, "Weight of vector search.", within=(0, 100))
    keyword_weight: float = setting(1.0, "Weight of keyword search.", within=(0, 100))
    balance_enabled: bool = setting(
        True, "Shift meaning against words by how near and how long a query is (score fusion)."
    )
    document_weight: float = setting(
        0.5, "How much of a passage's meaning is that of its whole document.", within=(0, 1)
    )
    closeness_weight: float = setting(
        0.5, "How much it counts that words stand together as in the query.", within=(0, 1)
    )
    resemblance_weight: float = setting(
        0.15, "How much it counts that a passage is like the best one in meaning.", within=(0, 1)
    )
    graph_weight: float = setting(1.0, "Weight of documents linked to hits.", within=(0, 100))
    code_search_enabled: bool = setting(True, "Search code blocks in an index of their own.")
    code_search_weight: float = setting(0.3, "Weight of code search.", within=(0, 100))
    fusion: Annotated[Fusion, Lax] = setting(
        Fusion.SCORE, "How the lists become one: by scaled scores, or by ranks."
    )
    rrf_k_constant: int = setting(
        60, "Rank fusion's constant: larger is flatter.", within=(0, 10_000)
    )
    recency_bias: float = setting(
        0.5, "How much new documents gain; 0.5 is 1.2x in a week, 0 is off.", within=(0, 1)
    )
    min_confidence: float = setting(
        0.0, "Results below this confidence are dropped; 0 keeps all.", within=(0, 1)
    )
    score_calibration_threshold: float = setting(
        0.446,
        "The evidence (mostly in [0, 1]) that means 50 % confidence; set with rank fusion: the "
        "rank sum.",
        within=(0, 10),
    )
    score_calibration_steepness: float = setting(
        12.83,
        "How sharply confidence turns around that evidence; set with rank fusion: around that "
        "rank sum.",
        within=(0.01, 10_000),
    )
    max_chunks_per_doc: int = setting(
        2, "At most this many passages of one document; 0 is no limit.", within=(0, 100)
    )
    dedup_enabled: bool = setting(False, "Drop passages whose vectors are nearly the same.")
    dedup_similarity_threshold: float = setting(
        0.85,
        "The cosine from which two passages count as the same.",
        within=(0, 1),
        aliases=("search.dedup_threshold",),
    )
    ngram_dedup_enabled: bool = setting(True, "Drop passages whose wording is nearly the same.")
    ngram_dedup_threshold: float = setting(
        0.85, "The Jaccard similarity of character trigrams for that.", within=(0, 1)
    )
    mmr_enabled: bool = setting(
        False, "Choose results for diversity (MMR) in place of dropping similar vectors."
    )
    mmr_lambda: float = setting(0.7, "1 is relevance only, 0 is diversity only.", within=(0, 1))
    rerank_enabled: bool = setting(False, "Score the best results again with a cross-encoder.")
    rerank_model: NameOrFolder = setting(
        "cross-encoder/ms-marco-MiniLM-L-6-v2",
        "The cross-encoder, as [embedding] model.",
        allowed="a name or a path",
        authority=Authority("names a model to load", is_loaded=True),
    )
    rerank_top_n: int = setting(10, "How many results it scores.", within=(1, 100))
    rerank_weight: float = setting(
        0.05,
        "What its opinion counts beside the search's own: 1 is its opinion alone.",
        within=(0, 1),
    )
    adaptive_weights_enabled: bool = setting(
        True, "Shift the weights by the kind of query: factual, navigational, exploratory."
    )
    query_expansion_enabled: bool = setting(
        True, "Add the nearest terms of the documents' own vocabulary to a query."
    )
    query_expansion_max_words: int = setting(
        2,
        "Only for queries of at most this many words that hardly any document has; 0 is for every "
        "query.",
        within=(0, 100),
    )
    query_expansion_max_terms: int = setting(
        10_000, "At most this many terms make that vocabulary.", within=(0, 1_000_000)
    )
    synonyms_enabled: bool = setting(False, "Add WordNet synonyms (extra `synonyms`).")
    keyword_engine: Annotated[KeywordEngine, Lax] = setting(
        KeywordEngine.FTS5, "What finds words; tantivy is an extra, for very large folders."
    )
    stemmer: Annotated[Stemmer, Lax] = setting(
        Stemmer.ENGLISH, "The language whose word endings are ignored."
    )
    fuzzy_distance: int = setting(
        1, "Typing errors forgiven in words the documents do not have; 0 is none.", within=(0, 2)
    )
    merge_threshold: int = setting(
        2, "This many matching siblings are replaced by their parent; 0 is never.", within=(0, 100)
    )
    merge_bonus: float = setting(0.02, "What a merged section gains per child.", within=(0, 10))
    max_merge_depth: int = setting(
        2, "Do not merge above this depth; 0 allows the whole document.", within=(0, 6)
    )
    max_merge_bytes: int = setting(
        4_000, "A larger section is not merged into: its parts are the results.", within=(0, 10**9)
    )
    result_tokens: int = setting(
        180,
        "About how much of a passage is given: the lines that answer and what is around them; "
        "0 gives all of it.",
        within=(0, 10_000),
    )
    cutoff_ratio: float = setting(
        0.3, "Stop where a score falls below this part of the one before; 0 is off.", within=(0, 1)
    )
    candidate_limit: int = setting(
        0, "At most this many of what was found are judged; 0 is no limit.", within=(0, 10_000)
    )
    local_boost: float = setting(
        1.5, "What the project's own trees gain over the user's.", within=(0, 100)
    )
    tree_normalisation: float = setting(
        0.0, "How far the best of each tree is brought to one level; 0 is off.", within=(0, 1)
    )
    graph_depth: int = setting(1, "How many links away a neighbour may be.", within=(0, 5))
    graph_neighbor_weight: float = setting(
        0.5, "A neighbour enters with this part of its hit's score.", within=(0, 1)
    )
    boosts: BoostsConfig = Field(default_factory=BoostsConfig)
    advanced: AdvancedSearchConfig = Field(default_factory=AdvancedSearchConfig)

    @property
    def is_ordered_by_confidence(self) -> bool:
        """Not with rank fusion, nor when the user has set what is to come first."""
        return self.fusion is Fusion.SCORE and not self.model_fields_set & _ORDERING

    @property
    def rank_sum_curve(self) -> RankSumCurve | None:
        """With rank fusion, when the user has set either calibration setting: confidence is then
        made from the rank sum. None: it is made from the evidence, whatever the fusion."""
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
