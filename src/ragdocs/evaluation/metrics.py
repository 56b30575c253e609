"""How good one ranking is, by the labels of its query: nDCG, MRR, recall, hit.

nDCG has linear gain (gain = grade), as trec_eval has it. The others ask only whether a document is
relevant: its grade is at least the level.
"""

import math
from collections.abc import Mapping, Sequence
from typing import TypeAlias

METRICS = ("nDCG@5", "nDCG@10", "MRR@10", "Recall@10", "Hit@1")
DEPTH = 10
"""No metric looks further down than this."""

Grades: TypeAlias = Mapping[str, float]
"""Document → grade, of one query."""
Scores: TypeAlias = Mapping[str, float]
"""Metric → value, of one query."""


def score(ranked: Sequence[str], grades: Grades, level: float = 1.0) -> Scores:
    """`ranked`: documents, best first; one that comes again counts at its first place."""
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
    """Of every query that has an answer. One that the run does not have scores nothing."""
    return {
        query: score(run.get(query, ()), grades, level)
        for query, grades in labels.items()
        if any(grade > 0 for grade in grades.values())
    }
