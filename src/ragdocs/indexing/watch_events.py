"""Turns the system's file events into hints that paths may have changed, and filters them."""

import errno
import logging
import os
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from ragdocs.indexing.changes import Inbox, TreePath
from ragdocs.indexing.ignore import (
    GITIGNORE,
    Selection,
    TreeRules,
    is_hidden,
    is_ignored_directory,
    is_leftover,
)
from ragdocs.models import TreeName

if TYPE_CHECKING:
    from watchdog.events import FileSystemEvent, FileSystemEventHandler
    from watchdog.observers.api import BaseObserver, ObservedWatch

# Which events of a tree matter, decided by names alone.
#
# These are the rules of discovery that cost nothing to apply; the scan skips what they let through
# by mistake. Ignore files are not read here, because they change.

Parts = tuple[str, ...]


class WatchedTree(TreeRules, Protocol):
    """What watching needs to know about a configured tree."""

    @property
    def name(self) -> TreeName: ...


class WatchRules:
    """The rules of one tree, for one thread at a time. `private` folders are not entered."""

    def __init__(self, tree: TreeRules, root: Path, private: Iterable[Path] = ()) -> None:
        self._selection = Selection(tree)
        resolved = [folder.resolve() for folder in private]
        self._private = {
            folder.relative_to(root).parts for folder in resolved if folder.is_relative_to(root)
        }

    def enters(self, parts: Parts) -> bool:
        """Whether to watch a folder, given that its parent is watched."""
        name = parts[-1]
        return not (
            is_ignored_directory(name)
            or parts in self._private
            or self._selection.excludes(parts, is_directory=True)
        )

    def reaches(self, parts: Parts) -> bool:
        """Whether every parent folder is watched."""
        return all(self.enters(parts[:end]) for end in range(1, len(parts)))

    def file_hint(self, parts: Parts) -> Parts | None:
        """Where to look when the file changed: for an ignore file, in its folder."""
        if parts[-1] == GITIGNORE:
            return parts[:-1]
        return parts if self._wants(parts) else None

    def _wants(self, parts: Parts) -> bool:
        return (
            self._selection.includes(parts, inside=True)
            and not is_hidden(parts[-1])
            and not is_leftover(parts[-1])
            and not self._selection.excludes(parts, is_directory=False)
        )


# The interface of event sources, and what they share.

# The system allows no more watches; any other error concerns one folder.
LIMITS = frozenset({errno.ENOSPC, errno.EMFILE, errno.ENFILE, errno.ENOMEM})


@dataclass(frozen=True, slots=True)
class Target:
    """A tree to watch, with its resolved root; hints about it go to the inbox."""

    tree: TreeName
    root: Path
    rules: WatchRules
    inbox: Inbox
    stop: threading.Event

    def touch(self, parts: Parts) -> None:
        self.inbox.touch(TreePath(self.tree, "/".join(parts)))


class EventSource(Protocol):
    """Delivers events of trees to their inboxes, on its own threads."""

    @property
    def is_alive(self) -> bool:
        """Whether its threads are running."""
        ...

    @property
    def limit(self) -> str | None:
        """The system limit that keeps it from watching everything, if one does."""
        ...

    def arm(self, target: Target) -> None:
        """Starts to watch a tree; OSError when it cannot."""
        ...

    def disarm(self, tree: TreeName) -> None: ...

    def is_armed(self, tree: TreeName) -> bool: ...

    def close(self) -> None:
        """Ends its threads."""
        ...


def limit_of(error: Exception) -> str | None:
    """The limit that was reached, if the error is about one."""
    if isinstance(error, OSError) and error.errno in LIMITS:
        return f"no more folders can be watched: {error.strerror}"
    return None


def quieten() -> None:
    """Sends watchdog's log messages to the program's log if there is one, never to stderr."""
    logging.getLogger("watchdog").addHandler(logging.NullHandler())


# Watching through watchdog's observer where there is no inotify: macOS, Windows, the BSDs.
#
# The observer does not report when the system dropped events; only the periodic full scan finds
# those changes.

_STOP_SECONDS = 1.0
# Reading, including our own, is not a change. A folder is modified when something in it changes.
_READS = frozenset({"opened", "closed_no_write"})
_GOES = frozenset({"deleted", "moved"})


class ObserverSource:
    """One observer for all trees, with a thread for each root."""

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
        """The observer does not report this either."""

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
        # Not every system knows whether a deleted path was a folder.
        if event.is_directory or (event.event_type in _GOES and "." not in parts[-1]):
            return parts if self._target.rules.enters(parts) else None
        return self._target.rules.file_hint(parts)


def _handler(target: Target) -> "FileSystemEventHandler":
    from watchdog.events import FileSystemEventHandler

    accepted = _Filter(target)

    class Handler(FileSystemEventHandler):
        """Catches every error, because one would end watchdog's thread."""

        def dispatch(self, event: "FileSystemEvent") -> None:
            try:
                accepted.take(event)
            except Exception as error:
                target.inbox.rescan(f"watching failed: {error}")

    return Handler()
