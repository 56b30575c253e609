"""How far a passage stands out: what its own evidence is worth beside that of other documents.

A passage that is only a little better than the next document's is right less often than its own
figures say, and one that stands alone more often. The weights were fitted together with the curve
(calibration.py); specs/calibration.md has the measurement.
"""

from collections.abc import Sequence
from dataclasses import replace

from ragdocs.models import DocId
from ragdocs.search.candidates import Candidate

LEAD_WEIGHT = 2.3
"""What being ahead of every other document counts."""
MAX_LEAD = 0.2
"""More than this says no more: in a folder of one file everything leads."""
LAG_WEIGHT = 0.6
"""What being behind the best other document costs."""


def with_standing(candidates: Sequence[Candidate]) -> list[Candidate]:
    """One query's candidates, their `relevance` raised or lowered by how they stand."""
    best = _best_of_each(candidates)
    ranked = sorted(best.items(), key=lambda entry: -entry[1])[:2]

    def standing(item: Candidate) -> float:
        other = next((score for doc_id, score in ranked if doc_id != item.document.id), 0.0)
        lead = item.relevance - other
        return LEAD_WEIGHT * min(lead, MAX_LEAD) if lead > 0 else LAG_WEIGHT * lead

    return [replace(item, relevance=item.relevance + standing(item)) for item in candidates]


def _best_of_each(candidates: Sequence[Candidate]) -> dict[DocId, float]:
    best: dict[DocId, float] = {}
    for item in candidates:
        best[item.document.id] = max(item.relevance, best.get(item.document.id, 0.0))
    return best
