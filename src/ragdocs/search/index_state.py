"""What the index can answer for at this moment: never an empty list without a word."""

import threading
from dataclasses import dataclass
from enum import StrEnum

from ragdocs.indices.vector import VectorIndex
from ragdocs.store.records import Position
from ragdocs.store.snapshot import Snapshot


class Readiness(StrEnum):
    """How much of what should be found can be found."""

    READY = "ready"
    BUILDING = "building"
    """Vectors are still to come; words are all there."""
    DEGRADED = "degraded"
    """Something that should be searchable is not, and will not come by waiting."""


@dataclass(frozen=True, slots=True)
class IndexState:
    """Of one commit. `complete` is false whenever something that should be searchable is not."""

    readiness: Readiness
    complete: bool
    generation: int
    documents: int
    passages: int
    vectors_pending: int
    failed_files: int


class IndexStates:
    """Works the state out once for each commit: counting costs more than asking."""

    def __init__(self, vector: VectorIndex | None) -> None:
        self._vector = vector
        self._known: tuple[Position, int, IndexState] | None = None
        self._lock = threading.Lock()

    def of(self, snapshot: Snapshot, *, has_vectors: bool) -> IndexState:
        """`has_vectors`: whether meaning could be searched at all for this request."""
        present = len(self._vector) if self._vector is not None and has_vectors else -1
        with self._lock:
            known = self._known
        if known and known[:2] == (snapshot.position, present):
            return known[2]
        state = _state(snapshot, present)
        with self._lock:
            self._known = (snapshot.position, present, state)
        return state


def _state(snapshot: Snapshot, present: int) -> IndexState:
    rows = snapshot.select("SELECT count(text_hash) FROM chunks")
    passages = int(rows[0][0])
    pending = max(0, passages - max(0, present))
    failed = snapshot.ledger.count("failures")
    if present < 0:
        readiness = Readiness.DEGRADED
    else:
        readiness = Readiness.BUILDING if pending else Readiness.READY
    return IndexState(
        readiness=readiness,
        complete=readiness is Readiness.READY and not failed,
        generation=snapshot.position.generation,
        documents=snapshot.ledger.count("documents"),
        passages=passages,
        vectors_pending=pending,
        failed_files=failed,
    )
