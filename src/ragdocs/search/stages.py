"""The stages between fusion and answer: built from the settings, run in order, counted,
explained.
"""

from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import partial
from time import perf_counter
from typing import Self

from ragdocs.chunking.splitting import Limits, heading_path
from ragdocs.config.settings import SearchConfig
from ragdocs.embedding.cross_encoder import CrossEncoder
from ragdocs.errors import EmbeddingError
from ragdocs.indices.signatures import jaccard, ngrams
from ragdocs.models import ChunkId, DocId
from ragdocs.search.boosts import BoostRules, boosted, recency_factor
from ragdocs.search.candidates import (
    RERANK,
    Candidate,
    NodesOf,
    Stage,
    best_first,
    rescored,
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
from ragdocs.search.filters import cut_at_elbow, filter_by_confidence, filter_matching
from ragdocs.search.query_language import parse_query
from ragdocs.search.requests import Filters, QueryRequest, Uniqueness
from ragdocs.search.sections import (
    IsNamed,
    MergeRules,
    Naming,
    expand_to_parents,
    merge_siblings,
    put_named_first,
)

# Why a stage let a candidate fall, in words. Worked out only when somebody asks for it.

Reason = Callable[[Candidate, Sequence[Candidate]], str]
"""Of a fallen candidate and those that were left."""


def always(words: str) -> Reason:
    return lambda _item, _left: words


def unexplained(_item: Candidate, _left: Sequence[Candidate]) -> str:
    """For a stage that lets nothing fall."""
    return ""


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


def swallowed(item: Candidate, left: Sequence[Candidate]) -> str:
    """Merged into a section, or inside another result's passage."""
    for other in left:
        if any(item.stored.key == leaf.key for leaf in (*other.passage, *other.constituents)):
            return f"part of {other.id}"
    return "overlaps a better result, or is not among the first"


def _like(what: str, likeness: Sequence[float], left: Sequence[Candidate]) -> str:
    if not likeness:
        return f"its {what} is that of a better one"
    best = max(range(len(likeness)), key=likeness.__getitem__)
    return f"its {what} is {likeness[best]:.2f} like that of {left[best].id}"


# A second opinion by a cross-encoder (P6): it reads the query and each passage together.


class Reranker:
    """One request's judge: made for it, called by the pipeline, then asked for its notes.

    It judges by the queries; by the hypothesis only where nothing else is asked, for such models
    are trained on questions.
    """

    def __init__(self, encoder: CrossEncoder, queries: Sequence[str], hypothesis: str = "") -> None:
        self._encoder = encoder
        # What is looked for, without operators, exclusions and filters: the model knows none.
        # A hypothesis is prose, and has no operators.
        texts = [parse_query(query).text.strip() for query in queries]
        asked = tuple(dict.fromkeys(text for text in texts if text))
        self._queries = asked or ((hypothesis,) if hypothesis.strip() else ())
        self.notes: tuple[str, ...] = ()

    def __call__(self, candidates: Sequence[Candidate]) -> list[float]:
        """For each candidate the best score that any of the queries gives it; none when the model
        fails or there is nothing to ask, and then the candidates stay as they are."""
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
    """What the model reads: where the passage stands, as the embedder sees it, and its words."""
    parts = (heading_path(candidate.stored.chunk), candidate.text.strip())
    return "\n\n".join(part for part in parts if part)


# Running the stages, and what each left: the statistics are made from these counts alone.


class StageName(StrEnum):
    """Every stage, in the order in which they run, and why there."""

    CANDIDATES = "candidates"
    """First of all: what is not to be judged takes no part in anything."""
    BOOST = "boost"
    """On raw scores, which the curve must see with their boosts."""
    CALIBRATE = "calibrate"
    """All that follow judge figures in [0, 1]."""
    CONFIDENCE = "confidence"
    """Early: noise is not worth comparing, and must not displace anything."""
    FILTERS = "filters"
    NAMED = "named"
    """Before anything is cut: the section that is asked for by name is its document's best."""
    CUTOFF = "cutoff"
    IDENTICAL = "identical"
    """From cheap to dear, and each on fewer: hash, wording, meaning."""
    NGRAM = "ngram"
    SEMANTIC = "semantic"
    MMR = "mmr"
    RERANK = "rerank"
    """The dearest, so on what is left, and on the small passages it was trained for."""
    MERGE = "merge"
    """Changes what a result is: nothing after it compares texts."""
    PARENTS = "parents"
    ORDER = "order"
    """By confidence, before places are given out: what is surest has the first."""
    DOCUMENT_LIMIT = "document_limit"
    """Of what is shown: after duplicates are gone and sections are merged."""
    TOP_N = "top_n"


@dataclass(frozen=True, slots=True)
class Fallen:
    """A chunk that a stage let go (or merged into another), as it was then, and why."""

    id: ChunkId
    score: float
    confidence: float
    reason: str


@dataclass(frozen=True, slots=True)
class StageCount:
    """What went into a stage and what came out; which chunks fell there, if that was asked for."""

    name: str
    before: int
    after: int
    fallen: tuple[Fallen, ...] = ()
    seconds: float = field(default=0.0, compare=False)


@dataclass(frozen=True, slots=True)
class CompressionStats:
    """How many results each kind of thinning left, by the seeds' names. `after_threshold` is what
    the confidence, the filters and the cutoff left."""

    original_count: int
    after_threshold: int
    after_content_dedup: int
    after_ngram_dedup: int
    after_dedup: int
    after_doc_limit: int
    clusters_merged: int

    @classmethod
    def from_counts(cls, original: int, counts: Sequence[StageCount]) -> Self:
        """A stage that was off leaves what the one before it left."""
        left = {count.name: count.after for count in counts}

        after: dict[StageName, int] = {}
        latest = original
        for name in StageName:
            latest = after[name] = left.get(name, latest)

        return cls(
            original_count=original,
            # All that is judged by its worth: what deduplication leaves is less by copies alone.
            after_threshold=after[StageName.CUTOFF],
            after_content_dedup=after[StageName.IDENTICAL],
            after_ngram_dedup=after[StageName.NGRAM],
            after_dedup=after[StageName.MMR],
            after_doc_limit=after[StageName.DOCUMENT_LIMIT],
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
    """What is left after all of them, and the counts in order."""
    counts: list[StageCount] = []
    for stage in stages:
        start = clock()
        left = stage.apply(candidates)
        seconds = clock() - start
        fallen = _fallen(stage, candidates, left) if explain else ()
        counts.append(StageCount(stage.name, len(candidates), len(left), fallen, seconds))
        candidates = left
    return candidates, tuple(counts)


def _fallen(
    stage: Stage, before: Sequence[Candidate], left: Sequence[Candidate]
) -> tuple[Fallen, ...]:
    remaining = {item.id for item in left}
    return tuple(
        Fallen(item.id, item.score, item.confidence, stage.reason(item, left))
        for item in before
        if item.id not in remaining
    )


# From a request and the settings to the list of stages; one that is off is not in it.

Apply = Callable[[Sequence[Candidate]], Sequence[Candidate]]
Judge = Callable[[Sequence[Candidate]], Sequence[float]]
"""A second opinion: a score in [0, 1] for each candidate, against the query it was made with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StageTools:
    """What single stages need beyond the candidates; without its tool a stage is off."""

    nodes_of: NodesOf
    is_named: IsNamed = lambda _: False
    naming: Naming | None = None
    floored: Set[DocId] = frozenset()
    boosts: BoostRules | None = None
    judge: Judge | None = None
    parent_size: Limits | None = None
    parent_overlap: int = 0


def compares_meaning(settings: SearchConfig, request: QueryRequest) -> bool:
    """Whether a stage may want the candidates' vectors."""
    return settings.mmr_enabled or settings.dedup_enabled or _is_thinning_asked_for(request)


def places_of_a_document(settings: SearchConfig, request: QueryRequest) -> int:
    """How many results one document may have; 0 is no limit."""
    return 1 if request.uniqueness is Uniqueness.DOCUMENT else settings.max_chunks_per_doc


def build_stages(
    settings: SearchConfig, request: QueryRequest, tools: StageTools
) -> tuple[Stage, ...]:
    plan = _Plan()
    _judge(plan, settings, request, tools)
    _thin(plan, settings, request)
    _shape(plan, settings, request, tools)
    return plan.in_order()


class _Plan:
    """The stages that are on. Their order is StageName's, written there with its reasons."""

    def __init__(self) -> None:
        self._stages: dict[StageName, Stage] = {}

    def __contains__(self, name: StageName) -> bool:
        return name in self._stages

    def add(self, name: StageName, apply: Apply, reason: Reason = unexplained) -> None:
        self._stages[name] = Stage(name, apply, reason)

    def in_order(self) -> tuple[Stage, ...]:
        return tuple(stage for name in StageName if (stage := self._stages.get(name)))


def _judge(plan: _Plan, settings: SearchConfig, request: QueryRequest, tools: StageTools) -> None:
    if settings.candidate_limit > 0:
        take = partial(take_first, top_n=settings.candidate_limit)
        words = f"{settings.candidate_limit} were found that are better, and more are not judged"
        plan.add(StageName.CANDIDATES, take, always(words))
    plan.add(StageName.CALIBRATE, _calibration(settings, tools.boosts))
    if tools.boosts is not None:
        rules = replace(tools.boosts, tree_normalisation=settings.tree_normalisation)
        plan.add(StageName.BOOST, partial(boosted, rules=rules))
    threshold = settings.min_confidence if request.min_score is None else request.min_score
    if threshold > 0:
        keep = partial(filter_by_confidence, threshold=threshold)
        plan.add(StageName.CONFIDENCE, keep, low_confidence(threshold))
    if request.filters != Filters():
        keep = partial(filter_matching, filters=request.filters)
        plan.add(StageName.FILTERS, keep, always("a filter leaves its document out"))
    if tools.naming is not None:
        plan.add(StageName.NAMED, partial(put_named_first, naming=tools.naming))
    # Several queries have each an elbow of their own, which was cut before they were put together.
    if settings.cutoff_ratio > 0 and len(request.queries) < 2:
        cut = partial(cut_at_elbow, ratio=settings.cutoff_ratio)
        words = f"from here on scores fall below {settings.cutoff_ratio:g} of the one before"
        plan.add(StageName.CUTOFF, cut, always(words))


def _calibration(settings: SearchConfig, boosts: BoostRules | None) -> Apply:
    by_rank = settings.rank_sum_curve
    if by_rank is None:
        evidence = settings.score_calibration_threshold, settings.score_calibration_steepness
        return partial(calibrate, curve=Calibration(*evidence))
    curve = Calibration(by_rank.threshold, by_rank.steepness)
    if boosts is None:
        return partial(calibrate, curve=curve)
    recency = partial(recency_factor, now=boosts.now, bias=boosts.recency_bias)
    return partial(calibrate, curve=curve, factor=lambda item: recency(item.document.date))


def _thin(plan: _Plan, settings: SearchConfig, request: QueryRequest) -> None:
    """`uniqueness` in a request: off lets copies stay, content removes every kind of them."""
    is_every = request.uniqueness is Uniqueness.CONTENT
    if request.uniqueness is not Uniqueness.OFF:
        plan.add(StageName.IDENTICAL, drop_identical, same_text)
        if settings.ngram_dedup_enabled or is_every:
            drop = partial(drop_near_copies, threshold=settings.ngram_dedup_threshold)
            plan.add(StageName.NGRAM, drop, same_wording)
    _spread(plan, settings, request)


def _is_thinning_asked_for(request: QueryRequest) -> bool:
    is_every = request.uniqueness is Uniqueness.CONTENT
    return is_every or request.similarity_threshold is not None


def _spread(plan: _Plan, settings: SearchConfig, request: QueryRequest) -> None:
    """One or the other: MMR, unless the request itself asks for similar passages to be dropped."""
    is_asked_for = _is_thinning_asked_for(request)
    if settings.mmr_enabled and not is_asked_for:
        select = partial(select_mmr, mmr_lambda=settings.mmr_lambda)
        words = f"others are as relevant and less alike, or {MAX_CANDIDATES} came before it"
        plan.add(StageName.MMR, select, always(words))
        return
    threshold = request.similarity_threshold
    if threshold is None:
        threshold = settings.dedup_similarity_threshold
    is_wanted = settings.dedup_enabled or is_asked_for
    if is_wanted and request.uniqueness is not Uniqueness.OFF:
        plan.add(StageName.SEMANTIC, partial(drop_similar, threshold=threshold), same_meaning)


def _shape(plan: _Plan, settings: SearchConfig, request: QueryRequest, tools: StageTools) -> None:
    if settings.rerank_enabled and tools.judge is not None:
        # MMR chose the set, and a second opinion orders it: it must not choose others.
        limit = request.top_n if StageName.MMR in plan else settings.rerank_top_n
        first = min(settings.rerank_top_n, limit)
        plan.add(StageName.RERANK, _reranking(tools.judge, first, settings.rerank_weight))
    if settings.merge_threshold > 0:
        rules = MergeRules(
            settings.merge_threshold,
            settings.merge_bonus,
            settings.max_merge_depth,
            settings.max_merge_bytes,
        )
        merge = partial(
            merge_siblings, nodes_of=tools.nodes_of, rules=rules, is_named=tools.is_named
        )
        # MMR's order is its choice, which sorting before the cut would undo.
        keeps_order = StageName.MMR in plan
        apply: Apply = merge if keeps_order else lambda items: best_first(merge(items))
        plan.add(StageName.MERGE, _then_named(apply, tools.naming), swallowed)
    if tools.parent_size is not None:
        expand = partial(
            expand_to_parents,
            nodes_of=tools.nodes_of,
            size=tools.parent_size,
            overlap=tools.parent_overlap,
            per_document=_hard_limit(settings, request) or request.top_n,
        )
        plan.add(StageName.PARENTS, expand, swallowed)
    is_by_confidence = settings.is_ordered_by_confidence
    if is_by_confidence and StageName.MMR not in plan:
        plan.add(StageName.ORDER, _in_order)
    _limit(plan, settings, request)
    order = _in_order if is_by_confidence else best_first
    take = partial(take_first, top_n=request.top_n, order=order, floored=tools.floored)
    plan.add(StageName.TOP_N, take, always(f"not among the first {request.top_n}"))


def _in_order(candidates: Sequence[Candidate]) -> list[Candidate]:
    """By confidence, unless a second opinion has ordered them: what it did not read stays behind
    what it did."""
    is_judged = any(RERANK in item.boosts for item in candidates)
    return best_first(candidates) if is_judged else surest_first(candidates)


def _then_named(apply: Apply, naming: Naming | None) -> Apply:
    """A merged section may have risen above the one that is asked for by name."""
    if naming is None:
        return apply
    return lambda items: put_named_first(apply(items), naming)


def _limit(plan: _Plan, settings: SearchConfig, request: QueryRequest) -> None:
    """What the user or the request has set is kept to; the usual limit can give way."""
    hard = _hard_limit(settings, request)
    limit = places_of_a_document(settings, request)
    if limit <= 0:
        return
    keep = partial(limit_per_document, limit=limit)
    if not hard:
        keep = partial(prefer_other_documents, limit=limit, top_n=request.top_n)
    words = f"its document has better ones, and only {limit} may stay"
    plan.add(StageName.DOCUMENT_LIMIT, keep, always(words))


def _hard_limit(settings: SearchConfig, request: QueryRequest) -> int:
    """0 where none was set."""
    is_asked = request.uniqueness is Uniqueness.DOCUMENT
    is_set = "max_chunks_per_doc" in settings.model_fields_set
    return places_of_a_document(settings, request) if is_asked or is_set else 0


def _reranking(judge: Judge, first: int, weight: float) -> Apply:
    return lambda candidates: rescored(candidates, judge(candidates[:first]), weight)
