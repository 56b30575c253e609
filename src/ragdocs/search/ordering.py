"""The order of results: by score, by confidence, and how a second opinion or a cut changes it."""

from collections.abc import Callable, Sequence, Set
from dataclasses import replace
from heapq import heappop, heappush

from ragdocs.models import DocId
from ragdocs.search.candidates import Candidate

RERANK = "rerank"
"""The boost by which a second opinion changed a score."""
FLOOR_PLACE = 10
"""A document that alone has the rare words of a question stands here at the latest."""
ALIKE = 0.05
"""Confidences this near to one another say the same: other reasons may order them."""


def best_first(candidates: Sequence[Candidate]) -> list[Candidate]:
    """By score; equals stay in the order they came in."""
    return sorted(candidates, key=lambda candidate: -candidate.score)


def nearer(item: Candidate, part: float, reason: str) -> Candidate:
    """Brought so much of the way to 1; what that multiplied its score by can be told."""
    missing = 1.0 - item.score
    if item.score <= 0 or part <= 0 or missing <= 0:
        return item
    score = item.score + missing * min(1.0, part)
    return item.changed(score=score, boosts={**item.boosts, reason: score / item.score})


def surest_first(candidates: Sequence[Candidate]) -> list[Candidate]:
    """By confidence, and those within ALIKE of one another in the order they came in: no result is
    behind one of which it is told that it is clearly less likely."""
    places = sorted(range(len(candidates)), key=lambda place: -candidates[place].confidence)
    alike: list[int] = []  # a heap: of these the one that came in first is next
    taken: set[int] = set()
    ordered: list[Candidate] = []
    seen = 0
    for surest in places:
        # As long as the surest of all that are left waits for others that came in before it.
        while surest not in taken:
            least = candidates[surest].confidence - ALIKE
            while seen < len(places) and candidates[places[seen]].confidence >= least:
                heappush(alike, places[seen])
                seen += 1
            first = heappop(alike)
            taken.add(first)
            ordered.append(candidates[first])
    return ordered


def take_first(
    candidates: Sequence[Candidate],
    top_n: int,
    order: Callable[[Sequence[Candidate]], list[Candidate]] = best_first,
    floored: Set[DocId] = frozenset(),
) -> list[Candidate]:
    """The first `top_n`, then in order: what chose them (MMR) need not have ordered them. A
    floored document has a place: its best is at least the last, or the last of the first ten."""
    ordered = order(candidates[: max(0, top_n)])
    for document in sorted(floored):
        own = next((item for item in candidates if item.document.id == document), None)
        place = min(top_n, FLOOR_PLACE) - 1
        if own is not None and all(item.document.id != document for item in ordered[: place + 1]):
            others = [item for item in ordered if item is not own]
            ordered = [*others[:place], own, *others[place:]][:top_n]
    return ordered


def rescored(
    candidates: Sequence[Candidate], opinions: Sequence[float], weight: float
) -> list[Candidate]:
    """The first ones with a second opinion of this weight beside their own score and confidence;
    the rest follow and never score above them. The opinion on a passage changes no other's number.
    """
    judged = best_first(
        [
            _judged(candidate, min(1.0, max(0.0, opinion)), weight)
            for candidate, opinion in zip(candidates, opinions, strict=False)
        ]
    )
    lowest = judged[-1].score if judged else 1.0
    rest = candidates[len(judged) :]
    return judged + [replace(item, score=min(item.score, lowest), ceiling=lowest) for item in rest]


def _judged(candidate: Candidate, opinion: float, weight: float) -> Candidate:
    """What the opinion multiplied the score by can be told."""
    score = _mixed(candidate.score, opinion, weight)
    judged = candidate.changed(
        score=score, confidence=_mixed(candidate.confidence, opinion, weight)
    )
    if candidate.score <= 0:
        return judged
    return judged.changed(boosts={**candidate.boosts, RERANK: score / candidate.score})


def _mixed(own: float, opinion: float, weight: float) -> float:
    return (1.0 - weight) * own + weight * opinion
