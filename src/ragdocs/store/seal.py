"""What the last commit left on the disk, so that anyone can tell whether it is still that.

SQLite believes its files: it notices neither a page that something else has written, nor an older
log in place of its own, nor that the memory it shares with others is a file that was deleted. Our
processes change the store under the write lock only, and seal what they leave: which commit is the
last, and how the files look. A seal that does not fit is a doubt, not yet damage: whoever wrote
may have been killed between the commit and the seal. It is never believed itself: what it is
compared with is the store.
"""

import json
import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from ragdocs.errors import IndexIncompatible
from ragdocs.store.connection import FileLook, look_at, store_path
from ragdocs.store.file_lock import WRITE_LOCK, holder
from ragdocs.store.obstacles import set_aside
from ragdocs.store.records import Position
from ragdocs.store.shared_memory import checksum

SEAL_FILE = "store.seal"
_FLAGS = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
# Always as long, and written in place: on a full disk there is room for it.
_BYTES = 512


class Unsealed(IndexIncompatible):
    """The store is not as the last commit left it: it is to be checked before it is used."""


@dataclass(frozen=True, slots=True)
class Seal:
    """A commit, and how it left the store's file, its log, and what is said about the log in the
    memory that all share."""

    position: Position
    store: FileLook | None
    log: FileLook | None
    memory: int | None


def seen(directory: Path, position: Position) -> Seal:
    """What a seal would be that is made now."""
    store = store_path(directory)
    log = look_at(store.with_name(f"{store.name}-wal"))
    if not log or not log.size:  # SQLite makes an empty one when it only looks
        return Seal(position, look_at(store), None, None)
    return Seal(position, look_at(store), log, checksum(store.with_name(f"{store.name}-shm")))


def read_seal(directory: Path) -> Seal | None:
    """None when there is none that can be read."""
    try:
        descriptor = os.open(directory / SEAL_FILE, os.O_RDONLY | _FLAGS)
    except OSError:
        return None
    try:
        return _decoded(os.pread(descriptor, _BYTES, 0))
    except (OSError, ValueError, TypeError, RecursionError):
        return None
    finally:
        os.close(descriptor)


def seal(directory: Path, position: Position) -> None:
    """After a commit, while the write lock is still held. What cannot be sealed is only checked
    once more than it need be."""
    made = seen(directory, position)
    if made == read_seal(directory):
        return
    path, encoded = directory / SEAL_FILE, _encoded(made)
    with suppress(OSError):
        try:
            _write(path, encoded)
        except OSError:
            if set_aside(path):
                _write(path, encoded)


def is_sealed(directory: Path, position: Position) -> bool:
    """Whether this is the commit that was sealed, in the files that were. For who has the lock."""
    return read_seal(directory) == seen(directory, position)


def is_broken(directory: Path, position: Position, before: Seal | None) -> bool:
    """The same for who has no lock, and knows the seal from before the position was read. While
    someone writes, or has just written, nothing can be told: that one looks by itself."""
    if before == seen(directory, position):
        return False
    return holder(directory / WRITE_LOCK) is None and read_seal(directory) == before


def _write(path: Path, encoded: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | _FLAGS, 0o600)
    try:
        os.pwrite(descriptor, encoded, 0)
    finally:
        os.close(descriptor)


def _encoded(made: Seal) -> bytes:
    position = (made.position.generation, made.position.stamp)
    return json.dumps([position, made.store, made.log, made.memory]).encode().ljust(_BYTES)


def _decoded(encoded: bytes) -> Seal:
    position, store, log, memory = cast("list[Any]", json.loads(encoded))
    generation, stamp = position
    return Seal(Position(generation, stamp), _look(store), _look(log), memory)


def _look(values: list[int] | None) -> FileLook | None:
    return FileLook(*values) if values is not None else None
