"""From evidence to confidence: a sigmoid with a threshold and a steepness."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ragdocs.search.candidates import Candidate


@dataclass(frozen=True, slots=True)
class Calibration:
    """`threshold` is the evidence that means one half, `steepness` how sharply it turns there."""

    threshold: float
    steepness: float

    def of(self, value: float) -> float:
        """1 / (1 + e^(-steepness · (value - threshold))), for any value without overflow."""
        exponent = self.steepness * (value - self.threshold)
        if exponent >= 0:
            return 1.0 / (1.0 + math.exp(-exponent))
        power = math.exp(exponent)
        return power / (1.0 + power)


def calibrate(
    candidates: Sequence[Candidate],
    curve: Calibration,
    factor: Callable[[Candidate], float] = lambda _: 1.0,
) -> list[Candidate]:
    """The confidence is made from `relevance` alone: the evidence, or a rank sum, whose `factor` is
    that of recency. The score, which has the boosts too and orders results of about the same
    confidence, is only brought into [0, 1], in proportion.
    """
    largest = max((item.score for item in candidates), default=0.0)
    divisor = max(1.0, largest)
    scale = {"scale": 1.0 / divisor} if divisor > 1 else {}
    return [
        item.changed(
            score=min(1.0, max(0.0, item.score) / divisor),
            confidence=curve.of(item.relevance * factor(item)),
            boosts={**item.boosts, **scale},
        )
        for item in candidates
    ]
