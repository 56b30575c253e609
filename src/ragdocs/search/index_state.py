"""What the index can answer for at this moment: never an empty list without a word."""

import threading
from dataclasses import dataclass, replace
from enum import StrEnum

from ragdocs.indices.vector import VectorIndex
from ragdocs.store.records import Position
from ragdocs.store.snapshot import Snapshot
from ragdocs.wording import number_of


class Readiness(StrEnum):
    """How much of what should be found can be found."""

    READY = "ready"
    BUILDING = "building"
    """Files are still to be read, or vectors to come: more is found by waiting."""
    DEGRADED = "degraded"
    """Something that should be searchable is not, and will not come by waiting."""
    UNAVAILABLE = "unavailable"
    """There is nothing to search yet, or it cannot be used."""


_USUAL_REASONS = {
    Readiness.DEGRADED: "passages are found by their words only",
    Readiness.UNAVAILABLE: "there is nothing to search yet",
}


@dataclass(frozen=True, slots=True)
class IndexState:
    """Of one commit. `complete` is false whenever something that should be searchable is not.

    `files_waiting` were found to differ and are not stored yet; None: not all files were looked
    at since the index was begun. `reason` says why, where that is not plain from the figures.
    `notices` are on what is not as the settings' writer wanted it: settings that are ignored.
    """

    state: Readiness
    complete: bool
    generation: int
    documents: int
    passages: int
    vectors_pending: int
    failed_files: int
    files_waiting: int | None
    reason: str = ""
    notices: tuple[str, ...] = ()

    @property
    def is_there(self) -> bool:
        """Whether there was anything to search in: every store has had its first commit."""
        return self.generation > 0

    def in_words(self) -> str:
        """One line for people: `building: 120 files to be read`."""
        said = [self._progress()]
        if self.failed_files:
            said.append(f"{number_of(self.failed_files, 'file')} could not be indexed")
        return f"{self.state.value}: {'; '.join(said)}"

    def unsure(self, reason: str) -> "IndexState":
        """It is not known yet whether the files are still as they were indexed."""
        if self.state is not Readiness.READY:
            return self
        return replace(self, state=Readiness.BUILDING, complete=False, reason=reason)

    def behind(self, reason: str) -> "IndexState":
        """What is in the index is not kept in step, for this reason."""
        if self.state is Readiness.UNAVAILABLE:
            return self
        return replace(self, state=Readiness.DEGRADED, complete=False, reason=reason)

    def _progress(self) -> str:
        passages = number_of(self.passages, "passage")
        if self.state is Readiness.READY:
            return f"{number_of(self.documents, 'document')}, {passages}"
        if self.state is not Readiness.BUILDING:
            return self.reason or _USUAL_REASONS[self.state]
        if self.reason:
            return self.reason
        if self.files_waiting is None:
            return "not all files have been looked at yet"
        if self.files_waiting:
            return f"{number_of(self.files_waiting, 'file')} to be read"
        return f"{self.passages - self.vectors_pending:,} of {passages} have vectors"


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
    passages = snapshot.count_passages()
    pending = max(0, passages - max(0, present))
    failed = snapshot.ledger.count("failures")
    readiness = readiness_of(snapshot.waiting, pending, has_vectors=present >= 0)
    return IndexState(
        state=readiness,
        complete=readiness is Readiness.READY and not failed,
        generation=snapshot.position.generation,
        documents=snapshot.ledger.count("documents"),
        passages=passages,
        vectors_pending=pending,
        failed_files=failed,
        files_waiting=snapshot.waiting,
    )


def readiness_of(waiting: int | None, pending: int, *, has_vectors: bool) -> Readiness:
    """By what is in the store, and whether meaning can be searched at all."""
    if waiting != 0:
        return Readiness.BUILDING
    if not has_vectors:
        return Readiness.DEGRADED
    return Readiness.BUILDING if pending else Readiness.READY
