"""Where in the store's history an index stands, and what it must redo to follow."""

import time
from collections.abc import Callable

from ragdocs.models import DocId
from ragdocs.store.records import ChangeKind, Position
from ragdocs.store.snapshot import Snapshot

# Requests run side by side, each with its own snapshot, so an index can be ahead of the one it is
# given. Going back would mean to start over; being ahead is harmless, because chunk numbers never
# come to mean another chunk. But a store that was replaced by an older copy looks just the same, so
# an earlier snapshot is taken for a late one only for a short while.

IN_FLIGHT_SECONDS = 30.0
"""A request is answered well within this; an older snapshot than that means an older store."""


class AppliedCommit:
    """The commit that a view has applied. Guarded by the view's own lock."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._position: Position | None = None
        self._passed: list[tuple[float, Position]] = []

    @property
    def position(self) -> Position | None:
        return self._position

    def is_behind(self, snapshot: Snapshot) -> bool:
        """Whether the snapshot shows anything that the view must follow."""
        return snapshot.position != self._position and not self._is_late(snapshot)

    def touched(self, snapshot: Snapshot, kinds: frozenset[ChangeKind]) -> frozenset[DocId] | None:
        """The documents changed in one of these ways; None: start over from the store."""
        if self._position is None:
            return None
        changes = snapshot.changes_since(self._position)
        if changes is None:
            return None
        return frozenset(change.doc_id for change in changes if change.kinds & kinds)

    def reach(self, position: Position) -> None:
        """The view is now as the store was at this commit."""
        now = self._clock()
        self._passed = [entry for entry in self._passed if now - entry[0] < IN_FLIGHT_SECONDS]
        if self._position:
            self._passed.append((now, self._position))
        self._position = position

    def forget(self) -> None:
        """The view can no longer be trusted: the next catch-up starts over."""
        self._position = None
        self._passed.clear()

    def _is_late(self, snapshot: Snapshot) -> bool:
        """Whether the snapshot is of a commit that the view has just left behind."""
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
