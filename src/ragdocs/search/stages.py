"""The stages between fusion and answer: built from the settings, run, counted and explained."""

from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import partial
from itertools import pairwise
from time import perf_counter
from typing import Self

from ragdocs.chunking.splitting import Limits, heading_path
from ragdocs.config.settings import SearchConfig
from ragdocs.embedding.cross_encoder import CrossEncoder
from ragdocs.errors import EmbeddingError
from ragdocs.indices.conditions import Filter, compile_filter
from ragdocs.indices.ngrams import jaccard, ngrams
from ragdocs.models import ChunkId, DocId
from ragdocs.search.boosts import BoostRules, apply_boosts, recency_factor
from ragdocs.search.candidates import (
    RERANK,
    Candidate,
    NodesOf,
    Stage,
    best_first,
    rescore,
    surest_first,
    take_first,
)
from ragdocs.search.confidence import Calibration, calibrate
from ragdocs.search.dedup import (
    MAX_CANDIDATES,
    content_hash,
    cosines,
    drop_identical,
    drop_near_copies,
    drop_similar,
    limit_per_document,
    prefer_other_documents,
    select_mmr,
)
from ragdocs.search.query_language import parse_query
from ragdocs.search.requests import QueryRequest, Uniqueness
from ragdocs.search.sections import (
    IsNamed,
    MergeRules,
    Naming,
    expand_to_parents,
    merge_siblings,
    put_named_first,
)

# Why a stage dropped a candidate, in words; computed only for an explanation.

Reason = Callable[[Candidate, Sequence[Candidate]], str]
"""Gets the dropped candidate and those that were left."""


def always(words: str) -> Reason:
    return lambda _item, _left: words


def low_confidence(threshold: float) -> Reason:
    return lambda item, _left: f"confidence {item.confidence:.2f} is below {threshold:g}"


def same_text(item: Candidate, left: Sequence[Candidate]) -> str:
    own = content_hash(item.text)
    twin = next((other.id for other in left if content_hash(other.text) == own), "a better one")
    return f"the same text as {twin}"


def same_wording(item: Candidate, left: Sequence[Candidate]) -> str:
    own = ngrams(item.text)
    likeness = [jaccard(own, ngrams(other.text)) for other in left]
    return _like("wording", likeness, left)


def same_meaning(item: Candidate, left: Sequence[Candidate]) -> str:
    row = cosines([item, *left])[0]
    return _like("meaning", [float(cosine) for cosine in row[1:]], left)


def inside_another(item: Candidate, left: Sequence[Candidate]) -> str:
    """Merged into a section, or inside another result's passage."""
    for other in left:
        if any(item.stored.key == leaf.key for leaf in (*other.passage, *other.constituents)):
            return f"part of {other.id}"
    return "overlaps a better result, or is not among the first"


def _like(what: str, likeness: Sequence[float], left: Sequence[Candidate]) -> str:
    if not likeness:
        return f"its {what} is the same as that of a better one"
    best = max(range(len(likeness)), key=likeness.__getitem__)
    return f"its {what} is {likeness[best]:.0%} similar to that of {left[best].id}"


# A second opinion by a cross-encoder (P6): it reads the query and each passage together.


class Reranker:
    """Judges the candidates of one request; `notes` say afterwards if it could not.

    It judges by the queries, and by the hypothesis only if there is no query, because such models
    are trained on questions.
    """

    def __init__(self, encoder: CrossEncoder, queries: Sequence[str], hypothesis: str = "") -> None:
        self._encoder = encoder
        # Without operators, exclusions and filters, which the model does not know. A hypothesis is
        # prose without operators.
        texts = [parse_query(query).text.strip() for query in queries]
        asked = tuple(dict.fromkeys(text for text in texts if text))
        self._queries = asked or ((hypothesis,) if hypothesis.strip() else ())
        self.notes: tuple[str, ...] = ()

    def __call__(self, candidates: Sequence[Candidate]) -> list[float]:
        """For each candidate its best score by any of the queries; empty if the model fails or
        there is no query, and the candidates then stay as they are.
        """
        if not candidates or not self._queries:
            return []
        passages = [passage_text(item) for item in candidates]
        try:
            found = [self._encoder.score(query, passages) for query in self._queries]
        except EmbeddingError as error:
            self.notes = (f"not re-ranked: {error}",)
            return []
        return [max(scores) for scores in zip(*found, strict=True)]


