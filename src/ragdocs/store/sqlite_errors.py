"""What SQLite says in its codes, in our own error tree."""

import os
import sqlite3
from pathlib import Path
from typing import NoReturn

from ragdocs.errors import (
    IndexCorrupt,
    IndexIncompatible,
    IndexLocked,
    IndexMissing,
    IndexStoreError,
)
from ragdocs.files import is_obstacle, open_file, read_at

_BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
_DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
# Said with the general code SQLITE_ERROR. Our statements are fixed, so when the schema version is
# right these mean that the schema itself was damaged.
_DAMAGED_SCHEMA = ("no such table", "no such column", "malformed", "Could not decode")


_WRITE_FORMAT_AT, _WRITE_FORMATS = 18, (b"\x01", b"\x02")
# Closing a file frees the locks that this process has on it, SQLite's own included: so what was
# looked into stays open. It happens only after such damage, or where rights were changed.
_looked_into: dict[tuple[int, int], int] = {}


class OpenedReadOnly(IndexLocked):
    """It may be written by now; but the connections of one process share their memory, and those
    from before hold on to it."""


def check_writable(path: Path, error: sqlite3.Error) -> None:
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
    if code == sqlite3.SQLITE_READONLY_DBMOVED:
        raise IndexIncompatible(f"{path} was replaced: open it again") from error
    is_writable = os.access(path.parent, os.W_OK) and os.access(path, os.W_OK)
    if code & 0xFF == sqlite3.SQLITE_READONLY and is_writable:
        if not _has_known_format(path):
            raise IndexCorrupt(f"{path} is damaged (its header): rebuild the index") from error
        raise OpenedReadOnly(f"{path} was opened when it was read-only: try again") from error


def _has_known_format(path: Path) -> bool:
    """SQLite only reads what says to be of a format that it does not know how to write: one bit of
    the header, and nobody could write any more."""
    try:
        found = os.stat(path)
        file = found.st_dev, found.st_ino
        if file not in _looked_into:
            _looked_into[file] = open_file(path, os.O_RDONLY)
        return read_at(_looked_into[file], 1, _WRITE_FORMAT_AT) in _WRITE_FORMATS
    except OSError:
        return True


def is_unshared(error: Exception) -> bool:
    """Whether the file that those who read have in common could not be made."""
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
    return code & 0xFF in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN)


def raise_as_ours(path: Path, sides: tuple[Path, ...], error: sqlite3.Error) -> NoReturn:
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
    primary = code & 0xFF
    if isinstance(error, (sqlite3.IntegrityError, sqlite3.DataError, sqlite3.ProgrammingError)):
        raise error
    if primary in _BUSY:
        raise IndexLocked(f"{path} is busy with another process: try again") from error
    short_read = code == sqlite3.SQLITE_IOERR_SHORT_READ
    if primary in _DAMAGED or short_read or any(word in str(error) for word in _DAMAGED_SCHEMA):
        raise IndexCorrupt(f"{path} is damaged ({error}): rebuild the index") from error
    if code == sqlite3.SQLITE_READONLY_ROLLBACK:  # which only the one that writes can do
        raise IndexMissing(f"{path} was left half made: update the index") from error
    if primary == sqlite3.SQLITE_CANTOPEN and not path.exists():
        raise IndexMissing(f"there is no index at {path} yet: build it first") from error
    if any(is_obstacle(side) for side in sides):
        raise IndexCorrupt(f"{path} has something else in place of its log: rebuild it") from error
    raise IndexStoreError(f"{path} cannot be used: {error}") from error
