"""Which commit of the store an index has applied, and which documents it must read to catch up."""

import time
from collections.abc import Callable

from ragdocs.models import DocId
from ragdocs.store.records import ChangeKind, Position
from ragdocs.store.snapshot import Snapshot

# Requests run concurrently, each with its own snapshot, so an index can be ahead of a snapshot.
# Going back would mean starting over; being ahead is harmless, because chunk numbers are never
# reused. But a store that was replaced by an older copy looks the same, so an earlier snapshot
# counts as a late request only for a short time.

IN_FLIGHT_SECONDS = 30.0
"""Every request ends well before this; an older snapshot means an older store."""


class AppliedCommit:
    """The commit that an index has applied. Guarded by the index's own lock."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._position: Position | None = None
        self._passed: list[tuple[float, Position]] = []

    @property
    def position(self) -> Position | None:
        return self._position

    def is_behind(self, snapshot: Snapshot) -> bool:
        """Whether the index must catch up with the snapshot."""
        return snapshot.position != self._position and not self._is_late(snapshot)

    def touched(self, snapshot: Snapshot, kinds: frozenset[ChangeKind]) -> frozenset[DocId] | None:
        """The documents changed in one of these ways; None if the index must start over."""
        if self._position is None:
            return None
        changes = snapshot.changes_since(self._position)
        if changes is None:
            return None
        return frozenset(change.doc_id for change in changes if change.kinds & kinds)

    def reach(self, position: Position) -> None:
        """Records that the index has applied this commit."""
        now = self._clock()
        self._passed = [entry for entry in self._passed if now - entry[0] < IN_FLIGHT_SECONDS]
        if self._position:
            self._passed.append((now, self._position))
        self._position = position

    def forget(self) -> None:
        """Makes the next catch-up start over."""
        self._position = None
        self._passed.clear()

    def _is_late(self, snapshot: Snapshot) -> bool:
        """Whether the snapshot is of a commit that the index left only recently."""
        seen = snapshot.position.generation
        if self._position is None or seen >= self._position.generation:
            return False
        now = self._clock()
        return any(
            now - left < IN_FLIGHT_SECONDS
            and position.generation <= seen
            and snapshot.changes_since(position) is not None
            for left, position in reversed(self._passed)
        )
