"""What speaks for a passage, as one figure: the ground of its confidence.

Not its score: boosts are no evidence, and the weights by which results are ordered differ from
query to query. Words stand in many passages that do not answer: how near a passage is in meaning
says more of whether it is right. One only a little better than the next document's, by meaning and
words alike, is right less often than its own figures say, one that stands alone more often. Fitted
together with the curve (calibration.py) by scripts/fit_calibration.py; specs/0055 has
the measurement.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ragdocs.models import DocId
from ragdocs.search.candidates import Candidate, Grounds, Strategy
from ragdocs.store.records import ChunkKey

SIMILARITY_PART = 0.8
"""What nearness in meaning counts, where words count for the rest."""
LEAD_WEIGHT = 2.64
"""What being ahead of every other document counts."""
MAX_LEAD = 0.2
"""More than this says no more: in a folder of one file everything leads."""
STRONG = 0.4
"""Of what is neither so near nor has so much of the words, a lead counts less, by the square: in a
small folder something is always ahead, whatever is asked."""
LAG_WEIGHT = 0.75
"""What being behind the best other document costs."""


@dataclass(frozen=True, slots=True)
class Measures:
    """What one query's candidates are measured by. `nearness` is their similarity in meaning, None
    when meaning was not asked; `ideals` the most that the query could score where words were asked
    for. Without any word that the documents have, only meaning can tell.
    """

    nearness: Mapping[ChunkKey, float] | None
    ideals: Mapping[Strategy, float]
    has_known_words: bool = True


def with_evidence(candidates: Sequence[Candidate], measures: Measures) -> list[Candidate]:
    """One query's candidates, each with its `grounds` and its `relevance`."""
    parts = [_parts(item, measures) for item in candidates]
    own = [sum(asked_for(grounds)) / 2 for grounds in parts]
    best = _best_two(candidates, own)
    judged: list[Candidate] = []
    for item, known, value in zip(candidates, parts, own, strict=True):
        grounds = known._replace(lead=value - _best_other(item, best))
        judged.append(item.changed(grounds=grounds, relevance=worth(grounds)))
    return judged


def asked_for(grounds: Grounds) -> tuple[float, float]:
    """Similarity and coverage; one that could not be asked for is taken to be like the other."""
    similarity, coverage = grounds.similarity, grounds.coverage
    if similarity is None:
        return coverage or 0.0, coverage or 0.0
    return similarity, similarity if coverage is None else coverage


def ahead(grounds: Grounds) -> float:
    strength = min(1.0, max(asked_for(grounds)) / STRONG)
    return strength**2 * min(MAX_LEAD, max(0.0, grounds.lead))


def behind(grounds: Grounds) -> float:
    return max(0.0, -grounds.lead)


def worth(grounds: Grounds) -> float:
    """The evidence."""
    similarity, coverage = asked_for(grounds)
    own = SIMILARITY_PART * similarity + (1.0 - SIMILARITY_PART) * coverage
    return own + LEAD_WEIGHT * ahead(grounds) - LAG_WEIGHT * behind(grounds)


def _parts(item: Candidate, measures: Measures) -> Grounds:
    similarity = coverage = None
    if measures.nearness is not None:
        similarity = max(0.0, measures.nearness.get(item.stored.key, 0.0))
    is_asked = Strategy.KEYWORD in measures.ideals
    if is_asked and (measures.has_known_words or similarity is None):
        # A name found whole in a block of code is as good as one found in prose.
        coverage = max(_coverage(item, kind, measures) for kind in measures.ideals)
    return Grounds(similarity, coverage)


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


def _best_other(item: Candidate, best: Sequence[tuple[DocId, float]]) -> float:
    return next((score for doc_id, score in best if doc_id != item.document.id), 0.0)
