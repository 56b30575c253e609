"""The order of results: by score, and how a second opinion or a cut changes it."""

from collections.abc import Sequence
from dataclasses import replace

from ragdocs.search.candidates import Candidate


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


def take_first(candidates: Sequence[Candidate], top_n: int) -> list[Candidate]:
    """The first `top_n`, then sorted: what chose them (MMR) need not have ordered them by score."""
    return best_first(candidates[: max(0, top_n)])


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
    return judged.changed(boosts={**candidate.boosts, "rerank": score / candidate.score})


def _mixed(own: float, opinion: float, weight: float) -> float:
    return (1.0 - weight) * own + weight * opinion
