"""What indices return and how they report progress: hits, scopes and positions."""

import time
from collections.abc import Callable, Iterable
from typing import NamedTuple, Self

from ragdocs.models import DocId
from ragdocs.store.records import ChangeKind, ChunkKey, Position
from ragdocs.store.snapshot import Snapshot

# What every index answers with, and what every index may be confined to.

Scope = frozenset[DocId] | None
"""The documents that may answer; None is all of them. A filter becomes this once, and each index
searches within it, so that a small folder inside a large corpus is not starved."""

FEW_LEFT_OUT = 200


class AllBut(frozenset[DocId]):
    """A scope that leaves out few documents and knows which: to pass over these is many times as
    fast as to look among all the others.
    """

    left_out: frozenset[DocId]

    def __new__(cls, allowed: Iterable[DocId], left_out: frozenset[DocId]) -> Self:
        scope = super().__new__(cls, allowed)
        scope.left_out = left_out
        return scope


def scope_of(allowed: frozenset[DocId], left_out: frozenset[DocId]) -> frozenset[DocId]:
    """The first ones, of all documents that there are."""
    is_little = len(left_out) <= FEW_LEFT_OUT and len(left_out) < len(allowed)
    return AllBut(allowed, left_out) if is_little else allowed


def few_left_out(scope: Scope) -> frozenset[DocId] | None:
    """The documents that a scope leaves out, where that is the shorter way to say it."""
    return scope.left_out if isinstance(scope, AllBut) else None


class Hit(NamedTuple):
    """One index's opinion of one chunk. Lists of hits are best first; higher is better.

    A tuple, because hundreds are made for every query.
    """

    key: ChunkKey
    score: float


# Where in the store's history a view stands, and what it must redo to follow.
#
# Requests run side by side, each with its own snapshot, so a view can be ahead of the one it is
# given. Going back would mean to start over; being ahead is harmless, because chunk numbers never
# come to mean another chunk. But a store that was replaced by an older copy looks just the same, so
# a snapshot from before is taken for a late one only for a short while.

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
