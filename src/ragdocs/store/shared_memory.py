"""SQLite's `-shm` file, which every process has mapped into its memory.

It says where in the log each page is, and SQLite believes it, but for its head. Made anew by SQLite
from the log when the head is empty, so emptying that is how to be rid of whatever damage it has.
"""

import os
import struct
import threading
import zlib
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from ragdocs.files import (
    CLOSING_FREES_LOCKS,
    has_other_names,
    is_link,
    open_file,
    read_at,
    write_at,
)

_HEAD_BYTES = 96
"""Two copies of the head; what follows up to the tables, marks of those who read, changes any
time."""
_TABLES_AT = 136
_FRAMES_AT = struct.Struct("16xI")
# Each part has room for so many frames of the log, but for the first, which begins with the head.
_PART_BYTES, _PART_FRAMES, _HEAD_FRAMES = 32768, 4096, 34


class SharedMemory:
    """The file of one connection, from before its first statement until after its last.

    Remembers how long the file was. Once it is cut short, touching what was cut off ends the
    process (SIGBUS), and closing a connection touches it too.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._size = 0
        self._key: _Key | None = _NOWHERE
        with suppress(OSError):
            self._key = _identity(path.parent)
        with _guard:
            _kept.setdefault(self._key, _Kept()).users += 1

    def close(self) -> None:
        """After the connection."""
        key, self._key = self._key, None
        if key is not None:
            with _guard:
                _leave(key)

    def remember(self) -> None:
        """After the first statement, which maps it, unless another connection has done that."""
        with suppress(OSError), _guard:
            kept = _kept[self._key or _NOWHERE]
            kept.mapped = kept.mapped or _identity(self._path)
        self.restored()

    def restored(self) -> bool:
        """Whether it had been cut short; it is as long as before now."""
        try:
            status = os.lstat(self._path)
        except OSError:
            return False
        size = status.st_size
        if size >= self._size or is_link(status) or has_other_names(status):
            self._size = max(size, self._size)
            return False
        with suppress(OSError):
            os.truncate(self._path, self._size)
        reset(self._path)
        return True


def reset(path: Path) -> None:
    """Makes SQLite read the log again, whoever has it open, before the next statement."""
    with suppress(OSError), _opened(path) as descriptor:
        status = os.fstat(descriptor)
        if status.st_size >= _HEAD_BYTES and not has_other_names(status):
            write_at(descriptor, bytes(_HEAD_BYTES), 0)


def is_replaced(path: Path) -> bool:
    """Whether this process has one mapped that others do not see any more. All its connections
    share that, and new ones too, until the last is closed."""
    try:
        with _guard:
            kept = _kept.get(_identity(path.parent))
            if kept is None or kept.mapped is None:
                return False
            return kept.mapped != _identity(path)
    except OSError:
        return True


def checksum(path: Path) -> int | None:
    """Of what it says about the log: changed by commits only. None when it cannot be read."""
    try:
        with _opened(path) as descriptor:
            (frames,) = _FRAMES_AT.unpack(read_at(descriptor, _FRAMES_AT.size, 0))
            parts = -(-(frames + _HEAD_FRAMES) // _PART_FRAMES)
            tables = read_at(descriptor, parts * _PART_BYTES - _TABLES_AT, _TABLES_AT)
            return zlib.crc32(tables, frames)
    except (OSError, struct.error, OverflowError, MemoryError):
        return None


class _Kept:
    """What is open of one file, for as long as this process has connections that use it."""

    def __init__(self) -> None:
        self.users = 0
        self.mapped: _Key | None = None
        self.descriptors: dict[_Key, int] = {}


_Key = tuple[int, int]
"""Of the directory it is in, however that is called; and of the file, which may be replaced."""
_NOWHERE: _Key = (0, 0)
_kept: dict[_Key, _Kept] = {}
_guard = threading.Lock()
# A child must not inherit it from a thread that it does not have.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_guard.acquire, after_in_parent=_guard.release, after_in_child=_guard.release
    )


@contextmanager
def _opened(path: Path) -> Generator[int]:
    """Closing a file frees the locks that this process has on it, SQLite's own included: so it
    stays open as long as a connection is. On Windows it does not, and an open file cannot be
    deleted, which SQLite does with its last connection."""
    with _guard:
        kept = _kept.get(_identity(path.parent))
        if kept is None or not CLOSING_FREES_LOCKS:
            descriptor = _open(path)
            try:
                yield descriptor
            finally:
                os.close(descriptor)
        else:
            identity = _identity(path)
            if identity not in kept.descriptors:
                kept.descriptors[identity] = _open(path)
            yield kept.descriptors[identity]


def _open(path: Path) -> int:
    return open_file(path, os.O_RDWR)


def _identity(path: Path) -> _Key:
    found = os.stat(path)
    return found.st_dev, found.st_ino


def _leave(key: _Key) -> None:
    kept = _kept[key]
    kept.users -= 1
    if not kept.users:
        del _kept[key]
        for descriptor in kept.descriptors.values():
            os.close(descriptor)
