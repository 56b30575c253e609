"""Opening the SQLite file, in one way for all.

`busy_timeout` is set by the connect call itself, so that it holds from the first statement on.
"""

import os
import sqlite3
import stat
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from ragdocs.errors import IndexCorrupt, IndexLocked, IndexMissing, IndexStoreError
from ragdocs.files import has_other_names, is_link
from ragdocs.store.folder import STORE_FILE, check_folder
from ragdocs.store.shared_memory import SharedMemory, is_replaced, reset
from ragdocs.store.sqlite_errors import check_writable, is_unshared, raise_as_ours

SIDE_FILES = ("-wal", "-shm")
COPY = "-copy"
"""After the store's name: a file that is being copied to have one of our own."""
BUSY_SECONDS = 5.0
# SQLite allows at least 999 bound values in one statement; some are needed for other things.
VALUES_PER_QUERY = 500
_ROWS_PER_PAGE = 256
# Of each connection. Indices of a large store are then searched in memory; SQLite's own default is
# 2 MB.
_CACHE_KIB = 16 * 1024

Row = tuple[Any, ...]
Identity = tuple[int, int]
"""Device and inode: what tells a file from another one put in its place."""


class FileLook(NamedTuple):
    """What changes when a file is written or replaced."""

    inode: int
    size: int
    mtime_ns: int
    ctime_ns: int
    """Nobody can set it back, as those do who put an older copy in place with its times."""

    def __str__(self) -> str:
        return ":".join(map(str, self))


def store_path(directory: Path) -> Path:
    return directory / STORE_FILE


def side_paths(path: Path) -> tuple[Path, ...]:
    return tuple(path.with_name(path.name + side) for side in SIDE_FILES)


def other_paths(path: Path) -> tuple[Path, ...]:
    """What may hold something that is not in the store's file itself."""
    return path.with_name(f"{path.name}-wal"), path.with_name(f"{path.name}-journal")


def reset_shared_memory(directory: Path) -> None:
    """For whoever holds the write lock, and has found the store to be not as it should be.

    Raises IndexLocked when this process still uses one that was deleted or replaced.
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
    # Looked at first: SQLite would wait for ever for someone to write into a pipe.
    if not stat.S_ISREG(found.st_mode):
        raise IndexCorrupt(f"{path} is not a regular file: rebuild the index")
    return found.st_dev, found.st_ino


def shared_name(path: Path) -> Path | None:
    """The first of the store's files that is also somebody else's: by a hard link, or because its
    name is a link. SQLite would write to it, to some of them even when it only reads."""
    for file in (path, *side_paths(path)):
        with suppress(OSError):
            status = os.lstat(file)
            if is_link(status) or has_other_names(status):
                return file
    return None


def look_at(path: Path) -> FileLook | None:
    """None when it is not there."""
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
    """Percent-encoded from the path's bytes, so that any directory name works: `/C:/…` too."""
    whole = path.absolute().as_posix()
    rooted = whole if whole.startswith("/") else f"/{whole}"
    return f"file://{quote(os.fsencode(rooted))}?mode={mode}"