def passage_text(candidate: Candidate) -> str:
    """What the model reads: the heading path, as for the embedder, and the text."""
    parts = (heading_path(candidate.stored.chunk), candidate.text.strip())
    return "\n\n".join(part for part in parts if part)


# Which candidates are good enough.


def filter_matching(candidates: Sequence[Candidate], within: Filter) -> list[Candidate]:
    """The indices have searched within the filter; this makes sure."""
    is_match = compile_filter(within)
    return [item for item in candidates if is_match is None or is_match(item.document)]


def filter_by_confidence(candidates: Sequence[Candidate], threshold: float) -> list[Candidate]:
    """Fewer answers rather than noise (P10); 0 keeps all."""
    return [item for item in candidates if item.confidence >= threshold]


def cut_at_elbow(candidates: Sequence[Candidate], ratio: float) -> list[Candidate]:
    """Cuts at the first that scores less than `ratio` of the one before it; 0 cuts nothing."""
    for place, (before, item) in enumerate(pairwise(candidates), start=1):
        if item.score < ratio * before.score:
            return list(candidates[:place])
    return list(candidates)


# Runs the stages and counts what each left; the statistics use these counts alone.


class StageName(StrEnum):
    """The names of the stages; `build_stages` has their order."""

    CANDIDATES = "candidates"
    BOOST = "boost"
    CALIBRATE = "calibrate"
    CONFIDENCE = "confidence"
    FILTERS = "filters"
    NAMED = "named"
    CUTOFF = "cutoff"
    IDENTICAL = "identical"
    NGRAM = "ngram"
    SEMANTIC = "semantic"
    MMR = "mmr"
    RERANK = "rerank"
    MERGE = "merge"
    PARENTS = "parents"
    ORDER = "order"
    DOCUMENT_LIMIT = "document_limit"
    TOP_N = "top_n"


_JUDGING = frozenset(
    {
        StageName.CANDIDATES,
        StageName.BOOST,
        StageName.CALIBRATE,
        StageName.CONFIDENCE,
        StageName.FILTERS,
        StageName.NAMED,
        StageName.CUTOFF,
    }
)
"""The stages that judge a candidate by itself."""


@dataclass(frozen=True, slots=True)
class Fallen:
    """A chunk that a stage dropped or merged into another, as it was then, and why."""

    id: ChunkId
    score: float
    confidence: float
    reason: str


@dataclass(frozen=True, slots=True)
class StageCount:
    """How many candidates entered and left a stage; in an explanation, those it dropped."""

    name: str
    before: int
    after: int
    fallen: tuple[Fallen, ...] = ()
    seconds: float = field(default=0.0, compare=False)


@dataclass(frozen=True, slots=True)
class CompressionStats:
    """How many results each kind of thinning left, with the seeds' names. `after_threshold` counts
    those after the confidence, the filters and the cutoff."""

    original_count: int
    after_threshold: int
    after_content_dedup: int
    after_ngram_dedup: int
    after_dedup: int
    after_doc_limit: int
    clusters_merged: int

    @classmethod
    def from_counts(cls, original: int, counts: Sequence[StageCount]) -> Self:
        """A stage that is off counts as leaving what the one before it left."""

        def left_by(names: Set[str], before: int) -> int:
            return next((c.after for c in reversed(counts) if c.name in names), before)

        # So the figures of deduplication fall by copies alone.
        judged = left_by(_JUDGING, original)
        content = left_by({StageName.IDENTICAL}, judged)
        wording = left_by({StageName.NGRAM}, content)
        meaning = left_by({StageName.SEMANTIC, StageName.MMR}, wording)
        shaped = left_by({StageName.RERANK, StageName.MERGE, StageName.PARENTS}, meaning)
        return cls(
            original_count=original,
            after_threshold=judged,
            after_content_dedup=content,
            after_ngram_dedup=wording,
            after_dedup=meaning,
            after_doc_limit=left_by({StageName.ORDER, StageName.DOCUMENT_LIMIT}, shaped),
            clusters_merged=sum(
                count.before - count.after for count in counts if count.name == StageName.SEMANTIC
            ),
        )


