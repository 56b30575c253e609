"""Whether confidence means what it says: 0.7 should be right in 70 of 100 cases, and a query that
the documents cannot answer should get less than one that they can.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

BINS = 10


@dataclass(frozen=True, slots=True)
class Bin:
    """Cases of about the same confidence: how many, its mean, and the share that was right."""

    cases: int
    confidence: float
    right: float


def reliability(confidences: Sequence[float], right: Sequence[bool]) -> tuple[Bin, ...]:
    """Ten bins of equal mass, the least confident first; fewer where there are fewer cases."""
    cases = sorted(zip(confidences, right, strict=True))
    borders = [round(len(cases) * part / BINS) for part in range(BINS + 1)]
    parts = (cases[low:high] for low, high in pairwise(borders))
    return tuple(
        Bin(len(part), sum(c for c, _ in part) / len(part), sum(r for _, r in part) / len(part))
        for part in parts
        if part
    )


def calibration_error(bins: Sequence[Bin]) -> float:
    """How far confidence is from the truth, on average over the cases."""
    total = sum(part.cases for part in bins)
    off = sum(part.cases * abs(part.confidence - part.right) for part in bins)
    return off / total if total else 0.0


def separation(answerable: Sequence[float], unanswerable: Sequence[float]) -> float:
    """AUC: how often an answerable query got more confidence than one that is not; equal is half.

    Without one of the two there is nothing to tell apart: 0.5.
    """
    if not answerable or not unanswerable:
        return 0.5
    others = sorted(unanswerable)
    beaten = sum(bisect_left(others, one) + bisect_right(others, one) for one in answerable)
    return beaten / (2 * len(answerable) * len(others))
