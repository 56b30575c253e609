"""The two locks of an index directory: who may write, and who watches the files.
Whoever takes one claims the folder first.

Writing is held for short slices, watching for as long as the process lives. When it dies, the
kernel frees both, and another process takes over.
"""

from pathlib import Path
from threading import Event

from ragdocs.locks import FileLock, Holder, holder
from ragdocs.store.folder import is_foreign
from ragdocs.store.lock import WATCH_LOCK, WRITE_LOCK, lock, try_lock

SILENT_SECONDS = 15.0
"""After which whoever watches is not relied on: a process can be stopped and hold its lock."""


def write_lock(directory: Path, timeout: float, stop: Event | None = None) -> FileLock:
    """Waited for; IndexLocked when it was not free in time, or `stop` was set."""
    return lock(directory / WRITE_LOCK, timeout, stop)


def try_write_lock(directory: Path) -> FileLock | None:
    return try_lock(directory / WRITE_LOCK)


def try_watch_lock(directory: Path) -> FileLock | None:
    """None when another process watches."""
    return try_lock(directory / WATCH_LOCK)


def writing(directory: Path) -> Holder | None:
    """Who writes now, for `status`."""
    return _holder(directory / WRITE_LOCK)


def watching(directory: Path) -> Holder | None:
    """Who watches now, for `status`."""
    return _holder(directory / WATCH_LOCK)


def is_looked_after(directory: Path) -> bool:
    """Whether somebody watches, is heard of, and has compared the files with the index."""
    found = watching(directory)
    if found is None:
        return False
    return found.is_heard_within(SILENT_SECONDS) and bool(found.says.get("last_scan"))


def _holder(path: Path) -> Holder | None:
    """A file of this name in a folder that is not ours is not opened."""
    return None if is_foreign(path.parent) else holder(path)