def run_stages(
    stages: Iterable[Stage],
    candidates: Sequence[Candidate],
    *,
    explain: bool = False,
    clock: Callable[[], float] = perf_counter,
) -> tuple[Sequence[Candidate], tuple[StageCount, ...]]:
    """The candidates after all stages, and the counts in order."""
    counts: list[StageCount] = []
    for stage in stages:
        start = clock()
        left = stage.apply(candidates)
        seconds = clock() - start
        fallen = _find_fallen(stage, candidates, left) if explain else ()
        counts.append(StageCount(stage.name, len(candidates), len(left), fallen, seconds))
        candidates = left
    return candidates, tuple(counts)


def _find_fallen(
    stage: Stage, before: Sequence[Candidate], left: Sequence[Candidate]
) -> tuple[Fallen, ...]:
    remaining = {item.id for item in left}
    return tuple(
        Fallen(item.id, item.score, item.confidence, stage.reason(item, left))
        for item in before
        if item.id not in remaining
    )


# From a request and the settings to the list of stages; one that is off is not in it.

Judge = Callable[[Sequence[Candidate]], Sequence[float]]
"""A second opinion: a score in [0, 1] for each candidate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StageTools:
    """What single stages need besides the candidates; without its tool a stage is off."""

    nodes_of: NodesOf
    is_named: IsNamed = lambda _: False
    naming: Naming | None = None
    floored: Set[DocId] = frozenset()
    boosts: BoostRules | None = None
    judge: Judge | None = None
    parent_size: Limits | None = None
    parent_overlap: int = 0
    within: Filter = None


def needs_vectors(settings: SearchConfig, request: QueryRequest) -> bool:
    """Whether a stage may want the candidates' vectors."""
    return settings.mmr_enabled or settings.dedup_enabled or _is_thinning_asked_for(request)


def places_of_a_document(settings: SearchConfig, request: QueryRequest) -> int:
    """How many results one document may have; 0 is no limit."""
    return 1 if request.uniqueness is Uniqueness.DOCUMENT else settings.max_chunks_per_doc


def cutoff_ratio(settings: SearchConfig, request: QueryRequest) -> float:
    """0 is off."""
    return settings.cutoff_ratio if request.cutoff_ratio is None else request.cutoff_ratio


def build_stages(
    settings: SearchConfig, request: QueryRequest, tools: StageTools
) -> tuple[Stage, ...]:
    """The stages in the order in which they run; one that is off is absent."""
    stages = (
        # First: candidates beyond the limit take no part in anything.
        _limit_candidates(settings),
        # On raw scores: calibration must see them with their boosts.
        _boost(settings, tools),
        # All following stages expect numbers in [0, 1].
        _calibrate(settings, tools),
        # Early: noise is not worth comparing, and must not displace anything.
        _require_confidence(settings, request),
        _require_filters(tools),
        # Before anything is cut: the section that is asked for by name is its document's best.
        _put_named_first(tools),
        # The last that judges candidates by themselves: those cut off here are not compared.
        _cut_off(settings, request),
        # Copies, from cheap to expensive, each on fewer: by hash, by wording, by meaning or MMR.
        _drop_identical(request),
        _drop_near_copies(settings, request),
        _drop_similar(settings, request),
        _diversify(settings, request),
        # The most expensive, so on what is left, and on the small passages it was trained for.
        _rerank(settings, request, tools),
        # Both change what a result is: no stage after them compares texts.
        _merge_siblings(settings, request, tools),
        _expand_to_parents(settings, request, tools),
        # Before the limits: the surest result has the first place.
        _order(settings, request),
        # On the final results: copies are gone and sections are merged.
        _limit_per_document(settings, request),
        # Last: every stage before it fills the places of what it removes.
        _take_top_n(settings, request, tools),
    )
    return tuple(stage for stage in stages if stage is not None)


