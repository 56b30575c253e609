"""Values of indexing: hints that files changed, what a scan found and what an update did."""

import math
import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from ragdocs.models import TreeName
from ragdocs.store.records import FileFailure, UnreadCounts

# Results of scanning a whole tree or some paths in it.


class SkipReason(StrEnum):
    """Why a file or folder that looks indexable was skipped."""

    UNREADABLE = "cannot be read"
    BROKEN_LINK = "is a broken symbolic link"
    LINK_OUTSIDE = "is a symbolic link out of the tree; such links are not followed"
    LINK_TO_UNINDEXED = "is a symbolic link to a file that is not indexed"
    SPECIAL = "is not a regular file"
    KEY_NAME = "is named like a private key"
    PATH_TOO_LONG = "has a path that is too long"
    IGNORE_FILE = "was not used: its rules do not apply"


class RootProblem(StrEnum):
    """Why a tree could not be scanned at all."""

    MISSING = "is missing"
    NOT_A_DIRECTORY = "is not a folder"
    UNREADABLE = "cannot be read"
    LINKED = "is behind a link, and links inside a project are not followed"
    LIMITED = "cannot be scanned now: too many files are open"


@dataclass(frozen=True, slots=True, order=True)
class TreePath:
    """A file or a folder of a configured tree; the empty path is the whole tree."""

    tree: TreeName
    path: str


class FoundFile(NamedTuple):
    """A regular file by its tree-relative POSIX path; a byte that is not UTF-8 is a surrogate.

    `ctime_ns` reveals an edit that kept both size and mtime. A tuple, because every start creates
    one for each file: a dataclass takes three times as long, and the garbage collector tracks it.
    """

    path: str
    size: int
    mtime_ns: int
    ctime_ns: int


@dataclass(frozen=True, slots=True, order=True)
class SkippedPath:
    """A skipped path to report to the user."""

    path: str
    reason: SkipReason
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Scan:
    """The contents of a tree, sorted by path; with a scope, only at and below those paths."""

    files: tuple[FoundFile, ...]
    skipped: tuple[SkippedPath, ...]
    unseen: frozenset[str] = frozenset()
    scope: frozenset[str] | None = None
    unread: Mapping[str, int] = field(default_factory=dict[str, int])
    """How many documents have a format that is not read, by extension; only of a whole tree."""

    def covers(self, path: str) -> bool:
        """Whether the scan looked for this path at all."""
        return self.scope is None or _is_within(path, self.scope)

    def proves_absent(self, path: str) -> bool:
        """Whether a path missing from `files` is really gone, rather than in a place that was
        unreadable or not scanned."""
        return self.covers(path) and not _is_within(path, self.unseen)


@dataclass(frozen=True, slots=True)
class RootUnavailable:
    """The tree could not be scanned; its files must not be taken for deleted."""

    root: Path
    problem: RootProblem


def _is_within(path: str, places: frozenset[str]) -> bool:
    """Whether the path, or a folder on the way to it, is one of the places."""
    if not places:
        return False
    parts = path.split("/")
    return any("/".join(parts[:end]) in places for end in range(1, len(parts) + 1))


# Hints that files may have changed, collected until the files are quiet.
#
# A hint says where to look, never what happened there; the files themselves decide.

MAX_DELAY_SECONDS = 2.0
"""If the files never go quiet, they are scanned this long after the first hint."""
MAX_PATHS = 10_000
"""With more paths than this, one full scan is cheaper than checking each path."""


@dataclass(frozen=True, slots=True)
class Hints:
    """Where to look: at these files and below these folders, or everywhere if `must_rescan`.

    `notes` say why a full scan is needed.
    """

    paths: frozenset[TreePath] = frozenset()
    must_rescan: bool = False
    notes: tuple[str, ...] = ()


class Pending:
    """Hints waiting for quiet. Callers pass in the time, so nothing here waits or reads a clock."""

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
        """Replaces all pending hints with one: look everywhere."""
        self._rescan = True
        self._paths.clear()
        self._notes[note] = None
        self._stamp(-math.inf if at_once else now)

    def due(self) -> float:
        """When the hints are due; infinity while there are none."""
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
    """Collects hints from any thread for one consumer."""

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
        """Makes a waiting `take` return None."""
        with self._changed:
            self._woken = True
            self._changed.notify()

    def clear(self) -> None:
        with self._changed:
            self._pending.take()

    def take(self, until: float) -> Hints | None:
        """Waits for the hints to be due; None at `until` (monotonic time) or when woken."""
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
    """Drops paths that are below another one."""
    every = set(paths)
    return frozenset(at for at in every if not any(above in every for above in _above(at)))


def _above(at: TreePath) -> Iterable[TreePath]:
    if at.path:
        yield TreePath(at.tree, "")
    for index, character in enumerate(at.path):
        if character == "/":
            yield TreePath(at.tree, at.path[:index])


# What an update reports while it runs and when it has finished.


class Phase(StrEnum):
    """The current step of the work."""

    CHECKING = "checking"
    SCANNING = "scanning"
    READING = "reading"
    EMBEDDING = "embedding"
    TERMS = "terms"


@dataclass(frozen=True, slots=True)
class Progress:
    """Progress of a phase in steps, trees, files or texts; `chunks` counts those stored so far."""

    phase: Phase
    done: int
    total: int
    chunks: int = 0


@dataclass(frozen=True, slots=True)
class Kept:
    """Documents of a tree that stay indexed because their files could not be checked."""

    tree: TreeName
    reason: str
    documents: int


@dataclass(frozen=True, slots=True)
class Skipped:
    """A skipped path, with its tree."""

    tree: TreeName
    skipped: SkippedPath


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What an update did, and what the index contains afterwards.

    `unchanged` files were checked and match the index; `failed` ones could not be indexed this
    time. `unsettled` ones kept changing while they were read and must be checked again.
    """

    added: int
    modified: int
    unchanged: int
    removed: int
    moved: int
    failed: tuple[FileFailure, ...]
    kept: tuple[Kept, ...]
    skipped: tuple[Skipped, ...]
    unsettled: frozenset[TreePath]
    documents: int
    chunks: int
    seconds: float
    rebuilt: str | None
    """Why the store was emptied when it was opened, if it was."""
    taken_over: bool
    """Whether it was emptied because another program had created it."""
    stopped: bool
    unread: UnreadCounts
    """Of trees that were scanned whole."""

    @property
    def has_changed(self) -> bool:
        """Whether documents were added, removed or changed, so that search results may differ."""
        changed = self.added + self.modified + self.removed + self.moved
        return bool(changed or self.failed or self.rebuilt)
