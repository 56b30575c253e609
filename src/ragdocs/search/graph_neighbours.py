"""What a linked document has to say: each neighbour of the hits contributes its best passage."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ragdocs.indices.hits import Hit
from ragdocs.indices.spreading import Neighbour
from ragdocs.indices.vector import VectorIndex
from ragdocs.models import DocId
from ragdocs.store.records import ChunkKey
from ragdocs.store.snapshot import Snapshot

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

NEIGHBOUR_WEIGHT = 0.5
"""`graph_neighbor_weight`: all seeds let neighbours in at half the score."""


@dataclass(frozen=True, slots=True)
class QueryVector:
    """What a query means, and the index that knows what passages mean."""

    vector: "NDArray[np.float32]"
    index: VectorIndex


def neighbour_hits(
    snapshot: Snapshot,
    neighbours: Sequence[Neighbour],
    meaning: QueryVector | None,
    weight: float = NEIGHBOUR_WEIGHT,
) -> list[Hit]:
    """One hit for each neighbour that has text, best first.

    Its passage is the nearest to the query, or the document's first when there are no vectors; its
    score is what reaches the document along its links, whatever the passage.
    """
    doc_ids = [neighbour.doc_id for neighbour in neighbours]
    nearest = meaning.index.best_of(meaning.vector, doc_ids) if meaning else {}
    hits: list[Hit] = []
    for neighbour in neighbours:
        found = nearest.get(neighbour.doc_id)
        key = found.key if found else _first_leaf(snapshot, neighbour.doc_id)
        if key is not None:
            hits.append(Hit(key, weight * neighbour.weight))
    return sorted(hits, key=lambda hit: (-hit.score, hit.key))


def _first_leaf(snapshot: Snapshot, doc_id: DocId) -> ChunkKey | None:
    leaf = next(snapshot.leaves(doc_id), None)
    return leaf.key if leaf else None
