"""Watches the trees and reports changed paths once their files have been quiet for a moment.

The thread that waits for hints also does the watcher's chores: it checks that the watched roots
are still in place, and asks for a full scan where watching is not possible.
"""

import math
import os
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from ragdocs.indexing.changes import Hints, Inbox
from ragdocs.indexing.reading import is_behind_link
from ragdocs.indexing.watch_events import EventSource, Target, WatchedTree, WatchRules, limit_of
from ragdocs.models import TreeName

CHECK_SECONDS = 1.0
"""How often to check that the roots are in place: no event reports a renamed parent."""
RETRY_SECONDS = 300.0
"""How often to try watching again while it is not possible."""
IDLE_SHARE = 0.01
"""The share of one core that polling may use."""
_POLL_SECONDS = (5.0, 600.0)


class WatchMode(StrEnum):
    """How changes are noticed."""

    WATCHING = "watching"
    POLLING = "polling"
    OFF = "off"


def open_source() -> EventSource:
    """The best source on this system; OSError at a system limit, ImportError if there is none."""
    try:
        from ragdocs.indexing.inotify import InotifySource

        return InotifySource()
    except OSError:
        raise
    except Exception:  # not Linux (each system fails differently), or watchdog's internals changed
        from ragdocs.indexing.watch_events import ObserverSource

        return ObserverSource()


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchOptions:
    """`private` folders (the index directory) are never watched; `rescan_seconds` 0 means never."""

    debounce_seconds: float = 0.5
    rescan_seconds: float = 0.0
    private: tuple[Path, ...] = ()
    open_source: Callable[[], EventSource] = field(default=open_source)


class Watcher:
    """A stream of hints about changes in trees. One thread waits; any may start and stop it."""

    def __init__(self, trees: Sequence[WatchedTree], options: WatchOptions) -> None:
        self._trees = tuple(trees)
        self._options = options
        self._inbox = Inbox(options.debounce_seconds)
        self._lock = threading.RLock()
        self._stop = threading.Event()
        self._source: EventSource | None = None
        self._roots: dict[TreeName, tuple[int, int]] = {}
        self._polling_because = ""
        self._is_running = False
        self._check_at = self._retry_at = self._rescan_at = math.inf
        self._scan_seconds = 0.1

    @property
    def mode(self) -> WatchMode:
        if not self._is_running:
            return WatchMode.OFF
        return WatchMode.POLLING if self._polling_because else WatchMode.WATCHING

    @property
    def reason(self) -> str:
        """Why it polls, or which roots are not watched; empty when all are."""
        if not self._is_running:
            return "not started"
        absent = [tree.name for tree in self._trees if tree.name not in self._roots]
        where = f"cannot be watched: {', '.join(absent)}" if absent else ""
        return self._polling_because or where

    def start(self) -> None:
        """Returns when everything is watched: a scan started afterwards misses nothing."""
        with self._lock:
            if self._is_running:
                return
            self._stop = threading.Event()
            self._is_running = True
            self._open()
            self._check_at = time.monotonic()
            if self._source:  # the first time, a thread that ends is replaced at once
                self._retry_at = -math.inf

    def wake(self) -> None:
        """From any thread, before a stop: ends a running `wait`, and every later one at once."""
        self._stop.set()
        self._inbox.wake()

    def stop(self) -> None:
        self.wake()
        with self._lock:
            self._is_running = False
            self._check_at = self._retry_at = self._rescan_at = math.inf
            self._close_source()
            self._inbox.clear()

    close = stop

    def wait(self, timeout: float) -> Hints | None:
        """The next hints; None when the timeout passes without any, or when stopping."""
        until = time.monotonic() + timeout
        while True:
            self._do_chores()
            found = self._inbox.take(min(until, self._check_at))
            if found or self._stop.is_set() or time.monotonic() >= until:
                return found

    def scan_took(self, seconds: float) -> None:
        """Records how long a full scan takes, so that polling stays within its share."""
        self._scan_seconds = seconds

    def _do_chores(self) -> None:
        with self._lock:
            if not self._is_running:
                return
            was_polling = bool(self._polling_because)
            self._look_after_source()
            now = time.monotonic()
            if self._polling_because and not was_polling:
                self._rescan_at = now
            if now >= self._rescan_at:
                self._inbox.rescan("a periodic scan", at_once=True)
                self._rescan_at = now + self._interval()
            self._check_at = min(now + CHECK_SECONDS, self._rescan_at)

    def _look_after_source(self) -> None:
        now = time.monotonic()
        if self._source is None:
            if now >= self._retry_at:
                self._open()
                if self._source:
                    self._inbox.rescan("watching again")
        elif self._source.limit:
            self._poll(self._source.limit)
        elif self._source.is_alive:
            self._check_roots(announce=True)
        elif now >= self._retry_at:
            self._close_source()
            self._open()
            self._inbox.rescan("the watching thread had ended")
        else:  # again, too soon
            self._poll("the watching thread keeps ending")

    def _interval(self) -> float:
        if self._polling_because:
            least, most = _POLL_SECONDS
            return min(max(self._scan_seconds / IDLE_SHARE, least), most)
        return self._options.rescan_seconds or math.inf

    def _open(self) -> None:
        """Starts watching, or polling if that fails."""
        self._polling_because = ""
        try:
            self._source = self._options.open_source()
            self._check_roots(announce=False)
        except (OSError, RuntimeError, ImportError) as error:
            self._poll(limit_of(error) or str(error))
        self._retry_at = time.monotonic() + RETRY_SECONDS
        self._rescan_at = time.monotonic() + self._interval()

    def _poll(self, because: str) -> None:
        self._close_source()
        self._polling_because = because
        self._retry_at = time.monotonic() + RETRY_SECONDS

    def _close_source(self) -> None:
        source, self._source = self._source, None
        self._roots.clear()
        if source:
            source.close()

    def _check_roots(self, *, announce: bool) -> None:
        """Starts watching roots that appeared and stops watching those that are gone."""
        for tree in self._trees:
            if self._source is None or self._stop.is_set():
                return
            there = _identity(tree)
            known = self._roots.get(tree.name)
            if there == known and (known is None or self._source.is_armed(tree.name)):
                continue
            self._source.disarm(tree.name)
            self._roots.pop(tree.name, None)
            is_there = there is not None and self._arm(tree)
            if is_there and there is not None:
                self._roots[tree.name] = there
            if announce and (is_there or known):
                what = "is watched" if is_there else "is gone"
                self._inbox.rescan(f"{tree.name}: its folder {what}")

    def _arm(self, tree: WatchedTree) -> bool:
        try:
            root = tree.root.resolve(strict=True)
            rules = WatchRules(tree, root, self._options.private)
            if self._source:
                self._source.arm(Target(tree.name, root, rules, self._inbox, self._stop))
        except (OSError, RuntimeError) as error:  # RuntimeError: a loop of links
            limit = limit_of(error)
            if limit:
                self._poll(limit)
            return False
        return True


def _identity(tree: WatchedTree) -> tuple[int, int] | None:
    """The device and inode of the folder to watch; None when there is none."""
    if tree.within and is_behind_link(tree.root):
        return None
    try:
        found = os.stat(tree.root)
    except OSError:
        return None
    return found.st_dev, found.st_ino
