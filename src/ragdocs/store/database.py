"""The SQLite file: how it is opened, its side files, and its errors translated into ours."""

import os
import shutil
import sqlite3
import stat
import struct
import threading
import zlib
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple, NoReturn
from urllib.parse import quote

from ragdocs.errors import (
    REBUILD,
    IndexCorrupt,
    IndexIncompatible,
    IndexLocked,
    IndexMissing,
    IndexStoreError,
)
from ragdocs.files import (
    CLOSING_FREES_LOCKS,
    has_other_names,
    is_link,
    is_obstacle,
    open_file,
    read_at,
    replace,
    set_aside,
    write_at,
)
from ragdocs.store.folder import STORE_FILE, check_folder, claim_folder

# SQLite's `-shm` file, which every process maps into its memory.
#
# It records where in the log each page is. SQLite verifies only its header and trusts the rest. It
# rebuilds the file from the log when the header is empty, so we empty it to repair any damage.

_HEAD_BYTES = 96
"""Two copies of the header. The readers' marks between it and the tables change at any time."""
_TABLES_AT = 136
_FRAMES_AT = struct.Struct("16xI")
# Each part covers this many frames of the log, except the first, which begins with the header.
_PART_BYTES, _PART_FRAMES, _HEAD_FRAMES = 32768, 4096, 34


class SharedMemory:
    """The file of one connection, from before its first statement until after its last.

    Remembers the file's length. Once it is truncated, accessing the missing part kills the process
    (SIGBUS), and closing a connection accesses it too.
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
        """Call it after closing the connection."""
        key, self._key = self._key, None
        if key is not None:
            with _guard:
                _leave(key)

    def remember(self) -> None:
        """Call it after the first statement, which maps the file if no other connection has."""
        with suppress(OSError), _guard:
            kept = _kept[self._key or _NOWHERE]
            kept.mapped = kept.mapped or _identity(self._path)
        self.restore()

    def restore(self) -> bool:
        """Restores the length of a truncated file; returns whether it was truncated."""
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
    """Makes SQLite read the log again, in every process, before the next statement."""
    with suppress(OSError), _hold_open(path) as descriptor:
        status = os.fstat(descriptor)
        if status.st_size >= _HEAD_BYTES and not has_other_names(status):
            write_at(descriptor, bytes(_HEAD_BYTES), 0)


def is_replaced(path: Path) -> bool:
    """Whether this process has mapped a file that other processes no longer see. All its
    connections share that mapping, new ones too, until the last is closed."""
    try:
        with _guard:
            kept = _kept.get(_identity(path.parent))
            if kept is None or kept.mapped is None:
                return False
            return kept.mapped != _identity(path)
    except OSError:
        return True


def checksum(path: Path) -> int | None:
    """The checksum of its data about the log, which only commits change. None if unreadable."""
    try:
        with _hold_open(path) as descriptor:
            (frames,) = _FRAMES_AT.unpack(read_at(descriptor, _FRAMES_AT.size, 0))
            parts = -(-(frames + _HEAD_FRAMES) // _PART_FRAMES)
            tables = read_at(descriptor, parts * _PART_BYTES - _TABLES_AT, _TABLES_AT)
            return zlib.crc32(tables, frames)
    except (OSError, struct.error, OverflowError, MemoryError):
        return None


class _Kept:
    """The open descriptors of one file, kept while this process has connections that use it."""

    def __init__(self) -> None:
        self.users = 0
        self.mapped: _Key | None = None
        self.descriptors: dict[_Key, int] = {}


_Key = tuple[int, int]
"""Identifies the directory, under any name, or the file, which may be replaced."""
_NOWHERE: _Key = (0, 0)
_kept: dict[_Key, _Kept] = {}
_guard = threading.Lock()
# A forked child must not inherit it locked by a thread that it does not have.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_guard.acquire, after_in_parent=_guard.release, after_in_child=_guard.release
    )


@contextmanager
def _hold_open(path: Path) -> Generator[int]:
    """Closing a file releases this process's locks on it, including SQLite's, so it stays open as
    long as a connection is. Not on Windows: there closing releases no locks, and an open file could
    not be deleted, which SQLite does with its last connection."""
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


# SQLite's error codes, translated into our error tree.

_BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
_DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
# Reported with the general code SQLITE_ERROR. Our statements are fixed, so with the right schema
# version these mean that the schema itself is damaged.
_DAMAGED_SCHEMA = ("no such table", "no such column", "malformed", "Could not decode")


_WRITE_FORMAT_AT, _WRITE_FORMATS = 18, (b"\x01", b"\x02")
# Closing a file releases this process's locks on it, including SQLite's, so inspected files stay
# open. This happens only after such damage, or where permissions were changed.
_looked_into: dict[tuple[int, int], int] = {}


class OpenedReadOnly(IndexLocked):
    """The file is writable now, but the connections of a process share memory, and older ones still
    use it read-only."""


def check_writable(path: Path, error: sqlite3.Error) -> None:
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
    if code == sqlite3.SQLITE_READONLY_DBMOVED:
        raise IndexIncompatible(f"{path} was replaced: open it again") from error
    is_writable = os.access(path.parent, os.W_OK) and os.access(path, os.W_OK)
    if code & 0xFF == sqlite3.SQLITE_READONLY and is_writable:
        if not _has_known_format(path):
            raise IndexCorrupt(f"{path} is damaged (its header)", REBUILD) from error
        raise OpenedReadOnly(f"{path} was opened when it was read-only: try again") from error


def _has_known_format(path: Path) -> bool:
    """SQLite opens a file with an unknown write format read-only: one flipped bit in the header
    would stop all writing."""
    try:
        found = os.stat(path)
        file = found.st_dev, found.st_ino
        if file not in _looked_into:
            _looked_into[file] = open_file(path, os.O_RDONLY)
        return read_at(_looked_into[file], 1, _WRITE_FORMAT_AT) in _WRITE_FORMATS
    except OSError:
        return True


def is_unshared(error: Exception) -> bool:
    """Whether the shared-memory file could not be created."""
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
        raise IndexCorrupt(f"{path} is damaged ({error})", REBUILD) from error
    if code == sqlite3.SQLITE_READONLY_ROLLBACK:  # only a writer can roll back
        raise IndexMissing(f"{path} was left incomplete: update the index") from error
    if primary == sqlite3.SQLITE_CANTOPEN and not path.exists():
        raise IndexMissing(f"there is no index at {path} yet: build it first") from error
    if any(is_obstacle(side) for side in sides):
        raise IndexCorrupt(f"the log of {path} is not a regular file", REBUILD) from error
    raise IndexStoreError(f"{path} cannot be used: {error}") from error


# Opening the SQLite file, in the same way everywhere.
#
# The connect call itself sets `busy_timeout`, so that it applies from the first statement on.

SIDE_FILES = ("-wal", "-shm")
COPY = "-copy"
"""Appended to the store's name: a copy in progress, see `take_copies`."""
BUSY_SECONDS = 5.0
# SQLite allows at least 999 bound values in one statement; we need some of them elsewhere.
VALUES_PER_QUERY = 500
_ROWS_PER_PAGE = 256
# Per connection, so that the indices of a large store are searched in memory; SQLite's default is
# 2 MB.
_CACHE_KIB = 16 * 1024