class Database:
    """One SQLite connection in autocommit mode whose every error is an IndexStoreError."""

    def __init__(self, path: Path, *, write: bool, timeout: float = BUSY_SECONDS) -> None:
        check_folder(path.parent)
        self.path = path
        self._writes = write
        self._identity = identity_of(path)
        shared = shared_name(path)
        if shared is not None:
            raise IndexCorrupt(
                f"{shared} has a second name elsewhere (a link): an update gives the index files "
                "of its own"
            )
        self._sides: dict[Path, Identity] = {}
        self._alone: FileLook | None = None
        self._timeout = timeout
        self._connection = self._connected("rw" if write else "ro")
        self._shared_memory = SharedMemory(side_paths(path)[1])
        try:
            if identity_of(path) != self._identity:
                raise IndexLocked(f"{path} was replaced while it was opened: try again")
            if not write and self._is_all_there_is():
                self._connection.close()
                self._connection = self._connected("ro&immutable=1")
            # A truncated file would otherwise be a SIGBUS, which no one can catch.
            self.run("PRAGMA mmap_size = 0")
            self.run(f"PRAGMA cache_size = -{_CACHE_KIB}")
        except BaseException:
            self.close()
            raise

    def _connected(self, mode: str) -> sqlite3.Connection:
        with self._translated():
            return sqlite3.connect(
                file_uri(self.path, mode),
                uri=True,
                timeout=self._timeout,
                isolation_level=None,
                # Only the pool hands a reader's connection from thread to thread, one at a time.
                check_same_thread=self._writes,
            )

    def _is_all_there_is(self) -> bool:
        """Those who read have a file in common, beside the store. Where it cannot be made nobody
        writes, and when there is no log, the store's file alone can be read as it is."""
        look = look_at(self.path)
        try:
            self._connection.execute("PRAGMA schema_version")
        except (sqlite3.Error, UnicodeDecodeError) as error:
            # Any other error comes again with the first statement.
            if is_unshared(error) and not any(map(os.path.lexists, other_paths(self.path))):
                self._alone = look
        return self._alone is not None

    def is_in_place(self) -> bool:
        """Whether the files that are open are those that others open: after the log was deleted
        or replaced, what is written goes where nobody reads it.
        """
        if _identity_if_there(self.path) != self._identity:
            return False
        if self._alone:
            is_same = look_at(self.path) == self._alone
            return is_same and not any(map(os.path.lexists, other_paths(self.path)))
        if not all(_identity_if_there(side) == known for side, known in self._sides.items()):
            return False
        return not self._shared_memory.restored()

    def remember_sides(self) -> None:
        """After a first look, which opens them; SQLite keeps them until the last one closes."""
        if not self._sides:
            found = {side: _identity_if_there(side) for side in side_paths(self.path)}
            self._sides = {path: known for path, known in found.items() if known}
            self._shared_memory.remember()

    def one(self, sql: str, values: Sequence[object] = ()) -> Row | None:
        with self._translated():
            return self._connection.execute(sql, values).fetchone()

    def all(self, sql: str, values: Sequence[object] = ()) -> list[Row]:
        with self._translated():
            return self._connection.execute(sql, values).fetchall()

    def each(self, sql: str, values: Sequence[object] = (), size: int = 256) -> Iterator[Row]:
        with self._translated():
            cursor = self._connection.execute(sql, values)
            cursor.arraysize = size
        while True:
            with self._translated():
                rows = cursor.fetchmany()
            if not rows:
                return
            yield from rows

    def paged(self, sql: str, values: Sequence[object], order: str, column: int) -> Iterator[Row]:
        """Rows of a statement that ends in its conditions, in the order of whole numbers from 0
        on, which each row has in `column`: some at a time, with no statement open in between, so
        that other tables can be written meanwhile."""
        last = -1
        paging = f"{sql} AND {order} > ? ORDER BY {order} LIMIT {_ROWS_PER_PAGE}"
        while rows := self.all(paging, (*values, last)):
            yield from rows
            last = rows[-1][column]

    def all_in(
        self, sql: str, members: Iterable[object], values: Sequence[object] = ()
    ) -> Iterator[Row]:
        """Rows of a statement that holds `IN (*)`, asked in portions; `values` come first."""
        wanted = list(members)
        for start in range(0, len(wanted), VALUES_PER_QUERY):
            part = wanted[start : start + VALUES_PER_QUERY]
            # The last one again and again up to a power of two: a statement for each number of
            # values would be compiled, and kept, for hundreds of them.
            part += part[-1:] * ((1 << (len(part) - 1).bit_length()) - len(part))
            marks = ",".join("?" * len(part))
            yield from self.all(sql.replace("IN (*)", f"IN ({marks})"), [*values, *part])

    def run(self, sql: str, values: Sequence[object] = ()) -> int:
        """Executes a statement; says how many rows it changed."""
        with self._translated():
            return self._connection.execute(sql, values).rowcount

    @property
    def changes(self) -> int:
        """How many rows this connection has written so far."""
        return self._connection.total_changes

    def many(self, sql: str, rows: Iterable[Sequence[object]]) -> None:
        with self._translated():
            self._connection.executemany(sql, rows)

    @contextmanager
    def impatient(self) -> Generator[None]:
        """What others hold is not waited for."""
        self.run("PRAGMA busy_timeout = 0")
        try:
            yield
        finally:
            self.run(f"PRAGMA busy_timeout = {round(self._timeout * 1000)}")

    def rollback(self) -> None:
        """Ends a transaction that cannot be kept; SQLite may have ended it by itself already."""
        with suppress(sqlite3.Error):
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")

    def close(self) -> None:
        self._shared_memory.restored()
        self._connection.close()
        self._shared_memory.close()

    @contextmanager
    def _translated(self) -> Generator[None]:
        try:
            yield
        except UnicodeDecodeError as error:
            # SQLite quotes the damaged schema in its message, which Python cannot decode then.
            raise IndexCorrupt(f"{self.path} is damaged: rebuild the index") from error
        except sqlite3.Error as error:
            if self._writes:
                check_writable(self.path, error)
            raise_as_ours(self.path, side_paths(self.path), error)
