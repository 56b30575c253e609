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


def rescored(candidates: Sequence[Candidate], scores: Sequence[float]) -> list[Candidate]:
    """The first ones by their new scores; the rest follow and never score above them."""
    judged = best_first(
        [
            _judged(candidate, min(1.0, max(0.0, score)))
            for candidate, score in zip(candidates, scores, strict=False)
        ]
    )
    lowest = judged[-1].score if judged else 1.0
    rest = candidates[len(judged) :]
    return judged + [replace(item, score=min(item.score, lowest), ceiling=lowest) for item in rest]


def _judged(candidate: Candidate, score: float) -> Candidate:
    """With the second opinion in place of the first; what it multiplied that by can be told."""
    if candidate.score <= 0:
        return replace(candidate, score=score)
    boosts = {**candidate.boosts, "rerank": score / candidate.score}
    return replace(candidate, score=score, boosts=boosts)
