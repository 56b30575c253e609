"""How much say each index has in one query, and what its hits come to together."""

from dataclasses import dataclass, replace

from ragdocs.config.choices import Fusion
from ragdocs.config.sections import SearchConfig
from ragdocs.search.balance import balanced
from ragdocs.search.candidates import Strategy, Weights
from ragdocs.search.classifier import adaptive_weights
from ragdocs.search.fusion import (
    Fused,
    by_ideal,
    by_range,
    fuse_by_rank,
    fuse_by_score,
    most_by_rank,
)
from ragdocs.search.requests import QueryType
from ragdocs.search.retrieval import Found
from ragdocs.search.variance import score_aware_weights


@dataclass(frozen=True, slots=True)
class Weighed:
    """Chunks best first, their scores in [0, 1] but for what code and links add; and the weights
    in force.
    """

    fused: list[Fused]
    weights: Weights


def weigh(found: Found, query_type: QueryType, settings: SearchConfig) -> Weighed:
    weights = weights_for(found, query_type, settings)
    if settings.fusion is Fusion.SCORE:
        fused = fuse_by_score(found.lists, weights, by_ideal(found.ideals))
        return Weighed(_below_the_best(fused), weights)
    # Ranks know nothing of scores, in which a neighbour's lower weight would otherwise show.
    lowered = weights[Strategy.GRAPH] * settings.graph_neighbor_weight
    weights = {**weights, Strategy.GRAPH: lowered}
    fused = fuse_by_rank(found.lists, weights, settings.rrf_k_constant)
    most = most_by_rank(found.lists, weights, settings.rrf_k_constant)
    return Weighed([_scaled(item, most) for item in fused], weights)


def weights_for(found: Found, query_type: QueryType, settings: SearchConfig) -> Weights:
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
        lists = found.lists
        scaled = {s: by_range(s, [hit.score for hit in hits]) for s, hits in lists.items()}
        weights = score_aware_weights(
            weights, scaled, advanced.variance_threshold, advanced.min_weight_factor
        )
    if settings.balance_enabled and settings.fusion is Fusion.SCORE and found.vector is not None:
        weights = balanced(weights, found.best_similarity, found.words)
    return weights


def _below_the_best(fused: list[Fused]) -> list[Fused]:
    """Links bring a passage nearer to the best that was found by its own text, never past it: the
    nearer it is already, the less they add.
    """
    own = {item.key: item.score - item.contributions.get(Strategy.GRAPH, 0.0) for item in fused}
    best = max(own.values(), default=0.0)
    if best <= 0 or not any(Strategy.GRAPH in item.contributions for item in fused):
        return fused
    limited = [_limited(item, own[item.key], best) for item in fused]
    return sorted(limited, key=lambda item: (-item.score, -own[item.key], item.key))


def _limited(item: Fused, own: float, best: float) -> Fused:
    if Strategy.GRAPH not in item.contributions:
        return item
    distance = best - own
    gain = distance * min(1.0, item.contributions[Strategy.GRAPH] / best)
    return replace(
        item, score=own + gain, contributions={**item.contributions, Strategy.GRAPH: gain}
    )


def _scaled(item: Fused, most: float) -> Fused:
    parts = {strategy: share / most for strategy, share in item.contributions.items()}
    return replace(item, score=item.score / most, contributions=parts)
