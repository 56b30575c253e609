"""Several ranked lists become one: by ranks (RRF), or by scaled scores.

Both say what each index contributed. A list's order is its own affair: higher is better, best
first, and of a chunk that stands in it twice only the better place counts.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from ragdocs.indices.hits import Hit
from ragdocs.search.candidates import Evidence, Strategy, Weights
from ragdocs.store.records import ChunkKey

# Cormack, Clarke and Büttcher 2009, and every seed.
RRF_K = 60
# What a passage can be measured against in full. Code and links can only add to that: a passage
# that has none must not lose by it.
MEASURED = (Strategy.SEMANTIC, Strategy.KEYWORD)

Lists = Mapping[Strategy, Sequence[Hit]]
Scale = Callable[[Strategy, Sequence[float]], Sequence[float]]
"""One index's scores, best first, into [0, 1]."""

LEAST_WEIGHT = 1e-9
"""Less is nothing: what is divided by it would be no number any more."""


class Fused(NamedTuple):
    """A chunk's place among all, and how it came to it: `score` is the sum of `contributions`.

    A tuple, because hundreds are made for every query.
    """

    key: ChunkKey
    score: float
    evidence: Mapping[Strategy, Evidence]
    contributions: Mapping[Strategy, float]


def fuse_by_rank(lists: Lists, weights: Weights, k: int = RRF_K) -> list[Fused]:
    """Weighted reciprocal rank fusion: Σ weight / (k + rank), ranks from 1."""

    def shares(_: Strategy, scores: Sequence[float]) -> list[float]:
        return [1.0 / (k + rank) for rank in range(1, len(scores) + 1)]

    return _fuse(lists, weights, shares)


def most_by_rank(lists: Lists, weights: Weights, k: int = RRF_K) -> float:
    """The score of a chunk that every index which was asked puts first."""
    measured = [strategy for strategy in MEASURED if strategy in lists] or list(lists)
    total = sum(max(0.0, weights.get(strategy, 1.0)) for strategy in measured)
    return total / (k + 1) if total > 0 else 1.0


def fuse_by_score(lists: Lists, weights: Weights, scale: Scale) -> list[Fused]:
    """`a·semantic + (1-a)·keyword`, where `a` is the semantic weight's part of the two; code and
    graph come on top. An index that was asked and found nothing (an empty list) keeps its part.
    """
    measured = [strategy for strategy in MEASURED if strategy in lists] or list(lists)
    total = sum(weights.get(strategy, 1.0) for strategy in measured)
    if total < LEAST_WEIGHT:
        return _fuse(lists, weights, scale)
    return _fuse(lists, {s: weights.get(s, 1.0) / total for s in lists}, scale)


def by_ideal(ideals: Mapping[Strategy, float]) -> Scale:
    """Score / ideal, where the ideal is the most this query could score (cosine: 1, the default).
    A query whose words are poorly covered so gives keyword search less say by itself.
    """

    def scale(strategy: Strategy, scores: Sequence[float]) -> list[float]:
        ideal = ideals.get(strategy, 1.0)
        return [min(1.0, max(0.0, score / ideal)) if ideal > 0 else 0.0 for score in scores]

    return scale


def by_range(_: Strategy, scores: Sequence[float]) -> list[float]:
    """The best of this query's list is 1, the worst 0; those of a list without spread are all 1."""
    low, spread = min(scores, default=0.0), max(scores, default=0.0) - min(scores, default=0.0)
    return [(score - low) / spread if spread > 0 else 1.0 for score in scores]


def _fuse(lists: Lists, weights: Weights, scale: Scale) -> list[Fused]:
    found: dict[ChunkKey, tuple[dict[Strategy, Evidence], dict[Strategy, float]]] = {}
    # In the order of Strategy, so that the sums do not depend on the order of the mapping.
    for strategy in Strategy:
        weight = weights.get(strategy, 1.0)
        if weight <= 0:
            continue
        hits = _distinct(lists.get(strategy, ()))
        shares = scale(strategy, [hit.score for hit in hits])
        for rank, ((key, score), share) in enumerate(zip(hits, shares, strict=True), start=1):
            evidence, parts = found.get(key) or found.setdefault(key, ({}, {}))
            evidence[strategy] = Evidence(rank, score)
            parts[strategy] = weight * share
    fused = [
        Fused(key, sum(parts.values()), evidence, parts) for key, (evidence, parts) in found.items()
    ]
    return sorted(fused, key=_place)


def _distinct(hits: Sequence[Hit]) -> Sequence[Hit]:
    first = {hit.key: hit for hit in reversed(hits)}
    return hits if len(first) == len(hits) else list(first.values())[::-1]


def _place(fused: Fused) -> tuple[float, int, ChunkKey]:
    """Equal scores are common with ranks: then the best single place decides, then the key."""
    return -fused.score, min(fused.evidence.values()).rank, fused.key