Row = tuple[Any, ...]
Identity = tuple[int, int]
"""Device and inode: they distinguish a file from a replacement."""


class FileLook(NamedTuple):
    """The attributes that change when a file is written or replaced."""

    inode: int
    size: int
    mtime_ns: int
    ctime_ns: int
    """It cannot be set back, unlike mtime when an older copy is restored with its times."""

    def __str__(self) -> str:
        return ":".join(map(str, self))


def store_path(directory: Path) -> Path:
    return directory / STORE_FILE


def side_paths(path: Path) -> tuple[Path, ...]:
    return tuple(path.with_name(path.name + side) for side in SIDE_FILES)


def other_paths(path: Path) -> tuple[Path, ...]:
    """Files that may contain data that is not in the store's file."""
    return path.with_name(f"{path.name}-wal"), path.with_name(f"{path.name}-journal")


def reset_shared_memory(directory: Path) -> None:
    """For the holder of the write lock, after it found a problem in the store.

    Raises IndexLocked when this process still uses a deleted or replaced one.
    """
    path = side_paths(store_path(directory))[1]
    if is_replaced(path):
        raise IndexLocked(f"{path} was replaced while it is in use: try again")
    reset(path)


def identity_of(path: Path) -> Identity:
    try:
        found = path.stat()
    except FileNotFoundError:
        raise IndexMissing(f"there is no index at {path} yet: build it first") from None
    except OSError as error:
        raise IndexStoreError(f"{path} cannot be reached: {error.strerror}") from error
    # Checked first, because SQLite would wait forever for someone to write into a pipe.
    if not stat.S_ISREG(found.st_mode):
        raise IndexCorrupt(f"{path} is not a regular file", REBUILD)
    return found.st_dev, found.st_ino


def shared_name(path: Path) -> Path | None:
    """The first of the store's files that has another name: by a hard link, or because it is a
    symbolic link. SQLite would write to it, to some of them even when it only reads."""
    for file in (path, *side_paths(path)):
        with suppress(OSError):
            status = os.lstat(file)
            if is_link(status) or has_other_names(status):
                return file
    return None


