"""Whether confidence means what it says: 0.7 should be right in 70 of 100 cases, and a question
that the documents cannot answer should get less than one that they can.

The hardest of those are near misses: the questions of the set once more, without the documents that
answer them. What comes first then is on topic and no answer.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, TypeAlias, cast

from ragdocs.evaluation.metrics import Estimate, estimate, estimate_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

BINS = 10
SURE = 0.5
"""A near miss of this confidence or more is one that a reader would have believed."""
NEAR_TIE = 0.05
"""Results within so much of one another may stand in any order."""


@dataclass(frozen=True, slots=True)
class Cited:
    """One result as it was shown: where it stands, and how sure of it the search was."""

    path: str
    heading: str
    confidence: float


Firsts: TypeAlias = Mapping[str, Cited | None]
"""Question → its first result; none where nothing was found."""


@dataclass(frozen=True, slots=True)
class Bin:
    """Cases of about the same confidence: how many, its mean, and the share that was right."""

    cases: int
    confidence: float
    right: float


@dataclass(frozen=True, slots=True)
class Confidence:
    """What the first results of one kind of question were told at, on average."""

    cases: int
    mean: Estimate

    @classmethod
    def of(cls, values: Sequence[float]) -> "Confidence":
        return cls(len(values), estimate(values))


@dataclass(frozen=True, slots=True)
class NearMiss:
    """A question's first result when no relevant document may answer."""

    query: str
    path: str
    heading: str
    confidence: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Honesty:
    """The confidence of first results, over questions with their answers and without them.

    `near_miss_auc` tells right first results from near misses, `foreign_auc` the set's questions
    from those that it does not answer at all; None where one of the two kinds is missing. `error`
    and `bins` are over both kinds in equal parts: each question counts once with its answers and
    once without. `believed` are the near misses of SURE or more.
    """

    questions: int
    right: Confidence
    wrong: Confidence
    near_misses: Confidence
    near_miss_auc: Estimate | None
    error: Estimate
    bins: tuple[Bin, ...]
    believed: tuple[NearMiss, ...]
    foreign: Confidence
    foreign_auc: Estimate | None


def honesty(answered: Firsts, near: Firsts, foreign: Firsts, right: Mapping[str, bool]) -> Honesty:
    """`answered` and `near` are of the same questions; `right` is whether the first of `answered`
    is relevant. A question without any result was told nothing: its confidence is 0.
    """
    import numpy as np

    told = np.array([_confidence(answered[query]) for query in near])
    missed = np.array([_confidence(near[query]) for query in near])
    others = np.array([_confidence(first) for first in foreign.values()])
    is_right = np.array([right[query] for query in near], dtype=bool)
    never = np.zeros(len(near), dtype=bool)

    def both_kinds(chosen: "NDArray[np.int64]") -> tuple[Bin, ...]:
        values = np.concatenate([told[chosen], missed[chosen]])
        return _bins(values, np.concatenate([is_right[chosen], never[chosen]]))

    def near_auc(chosen: "NDArray[np.int64]") -> float | None:
        return _auc(told[chosen][is_right[chosen]], missed[chosen])

    def error(chosen: "NDArray[np.int64]") -> float:
        return calibration_error(both_kinds(chosen))

    def foreign_auc(chosen: "NDArray[np.int64]") -> float | None:
        own = chosen[chosen < len(told)]
        return _auc(told[own], others[chosen[chosen >= len(told)] - len(told)])

    believed = [
        NearMiss(query, first.path, first.heading, first.confidence)
        for query, first in near.items()
        if first is not None and first.confidence >= SURE
    ]
    return Honesty(
        questions=len(near),
        right=Confidence.of(told[is_right].tolist()),
        wrong=Confidence.of(told[~is_right].tolist()),
        near_misses=Confidence.of(missed.tolist()),
        near_miss_auc=estimate_of(len(near), near_auc) if is_right.any() else None,
        error=estimate_of(len(near), error),
        bins=both_kinds(np.arange(len(near))),
        believed=tuple(sorted(believed, key=lambda each: (-each.confidence, each.query))),
        foreign=Confidence.of(others.tolist()),
        foreign_auc=estimate_of(len(told) + len(others), foreign_auc) if len(others) else None,
    )


def _confidence(first: Cited | None) -> float:
    return first.confidence if first else 0.0


def reliability(confidences: Sequence[float], right: Sequence[bool]) -> tuple[Bin, ...]:
    """Ten bins of equal mass, the least confident first; fewer where there are fewer cases."""
    import numpy as np

    if len(confidences) != len(right):
        raise ValueError(f"{len(confidences)} confidences and {len(right)} judgements")
    return _bins(np.asarray(confidences, dtype=np.float64), np.asarray(right, dtype=bool))


def _bins(confidences: "NDArray[np.float64]", right: "NDArray[np.bool_]") -> tuple[Bin, ...]:
    import numpy as np

    order = np.lexsort((right, confidences))
    borders = [round(len(order) * part / BINS) for part in range(BINS + 1)]
    parts = (order[low:high] for low, high in pairwise(borders))
    return tuple(
        Bin(len(part), float(confidences[part].mean()), float(right[part].mean()))
        for part in parts
        if len(part)
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
    import numpy as np

    found = _auc(np.asarray(answerable), np.asarray(unanswerable))
    return 0.5 if found is None else found


def _auc(good: "NDArray[np.float64]", bad: "NDArray[np.float64]") -> float | None:
    import numpy as np

    if not len(good) or not len(bad):
        return None
    others = np.sort(bad)
    beaten = np.searchsorted(others, good, "left") + np.searchsorted(others, good, "right")
    return float(cast("np.int64", beaten.sum())) / (2 * len(good) * len(bad))


def disagrees(confidences: Sequence[float]) -> bool:
    """Whether a result is told at more than NEAR_TIE above one that stands before it."""
    least = 1.0
    for one in confidences:
        if one > least + NEAR_TIE:
            return True
        least = min(least, one)
    return False
