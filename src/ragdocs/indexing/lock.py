"""The two locks of an index directory: who may write, and who watches the files.
Whoever takes one claims the folder first.

Writing is held for short slices, watching for as long as the process lives. When it dies, the
kernel frees both, and another process takes over.
"""

from contextlib import suppress
from pathlib import Path
from threading import Event, Lock, Thread

from ragdocs.closable import Closable
from ragdocs.errors import IndexStoreError
from ragdocs.locks import FileLock, Holder, LockAttempt, holder
from ragdocs.store.folder import claim_folder, is_foreign
from ragdocs.store.lock import WATCH_LOCK, WRITE_LOCK, lock, try_lock

LOOK_SECONDS = 0.25
"""How often whoever stands by tries the lock: a few hundred microseconds of work each."""
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


class Succession(Closable):
    """Takes the watch lock as soon as its holder is gone, on a thread of its own: that of the
    indexing may be at work for seconds on a busy machine. A lock that nobody took is freed when it
    is closed."""

    def __init__(self, directory: Path) -> None:
        self.is_over = Event()
        """Set when it has the lock, or is closed."""
        self._directory = directory
        self._closed = Event()
        self._passing = Lock()
        self._lock: FileLock | None = None
        with suppress(RuntimeError):  # no room for a thread: the indexing thread tries the lock too
            Thread(target=self._run, name="standby", daemon=True).start()

    def take(self) -> FileLock | None:
        """The lock, if it has it; it is the caller's from then on."""
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
                except (OSError, IndexStoreError):  # the indexing thread meets it too, and says it
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
    """Whether somebody watches, is heard of, and has compared the files with the index."""
    found = watching(directory)
    if found is None:
        return False
    return found.is_heard_within(SILENT_SECONDS) and bool(found.says.get("last_scan"))


def _holder(path: Path) -> Holder | None:
    """A file of this name in a folder that is not ours is not opened."""
    return None if is_foreign(path.parent) else holder(path)