def look_at(path: Path) -> FileLook | None:
    """None when it does not exist."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return FileLook(found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


def _identity_if_there(path: Path) -> Identity | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def file_uri(path: Path, mode: str) -> str:
    """Percent-encodes the path's bytes, so that any directory name works, including `/C:/…`."""
    whole = path.absolute().as_posix()
    rooted = whole if whole.startswith("/") else f"/{whole}"
    return f"file://{quote(os.fsencode(rooted))}?mode={mode}"


class Database:
    """One SQLite connection in autocommit mode that raises every error as an IndexStoreError."""

    def __init__(self, path: Path, *, write: bool, timeout: float = BUSY_SECONDS) -> None:
        check_folder(path.parent)
        self.path = path
        self._writes = write
        self._identity = identity_of(path)
        shared = shared_name(path)
        if shared is not None:
            raise IndexCorrupt(
                f"{shared} is a link or has a hard link elsewhere: update the index, which gives "
                "it its own files"
            )
        self._sides: dict[Path, Identity] = {}
        self._alone: FileLook | None = None
        self._timeout = timeout
        self._connection = self._connect("rw" if write else "ro")
        self._shared_memory = SharedMemory(side_paths(path)[1])
        try:
            if identity_of(path) != self._identity:
                raise IndexLocked(f"{path} was replaced while it was opened: try again")
            if not write and self._is_all_there_is():
                self._connection.close()
                self._connection = self._connect("ro&immutable=1")
            # With mmap, a truncated file would raise SIGBUS, which cannot be caught.
            self.run("PRAGMA mmap_size = 0")
            self.run(f"PRAGMA cache_size = -{_CACHE_KIB}")
        except BaseException:
            self.close()
            raise

    def _connect(self, mode: str) -> sqlite3.Connection:
        with self._translate_errors():
            return sqlite3.connect(
                file_uri(self.path, mode),
                uri=True,
                timeout=self._timeout,
                isolation_level=None,
                # Only the pool passes a reader's connection between threads, one at a time.
                check_same_thread=self._writes,
            )

    def _is_all_there_is(self) -> bool:
        """Readers share a file beside the store. Where it cannot be created, nobody can write;
        then, if there is no log, the store's file alone can be read as it is."""
        look = look_at(self.path)
        try:
            self._connection.execute("PRAGMA schema_version")
        except (sqlite3.Error, UnicodeDecodeError) as error:
            # The first statement raises any other error again.
            if is_unshared(error) and not any(map(os.path.lexists, other_paths(self.path))):
                self._alone = look
        return self._alone is not None

    def is_in_place(self) -> bool:
        """Whether our open files are those that other processes open: after the log was deleted or
        replaced, our writes go where nobody reads them.
        """
        if _identity_if_there(self.path) != self._identity:
            return False
        if self._alone:
            is_same = look_at(self.path) == self._alone
            return is_same and not any(map(os.path.lexists, other_paths(self.path)))
        if not all(_identity_if_there(side) == known for side, known in self._sides.items()):
            return False
        return not self._shared_memory.restore()

    def remember_sides(self) -> None:
        """Call it after the first statement, which opens them; SQLite keeps them until the last
        connection closes."""
        if not self._sides:
            found = {side: _identity_if_there(side) for side in side_paths(self.path)}
            self._sides = {path: known for path, known in found.items() if known}
            self._shared_memory.remember()

    def one(self, sql: str, values: Sequence[object] = ()) -> Row | None:
        with self._translate_errors():
            return self._connection.execute(sql, values).fetchone()

    def all(self, sql: str, values: Sequence[object] = ()) -> list[Row]:
        with self._translate_errors():
            return self._connection.execute(sql, values).fetchall()

    def each(self, sql: str, values: Sequence[object] = (), size: int = 256) -> Iterator[Row]:
        with self._translate_errors():
            cursor = self._connection.execute(sql, values)
            cursor.arraysize = size
        while True:
            with self._translate_errors():
                rows = cursor.fetchmany()
            if not rows:
                return
            yield from rows

    def paged(self, sql: str, values: Sequence[object], order: str, column: int) -> Iterator[Row]:
        """Rows of a statement that ends with its conditions, ordered by the non-negative integer in
        `column`: read in pages, with no statement open in between, so that other tables can be
        written meanwhile."""
        last = -1
        paging = f"{sql} AND {order} > ? ORDER BY {order} LIMIT {_ROWS_PER_PAGE}"
        while rows := self.all(paging, (*values, last)):
            yield from rows
            last = rows[-1][column]

    def all_in(
        self, sql: str, members: Iterable[object], values: Sequence[object] = ()
    ) -> Iterator[Row]:
        """Rows of a statement that contains `IN (*)`, queried in parts; `values` come first."""
        wanted = list(members)
        for start in range(0, len(wanted), VALUES_PER_QUERY):
            part = wanted[start : start + VALUES_PER_QUERY]
            # Padded with the last value to a power of two: otherwise SQLite would compile and cache
            # hundreds of statements, one for each number of values.
            part += part[-1:] * ((1 << (len(part) - 1).bit_length()) - len(part))
            marks = ",".join("?" * len(part))
            yield from self.all(sql.replace("IN (*)", f"IN ({marks})"), [*values, *part])

    def run(self, sql: str, values: Sequence[object] = ()) -> int:
        """Executes a statement; returns how many rows it changed."""
        with self._translate_errors():
            return self._connection.execute(sql, values).rowcount

    @property
    def changes(self) -> int:
        """How many rows this connection has written so far."""
        return self._connection.total_changes

    def many(self, sql: str, rows: Iterable[Sequence[object]]) -> None:
        with self._translate_errors():
            self._connection.executemany(sql, rows)

    @contextmanager
    def impatient(self) -> Generator[None]:
        """Inside, does not wait for locks that others hold."""
        self.run("PRAGMA busy_timeout = 0")
        try:
            yield
        finally:
            self.run(f"PRAGMA busy_timeout = {round(self._timeout * 1000)}")

    def rollback(self) -> None:
        """Rolls back the open transaction, unless SQLite has already done so."""
        with suppress(sqlite3.Error):
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")

    def close(self) -> None:
        self._shared_memory.restore()
        self._connection.close()
        self._shared_memory.close()

    @contextmanager
    def _translate_errors(self) -> Generator[None]:
        try:
            yield
        except UnicodeDecodeError as error:
            # SQLite's message quotes the damaged schema, which Python cannot decode.
            raise IndexCorrupt(f"{self.path} is damaged", REBUILD) from error
        except sqlite3.Error as error:
            if self._writes:
                check_writable(self.path, error)
            raise_as_ours(self.path, side_paths(self.path), error)


