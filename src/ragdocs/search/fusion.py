"""Several ranked lists become one: by ranks (RRF), or by scaled scores.

Both say what each index contributed. A list's order is its own affair: higher is better, best
first, and of a chunk that stands in it twice only the better place counts.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from math import inf
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


class Wanted(NamedTuple):
    """The best `most` chunks and, wherever they stand, `others`: all that a caller will look at."""

    most: int
    others: Set[ChunkKey]

    def of(self, scores: Mapping[ChunkKey, float]) -> dict[ChunkKey, float]:
        ranked = sorted(scores.values(), reverse=True)
        least = ranked[self.most - 1] if len(ranked) > self.most else -inf
        return {k: score for k, score in scores.items() if score >= least or k in self.others}


class Fused(NamedTuple):
    """A chunk's place among all, and how it came to it: `score` is the sum of `contributions`.

    A tuple, because hundreds are made for every query.
    """

    key: ChunkKey
    score: float
    evidence: dict[Strategy, Evidence]
    contributions: dict[Strategy, float]


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


def fuse_by_score(
    lists: Lists, weights: Weights, scale: Scale, wanted: Wanted | None = None
) -> list[Fused]:
    """`a·semantic + (1-a)·keyword`, where `a` is the semantic weight's part of the two; code and
    graph come on top. An index that was asked and found nothing (an empty list) keeps its part.
    """
    measured = [strategy for strategy in MEASURED if strategy in lists] or list(lists)
    total = sum(weights.get(strategy, 1.0) for strategy in measured)
    if total < LEAST_WEIGHT:
        return _fuse(lists, weights, scale, wanted)
    return _fuse(lists, {s: weights.get(s, 1.0) / total for s in lists}, scale, wanted)


def by_ideal(ideals: Mapping[Strategy, float]) -> Scale:
    """Score / ideal, where the ideal is the most this query could score (cosine: 1, the default).
    A query whose words are poorly covered so gives keyword search less say by itself.
    """

    def scale(strategy: Strategy, scores: Sequence[float]) -> list[float]:
        ideal = ideals.get(strategy, 1.0)
        if ideal <= 0:
            return [0.0] * len(scores)
        shares = [score / ideal for score in scores]
        # Best first, so these are all in [0, 1] as a rule.
        if shares and shares[0] <= 1.0 and shares[-1] >= 0.0:
            return shares
        return [min(1.0, max(0.0, share)) for share in shares]

    return scale


def by_range(_: Strategy, scores: Sequence[float]) -> list[float]:
    """The best of this query's list is 1, the worst 0; those of a list without spread are all 1."""
    low, spread = min(scores, default=0.0), max(scores, default=0.0) - min(scores, default=0.0)
    return [(score - low) / spread if spread > 0 else 1.0 for score in scores]


def _fuse(
    lists: Lists, weights: Weights, scale: Scale, wanted: Wanted | None = None
) -> list[Fused]:
    scores: dict[ChunkKey, float] = {}
    listed: list[tuple[Strategy, Sequence[Hit], Sequence[float]]] = []
    # In the order of Strategy, so that the sums do not depend on the order of the mapping.
    for strategy in Strategy:
        weight = weights.get(strategy, 1.0)
        if weight > 0:
            hits = _distinct(lists.get(strategy, ()))
            shares = [weight * share for share in scale(strategy, [hit.score for hit in hits])]
            listed.append((strategy, hits, shares))
            for (key, _), share in zip(hits, shares, strict=True):
                scores[key] = scores.get(key, 0.0) + share
    kept = scores if wanted is None else wanted.of(scores)
    ranked = sorted(kept, key=kept.__getitem__, reverse=True)
    fused = {key: Fused(key, kept[key], {}, {}) for key in ranked}
    for strategy, hits, shares in listed:
        for rank, ((key, score), share) in enumerate(zip(hits, shares, strict=True), start=1):
            if key in fused:
                _, _, evidence, contributions = fused[key]
                evidence[strategy] = Evidence(rank, score)
                contributions[strategy] = share
    ordered = list(fused.values())
    if len(set(kept.values())) == len(kept):
        return ordered
    return [item for equals in _equals(ordered) for item in equals]


def _equals(fused: Sequence[Fused]) -> Iterator[Sequence[Fused]]:
    """Equal scores are common with ranks: then the best single place decides, then the key."""
    start = 0
    for end in range(1, len(fused) + 1):
        if end == len(fused) or fused[end].score != fused[start].score:
            yield fused[start:end] if end - start == 1 else sorted(fused[start:end], key=_place)
            start = end


def _distinct(hits: Sequence[Hit]) -> Sequence[Hit]:
    if len({key for key, _ in hits}) == len(hits):
        return hits
    first = {hit.key: hit for hit in reversed(hits)}
    return list(first.values())[::-1]


def _place(fused: Fused) -> tuple[float, int, ChunkKey]:
    """Equal scores are common with ranks: then the best single place decides, then the key."""
    return -fused.score, min(fused.evidence.values()).rank, fused.key
