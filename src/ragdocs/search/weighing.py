"""How much say each index has in one query, and what its hits come to together."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ragdocs.config.choices import Fusion
from ragdocs.config.sections import SearchConfig
from ragdocs.search.candidates import Strategy, Weights
from ragdocs.search.classifier import adaptive_weights
from ragdocs.search.fusion import (
    Fused,
    Lists,
    by_ideal,
    by_range,
    fuse_by_rank,
    fuse_by_score,
    most_by_rank,
)
from ragdocs.search.requests import QueryType
from ragdocs.search.variance import score_aware_weights
from ragdocs.store.records import ChunkKey


@dataclass(frozen=True, slots=True)
class Weighed:
    """Chunks best first, scores in [0, 1] but for what code and links add; the weights in force;
    and each chunk's evidence, which is the same whether the order was made by ranks or by scores.
    """

    fused: list[Fused]
    relevance: Mapping[ChunkKey, float]
    weights: Weights


def weigh(
    lists: Lists,
    ideals: Mapping[Strategy, float],
    query_type: QueryType,
    settings: SearchConfig,
) -> Weighed:
    weights = weights_for(lists, query_type, settings)
    by_score = fuse_by_score(lists, weights, by_ideal(ideals))
    relevance = {item.key: item.score for item in by_score}
    if settings.fusion is Fusion.SCORE:
        return Weighed(by_score, relevance, weights)
    # Ranks know nothing of scores, in which a neighbour's lower weight would otherwise show.
    lowered = weights[Strategy.GRAPH] * settings.graph_neighbor_weight
    ranked: Weights = {**weights, Strategy.GRAPH: lowered}
    fused = fuse_by_rank(lists, ranked, settings.rrf_k_constant)
    most = most_by_rank(lists, ranked, settings.rrf_k_constant)
    return Weighed([_scaled(item, most) for item in fused], relevance, weights)


def weights_for(lists: Lists, query_type: QueryType, settings: SearchConfig) -> Weights:
    weights: Weights = {
        Strategy.SEMANTIC: settings.semantic_weight,
        Strategy.KEYWORD: settings.keyword_weight,
        Strategy.CODE: settings.code_search_weight,
        Strategy.GRAPH: settings.graph_weight,
    }
    if settings.adaptive_weights_enabled:
        weights = adaptive_weights(weights, query_type)
    advanced = settings.advanced
    if advanced.dynamic_weights_enabled:
        scaled = {s: by_range(s, [hit.score for hit in hits]) for s, hits in lists.items()}
        weights = score_aware_weights(
            weights, scaled, advanced.variance_threshold, advanced.min_weight_factor
        )
    return weights


def _scaled(item: Fused, most: float) -> Fused:
    parts = {strategy: share / most for strategy, share in item.contributions.items()}
    return replace(item, score=item.score / most, contributions=parts)
