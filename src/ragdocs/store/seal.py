"""What the last commit left on the disk, so that anyone can tell whether it is still that.

SQLite believes its files: it notices neither a page that something else has written, nor an older
log in place of its own, nor that the memory it shares with others is a file that was deleted. Our
processes change the store under the write lock only, and seal what they leave: which commit is the
last, and how the files look. A seal that does not fit is a doubt, not yet damage: whoever wrote
may have been killed between the commit and the seal. It is never believed itself: what it is
compared with is the store.
"""

import os
from contextlib import suppress
from pathlib import Path
from typing import NewType

from ragdocs.errors import IndexIncompatible
from ragdocs.files import open_file, open_own, read_at, set_aside, write_at
from ragdocs.locks import holder
from ragdocs.store.connection import look_at, store_path
from ragdocs.store.folder import SEAL_FILE
from ragdocs.store.lock import WRITE_LOCK
from ragdocs.store.records import Position
from ragdocs.store.shared_memory import checksum

# Always as long, and written in place: on a full disk there is room for it.
_BYTES = 512


class Unsealed(IndexIncompatible):
    """The store is not as the last commit left it: it is to be checked before it is used."""


Seal = NewType("Seal", bytes)
"""A commit, and how it left the store's file, its log, and what is said about the log in the memory
that all share. Begins with the commit, and is otherwise only ever compared."""


def seen(directory: Path, position: Position) -> Seal:
    """What a seal would be that is made now."""
    store = store_path(directory)
    log = look_at(store.with_name(f"{store.name}-wal"))
    if log and log.size:
        log = log._replace(ctime_ns=0)  # SQLite, run by root, gives it its owner at each opening
        memory = checksum(store.with_name(f"{store.name}-shm"))
    else:  # SQLite makes an empty one when it only looks
        log = memory = None
    parts = (position.generation, position.stamp, look_at(store), log, memory)
    return Seal(" ".join(map(str, parts)).encode().ljust(_BYTES))


def read_seal(directory: Path) -> Seal | None:
    """None when there is none that can be read."""
    try:
        descriptor = open_file(directory / SEAL_FILE, os.O_RDONLY)
    except OSError:
        return None
    try:
        return Seal(read_at(descriptor, _BYTES, 0))
    except OSError:
        return None
    finally:
        os.close(descriptor)


def seal(directory: Path, position: Position) -> Seal:
    """After a commit, while the write lock is still held. What cannot be sealed is a doubt to all
    others, and checked by whoever opens it next; the one that wrote it remembers what it left."""
    made = seen(directory, position)
    if made == read_seal(directory):
        return made
    path = directory / SEAL_FILE
    with suppress(OSError):
        try:
            _write(path, made)
        except OSError:
            if not set_aside(path):
                path.unlink(missing_ok=True)  # someone else's, or not to be written
            _write(path, made)
    return made


def is_sealed(directory: Path, position: Position) -> bool:
    """Whether this is the commit that was sealed, in the files that were. For who has the lock."""
    return read_seal(directory) == seen(directory, position)


def sealed_position(directory: Path) -> Position | None:
    """The commit that was sealed, if its files are as they were."""
    found = read_seal(directory) or b""
    try:
        generation, stamp, *_ = found.decode("ascii").split()
        position = Position(int(generation), stamp)
    except ValueError:
        return None
    return position if found == seen(directory, position) else None


def is_broken(directory: Path, position: Position, before: Seal | None) -> bool:
    """The same for who has no lock, and knows the seal from before the position was read. While
    someone writes, or has just written, nothing can be told: that one looks by itself."""
    if before == seen(directory, position):
        return False
    return holder(directory / WRITE_LOCK) is None and read_seal(directory) == before


def _write(path: Path, made: Seal) -> None:
    descriptor = open_own(path, os.O_WRONLY | os.O_CREAT)
    try:
        write_at(descriptor, made, 0)
    finally:
        os.close(descriptor)
