"""Fuses ranked lists into one, by ranks (RRF) or by scaled scores; balances meaning and words, and
adds links.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from math import inf
from typing import NamedTuple

from ragdocs.indices.conditions import Unit
from ragdocs.indices.hits import Hit
from ragdocs.indices.keyword import idf
from ragdocs.search.candidates import Evidence, Strategy, Weights
from ragdocs.store.records import ChunkKey

# The balance of meaning and words in one query (score fusion).
#
# A long query says much in its words, a short one little. If the best passage is near in meaning,
# meaning can be trusted; if one has most of the words, words can: a name, a title. If nothing is
# near, that favours neither: such a query may have words of its own, and a passage with some of
# them is often the wrong one. Chosen on all development sets (specs/0052), starting from the
# configured weights.

SHIFT = 0.10
"""The shift towards meaning for a query of usual length."""
NEAR_SIMILARITY, SIMILARITY_SLOPE = 0.5, 1.0
"""Above this similarity a passage is near, and meaning counts more."""
HIGH_COVERAGE, COVERAGE_SLOPE = 0.5, 0.5
"""Above this coverage a passage has most of the words, and words count more."""
USUAL_WORDS, FEWEST_WORDS, WORDS_SLOPE = 5, 4, 0.4
SMALLEST_SHARE, LARGEST_SHARE = 0.15, 0.9
"""Both always have some weight."""
NAME_SHARE, NAME_SIMILARITY, NAME_SLOPE = 0.3, 0.4, 3.0
"""A query of one word wants passages with that word, and models do not know identifiers: meaning
has at most this share, and more only if a passage is really near.
"""

FULL_COVERAGE = 0.7
"""Above this coverage prose has all that was asked for, and code blocks add nothing."""


FAIRLY_PROMINENT, PROMINENT = 5.0, 7.0
"""Deviations above the mean of the nearest passages. Above the second, meaning is sure of its best
passage and rare words change nothing; below the first they count in full."""
LEAST_RARE = 0.1
"""Rare words with a smaller share of the weight change nothing."""
FEW_CHUNKS = 60
"""A word in more chunks is not rare, and its documents are not looked up."""


FLOOR = 0.5
"""The document with the most rare words is in the answer if they have this weight."""
FEW_FORMS = 2
"""This many words that only one document has in the typed form are not there by chance."""
FORM_CHUNKS = 1_000
"""The forms of a word in more chunks are not looked up."""


class Signs(NamedTuple):
    """What a query and its best hits show: the best cosine; the best share of the highest possible
    word score in prose and in code; its number of words; whether it is a single name; the share of
    the words' weight that the rare words of one document have; and how far the nearest passage
    stands out.
    """

    similarity: float
    prose: float
    code: float
    words: int
    is_name: bool = False
    rare: float = 0.0
    prominence: float = 0.0


def balance(weights: Weights, signs: Signs) -> Weights:
    """Shifts the weights of meaning and words for this query, their sum unchanged, and lowers that
    of code if prose has the words.
    """
    weights = {**weights, Strategy.CODE: weights[Strategy.CODE] * code_part(signs.prose)}
    semantic, keyword = weights[Strategy.SEMANTIC], weights[Strategy.KEYWORD]
    if semantic <= 0 or keyword <= 0:
        return weights
    total = semantic + keyword
    share = semantic_share(semantic / total, signs)
    return {**weights, Strategy.SEMANTIC: share * total, Strategy.KEYWORD: (1.0 - share) * total}


def semantic_share(configured: float, signs: Signs) -> float:
    nearness = SIMILARITY_SLOPE * max(0.0, signs.similarity - NEAR_SIMILARITY)
    # A name found whole in a block of code is as good as one found in prose.
    covered = max(signs.prose, signs.code)
    coverage = COVERAGE_SLOPE * max(0.0, covered - HIGH_COVERAGE)
    length = WORDS_SLOPE * math.log(max(FEWEST_WORDS, signs.words) / USUAL_WORDS)
    share = configured + SHIFT + nearness - coverage - length
    if signs.is_name and covered > 0:
        share = min(share, share_of_a_name(signs.similarity))
    share = min(share, max(NAME_SHARE, 1.0 - signs.rare * uncertainty(signs.prominence)))
    return min(LARGEST_SHARE, max(SMALLEST_SHARE, share))


def uncertainty(prominence: float) -> float:
    """1 if no passage stands out by its meaning, 0 if one clearly does."""
    return min(1.0, max(0.0, (PROMINENT - prominence) / (PROMINENT - FAIRLY_PROMINENT)))


def rare_weights(total: int, frequencies: Mapping[Unit, int]) -> dict[Unit, float]:
    """The share of the words' weight (idf) that each rare word has; a word in only one chunk counts
    in full, others less.
    """
    weights = {unit: idf(total, min(total, count)) for unit, count in frequencies.items()}
    whole, most = sum(weights.values()), idf(total, 1)
    return {
        unit: weight / whole * (weight / most) ** 2
        for unit, weight in weights.items()
        if 0 < frequencies[unit] <= FEW_CHUNKS
    }


def share_of_a_name(similarity: float) -> float:
    return NAME_SHARE + NAME_SLOPE * max(0.0, similarity - NAME_SIMILARITY)


def code_part(prose: float) -> float:
    return min(1.0, max(0.0, (FULL_COVERAGE - prose) / (FULL_COVERAGE - HIGH_COVERAGE)))


# Several ranked lists become one: by ranks (RRF), or by scaled scores.
#
# Both record what each index contributed. Each list is best first, higher scores are better, and of
# a chunk that is in a list twice only the better place counts.

RRF_K = 60
"""Cormack, Clarke and Büttcher 2009, and every seed."""
MEASURED = (Strategy.SEMANTIC, Strategy.KEYWORD)
"""The indices that every passage is measured by. Code and links can only add to that: a passage
without them must not lose.
"""

Lists = Mapping[Strategy, Sequence[Hit]]
Scale = Callable[[Strategy, Sequence[float]], Sequence[float]]
"""One index's scores, best first, into [0, 1]."""

