"""File events from inotify (Linux): one watch per folder, missing nothing in new folders."""

import itertools
import os
import threading
from collections.abc import Callable
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING

from ragdocs.indexing.watch_events import Parts, Target, limit_of, quieten
from ragdocs.models import TreeName

if TYPE_CHECKING:
    from watchdog.observers.inotify_c import InotifyEvent, InotifyFD, WatchDescriptor

# The folders of one tree that inotify watches, and what their events mean.
#
# A folder is watched first, then listed, then hinted at. So anything that appears in a new folder,
# at any moment, is found by a scan or reported by an event.

_numbers = itertools.count(1)


class TreeWatch:
    """The watched folders of one tree; watchdog calls the `on_…` methods on its thread."""

    def __init__(self, descriptor: "InotifyFD", target: Target) -> None:
        from watchdog.observers import inotify_c

        self._api = inotify_c
        self._descriptor = descriptor
        self._target = target
        self._lock = threading.RLock()
        self._folders: dict[WatchDescriptor, tuple[Parts, inotify_c.CallbackId]] = {}
        self._watches: dict[Parts, WatchDescriptor] = {}
        self._abandoned = False
        self.limit: str | None = None
        flags = inotify_c.InotifyConstants
        # Not opening, closing or reading, which we do ourselves. IN_EXCL_UNLINK: not what happens
        # to a file after it is unlinked.
        self._mask = inotify_c.Mask(
            flags.IN_MODIFY
            | flags.IN_CLOSE_WRITE
            | flags.IN_ATTRIB
            | flags.IN_CREATE
            | flags.IN_DELETE
            | flags.IN_MOVE
            | flags.IN_DELETE_SELF
            | flags.IN_MOVE_SELF
            | flags.IN_ONLYDIR
            | flags.IN_DONT_FOLLOW
            | flags.IN_EXCL_UNLINK
        )

    @property
    def is_armed(self) -> bool:
        return () in self._watches

    def arm(self) -> None:
        with self._lock:
            self._add_all(())
            if not self.is_armed and not self._target.stop.is_set():
                raise PermissionError(f"{self._target.root} cannot be watched")

    def close(self) -> None:
        with self._lock:
            self._abandoned = True
            self._drop(())

    def abandon(self) -> None:
        self._abandoned = True

    def on_event(self, event: "InotifyEvent") -> None:
        self._safely(lambda: self._handle(event))

    def on_watch_deleted(self, wd: "WatchDescriptor") -> None:
        self._safely(lambda: self._handle_end(wd))

    def on_queue_overflow(self) -> None:
        self._safely(self._start_over)

    def _safely(self, handle: Callable[[], None]) -> None:
        """On any error, watchdog's thread keeps running and the watcher is notified."""
        with self._lock:
            if self._abandoned:
                return
            try:
                handle()
            except Exception as error:
                self.limit = self.limit or limit_of(error)
                self._watches.pop((), None)
                self._target.inbox.rescan(f"watching failed: {error}")
                self._target.inbox.wake()

    def _handle(self, event: "InotifyEvent") -> None:
        folder, _ = self._folders.get(event.wd, (None, None))
        if folder is None:
            return
        if not event.name:
            self._on_itself(event, folder)
            return
        parts = (*folder, os.fsdecode(event.name))
        if event.is_directory:
            self._on_folder(event, parts)
        elif (hint := self._target.rules.file_hint(parts)) is not None:
            self._target.touch(hint)

    def _handle_end(self, wd: "WatchDescriptor") -> None:
        """The folder was deleted or its file system unmounted; another may have taken its place."""
        parts, _ = self._folders.pop(wd, (None, None))
        if parts is None or self._watches.get(parts) != wd:
            return
        del self._watches[parts]
        if parts:
            self._add_all(parts)
            self._target.touch(parts)
        else:
            self._target.inbox.wake()

    def _start_over(self) -> None:
        """The lost events may include new folders, and moved ones that we know by old names."""
        self._drop(())
        self._add_all(())
        self._target.inbox.rescan("too many events at once: some were lost")

    def _on_itself(self, event: "InotifyEvent", parts: Parts) -> None:
        """Only the root needs handling: for any other folder, its parent reports the event too."""
        if parts:
            return
        if event.is_move_self or event.is_delete_self:
            self._watches.pop((), None)
            self._target.inbox.wake()
        elif event.is_attrib:
            self._target.touch(())

    def _on_folder(self, event: "InotifyEvent", parts: Parts) -> None:
        if not self._target.rules.enters(parts):
            return
        if event.is_moved_from:
            self._drop(parts)
        elif event.is_create or event.is_moved_to or parts not in self._watches:
            self._add_all(parts)
        # Only now, so that the scan finds what appeared in the folder before it was watched.
        self._target.touch(parts)

    def _add_all(self, top: Parts) -> None:
        """Watches a folder and everything below it; OSError when the system limit is reached.

        Each folder is watched before it is listed, so that nothing is missed in between.
        """
        pending = [top]
        while pending and not self._target.stop.is_set():
            parts = pending.pop()
            if self._add(parts):
                pending += self._folders_in(parts)

    def _add(self, parts: Parts) -> bool:
        # A new number each time: watchdog warns about a second callback with the same number.
        number = self._api.CallbackId(next(_numbers))
        try:
            wd = self._descriptor.add_callback(self._at(parts), self._mask, self, number)
        except OSError as error:
            if limit_of(error) or not parts:
                raise
            return False
        if wd == -1:  # not permitted, so its files cannot be read either
            return False
        if wd in self._folders:
            earlier, replaced = self._folders[wd]
            self._watches.pop(earlier, None)
            self._descriptor.remove_callbacks([(wd, replaced)])
        self._folders[wd] = parts, number
        self._watches[parts] = wd
        return True

    def _folders_in(self, parts: Parts) -> list[Parts]:
        # Gone or not permitted: a scan would find nothing there either.
        with suppress(OSError), os.scandir(self._at(parts)) as entries:
            below = [
                (*parts, os.fsdecode(entry.name))
                for entry in entries
                if entry.is_dir(follow_symlinks=False)
            ]
            return [folder for folder in below if self._target.rules.enters(folder)]
        return []

    def _at(self, parts: Parts) -> bytes:
        return os.fsencode(os.path.join(self._target.root, *parts))

    def _drop(self, top: Parts) -> None:
        """Stops watching a folder and everything below it."""
        below = [
            (wd, number)
            for wd, (parts, number) in self._folders.items()
            if parts[: len(top)] == top
        ]
        for wd, _ in below:
            parts, _ = self._folders.pop(wd)
            self._watches.pop(parts, None)
        self._descriptor.remove_callbacks(below)


