"""Watching through watchdog's observer, where its Linux layer is not: macOS, Windows, the BSDs.

The observer does not say when the system has dropped events; only the periodic scan of
everything finds what was lost.
"""

import os
import threading
from typing import TYPE_CHECKING

from ragdocs.indexing.event_source import Target, quieten
from ragdocs.indexing.watch_rules import Parts
from ragdocs.models import TreeName

if TYPE_CHECKING:
    from watchdog.events import FileSystemEvent, FileSystemEventHandler
    from watchdog.observers.api import BaseObserver, ObservedWatch

_STOP_SECONDS = 1.0
# Reading, ours included, is no change. A folder's own change is that of something in it.
_READS = frozenset({"opened", "closed_no_write"})
_GOES = frozenset({"deleted", "moved"})


class ObserverSource:
    """One observer for all trees; it has a thread for each root."""

    def __init__(self, observer: "BaseObserver | None" = None) -> None:
        from watchdog.observers import Observer

        quieten()
        self._observer = observer or Observer()
        self._observer.start()
        self._armed: dict[TreeName, tuple[ObservedWatch, FileSystemEventHandler]] = {}

    @property
    def is_alive(self) -> bool:
        return self._observer.is_alive()

    @property
    def limit(self) -> None:
        """The observer keeps that to itself, too."""

    def arm(self, target: Target) -> None:
        self.disarm(target.tree)
        handler = _handler(target)
        watch = self._observer.schedule(handler, os.fspath(target.root), recursive=True)
        self._armed[target.tree] = watch, handler

    def disarm(self, tree: TreeName) -> None:
        if tree not in self._armed:
            return
        watch, handler = self._armed.pop(tree)
        # Two trees with one root share a watch.
        if any(watch == other for other, _ in self._armed.values()):
            self._observer.remove_handler_for_watch(handler, watch)
        else:
            self._observer.unschedule(watch)

    def is_armed(self, tree: TreeName) -> bool:
        watch, _ = self._armed.get(tree, (None, None))
        emitters = list(self._observer.emitters)
        return any(emitter.is_alive() for emitter in emitters if emitter.watch == watch)

    def close(self) -> None:
        self._armed.clear()
        self._observer.stop()
        self._observer.join(_STOP_SECONDS)


class _Filter:
    """Turns the events of a root into hints about a tree."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._prefix = os.path.join(target.root, "")
        self._lock = threading.Lock()

    def take(self, event: "FileSystemEvent") -> None:
        if event.event_type in _READS or (event.is_directory and event.event_type == "modified"):
            return
        with self._lock:
            for path in (event.src_path, event.dest_path):
                self._consider(os.fsdecode(path), event)

    def _consider(self, path: str, event: "FileSystemEvent") -> None:
        if not path.startswith(self._prefix):
            return
        parts: Parts = tuple(path[len(self._prefix) :].split(os.sep))
        hint = self._hint(parts, event) if self._target.rules.reaches(parts) else None
        if hint is not None:
            self._target.touch(hint)

    def _hint(self, parts: Parts, event: "FileSystemEvent") -> Parts | None:
        # Of what is gone, not every system knows whether it was a folder.
        if event.is_directory or (event.event_type in _GOES and "." not in parts[-1]):
            return parts if self._target.rules.enters(parts) else None
        return self._target.rules.file_hint(parts)


def _handler(target: Target) -> "FileSystemEventHandler":
    from watchdog.events import FileSystemEventHandler

    accepted = _Filter(target)

    class Handler(FileSystemEventHandler):
        """An error in here would end watchdog's thread."""

        def dispatch(self, event: "FileSystemEvent") -> None:
            try:
                accepted.take(event)
            except Exception as error:
                target.inbox.rescan(f"watching failed: {error}")

    return Handler()