LEAST_WEIGHT = 1e-9
"""Less counts as nothing: dividing by it would overflow."""


class Wanted(NamedTuple):
    """The best `most` chunks and, wherever they rank, `others`: all that a caller will use."""

    most: int
    others: Set[ChunkKey]

    def of(self, scores: Mapping[ChunkKey, float]) -> dict[ChunkKey, float]:
        ranked = sorted(scores.values(), reverse=True)
        least = ranked[self.most - 1] if len(ranked) > self.most else -inf
        return {k: score for k, score in scores.items() if score >= least or k in self.others}


class Fused(NamedTuple):
    """A chunk in the fused list; `score` is the sum of `contributions`.

    A tuple, because every query makes hundreds.
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
    """The score of a chunk that every searched index puts first."""
    measured = [strategy for strategy in MEASURED if strategy in lists] or list(lists)
    total = sum(max(0.0, weights.get(strategy, 1.0)) for strategy in measured)
    return total / (k + 1) if total > 0 else 1.0


def fuse_by_score(
    lists: Lists, weights: Weights, scale: Scale, wanted: Wanted | None = None
) -> list[Fused]:
    """`a·semantic + (1-a)·keyword`, where `a` is the semantic share of the two weights; code and
    graph are added. An index that was searched and found nothing (an empty list) keeps its share.
    """
    measured = [strategy for strategy in MEASURED if strategy in lists] or list(lists)
    total = sum(weights.get(strategy, 1.0) for strategy in measured)
    if total < LEAST_WEIGHT:
        return _fuse(lists, weights, scale, wanted)
    return _fuse(lists, {s: weights.get(s, 1.0) / total for s in lists}, scale, wanted)


def by_ideal(ideals: Mapping[Strategy, float]) -> Scale:
    """Score / ideal, where the ideal is the highest possible score of this query (cosine: 1, the
    default). So keyword search counts less in a query whose words are poorly covered.
    """

    def scale(strategy: Strategy, scores: Sequence[float]) -> list[float]:
        ideal = ideals.get(strategy, 1.0)
        if ideal <= 0:
            return [0.0] * len(scores)
        shares = [score / ideal for score in scores]
        # Best first, so usually all are in [0, 1].
        if shares and shares[0] <= 1.0 and shares[-1] >= 0.0:
            return shares
        return [min(1.0, max(0.0, share)) for share in shares]

    return scale


def by_range(_: Strategy, scores: Sequence[float]) -> list[float]:
    """The best of this query's list is 1, the worst 0; in a list without spread all are 1."""
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
    """Groups of equal scores, each in order."""
    start = 0
    for end in range(1, len(fused) + 1):
        if end == len(fused) or fused[end].score != fused[start].score:
            yield (
                fused[start:end] if end - start == 1 else sorted(fused[start:end], key=_rank_order)
            )
            start = end


def _distinct(hits: Sequence[Hit]) -> Sequence[Hit]:
    if len({key for key, _ in hits}) == len(hits):
        return hits
    first = {hit.key: hit for hit in reversed(hits)}
    return list(first.values())[::-1]


def _rank_order(fused: Fused) -> tuple[float, int, ChunkKey]:
    """Equal scores are common with ranks: then the best single place decides, then the key."""
    return -fused.score, min(fused.evidence.values()).rank, fused.key


# Links raise passages.
#
# They bring a passage nearer to the best, never past it; the nearer it already is, the less they
# add. So linked pages appear, but cannot crowd out passages that answer the query by themselves.


def with_links(fused: Sequence[Fused], linked: Sequence[Hit], weight: float) -> list[Fused]:
    """Best first. `linked` are the neighbours' passages, best first, with scores in [0, 1]."""
    best = max((item.score for item in fused), default=0.0)
    if not linked or best <= 0 or weight <= 0:
        return list(fused)
    found = {item.key: item for item in fused}
    for rank, hit in enumerate(linked, start=1):
        own = found.get(hit.key) or Fused(hit.key, 0.0, {}, {})
        found[hit.key] = _nearer(own, hit, rank, weight, best)
    return sorted(found.values(), key=_link_order)


def _nearer(item: Fused, hit: Hit, rank: int, weight: float, best: float) -> Fused:
    gain = (best - item.score) * min(1.0, weight * hit.score / best)
    return item._replace(
        score=item.score + gain,
        evidence={**item.evidence, Strategy.GRAPH: Evidence(rank, hit.score)},
        contributions={**item.contributions, Strategy.GRAPH: gain},
    )


def _link_order(item: Fused) -> tuple[float, float]:
    """Of equal ones, the one that owes less to its links comes first, then the earlier one."""
    return -item.score, item.contributions.get(Strategy.GRAPH, 0.0)
