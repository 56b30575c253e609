"""What runs come to: means with their intervals, by group, and the difference of two runs."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from ragdocs.errors import EvaluationError
from ragdocs.evaluation.intervals import Estimate, estimate, percentile
from ragdocs.evaluation.labelled_set import QUERIES, LabelledSet
from ragdocs.evaluation.metrics import METRICS, Scores, score_all
from ragdocs.evaluation.reliability import Honesty, disagrees, honesty
from ragdocs.evaluation.run_files import Ranked
from ragdocs.evaluation.running import Answers

Estimates: TypeAlias = Mapping[str, Estimate]
"""Metric → what it is."""


@dataclass(frozen=True, slots=True)
class Latency:
    """How long a query took, in milliseconds."""

    p50_ms: float
    p95_ms: float


@dataclass(frozen=True, slots=True)
class Measured:
    """One run against the labels. `unordered` is the share of answers in which a result's
    confidence is more than five points above that of one before it. A run from a file has neither
    this nor a latency.
    """

    label: str
    metrics: Estimates
    latency: Latency | None = None
    unordered: Estimate | None = None


@dataclass(frozen=True, slots=True)
class Group:
    """The queries that have one value of a field."""

    value: str
    queries: int
    metrics: Estimates


@dataclass(frozen=True, slots=True)
class Difference:
    """Another run less this one, query by query."""

    other: Measured
    setting: str
    metrics: Estimates


@dataclass(frozen=True, slots=True)
class Report:
    """All that was measured. `unanswerable`: queries without an answer, which are not scored;
    `missing`: documents that are labelled and not in the corpus, so that nobody can find them.
    """

    name: str
    documents: int
    queries: int
    unanswerable: int
    missing: int
    level: float
    run: Measured
    field: str = ""
    groups: tuple[Group, ...] = ()
    compared: Difference | None = None
    ablated: tuple[Difference, ...] = ()
    honesty: Honesty | None = None


class Judge:
    """The labels of one set, with the level from which a document counts as relevant."""

    def __init__(self, labelled: LabelledSet, level: float = 1.0) -> None:
        self._labelled = labelled
        self.level = level

    def scores(self, ranked: Ranked) -> dict[str, Scores]:
        return score_all(ranked, self._labelled.labels, self.level)

    def measured(self, label: str, answers: Answers) -> Measured:
        latency = None
        if answers.seconds:
            at = [percentile(answers.seconds, part) * 1000 for part in (0.5, 0.95)]
            latency = Latency(*at)
        metrics = _estimates(list(self.scores(answers.ranked).values()))
        return Measured(label, metrics, latency, _unordered(answers))

    def honesty(self, answers: Answers, near: Answers, foreign: Answers) -> Honesty:
        """`near`: the questions without the documents that answer them; `foreign`: those that the
        corpus does not answer."""
        scores = self.scores(answers.ranked)
        right = {query: scores[query]["Hit@1"] > 0 for query in near.cited}
        return honesty(answers.firsts, near.firsts, foreign.firsts, right)

    def difference(
        self, other: Measured, theirs: Ranked, ours: Ranked, setting: str = ""
    ) -> Difference:
        mine, others = self.scores(ours), self.scores(theirs)
        rows = [
            {metric: others[query][metric] - mine[query][metric] for metric in METRICS}
            for query in mine
        ]
        return Difference(other, setting, _estimates(rows))

    def check_field(self, field: str) -> None:
        """Raises EvaluationError when no query has the field."""
        queries = self._labelled.queries
        if any(field in query.fields for query in queries):
            return
        known = sorted({name for query in queries for name in query.fields} - {"id", "text"})
        choice = f"there are {', '.join(known)}" if known else "there is no field to group by"
        file = self._labelled.folder / QUERIES
        raise EvaluationError(f"no query of {file} has the field {field!r}: {choice}")

    def groups(self, field: str, ranked: Ranked) -> tuple[Group, ...]:
        scores = self.scores(ranked)
        rows: defaultdict[str, list[Scores]] = defaultdict(list)
        for query in self._labelled.queries:
            if query.id in scores:
                rows[str(query.fields.get(field, "(none)"))].append(scores[query.id])
        return tuple(
            Group(value, len(found), _estimates(found)) for value, found in sorted(rows.items())
        )


def _unordered(answers: Answers) -> Estimate | None:
    if not answers.cited:
        return None
    told = ([each.confidence for each in found] for found in answers.cited.values())
    return estimate([float(disagrees(confidences)) for confidences in told])


def _estimates(rows: Sequence[Scores]) -> Estimates:
    return {metric: estimate([row[metric] for row in rows]) for metric in METRICS}
