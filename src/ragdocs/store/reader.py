"""Any number of readers, in any number of processes. They run no statement that changes anything.

A reader may be used by several threads: each snapshot has a connection to itself, taken from a
pool and given back. A store that was replaced on disk is noticed and opened again.
"""

import threading
import weakref
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from ragdocs.errors import IndexCorrupt, IndexStoreError, RagdocsError
from ragdocs.models import Closable
from ragdocs.store.database import BUSY_SECONDS, Database, store_path
from ragdocs.store.generations import follows
from ragdocs.store.integrity import Seal, check_compatible, is_broken, read_seal
from ragdocs.store.records import Position
from ragdocs.store.snapshot import Remembered, Snapshot
from ragdocs.store.stored_index import StoredIndex, check_in_step

MOST_IDLE = 3
"""As many searches as run at once: each connection has pages of the store in memory."""


class Reader(Closable):
    """A store that can be looked at; with a fingerprint, only one built with those settings, and
    only while the indices inside it that are given are in step with it."""

    def __init__(
        self,
        directory: Path,
        fingerprint: str | None = None,
        *,
        settings: str = "",
        indices: Sequence[StoredIndex] = (),
        timeout: float = BUSY_SECONDS,
    ) -> None:
        self.path = store_path(directory)
        self._directory = directory
        self._fingerprint = fingerprint
        self._settings = settings
        self._indices = indices
        self._timeout = timeout
        self._idle: list[Database] = []
        self._lock = threading.Lock()
        self._closed = False
        self._seen: Position | None = None
        self._remembered: Remembered | None = None
        self.doubts = 0
        """How often the store was found to be another one than the last commit left."""
        _readers.add(self)

    @classmethod
    def open(
        cls,
        directory: Path,
        fingerprint: str | None = None,
        *,
        settings: str = "",
        indices: Sequence[StoredIndex] = (),
        timeout: float = BUSY_SECONDS,
    ) -> Self:
        """Raises at once when there is no store to read, or none that this program can read."""
        reader = cls(directory, fingerprint, settings=settings, indices=indices, timeout=timeout)
        try:
            reader.position()
        except BaseException:
            reader.close()
            raise
        return reader

    @contextmanager
    def snapshot(self) -> Generator[Snapshot]:
        """The store as it is now, and as it stays until the end of the block."""
        with self._borrowed() as database:
            # Before the commit that is looked at: another thread may see a later one meanwhile.
            seen, sealed = self._seen, read_seal(self._directory)
            try:
                database.run("BEGIN")
                meta = check_compatible(database, self._fingerprint, self._settings)
                check_in_step(database, self._indices, meta.position)
                database.remember_sides()
                is_doubtful = self._compare(database, meta.position, seen, sealed)
                try:
                    yield Snapshot(database, meta, self._remember(meta.position))
                except (RagdocsError, OSError):
                    raise
                except Exception as error:
                    if is_doubtful or is_broken(self._directory, meta.position, sealed):
                        raise _misread(self.path, error) from error
                    raise
            finally:
                database.rollback()

    def position(self) -> Position:
        """The last commit: compare it with the one a view has applied, before each query."""
        with self.snapshot() as snapshot:
            return snapshot.position

    def close(self) -> None:
        self._closed = True
        self.release()

    def release(self) -> None:
        """Closes the connections that are not in use; the next ones are opened anew."""
        with self._lock:
            idle, self._idle = self._idle, []
        for database in idle:
            database.close()

    @contextmanager
    def _borrowed(self) -> Generator[Database]:
        database = self._take()
        try:
            yield database
        except IndexCorrupt:
            # Its cache may hold the damage: the next reader looks at the file again. Windows
            # deletes no file that is open, so that whoever rebuilds it waits for this.
            database.close()
            self.release()
            raise
        except BaseException:
            self._give_back(database)
            raise
        self._give_back(database)

    def _take(self) -> Database:
        while True:
            with self._lock:
                if self._closed:
                    raise IndexStoreError("this reader is closed")
                database = self._idle.pop() if self._idle else None
            if database is None:
                return Database(self.path, write=False, timeout=self._timeout)
            if database.is_in_place():
                return database
            self.doubts += 1
            database.close()

    def _compare(
        self, database: Database, position: Position, seen: Position | None, sealed: Seal | None
    ) -> bool:
        """A broken seal, commits that are gone again, or another history are a doubt. It need not
        be damage, and the one that writes can settle it. Returns whether there is one."""
        with self._lock:
            if self._seen == seen:
                self._seen = position
        is_other = seen is not None and not follows(database, position, seen)
        is_doubtful = is_other or is_broken(self._directory, position, sealed)
        if is_doubtful:
            with self._lock:
                self.doubts += 1
                self._remembered = None
        return is_doubtful

    def _remember(self, position: Position) -> Remembered:
        with self._lock:
            if self._remembered is None or not self._remembered.serves(position):
                self._remembered = Remembered(position)
            return self._remembered

    def _give_back(self, database: Database) -> None:
        with self._lock:
            if not self._closed and len(self._idle) < MOST_IDLE:
                self._idle.append(database)
                return
        database.close()


def _misread(path: Path, error: Exception) -> IndexCorrupt:
    """Of a store that something else has changed, a page may be read as a part of another table: a
    number stands where a word should be. No check of single rows sees that."""
    what = type(error).__name__
    return IndexCorrupt(f"{path} was changed by another program and cannot be read ({what})")


_readers: weakref.WeakSet[Reader] = weakref.WeakSet()


def release_all(directory: Path) -> None:
    """Closes what this process has open of a store and does not use at this moment."""
    for reader in list(_readers):
        if reader.path == store_path(directory):
            reader.release()