def _limit_candidates(settings: SearchConfig) -> Stage | None:
    limit = settings.candidate_limit
    if limit <= 0:
        return None
    words = f"there are {limit} better ones, and no more are considered"
    return Stage(StageName.CANDIDATES, partial(take_first, top_n=limit), always(words))


def _boost(settings: SearchConfig, tools: StageTools) -> Stage | None:
    if tools.boosts is None:
        return None
    rules = replace(tools.boosts, tree_normalisation=settings.tree_normalisation)
    return Stage(StageName.BOOST, partial(apply_boosts, rules=rules))


def _calibrate(settings: SearchConfig, tools: StageTools) -> Stage:
    by_rank, boosts = settings.rank_sum_curve, tools.boosts
    if by_rank is None:
        curve = Calibration(
            settings.score_calibration_threshold, settings.score_calibration_steepness
        )
        return Stage(StageName.CALIBRATE, partial(calibrate, curve=curve))
    curve = Calibration(by_rank.threshold, by_rank.steepness)
    apply = partial(calibrate, curve=curve)
    if boosts is not None:
        recency = partial(recency_factor, now=boosts.now, bias=boosts.recency_bias)
        apply = partial(calibrate, curve=curve, factor=lambda item: recency(item.document.date))
    return Stage(StageName.CALIBRATE, apply)


def _require_confidence(settings: SearchConfig, request: QueryRequest) -> Stage | None:
    threshold = settings.min_confidence if request.min_score is None else request.min_score
    if threshold <= 0:
        return None
    keep = partial(filter_by_confidence, threshold=threshold)
    return Stage(StageName.CONFIDENCE, keep, low_confidence(threshold))


def _require_filters(tools: StageTools) -> Stage | None:
    if tools.within is None:
        return None
    keep = partial(filter_matching, within=tools.within)
    return Stage(StageName.FILTERS, keep, always("a filter excludes its document"))


def _put_named_first(tools: StageTools) -> Stage | None:
    if tools.naming is None:
        return None
    return Stage(StageName.NAMED, partial(put_named_first, naming=tools.naming))


def _cut_off(settings: SearchConfig, request: QueryRequest) -> Stage | None:
    # Several queries are each cut at their own elbow before they are merged.
    ratio = cutoff_ratio(settings, request)
    if ratio <= 0 or len(request.queries) > 1:
        return None
    cut = partial(cut_at_elbow, ratio=ratio)
    words = f"its score or an earlier one is below {ratio:g} of the one before it"
    return Stage(StageName.CUTOFF, cut, always(words))


def _drop_identical(request: QueryRequest) -> Stage | None:
    if request.uniqueness is Uniqueness.OFF:
        return None
    return Stage(StageName.IDENTICAL, drop_identical, same_text)


def _drop_near_copies(settings: SearchConfig, request: QueryRequest) -> Stage | None:
    is_on = settings.ngram_dedup_enabled or request.uniqueness is Uniqueness.CONTENT
    if not is_on or request.uniqueness is Uniqueness.OFF:
        return None
    drop = partial(drop_near_copies, threshold=settings.ngram_dedup_threshold)
    return Stage(StageName.NGRAM, drop, same_wording)


def _drop_similar(settings: SearchConfig, request: QueryRequest) -> Stage | None:
    """Replaces MMR if the request asks for it."""
    is_on = settings.dedup_enabled or _is_thinning_asked_for(request)
    if not is_on or _is_diversified(settings, request) or request.uniqueness is Uniqueness.OFF:
        return None
    threshold = request.similarity_threshold
    if threshold is None:
        threshold = settings.dedup_similarity_threshold
    return Stage(StageName.SEMANTIC, partial(drop_similar, threshold=threshold), same_meaning)


def _diversify(settings: SearchConfig, request: QueryRequest) -> Stage | None:
    if not _is_diversified(settings, request):
        return None
    select = partial(select_mmr, mmr_lambda=settings.mmr_lambda)
    words = f"others are as relevant and less similar, or {MAX_CANDIDATES} came before it"
    return Stage(StageName.MMR, select, always(words))


