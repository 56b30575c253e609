"""What resembles the best passage is raised: answers to one question are alike.

Feedback without asking anyone (pseudo-relevance feedback, Rocchio 1971), from the first hit alone:
with more of them it is no longer sure that they answer (specs/0057). The best one resembles itself
most, and so stays the best.
"""

from collections.abc import Mapping, Sequence

from ragdocs.search.candidates import Candidate
from ragdocs.search.ordering import best_first, nearer
from ragdocs.store.records import ChunkKey


def with_resemblance(
    candidates: Sequence[Candidate], cosines: Mapping[ChunkKey, float], weight: float
) -> list[Candidate]:
    """Best first. `cosines` are those with the best; a passage that has no vector yet is taken to
    be like the others, neither raised among them nor left behind."""
    if not cosines or weight <= 0:
        return list(candidates)
    usual = sum(cosines.values()) / len(cosines)

    def closer(item: Candidate) -> Candidate:
        part = weight * cosines.get(item.stored.key, usual)
        return nearer(item, part, "resemblance")

    return best_first([closer(item) for item in candidates])
