"""Ranking metrics (nDCG, MRR, recall, hit) and their bootstrap intervals."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# How certain a mean is: what it would have been with other queries of the same kind (bootstrap).

SEED = 7
RESAMPLES = 2000
_BLOCK = 250
"""Resamples drawn at once: fast, and still small with thousands of queries."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean with its 95 % interval."""

    mean: float
    low: float
    high: float

    @property
    def is_clear(self) -> bool:
        """For a difference: whether the interval excludes zero."""
        return self.low > 0 or self.high < 0


def estimate(values: Sequence[float]) -> Estimate:
    """Deterministic: the seed is fixed."""
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
    """The same for other statistics than the mean: `statistic` gets the indices of the drawn cases,
    some of them repeated; a resample for which it returns None is ignored.
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
    """The nearest value, so that it is one that was measured."""
    if not values:
        return 0.0
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))]


# The quality of one ranking, by the labels of its query: nDCG, MRR, recall, hit.
#
# nDCG has linear gain (gain = grade), as in trec_eval. For the others a document is relevant if its
# grade is at least the level.

METRICS = ("nDCG@5", "nDCG@10", "MRR@10", "Recall@10", "Hit@1")
DEPTH = 10
"""No metric considers lower ranks."""

Grades: TypeAlias = Mapping[str, float]
"""Document → grade, for one query."""
Scores: TypeAlias = Mapping[str, float]
"""Metric → value, for one query."""


def score(ranked: Sequence[str], grades: Grades, level: float = 1.0) -> Scores:
    """`ranked`: documents, best first; a repeated one counts at its first rank."""
    found = list(dict.fromkeys(ranked))[:DEPTH]
    relevant = {document for document, grade in grades.items() if grade >= level}
    places = [place for place, document in enumerate(found, start=1) if document in relevant]
    values = (
        ndcg(found, grades, 5),
        ndcg(found, grades, 10),
        1.0 / places[0] if places else 0.0,
        len(places) / len(relevant) if relevant else 0.0,
        float(bool(places) and places[0] == 1),
    )
    return dict(zip(METRICS, values, strict=True))


def ndcg(ranked: Sequence[str], grades: Grades, depth: int) -> float:
    best = _gain(sorted(grades.values(), reverse=True), depth)
    got = _gain([grades.get(document, 0.0) for document in ranked], depth)
    return got / best if best else 0.0


def _gain(grades: Sequence[float], depth: int) -> float:
    return sum(
        max(0.0, grade) / math.log2(place + 1)
        for place, grade in enumerate(grades[:depth], start=1)
    )


def score_all(
    run: Mapping[str, Sequence[str]], labels: Mapping[str, Grades], level: float = 1.0
) -> dict[str, Scores]:
    """Scores every query with an answer. A query that is not in the run scores 0."""
    return {
        query: score(run.get(query, ()), grades, level)
        for query, grades in labels.items()
        if any(grade > 0 for grade in grades.values())
    }
