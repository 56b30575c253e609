"""Raw scores become figures in [0, 1]: a sigmoid with a threshold and a steepness."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ragdocs.search.candidates import Candidate


@dataclass(frozen=True, slots=True)
class Calibration:
    """`threshold` is the raw score that means one half, `steepness` how sharply it turns there."""

    threshold: float
    steepness: float

    def of(self, value: float) -> float:
        """1 / (1 + e^(-steepness · (value - threshold))), for any value without overflow."""
        exponent = self.steepness * (value - self.threshold)
        if exponent >= 0:
            return 1.0 / (1.0 + math.exp(-exponent))
        power = math.exp(exponent)
        return power / (1.0 + power)


def calibrate(candidates: Sequence[Candidate], curve: Calibration) -> list[Candidate]:
    """The score with its boosts orders the results; the confidence knows only the evidence."""
    return [
        replace(item, score=curve.of(item.score), confidence=curve.of(item.relevance))
        for item in candidates
    ]
