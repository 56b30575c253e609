"""A second look at the candidates without a model: whether the query's words stand together, and
what resembles the best passage.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import inf

from ragdocs.config.choices import Fusion
from ragdocs.config.settings import SearchConfig
from ragdocs.indices.analysis import Analyzer
from ragdocs.indices.view import View
from ragdocs.search.candidates import Candidate, ExactToken, Strategy, best_first, nearer
from ragdocs.search.retrieval import RunningQuery
from ragdocs.search.weighing import Weighed
from ragdocs.store.records import ChunkKey

# Whether a query's words stand together in a passage as they do in the query.
#
# BM25F counts words wherever they stand. Two that follow one another in the query say more where
# they follow one another in a passage too, and half as much where they are only near (specs/0057).

NEAR_CHARS = 20
NEAR = 0.5
READ = 8
"""The passages looked at, best first: each costs as much as marking its matches."""

Places = Mapping[str, Sequence[tuple[int, int]]]
Pair = tuple[str, str]


def with_closeness(
    candidates: Sequence[Candidate], terms: Sequence[str], analyzer: Analyzer, weight: float
) -> list[Candidate]:
    """Best first. `terms` are the query's, in its order; `weight` is by what part of what
    is missing all pairs of them side by side bring a passage nearer to 1."""
    pairs = [pair for pair in pairwise(terms) if pair[0] != pair[1]]
    if not pairs or weight <= 0:
        return list(candidates)
    wanted = frozenset(terms)

    def closer(item: Candidate) -> Candidate:
        if Strategy.KEYWORD not in item.evidence:
            return item
        together = closeness(pairs, _places(item.text, analyzer, wanted))
        return nearer(item, weight * together, "closeness")

    return best_first([*map(closer, candidates[:READ]), *candidates[READ:]])


def closeness(pairs: Sequence[Pair], places: Places) -> float:
    """In [0, 1]: how many of the pairs stand together, on average."""
    return sum(_together(places.get(a, ()), places.get(b, ())) for a, b in pairs) / len(pairs)


def _places(text: str, analyzer: Analyzer, wanted: frozenset[str]) -> Places:
    found: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
    for token in analyzer.scattered_tokens_of(text, wanted):
        if token.term in wanted:
            found[token.term].append((token.start, token.end))
    return found


def _together(first: Sequence[tuple[int, int]], second: Sequence[tuple[int, int]]) -> float:
    """Both in the order of the text: each place is compared with its two neighbours alone."""
    best = 0.0
    before, furthest = 0, -inf
    for start, end in first:
        while before < len(second) and second[before][0] < start:
            furthest = max(furthest, second[before][1])
            before += 1
        gap = start - furthest
        if before < len(second):
            ahead = second[before][0] - end
            if ahead <= 1:  # a blank, or parts of one word
                return 1.0
            gap = min(gap, ahead)
        if gap <= NEAR_CHARS:
            best = NEAR
    return best


# What resembles the best passage is raised: answers to one question are alike.
#
# Feedback without asking anyone (pseudo-relevance feedback, Rocchio 1971), from the first hit
# alone: with more of them it is no longer sure that they answer (specs/0057). The best one
# resembles itself most, and so stays the best.


def with_resemblance(
    candidates: Sequence[Candidate], cosines: Mapping[ChunkKey, float], weight: float
) -> list[Candidate]:
    """Best first. `cosines` are those with the best; a passage that has no vector yet is taken to
    be like the others, neither raised among them nor left behind."""
    if not cosines or weight <= 0:
        return list(candidates)
    usual = sum(cosines.values()) / len(cosines)

    def closer(item: Candidate) -> Candidate:
        part = weight * cosines.get(item.stored.key, usual)
        return nearer(item, part, "resemblance")

    return best_first([closer(item) for item in candidates])


# A second look at what was found, without another model: do the query's words stand together, and
# what is like the best passage? It needs the texts, so it comes after they were read.


class Refiner:
    """Orders one query's candidates again; not with rank fusion, whose scores say little."""

    def __init__(self, analyzer: Analyzer, settings: SearchConfig) -> None:
        self._analyzer = analyzer
        self._settings = settings

    def refine(
        self, view: View, candidates: Sequence[Candidate], found: RunningQuery, weighed: Weighed
    ) -> Sequence[Candidate]:
        settings = self._settings
        if settings.fusion is not Fusion.SCORE:
            return candidates
        terms = [term for unit in found.understanding.query.units for term in unit.terms]
        weight = settings.closeness_weight * weighed.word_share
        closer = with_closeness(candidates, terms, self._analyzer, weight)
        likeness = self._likeness(view, found, closer)
        refined = with_resemblance(closer, likeness, settings.resemblance_weight)
        return exact_first(refined, found.exact) if weighed.word_share > 0 else refined

    def _likeness(
        self, view: View, found: RunningQuery, candidates: Sequence[Candidate]
    ) -> Mapping[ChunkKey, float]:
        """How near all are to the first; nothing where meaning has no say, or it has no vector."""
        is_asked = found.nearest is not None and self._settings.semantic_weight > 0
        if not is_asked or not candidates:
            return {}
        best, *_ = keys = [item.stored.key for item in candidates]
        own = view.passage_vectors([best])
        return view.cosines(own[best], keys, 0.0) if own else {}


def exact_first(
    candidates: Sequence[Candidate], exact: Sequence[ExactToken]
) -> Sequence[Candidate]:
    """What has an exact token that one document has stays first: other words that stand together,
    and likeness to the best, must not raise anything above it."""
    telling = (token.keys for token in exact if token.is_telling)
    found = (next((one for one in candidates if one.stored.key in keys), None) for keys in telling)
    first = {item.stored.key: item for item in found if item is not None and item.score > 0}
    if not first:
        return candidates
    best = max(item.score for item in candidates)
    raised = [
        item.changed(score=best, boosts={**item.boosts, "exact": best / item.score})
        if item.score < best
        else item
        for item in first.values()
    ]
    return [*raised, *(item for item in candidates if item.stored.key not in first)]
