"""What speaks for a passage, as one figure: the ground of its confidence.

Not its score: boosts are no evidence, and the weights by which results are ordered differ from
query to query. Meaning and words count alike. A passage only a little better than the next
document's is right less often than its own figures say, one that stands alone more often; and the
more words a query has, the lower even good passages score. All fitted together with the curve
(calibration.py); specs/calibration.md has the measurement.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ragdocs.models import DocId
from ragdocs.search.candidates import Candidate, Strategy
from ragdocs.store.records import ChunkKey

LEAD_WEIGHT = 2.4
"""What being ahead of every other document counts."""
MAX_LEAD = 0.2
"""More than this says no more: in a folder of one file everything leads."""
LAG_WEIGHT = 0.23
"""What being behind the best other document costs."""
WORDS_WEIGHT = 0.176
USUAL_WORDS = 5
FEWEST_WORDS, MOST_WORDS = 3, 20
"""One word can say as much as three: a name, or an error's number."""


@dataclass(frozen=True, slots=True)
class Measures:
    """What one query's candidates are measured by. `nearness` is their similarity in meaning, None
    when meaning was not asked; `ideals` the most that the query could score where words were asked
    for. Without any word that the documents have, only meaning can tell.
    """

    nearness: Mapping[ChunkKey, float] | None
    ideals: Mapping[Strategy, float]
    words: int
    has_known_words: bool = True


def with_evidence(candidates: Sequence[Candidate], measures: Measures) -> list[Candidate]:
    """One query's candidates, each with its `relevance`."""
    own = [_own(item, measures) for item in candidates]
    best = _best_two(candidates, own)
    bonus = _length_bonus(measures.words)
    return [
        replace(item, relevance=value + _standing(item, value, best) + bonus)
        for item, value in zip(candidates, own, strict=True)
    ]


def _own(item: Candidate, measures: Measures) -> float:
    parts: list[float] = []
    if measures.nearness is not None:
        parts.append(max(0.0, measures.nearness.get(item.stored.key, 0.0)))
    if Strategy.KEYWORD in measures.ideals and (measures.has_known_words or not parts):
        # A name found whole in a block of code is as good as one found in prose.
        parts.append(max(_coverage(item, kind, measures) for kind in measures.ideals))
    return sum(parts) / len(parts) if parts else 0.0


def _coverage(item: Candidate, kind: Strategy, measures: Measures) -> float:
    found, ideal = item.evidence.get(kind), measures.ideals[kind]
    return min(1.0, max(0.0, found.score / ideal)) if found and ideal > 0 else 0.0


def _best_two(
    candidates: Sequence[Candidate], values: Sequence[float]
) -> list[tuple[DocId, float]]:
    best: dict[DocId, float] = {}
    for item, value in zip(candidates, values, strict=True):
        best[item.document.id] = max(value, best.get(item.document.id, 0.0))
    return sorted(best.items(), key=lambda entry: -entry[1])[:2]


def _standing(item: Candidate, value: float, best: Sequence[tuple[DocId, float]]) -> float:
    other = next((score for doc_id, score in best if doc_id != item.document.id), 0.0)
    lead = value - other
    return LEAD_WEIGHT * min(lead, MAX_LEAD) if lead > 0 else LAG_WEIGHT * lead


def _length_bonus(words: int) -> float:
    return WORDS_WEIGHT * math.log(min(MOST_WORDS, max(FEWEST_WORDS, words)) / USUAL_WORDS)
