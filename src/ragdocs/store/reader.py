"""Any number of readers, in any number of processes. They run no statement that changes anything.

A reader may be used by several threads: each snapshot has a connection to itself, taken from a
pool and given back. A store that was replaced on disk is noticed and opened again.
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
"""As many searches as run at once: each connection has pages of the store in memory."""


class Reader(Closable):
    """A store that can be looked at; with a fingerprint, only one built with those settings, and
    only while the indices inside it that are given are up to date with it.

    `report` is called by every look that finds the store not as the last commit left it.
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
        """Raises at once when there is no store to read, or none that this program can read."""
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
        """The store as it is now, and as it stays until the end of the block."""
        return self.view(Snapshot)

    @contextmanager
    def view(self, make: Callable[[Database, Meta, RowCache, StoreState], _S]) -> Generator[_S]:
        """As `snapshot`, in a class of the caller's that adds what is kept beside the rows."""
        with self._borrow() as (database, is_replaced):
            # Before the commit that is looked at: another thread may see a later one meanwhile.
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
                        raise _misread(self.path, error) from error
                    raise
            finally:
                database.rollback()

    def position(self) -> Position:
        """The last commit: compare it with the one a view has applied, before each query."""
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
        """Closes the connections that are not in use; the next ones are opened anew."""
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
            # Its cache may hold the damage: the next reader looks at the file again. Windows
            # deletes no file that is open, so that whoever rebuilds it waits for this.
            database.close()
            self.release()
            raise
        except BaseException:
            self._give_back(database)
            raise
        self._give_back(database)

    def _take(self) -> tuple[Database, bool]:
        """A connection, and whether another file has taken the place of one that was open."""
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
        """Whether commits that were seen are gone again, or others are in their place."""
        with self._lock:
            if self._seen == seen:
                self._seen = position
        return seen is not None and not follows(database, position, seen)

    def _make_state(self, meta: Meta, *, is_changed: bool) -> StoreState:
        """A changed store need not be damaged: whoever writes checks it."""
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
