"""How sure a mean is: what it would have been with other queries of the same kind (bootstrap)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SEED = 7
RESAMPLES = 2000
_BLOCK = 250
"""Resamples drawn at once: quick, and still small with thousands of queries."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean with its 95 % interval."""

    mean: float
    low: float
    high: float

    @property
    def is_clear(self) -> bool:
        """Whether, as a difference, it is one: zero is outside."""
        return self.low > 0 or self.high < 0


def estimate(values: Sequence[float]) -> Estimate:
    """The same for the same values: the seed is fixed."""
    import numpy as np

    if not values:
        return Estimate(0.0, 0.0, 0.0)
    known = np.asarray(values, dtype=np.float64)
    chance = np.random.default_rng(SEED)
    shape = (_BLOCK, known.size)
    means = np.concatenate(
        [
            known[chance.integers(0, known.size, shape)].mean(axis=1)
            for _ in range(RESAMPLES // _BLOCK)
        ]
    )
    low, high = np.quantile(means, (0.025, 0.975))
    return Estimate(float(known.mean()), float(low), float(high))


def estimate_of(cases: int, statistic: "Callable[[NDArray[np.int64]], float | None]") -> Estimate:
    """The same for what is no mean: `statistic` gets the numbers of the cases that count, some of
    them several times; a resample for which it is None says nothing.
    """
    import numpy as np

    whole = statistic(np.arange(cases)) if cases else None
    if whole is None:
        return Estimate(0.0, 0.0, 0.0)
    chance = np.random.default_rng(SEED)
    drawn = (statistic(chance.integers(0, cases, cases)) for _ in range(RESAMPLES))
    low, high = np.quantile([one for one in drawn if one is not None], (0.025, 0.975))
    return Estimate(whole, float(low), float(high))


def percentile(values: Sequence[float], part: float) -> float:
    """The nearest value: a time that was really measured."""
    if not values:
        return 0.0
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))]
