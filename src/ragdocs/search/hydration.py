"""From fused numbers to candidates: everything any stage may need is read here, once."""

import json
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from ragdocs.indices.signature_table import signatures_of
from ragdocs.indices.vector import VectorIndex
from ragdocs.models import DocId
from ragdocs.search.candidates import Candidate
from ragdocs.search.fusion import Fused
from ragdocs.store.records import ChunkKey
from ragdocs.store.snapshot import Snapshot

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def few_of_each(snapshot: Snapshot, fused: Sequence[Fused], most: int) -> list[Fused]:
    """The first so many of each document, in the same order."""
    documents = documents_of(snapshot, [item.key for item in fused])
    taken = Counter[DocId | None]()
    kept: list[Fused] = []
    for item in fused:
        document = documents.get(item.key)
        taken[document] += 1
        if taken[document] <= most:
            kept.append(item)
    return kept


def documents_of(snapshot: Snapshot, keys: Collection[int]) -> dict[int, DocId]:
    rows = snapshot.select(
        """SELECT c.key, d.id FROM chunks c JOIN documents d ON d.key = c.doc
        WHERE c.key IN (SELECT value FROM json_each(?))""",
        (json.dumps(list(keys)),),
    )
    return {key: DocId(doc_id) for key, doc_id in rows}


class Hydration:
    """Reads candidates of one snapshot; a document is read once however many chunks it has."""

    def __init__(self, snapshot: Snapshot, vector: VectorIndex | None) -> None:
        self._snapshot = snapshot
        self._vector = vector

    def candidates(self, fused: Sequence[Fused]) -> list[Candidate]:
        """In the same order; what is no longer in the store is left out."""
        keys = [item.key for item in fused]
        chunks = self._snapshot.chunks_by_key(keys)
        owners = self._snapshot.documents_by_id({stored.chunk.doc_id for stored in chunks.values()})
        vectors = self._vectors(keys)
        wordings = signatures_of(self._snapshot, keys)
        found: list[Candidate] = []
        for item in fused:
            stored = chunks.get(item.key)
            owner = owners.get(stored.chunk.doc_id) if stored is not None else None
            if stored is not None and owner is not None:
                found.append(
                    Candidate(
                        stored=stored,
                        document=owner,
                        score=item.score,
                        evidence=item.evidence,
                        contributions=item.contributions,
                        vector=vectors.get(item.key),
                        ngrams=wordings.get(item.key, 0),
                    )
                )
        return found

    def _vectors(self, keys: Sequence[ChunkKey]) -> "Mapping[ChunkKey, NDArray[np.float32]]":
        return self._vector.vectors_of(keys) if self._vector is not None else {}
