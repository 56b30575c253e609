"""The two locks of an index folder: who may write, and who watches. Taking one claims the folder
first.

The write lock is held for short slices, the watch lock for the life of the process; the kernel
releases both when it dies.
"""

import errno
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event, Lock, Thread

from ragdocs import locks
from ragdocs.errors import IndexLocked, IndexStoreError
from ragdocs.locks import FileLock, Holder, LockAttempt, LockHeld, holder
from ragdocs.models import Closable
from ragdocs.store.folder import claim_folder, is_foreign

# `ragdocs.locks` for an index directory, with its errors translated into those of an index.

WRITE_LOCK = "write.lock"
"""In an index directory: who may write to its store."""
WATCH_LOCK = "watch.lock"
"""In an index directory: who keeps it up to date with the files."""
_WRITABLE = "make its folder writable for you, or set another indexing.index_path"
_ROOM = "free space on its disk, or set indexing.index_path to a folder on another"
_AWAY = "move whatever is in its place, or set another indexing.index_path"
_ADVICE = {
    errno.EACCES: _WRITABLE,
    errno.EPERM: _WRITABLE,
    errno.EROFS: _WRITABLE,
    errno.ENOSPC: _ROOM,
    errno.EDQUOT: _ROOM,
    errno.EEXIST: _AWAY,
    errno.ENOTDIR: _AWAY,
    errno.EINVAL: _AWAY,
    errno.EMFILE: "too many files are open in this program: raise the limit (ulimit -n)",
    errno.ENFILE: "too many files are open on this machine: close other programs",
}


def try_lock(path: Path) -> FileLock | None:
    """The lock, or None if another process, or another part of this one, holds it.

    Raises:
        IndexFolderForeign: the folder is not ours.
        IndexStoreError: the file cannot be created or opened.
    """
    with _translate_errors(path):
        return locks.try_lock(path, claim_folder)


def lock(path: Path, timeout: float, stop: threading.Event | None = None) -> FileLock:
    """Waits for the lock; `stop` ends the wait early.

    Raises:
        IndexLocked: it was not free in time.
        IndexFolderForeign: the folder is not ours.
        IndexStoreError: the file cannot be created or opened.
    """
    with _translate_errors(path):
        return locks.lock(path, timeout, stop, claim_folder)


@contextmanager
def _translate_errors(path: Path) -> Generator[None]:
    try:
        yield
    except LockHeld as error:
        raise IndexLocked(str(error)) from error
    except OSError as error:
        advice = _ADVICE.get(error.errno or 0, "set another indexing.index_path")
        raise IndexStoreError(f"{path} cannot be locked: {error.strerror}; {advice}") from error


# Taking and inspecting the two locks. When a process dies, another one takes over.

LOOK_SECONDS = 0.25
"""How often a standby process tries the lock; each attempt takes a few hundred microseconds."""
SILENT_SECONDS = 15.0
"""After this long without a heartbeat, the watching process is not relied on: a suspended process
still holds its lock."""


def write_lock(directory: Path, timeout: float, stop: Event | None = None) -> FileLock:
    """Waits for it; IndexLocked if it was not free in time, or `stop` was set."""
    return lock(directory / WRITE_LOCK, timeout, stop)


def try_write_lock(directory: Path) -> FileLock | None:
    return try_lock(directory / WRITE_LOCK)


def try_watch_lock(directory: Path) -> FileLock | None:
    """None when another process watches."""
    return try_lock(directory / WATCH_LOCK)


class Succession(Closable):
    """Takes the watch lock as soon as its holder is gone, on its own thread, because the indexing
    thread may be at work for seconds on a busy machine. Closing it releases a lock that was not
    taken over."""

    def __init__(self, directory: Path) -> None:
        self.is_over = Event()
        """Set when it has the lock, or is closed."""
        self._directory = directory
        self._closed = Event()
        self._passing = Lock()
        self._lock: FileLock | None = None
        with suppress(RuntimeError):  # no thread available: the indexing thread tries the lock too
            Thread(target=self._run, name="standby", daemon=True).start()

    def take(self) -> FileLock | None:
        """Hands the lock over to the caller, if it has it."""
        with self._passing:
            found, self._lock = self._lock, None
            return found

    def close(self) -> None:
        """From any thread; does not wait."""
        self._closed.set()
        self.is_over.set()
        if lock := self.take():
            lock.close()

    def _run(self) -> None:
        with LockAttempt(self._directory / WATCH_LOCK, claim_folder) as attempt:
            while not self._closed.wait(LOOK_SECONDS):
                try:
                    lock = attempt.take()
                except (OSError, IndexStoreError):  # the indexing thread reports this error
                    continue
                if lock is not None:
                    self._pass_on(lock)
                    return

    def _pass_on(self, lock: FileLock) -> None:
        with self._passing:
            self._lock = lock
        self.is_over.set()
        if self._closed.is_set():
            self.close()


def writing(directory: Path) -> Holder | None:
    """Who writes now, for `status`."""
    return _holder(directory / WRITE_LOCK)


def watching(directory: Path) -> Holder | None:
    """Who watches now, for `status`."""
    return _holder(directory / WATCH_LOCK)


def is_looked_after(directory: Path) -> bool:
    """Whether a process watches, sends heartbeats, and has compared the files with the index."""
    found = watching(directory)
    if found is None:
        return False
    return found.is_heard_within(SILENT_SECONDS) and bool(found.says.get("last_scan"))


def _holder(path: Path) -> Holder | None:
    """Does not open a file in a folder that is not ours."""
    return None if is_foreign(path.parent) else holder(path)
