"""What a linked document has to say: each neighbour of the hits contributes its best passage."""

import json
from collections.abc import Iterable, Sequence
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
    passages = {doc_id: found.key for doc_id, found in nearest.items()}
    unknown = [doc_id for doc_id in doc_ids if doc_id not in passages]
    if unknown:
        passages |= _first_leaves(snapshot, unknown)
    hits = [
        Hit(passages[neighbour.doc_id], weight * neighbour.weight)
        for neighbour in neighbours
        if neighbour.doc_id in passages
    ]
    return sorted(hits, key=lambda hit: (-hit.score, hit.key))


def _first_leaves(snapshot: Snapshot, doc_ids: Iterable[DocId]) -> dict[DocId, ChunkKey]:
    """Numbers alone, and at once: reading the documents' chunks took a fifth of a search by
    words. What becomes a candidate is read and checked later."""
    wanted = list(doc_ids)
    read = snapshot.numbers("first leaves")
    unread = [doc_id for doc_id in wanted if doc_id not in read]
    rows = snapshot.select(
        """SELECT d.id, (SELECT c.key FROM chunks c WHERE c.doc = d.key AND c.text IS NOT NULL
            ORDER BY c.byte_start, c.position LIMIT 1)
        FROM documents d WHERE d.id IN (SELECT value FROM json_each(?))""",
        (json.dumps(unread),),
    )
    read.update((doc_id, key) for doc_id, key in rows if key is not None)
    return {doc_id: ChunkKey(read[doc_id]) for doc_id in wanted if doc_id in read}