# Watching on Linux: one inotify descriptor and one thread, both watchdog's, for all trees.
#
# We choose the watched folders here instead of using watchdog's observer. The observer also watches
# folders that are never indexed (node_modules, .git), hides a full queue and folders beyond the
# limit, and reports our own reads (specs/0043).

_STOP_SECONDS = 1.0
_DESCRIPTORS = 3


class InotifySource:
    """Watches any number of trees, including nested ones."""

    def __init__(self) -> None:
        from watchdog.observers.inotify_c import InotifyFD

        quieten()
        _require_descriptors()
        self._descriptor = InotifyFD()
        self._descriptor.start()
        self._trees: dict[TreeName, TreeWatch] = {}

    @property
    def is_alive(self) -> bool:
        return self._descriptor.is_alive()

    @property
    def limit(self) -> str | None:
        return next((watch.limit for watch in self._trees.values() if watch.limit), None)

    def arm(self, target: Target) -> None:
        self.disarm(target.tree)
        watch = TreeWatch(self._descriptor, target)
        self._trees[target.tree] = watch
        try:
            watch.arm()
        except BaseException:
            self.disarm(target.tree)
            raise

    def disarm(self, tree: TreeName) -> None:
        watch = self._trees.pop(tree, None)
        if watch:
            watch.close()

    def is_armed(self, tree: TreeName) -> bool:
        watch = self._trees.get(tree)
        return watch is not None and watch.is_armed

    def close(self) -> None:
        # No need to close them one by one: closing the descriptor ends all watches.
        for watch in self._trees.values():
            watch.abandon()
        self._trees.clear()
        self._descriptor.stop()
        self._descriptor.join(_STOP_SECONDS)


def _require_descriptors() -> None:
    """Checks first, because watchdog leaks its first descriptor if it cannot get the others."""
    with ExitStack() as stack:
        for _ in range(_DESCRIPTORS):
            descriptor = os.open(os.devnull, os.O_RDONLY)
            stack.callback(os.close, descriptor)
