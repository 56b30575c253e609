"""Hints that files may have changed, gathered until the files are quiet.

A hint says where to look, never what happened there: the files decide.
"""

import math
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass

from ragdocs.indexing.scan import TreePath

MAX_DELAY_SECONDS = 2.0
"""Files that are never quiet are looked at this long after the first hint."""
MAX_PATHS = 10_000
"""With more paths than this, one scan of everything is cheaper than looking at each."""


@dataclass(frozen=True, slots=True)
class Hints:
    """Where to look: at these files, at all below these folders, or, `must_rescan`, everywhere.

    `notes` say why everything must be looked at.
    """

    paths: frozenset[TreePath] = frozenset()
    must_rescan: bool = False
    notes: tuple[str, ...] = ()


class Pending:
    """Hints that wait for quiet. Times are given, so that nothing here waits or asks a clock."""

    def __init__(self, quiet_seconds: float) -> None:
        self._quiet = quiet_seconds
        self._at_most = max(quiet_seconds, MAX_DELAY_SECONDS)
        self._clear()

    def touch(self, at: TreePath, now: float) -> None:
        if len(self._paths) >= MAX_PATHS:
            self.rescan(f"more than {MAX_PATHS} paths changed at once", now)
        elif not self._rescan:
            self._paths.add(at)
        self._stamp(now)

    def rescan(self, note: str, now: float, *, at_once: bool = False) -> None:
        """All that is known becomes one hint: look everywhere."""
        self._rescan = True
        self._paths.clear()
        self._notes[note] = None
        self._stamp(-math.inf if at_once else now)

    def due(self) -> float:
        """When the hints are to be given; never, as long as there are none."""
        return min(self._last + self._quiet, self._first + self._at_most)

    def take(self) -> Hints:
        hints = Hints(outermost(self._paths), self._rescan, tuple(self._notes))
        self._clear()
        return hints

    def _stamp(self, now: float) -> None:
        self._first = min(self._first, now)
        self._last = now

    def _clear(self) -> None:
        self._paths: set[TreePath] = set()
        self._notes: dict[str, None] = {}
        self._rescan = False
        self._first = self._last = math.inf


class Inbox:
    """Hints from any thread, taken out by one."""

    def __init__(self, quiet_seconds: float) -> None:
        self._pending = Pending(quiet_seconds)
        self._changed = threading.Condition()
        self._woken = False

    def touch(self, at: TreePath) -> None:
        with self._changed:
            self._pending.touch(at, time.monotonic())
            self._changed.notify()

    def rescan(self, note: str, *, at_once: bool = False) -> None:
        with self._changed:
            self._pending.rescan(note, time.monotonic(), at_once=at_once)
            self._changed.notify()

    def wake(self) -> None:
        """Ends a `take` that waits, without hints."""
        with self._changed:
            self._woken = True
            self._changed.notify()

    def clear(self) -> None:
        with self._changed:
            self._pending.take()

    def take(self, until: float) -> Hints | None:
        """The hints when they are due; None at that time (monotonic), or when woken."""
        with self._changed:
            while True:
                now = time.monotonic()
                if self._pending.due() <= now:
                    return self._pending.take()
                if self._woken or now >= until:
                    self._woken = False
                    return None
                self._changed.wait(min(self._pending.due(), until) - now)


def outermost(paths: Iterable[TreePath]) -> frozenset[TreePath]:
    """Without those that lie below another one."""
    every = set(paths)
    return frozenset(at for at in every if not any(above in every for above in _above(at)))


def _above(at: TreePath) -> Iterable[TreePath]:
    if at.path:
        yield TreePath(at.tree, "")
    for index, character in enumerate(at.path):
        if character == "/":
            yield TreePath(at.tree, at.path[:index])
