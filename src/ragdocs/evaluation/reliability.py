"""Whether confidence is reliable: 0.7 should be right in 70 of 100 cases, and a question that the
documents do not answer should get less than one that they do.

The hardest cases are near misses: the same questions without the documents that answer them. The
first result is then on topic, but no answer.
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
"""A reader would believe a near miss with this confidence or more."""
NEAR_TIE = 0.05
"""Results whose confidences differ by less may be in any order."""


@dataclass(frozen=True, slots=True)
class Cited:
    """One result as it was shown: path, heading and confidence."""

    path: str
    heading: str
    confidence: float


Firsts: TypeAlias = Mapping[str, Cited | None]
"""Question → its first result, or None if nothing was found."""


@dataclass(frozen=True, slots=True)
class Bin:
    """Cases of similar confidence: their number, mean confidence, and the share that was right."""

    cases: int
    confidence: float
    right: float


@dataclass(frozen=True, slots=True)
class Confidence:
    """The mean confidence of the first results for one kind of question."""

    cases: int
    mean: Estimate

    @classmethod
    def of(cls, values: Sequence[float]) -> "Confidence":
        return cls(len(values), estimate(values))


@dataclass(frozen=True, slots=True)
class NearMiss:
    """A question's first result without the relevant documents."""

    query: str
    path: str
    heading: str
    confidence: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Honesty:
    """The confidence of first results, for questions with their answers and without them.

    `near_miss_auc` separates right first results from near misses, `foreign_auc` the set's
    questions from those that it does not answer at all; None if one of the two kinds is missing.
    `error` and `bins` are over both kinds in equal parts: each question counts once with its
    answers and once without. `believed` are the near misses with confidence SURE or more.
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
    """`answered` and `near` have the same questions; `right` says whether the first result of
    `answered` is relevant. A question without a result has confidence 0.
    """
    import numpy as np

    shown = np.array([_confidence(answered[query]) for query in near])
    missed = np.array([_confidence(near[query]) for query in near])
    others = np.array([_confidence(first) for first in foreign.values()])
    is_right = np.array([right[query] for query in near], dtype=bool)
    never = np.zeros(len(near), dtype=bool)

    def both_kinds(chosen: "NDArray[np.int64]") -> tuple[Bin, ...]:
        values = np.concatenate([shown[chosen], missed[chosen]])
        return _bins(values, np.concatenate([is_right[chosen], never[chosen]]))

    def near_auc(chosen: "NDArray[np.int64]") -> float | None:
        return _auc(shown[chosen][is_right[chosen]], missed[chosen])

    def error(chosen: "NDArray[np.int64]") -> float:
        return calibration_error(both_kinds(chosen))

    def foreign_auc(chosen: "NDArray[np.int64]") -> float | None:
        own = chosen[chosen < len(shown)]
        return _auc(shown[own], others[chosen[chosen >= len(shown)] - len(shown)])

    believed = [
        NearMiss(query, first.path, first.heading, first.confidence)
        for query, first in near.items()
        if first is not None and first.confidence >= SURE
    ]
    return Honesty(
        questions=len(near),
        right=Confidence.of(shown[is_right].tolist()),
        wrong=Confidence.of(shown[~is_right].tolist()),
        near_misses=Confidence.of(missed.tolist()),
        near_miss_auc=estimate_of(len(near), near_auc) if is_right.any() else None,
        error=estimate_of(len(near), error),
        bins=both_kinds(np.arange(len(near))),
        believed=tuple(sorted(believed, key=lambda each: (-each.confidence, each.query))),
        foreign=Confidence.of(others.tolist()),
        foreign_auc=estimate_of(len(shown) + len(others), foreign_auc) if len(others) else None,
    )


def _confidence(first: Cited | None) -> float:
    return first.confidence if first else 0.0


def reliability(confidences: Sequence[float], right: Sequence[bool]) -> tuple[Bin, ...]:
    """Ten bins of equal size, least confident first; fewer if there are fewer cases."""
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
    """The mean distance between confidence and truth."""
    total = sum(part.cases for part in bins)
    off = sum(part.cases * abs(part.confidence - part.right) for part in bins)
    return off / total if total else 0.0


def separation(answerable: Sequence[float], unanswerable: Sequence[float]) -> float:
    """AUC: how often an answerable query has more confidence than an unanswerable one; a tie counts
    half. 0.5 if one of the two is missing.
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
    """Whether a result's confidence is more than NEAR_TIE above that of an earlier one."""
    least = 1.0
    for one in confidences:
        if one > least + NEAR_TIE:
            return True
        least = min(least, one)
    return False