# The store's files: created private, and deleted together.


def make_way(path: Path) -> str | None:
    """Claims the index directory and moves aside anything at a store path that is not a regular
    file; returns a message if there was any."""
    try:
        claim_folder(path.parent)
        moved = [name for name in _names(path) if set_aside(path.with_name(name))]
        _copy_of(path).unlink(missing_ok=True)  # left by a process that was killed
    except OSError as error:
        raise IndexStoreError(f"{path} cannot be created: {error.strerror}") from error
    return f"{path.with_name(moved[0])} was not a file" if moved else None


def take_copies(path: Path) -> None:
    """Replaces files that have other hard links, of a backup or another user, with copies; the
    other links keep every byte. Processes that have them open notice the replacement.

    Deletes the shared-memory file, which SQLite rebuilds from the log. Removes symbolic links.
    """
    log, memory = side_paths(path)
    try:
        memory.unlink(missing_ok=True)
        for file in (log, path):
            if file.is_symlink():
                file.unlink()
            elif file.exists():
                _take_copy(path, file)
    except OSError as error:
        raise IndexStoreError(f"{path} cannot be copied: {error.strerror}") from error


def _take_copy(path: Path, file: Path) -> None:
    copy = _copy_of(path)
    try:
        with open(file, "rb") as source, os.fdopen(_create(copy), "wb") as target:
            shutil.copyfileobj(source, target)
            target.flush()
            os.fsync(target.fileno())
        replace(copy, file)
    except BaseException:
        copy.unlink(missing_ok=True)
        raise


def _copy_of(path: Path) -> Path:
    return path.with_name(path.name + COPY)


def _create(path: Path) -> int:
    return open_file(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY)


def create_file(path: Path) -> bool:
    """We create it instead of SQLite, to set the mode, which the side files inherit."""
    try:
        os.close(_create(path))
    except FileExistsError:
        return False
    except OSError as error:
        raise IndexStoreError(f"{path} cannot be created: {error.strerror}") from error
    return True


def is_empty(path: Path) -> bool:
    try:
        return path.stat().st_size == 0
    except OSError:
        return False


def delete_files(path: Path) -> None:
    """Deletes the log first: SQLite must never apply it to another file."""
    for name in _names(path):
        try:
            path.with_name(name).unlink(missing_ok=True)
        except OSError as error:
            raise IndexStoreError(f"{name} cannot be deleted: {error.strerror}") from error


def _names(path: Path) -> tuple[str, ...]:
    return (*(path.name + side for side in SIDE_FILES), path.name)
