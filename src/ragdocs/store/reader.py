"""Read-only access to the store, for any number of threads and processes.

Each snapshot uses its own connection, taken from a pool and returned to it. A store that was
replaced on disk is noticed and opened again.
"""

import threading
import weakref
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Self, TypeVar

from ragdocs.errors import IndexCorrupt, IndexStoreError, RagdocsError
from ragdocs.models import Closable
from ragdocs.store.database import BUSY_SECONDS, Database, store_path
from ragdocs.store.generations import Meta, follows
from ragdocs.store.integrity import (
    CHANGED_BY_OTHERS,
    StoreCondition,
    StoreState,
    check_compatible,
    is_broken,
    read_seal,
)
from ragdocs.store.records import Position
from ragdocs.store.snapshot import RowCache, Snapshot
from ragdocs.store.stored_index import StoredIndex, check_up_to_date

_S = TypeVar("_S", bound=Snapshot)
MOST_IDLE = 3
"""As many as there are searches at once: each connection has pages of the store in memory."""


class Reader(Closable):
    """Reads a store; with a fingerprint, only one built with those settings, and only while these
    `indices` inside it are up to date.

    Every snapshot that finds the store not as the last commit left it calls `report`.
    """

    def __init__(
        self,
        directory: Path,
        fingerprint: str | None = None,
        *,
        settings: str = "",
        indices: Sequence[StoredIndex] = (),
        timeout: float = BUSY_SECONDS,
        report: Callable[[StoreState], None] | None = None,
    ) -> None:
        self.path = store_path(directory)
        self._directory = directory
        self._fingerprint = fingerprint
        self._settings = settings
        self._indices = indices
        self._timeout = timeout
        self._report = report
        self._idle: list[Database] = []
        self._lock = threading.Lock()
        self._closed = False
        self._seen: Position | None = None
        self._rows: RowCache | None = None
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
        report: Callable[[StoreState], None] | None = None,
    ) -> Self:
        """Raises at once when there is no store, or none that this program can read."""
        reader = cls(
            directory,
            fingerprint,
            settings=settings,
            indices=indices,
            timeout=timeout,
            report=report,
        )
        try:
            reader.position()
        except BaseException:
            reader.close()
            raise
        return reader

    def snapshot(self) -> AbstractContextManager[Snapshot]:
        """The store at its last commit; it stays the same until the end of the block."""
        return self.view(Snapshot)

    @contextmanager
    def view(self, make: Callable[[Database, Meta, RowCache, StoreState], _S]) -> Generator[_S]:
        """Like `snapshot`, but made by a class of the caller, which adds data beside the rows."""
        with self._borrow() as (database, is_replaced):
            # Before the transaction begins: another thread may see a later commit meanwhile.
            seen, sealed = self._seen, read_seal(self._directory)
            try:
                database.run("BEGIN")
                meta = check_compatible(database, self._fingerprint, self._settings)
                check_up_to_date(database, self._indices, meta.position)
                database.remember_sides()
                is_other = self._is_other_history(database, meta.position, seen)
                is_changed = is_other or is_broken(self._directory, meta.position, sealed)
                state = self._make_state(meta, is_changed=is_changed or is_replaced)
                try:
                    yield make(database, meta, self._rows_of(meta.position), state)
                except (RagdocsError, OSError):
                    raise
                except Exception as error:
                    if is_changed or is_broken(self._directory, meta.position, sealed):
                        raise _misread_error(self.path, error) from error
                    raise
            finally:
                database.rollback()

    def position(self) -> Position:
        """The last commit. Before each query, compare it with the one that a view has applied."""
        with self.snapshot() as snapshot:
            return snapshot.position

    def look(self) -> StoreState:
        """Whether the store is as the last commit left it. Raises when it cannot be read."""
        with self.snapshot() as snapshot:
            return snapshot.state

    def close(self) -> None:
        self._closed = True
        self.release()

    def release(self) -> None:
        """Closes the connections that are not in use; the next snapshots open new ones."""
        with self._lock:
            idle, self._idle = self._idle, []
        for database in idle:
            database.close()

    @contextmanager
    def _borrow(self) -> Generator[tuple[Database, bool]]:
        database, is_replaced = self._take()
        try:
            yield database, is_replaced
        except IndexCorrupt:
            # Its cache may contain the damage, so the next snapshot must read the file again. And
            # Windows cannot delete an open file, so a rebuild waits for this.
            database.close()
            self.release()
            raise
        except BaseException:
            self._give_back(database)
            raise
        self._give_back(database)

    def _take(self) -> tuple[Database, bool]:
        """A connection, and whether the file of an open connection was replaced."""
        is_replaced = False
        while True:
            with self._lock:
                if self._closed:
                    raise IndexStoreError("this reader is closed")
                database = self._idle.pop() if self._idle else None
            if database is None:
                return Database(self.path, write=False, timeout=self._timeout), is_replaced
            if database.is_in_place():
                return database, is_replaced
            is_replaced = True
            database.close()

    def _is_other_history(
        self, database: Database, position: Position, seen: Position | None
    ) -> bool:
        """Whether commits that we have seen are gone, or were replaced by others."""
        with self._lock:
            if self._seen == seen:
                self._seen = position
        return seen is not None and not follows(database, position, seen)

    def _make_state(self, meta: Meta, *, is_changed: bool) -> StoreState:
        """A changed store may still be sound: the next writer checks it."""
        is_compared = meta.waiting is not None
        if not is_changed:
            return StoreState(is_compared=is_compared)
        with self._lock:
            self._rows = None
        state = StoreState(StoreCondition.CHANGED, CHANGED_BY_OTHERS, is_compared)
        if self._report is not None:
            self._report(state)
        return state

    def _rows_of(self, position: Position) -> RowCache:
        with self._lock:
            if self._rows is None or not self._rows.serves(position):
                self._rows = RowCache(position)
            return self._rows

    def _give_back(self, database: Database) -> None:
        with self._lock:
            if not self._closed and len(self._idle) < MOST_IDLE:
                self._idle.append(database)
                return
        database.close()


def _misread_error(path: Path, error: Exception) -> IndexCorrupt:
    """In a store that another program changed, a page may be read as part of another table, with a
    number in place of a word. No check of single rows notices that."""
    what = type(error).__name__
    return IndexCorrupt(f"{path} was changed by another program and cannot be read ({what})")


_readers: weakref.WeakSet[Reader] = weakref.WeakSet()


def release_all(directory: Path) -> None:
    """Closes the idle connections of this process to a store."""
    for reader in list(_readers):
        if reader.path == store_path(directory):
            reader.release()
