"""From a request and the settings to the list of stages; one that is off is not in it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from ragdocs.chunking.splitting import Limits
from ragdocs.config.sections import SearchConfig
from ragdocs.search.boosts import BoostRules, boosted
from ragdocs.search.calibration import Calibration, calibrate
from ragdocs.search.candidates import Candidate, Stage
from ragdocs.search.chunk_tree import NodesOf
from ragdocs.search.dedup import (
    drop_identical,
    drop_near_copies,
    drop_similar,
    limit_per_document,
)
from ragdocs.search.diversity import select_mmr
from ragdocs.search.filters import cut_at_elbow, filter_by_confidence, filter_matching
from ragdocs.search.merging import IsNamed, MergeRules, merge_siblings
from ragdocs.search.ordering import best_first, rescored, take_first
from ragdocs.search.parents import expand_to_parents
from ragdocs.search.requests import Filters, QueryRequest, Uniqueness
from ragdocs.search.stages import StageName

Apply = Callable[[Sequence[Candidate]], Sequence[Candidate]]
Judge = Callable[[Sequence[Candidate]], Sequence[float]]
"""A second opinion: a score in [0, 1] for each candidate, against the query it was made with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StageTools:
    """What single stages need beyond the candidates; without its tool a stage is off."""

    nodes_of: NodesOf
    is_named: IsNamed = lambda _: False
    boosts: BoostRules | None = None
    judge: Judge | None = None
    parent_size: Limits | None = None


def build_stages(
    settings: SearchConfig, request: QueryRequest, tools: StageTools
) -> tuple[Stage, ...]:
    plan = _judging(settings, request, tools) | _thinning(settings, request)
    plan |= _shaping(settings, request, tools, is_chosen=StageName.MMR in plan)
    # The order is StageName's, written there with its reasons.
    return tuple(Stage(name, apply) for name in StageName if (apply := plan.get(name)))


def _judging(
    settings: SearchConfig, request: QueryRequest, tools: StageTools
) -> dict[StageName, Apply]:
    curve = Calibration(settings.score_calibration_threshold, settings.score_calibration_steepness)
    plan: dict[StageName, Apply] = {StageName.CALIBRATE: partial(calibrate, curve=curve)}
    if tools.boosts is not None:
        plan[StageName.BOOST] = partial(boosted, rules=tools.boosts)
    threshold = settings.min_confidence if request.min_score is None else request.min_score
    if threshold > 0:
        plan[StageName.CONFIDENCE] = partial(filter_by_confidence, threshold=threshold)
    if request.filters != Filters():
        plan[StageName.FILTERS] = partial(filter_matching, filters=request.filters)
    if settings.cutoff_ratio > 0:
        plan[StageName.CUTOFF] = partial(cut_at_elbow, ratio=settings.cutoff_ratio)
    return plan


def _thinning(settings: SearchConfig, request: QueryRequest) -> dict[StageName, Apply]:
    """`uniqueness` in a request: off lets copies stay, content removes every kind of them."""
    plan: dict[StageName, Apply] = {}
    is_every = request.uniqueness is Uniqueness.CONTENT
    if request.uniqueness is not Uniqueness.OFF:
        plan[StageName.IDENTICAL] = drop_identical
        if settings.ngram_dedup_enabled or is_every:
            plan[StageName.NGRAM] = partial(
                drop_near_copies, threshold=settings.ngram_dedup_threshold
            )
    plan |= _spreading(settings, request, is_every)
    limit = 1 if request.uniqueness is Uniqueness.DOCUMENT else settings.max_chunks_per_doc
    if limit > 0:
        plan[StageName.DOCUMENT_LIMIT] = partial(limit_per_document, limit=limit)
    return plan


def _spreading(
    settings: SearchConfig, request: QueryRequest, is_every: bool
) -> dict[StageName, Apply]:
    """One or the other: MMR, unless the request itself asks for similar passages to be dropped."""
    is_asked_for = is_every or request.similarity_threshold is not None
    if settings.mmr_enabled and not is_asked_for:
        return {StageName.MMR: partial(select_mmr, mmr_lambda=settings.mmr_lambda)}
    threshold = request.similarity_threshold
    if threshold is None:
        threshold = settings.dedup_similarity_threshold
    is_wanted = settings.dedup_enabled or is_asked_for
    if is_wanted and request.uniqueness is not Uniqueness.OFF:
        return {StageName.SEMANTIC: partial(drop_similar, threshold=threshold)}
    return {}


def _shaping(
    settings: SearchConfig, request: QueryRequest, tools: StageTools, *, is_chosen: bool
) -> dict[StageName, Apply]:
    plan: dict[StageName, Apply] = {StageName.TOP_N: partial(take_first, top_n=request.top_n)}
    if settings.rerank_enabled and tools.judge is not None:
        plan[StageName.RERANK] = partial(_rerank, judge=tools.judge, first=settings.rerank_top_n)
    if settings.merge_threshold > 0:
        rules = MergeRules(settings.merge_threshold, settings.merge_bonus, settings.max_merge_depth)
        merge = partial(
            merge_siblings, nodes_of=tools.nodes_of, rules=rules, is_named=tools.is_named
        )
        # MMR's order is its choice, which sorting before the cut would undo.
        keeps_order = is_chosen and StageName.RERANK not in plan
        plan[StageName.MERGE] = merge if keeps_order else lambda items: best_first(merge(items))
    if tools.parent_size is not None:
        plan[StageName.PARENTS] = partial(
            expand_to_parents, nodes_of=tools.nodes_of, size=tools.parent_size, top_n=request.top_n
        )
    return plan


def _rerank(candidates: Sequence[Candidate], judge: Judge, first: int) -> list[Candidate]:
    return rescored(candidates, judge(candidates[:first]))
