"""Watching on Linux: one inotify descriptor and one thread, both watchdog's, for all trees.

Which folders are watched is decided here and not by watchdog's observer. That one watches what is
never indexed too (node_modules, .git), hides a full queue and folders beyond the limit, and hears
of our own reading (specs/0043).
"""

import os
from contextlib import ExitStack

from ragdocs.indexing.event_source import Target, quieten
from ragdocs.indexing.tree_watch import TreeWatch
from ragdocs.models import TreeName

_STOP_SECONDS = 1.0
_DESCRIPTORS = 3


class InotifySource:
    """Watches of any number of trees, nested ones included."""

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
        # Not one by one: closing the descriptor ends all watches at once.
        for watch in self._trees.values():
            watch.abandon()
        self._trees.clear()
        self._descriptor.stop()
        self._descriptor.join(_STOP_SECONDS)


def _require_descriptors() -> None:
    """watchdog would lose the first of its descriptors if it did not get the others."""
    with ExitStack() as stack:
        for _ in range(_DESCRIPTORS):
            descriptor = os.open(os.devnull, os.O_RDONLY)
            stack.callback(os.close, descriptor)
