"""Any number of readers, in any number of processes. They run no statement that changes anything.

A reader may be used by several threads: each snapshot has a connection to itself, taken from a
pool and given back. A store that was replaced on disk is noticed and opened again.
"""

import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

from ragdocs.errors import IndexCorrupt, IndexStoreError
from ragdocs.store.connection import BUSY_SECONDS, Database, store_path
from ragdocs.store.records import Position
from ragdocs.store.snapshot import Snapshot
from ragdocs.store.stored_index import StoredIndex, check_in_step
from ragdocs.store.verification import check_compatible


class Reader:
    """A store that can be looked at; with a fingerprint, only one built with those settings, and
    only while the indices inside it that are given are in step with it."""

    def __init__(
        self,
        directory: Path,
        fingerprint: str | None = None,
        *,
        indices: Sequence[StoredIndex] = (),
        timeout: float = BUSY_SECONDS,
    ) -> None:
        self._path = store_path(directory)
        self._fingerprint = fingerprint
        self._indices = indices
        self._timeout = timeout
        self._idle: list[Database] = []
        self._lock = threading.Lock()
        self._closed = False

    @classmethod
    def open(
        cls,
        directory: Path,
        fingerprint: str | None = None,
        *,
        indices: Sequence[StoredIndex] = (),
        timeout: float = BUSY_SECONDS,
    ) -> Self:
        """Raises at once when there is no store to read, or none that this program can read."""
        reader = cls(directory, fingerprint, indices=indices, timeout=timeout)
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
            try:
                database.run("BEGIN")
                meta = check_compatible(database, self._fingerprint)
                check_in_step(database, self._indices, meta.position)
                database.remember_sides()
                yield Snapshot(database, meta)
            finally:
                database.rollback()

    def position(self) -> Position:
        """The last commit: compare it with the one a view has applied, before each query."""
        with self.snapshot() as snapshot:
            return snapshot.position

    def close(self) -> None:
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for database in idle:
            database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @contextmanager
    def _borrowed(self) -> Generator[Database]:
        database = self._take()
        try:
            yield database
        except IndexCorrupt:
            # Its cache may hold the damage: the next reader looks at the file again.
            database.close()
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
                return Database(self._path, write=False, timeout=self._timeout)
            if database.is_in_place():
                return database
            database.close()

    def _give_back(self, database: Database) -> None:
        with self._lock:
            if not self._closed:
                self._idle.append(database)
                return
        database.close()
