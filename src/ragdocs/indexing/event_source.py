"""What the watcher asks of whatever delivers events, and what is common to those that do."""

import errno
import logging
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from ragdocs.indexing.hints import Inbox
from ragdocs.indexing.scan import TreePath
from ragdocs.indexing.watch_rules import Parts, WatchRules
from ragdocs.models import TreeName

# There is no room for more watches; any other error is about one folder.
LIMITS = frozenset({errno.ENOSPC, errno.EMFILE, errno.ENFILE, errno.ENOMEM})


@dataclass(frozen=True, slots=True)
class Target:
    """A tree to watch, by its root without links; hints about it go to the inbox."""

    tree: TreeName
    root: Path
    rules: WatchRules
    inbox: Inbox
    stop: threading.Event

    def touch(self, parts: Parts) -> None:
        self.inbox.touch(TreePath(self.tree, "/".join(parts)))


class EventSource(Protocol):
    """Delivers events of trees to their inboxes, on threads of its own."""

    @property
    def is_alive(self) -> bool:
        """Whether its threads are."""
        ...

    @property
    def limit(self) -> str | None:
        """Which limit keeps it from watching all that it should."""
        ...

    def arm(self, target: Target) -> None:
        """Watches a tree from now on; OSError when it cannot."""
        ...

    def disarm(self, tree: TreeName) -> None: ...

    def is_armed(self, tree: TreeName) -> bool: ...

    def close(self) -> None:
        """Ends its threads."""
        ...


def limit_of(error: Exception) -> str | None:
    """The limit that was reached, if the error means that."""
    if isinstance(error, OSError) and error.errno in LIMITS:
        return f"no more folders can be watched: {error.strerror}"
    return None


def quieten() -> None:
    """What watchdog logs goes to the program's log if there is one, and never to stderr."""
    logging.getLogger("watchdog").addHandler(logging.NullHandler())
