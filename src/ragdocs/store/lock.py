"""The locks of an index directory: `locks`, with its errors in the words of an index. Whoever takes
one claims the folder first."""

import errno
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from ragdocs import locks
from ragdocs.errors import IndexLocked, IndexStoreError
from ragdocs.locks import FileLock, LockHeld
from ragdocs.store.folder import claim_folder

WRITE_LOCK = "write.lock"
"""In an index directory: who may write to its store."""
WATCH_LOCK = "watch.lock"
"""In an index directory: who keeps it up to date with the files."""
_WRITABLE = "make its folder writable for you, or set another indexing.index_path"
_ROOM = "make room on its disk, or set an indexing.index_path on another"
_AWAY = "move away what is in its place, or set another indexing.index_path"
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
    """The lock, or None when another process, or another part of this one, has it.

    Raises:
        IndexFolderForeign: the folder is not ours.
        IndexStoreError: the file cannot be made or opened.
    """
    with _translated(path):
        return locks.try_lock(path, claim_folder)


def lock(path: Path, timeout: float, stop: threading.Event | None = None) -> FileLock:
    """The lock, waited for; `stop` ends the waiting early.

    Raises:
        IndexLocked: it was not free in time.
        IndexFolderForeign: the folder is not ours.
        IndexStoreError: the file cannot be made or opened.
    """
    with _translated(path):
        return locks.lock(path, timeout, stop, claim_folder)


@contextmanager
def _translated(path: Path) -> Generator[None]:
    try:
        yield
    except LockHeld as error:
        raise IndexLocked(str(error)) from error
    except OSError as error:
        advice = _ADVICE.get(error.errno or 0, "set another indexing.index_path")
        raise IndexStoreError(f"{path} cannot be locked: {error.strerror}; {advice}") from error
