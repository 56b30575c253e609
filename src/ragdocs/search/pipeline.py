"""From a request and the settings to the list of stages; one that is off is not in it."""

from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, replace
from functools import partial

from ragdocs.chunking.splitting import Limits
from ragdocs.config.search_section import SearchConfig
from ragdocs.models import DocId
from ragdocs.search.boosts import BoostRules, boosted
from ragdocs.search.calibration import Calibration, calibrate
from ragdocs.search.candidates import Candidate, Stage
from ragdocs.search.chunk_tree import NodesOf
from ragdocs.search.dedup import (
    drop_identical,
    drop_near_copies,
    drop_similar,
    limit_per_document,
    prefer_other_documents,
)
from ragdocs.search.diversity import MAX_CANDIDATES, select_mmr
from ragdocs.search.filters import cut_at_elbow, filter_by_confidence, filter_matching
from ragdocs.search.merging import IsNamed, MergeRules, merge_siblings
from ragdocs.search.ordering import RERANK, best_first, rescored, surest_first, take_first
from ragdocs.search.parents import expand_to_parents
from ragdocs.search.reasons import (
    Reason,
    always,
    low_confidence,
    same_meaning,
    same_text,
    same_wording,
    swallowed,
    unexplained,
)
from ragdocs.search.recency import recency_factor
from ragdocs.search.requests import Filters, QueryRequest, Uniqueness
from ragdocs.search.sections import Naming, put_named_first
from ragdocs.search.stages import StageName

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
