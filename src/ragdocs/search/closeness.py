"""Whether a query's words stand together in a passage as they do in the query.

BM25F counts words wherever they stand. Two that follow one another in the query say more where
they follow one another in a passage too, and half as much where they are only near (specs/0057).
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import inf

from ragdocs.indices.analysis import Analyzer
from ragdocs.search.candidates import Candidate, Strategy
from ragdocs.search.ordering import best_first, nearer

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