def _is_diversified(settings: SearchConfig, request: QueryRequest) -> bool:
    """By MMR, unless the request itself asks for similar passages to be dropped."""
    return settings.mmr_enabled and not _is_thinning_asked_for(request)


def _is_thinning_asked_for(request: QueryRequest) -> bool:
    return request.uniqueness is Uniqueness.CONTENT or request.similarity_threshold is not None


def _rerank(settings: SearchConfig, request: QueryRequest, tools: StageTools) -> Stage | None:
    judge = tools.judge
    if judge is None or not settings.rerank_enabled:
        return None
    # After MMR, a second opinion may only reorder the chosen set.
    limit = request.top_n if _is_diversified(settings, request) else settings.rerank_top_n
    first = min(settings.rerank_top_n, limit)

    def rerank(candidates: Sequence[Candidate]) -> list[Candidate]:
        return rescore(candidates, judge(candidates[:first]), settings.rerank_weight)

    return Stage(StageName.RERANK, rerank)


def _merge_siblings(
    settings: SearchConfig, request: QueryRequest, tools: StageTools
) -> Stage | None:
    if settings.merge_threshold <= 0 or not request.merge:
        return None
    rules = MergeRules(
        settings.merge_threshold,
        settings.merge_bonus,
        settings.max_merge_depth,
        settings.max_merge_bytes,
    )
    naming = tools.naming
    # MMR's order is its choice, which sorting before the cut would undo.
    is_ordered = _is_diversified(settings, request)

    def merge(candidates: Sequence[Candidate]) -> Sequence[Candidate]:
        merged = merge_siblings(
            candidates, nodes_of=tools.nodes_of, rules=rules, is_named=tools.is_named
        )
        ordered = merged if is_ordered else best_first(merged)
        # A merged section may have risen above the one that is asked for by name.
        return ordered if naming is None else put_named_first(ordered, naming)

    return Stage(StageName.MERGE, merge, inside_another)


def _expand_to_parents(
    settings: SearchConfig, request: QueryRequest, tools: StageTools
) -> Stage | None:
    if tools.parent_size is None:
        return None
    expand = partial(
        expand_to_parents,
        nodes_of=tools.nodes_of,
        size=tools.parent_size,
        overlap=tools.parent_overlap,
        per_document=_hard_limit(settings, request) or request.top_n,
    )
    return Stage(StageName.PARENTS, expand, inside_another)


def _order(settings: SearchConfig, request: QueryRequest) -> Stage | None:
    if not settings.is_ordered_by_confidence or _is_diversified(settings, request):
        return None
    return Stage(StageName.ORDER, order_by_confidence)


def order_by_confidence(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Unless a second opinion has ordered them: candidates that it did not read stay behind."""
    is_judged = any(RERANK in item.boosts for item in candidates)
    return best_first(candidates) if is_judged else surest_first(candidates)


def _limit_per_document(settings: SearchConfig, request: QueryRequest) -> Stage | None:
    """A limit set by the user or the request is strict; the default limit can give way."""
    limit = places_of_a_document(settings, request)
    if limit <= 0:
        return None
    keep = partial(limit_per_document, limit=limit)
    if not _hard_limit(settings, request):
        keep = partial(prefer_other_documents, limit=limit, top_n=request.top_n)
    words = f"its document has {limit} better ones, the most that are shown"
    return Stage(StageName.DOCUMENT_LIMIT, keep, always(words))


def _hard_limit(settings: SearchConfig, request: QueryRequest) -> int:
    """0 if none was set."""
    is_asked = request.uniqueness is Uniqueness.DOCUMENT
    is_set = "max_chunks_per_doc" in settings.model_fields_set
    return places_of_a_document(settings, request) if is_asked or is_set else 0


def _take_top_n(settings: SearchConfig, request: QueryRequest, tools: StageTools) -> Stage:
    order = order_by_confidence if settings.is_ordered_by_confidence else best_first
    take = partial(take_first, top_n=request.top_n, order=order, floored=tools.floored)
    return Stage(StageName.TOP_N, take, always(f"not among the first {request.top_n}"))
