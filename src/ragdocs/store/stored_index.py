"""Indices inside the store, changed in the same transaction as its rows; and free space, given back
in short steps.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from ragdocs.errors import IndexCorrupt, IndexIncompatible, IndexStoreError
from ragdocs.store.database import Database, other_paths
from ragdocs.store.records import Position, TextHash

# Indices that live inside the store and are changed in the same transaction as its rows.
#
# They are views all the same: each remembers its version and the commit it has applied, and one
# that is of another version, or has missed a commit, is made anew from the store's own rows.


class StoredIndex(Protocol):
    """Tables of an index's own in the store's file. `doc` is a document's internal key."""

    @property
    def name(self) -> str: ...

    @property
    def version(self) -> str:
        """All that decides what is in its tables: of another version, they are made anew."""
        ...

    def create(self, database: Database) -> None: ...

    def drop(self, database: Database) -> None: ...

    def put(self, database: Database, doc: int) -> None:
        """Adds a document, whose rows are stored already, and which it does not hold."""
        ...

    def remove(self, database: Database, doc: int) -> None:
        """Takes a document out, whose rows are still there."""
        ...

    def holds(self, database: Database, docs: Iterable[int]) -> bool:
        """Whether it has what these documents put there, and nothing else."""
        ...


@runtime_checkable
class Prepares(Protocol):
    """A stored index for which much of a document can be worked out before the lock is taken."""

    def prepare(self, texts: Iterable[str]) -> None:
        """Remembers what `put` will need of the texts of some leaves, in place of what it
        remembered; `put` works out what is not remembered."""
        ...


@runtime_checkable
class HoldsTexts(Protocol):
    """A stored index with texts of its own that have vectors: pruning leaves those alone."""

    def text_hashes(self, database: Database) -> Iterator[TextHash]: ...


@runtime_checkable
class ChecksItself(Protocol):
    """A stored index whose rows have no hashes, but that knows another way to tell damage."""

    def check(self, database: Database) -> None:
        """Raises IndexCorrupt. Within a transaction that may write."""
        ...


@runtime_checkable
class ChecksRows(Protocol):
    """A stored index whose rows have hashes, which a store that is in doubt is checked by."""

    def check_rows(self, database: Database) -> None:
        """Raises IndexCorrupt."""
        ...


@runtime_checkable
class Compacts(Protocol):
    """A stored index that keeps something of deleted documents until it is compacted."""

    def compact(self, database: Database, pages: int) -> bool:
        """Writes about so many pages; whether there was anything to do. Within a transaction."""
        ...


def in_step(
    database: Database, indices: Sequence[StoredIndex], position: Position
) -> list[StoredIndex]:
    """Those that have applied all commits up to this one."""
    late = behind(database, indices, position)
    return [one for one in indices if one not in late]


def behind(
    database: Database, indices: Sequence[StoredIndex], position: Position
) -> list[StoredIndex]:
    """Those that are not of this version, or have missed a commit."""
    if not indices:
        return []
    rows = database.all("SELECT name, version, generation, stamp FROM stored_indices")
    states = {name: state for name, *state in rows}
    return [one for one in indices if states.get(one.name) != [*_expected(one, position)]]


def check_in_step(database: Database, indices: Sequence[StoredIndex], position: Position) -> None:
    """For readers: tables that are behind would answer for documents as they were."""
    if missing := behind(database, indices, position):
        names = ", ".join(index.name for index in missing)
        raise IndexIncompatible(
            f"{database.path} was last written by another version of this program or with another "
            f"keyword engine, which left out what this one needs ({names}): update the index"
        )


def held_texts(database: Database, indices: Sequence[StoredIndex]) -> set[TextHash]:
    """The texts of the indices themselves that have vectors."""
    return {
        text
        for index in indices
        if isinstance(index, HoldsTexts)
        for text in index.text_hashes(database)
    }


def bring_up(database: Database, indices: Sequence[StoredIndex], position: Position) -> bool:
    """Makes anew what is behind; says whether anything was. Within a transaction."""
    found = behind(database, indices, position)
    remake(database, found, position)
    return bool(found)


def repair(
    database: Database, indices: Sequence[StoredIndex], position: Position, *, deep: bool
) -> None:
    """Makes anew what is damaged; `deep`: by every row. Within a transaction."""
    remake(database, [index for index in indices if _is_damaged(database, index, deep)], position)


def _is_damaged(database: Database, index: StoredIndex, deep: bool) -> bool:
    try:
        if isinstance(index, ChecksItself):
            index.check(database)
        if deep and isinstance(index, ChecksRows):
            index.check_rows(database)
    except IndexCorrupt:
        return True
    return False


def remake(database: Database, indices: Sequence[StoredIndex], position: Position) -> None:
    """Makes indices anew, whatever they hold. Within a transaction."""
    for index in indices:
        index.drop(database)
        index.create(database)
        for (doc,) in database.all("SELECT key FROM documents ORDER BY key"):
            index.put(database, doc)
    note(database, indices, position)


def note(database: Database, indices: Sequence[StoredIndex], position: Position) -> None:
    """Remembers that these indices have applied all up to a commit."""
    database.many(
        "INSERT OR REPLACE INTO stored_indices (name, version, generation, stamp) VALUES (?,?,?,?)",
        [(index.name, *_expected(index, position)) for index in indices],
    )


def _expected(index: StoredIndex, position: Position) -> tuple[str, int, str]:
    return index.version, position.generation, position.stamp


# Space that deletions leave in the store's file, given back in short steps.
#
# A step holds the write lock for some milliseconds: it takes free pages off the end of the file,
# and what the indices inside the store still keep of deleted documents out of them. No document
# changes, so no step is a generation.

FREE_SHARE, FREE_BYTES = 0.1, 1 << 20
"""Less than a tenth of the file, or than a megabyte, is left for what comes next."""
STEP_BYTES = 1 << 20
LOG_BYTES = 1 << 20
"""A longer log is put into the store's file at the end, unless someone reads it."""
_INCREMENTAL = 2


@dataclass(frozen=True, slots=True)
class Space:
    """How large the store's file is, and how much of that is free."""

    page_bytes: int
    pages: int
    free_pages: int

    @property
    def is_wasted(self) -> bool:
        free = self.page_bytes * self.free_pages
        return free > FREE_BYTES and self.free_pages > FREE_SHARE * self.pages


def measure(database: Database) -> Space:
    names = ("page_size", "page_count", "freelist_count")
    rows = [database.one(f"PRAGMA {name}") for name in names]
    return Space(*(row[0] if row else 0 for row in rows))


def is_shrinkable(database: Database) -> bool:
    return database.one("PRAGMA auto_vacuum") == (_INCREMENTAL,)


def make_shrinkable(database: Database) -> None:
    """Writes a store of an earlier version once over; on a full disk it stays as it is."""
    if is_shrinkable(database):
        return
    database.run("PRAGMA auto_vacuum = INCREMENTAL")
    try:
        database.run("VACUUM")
    except IndexCorrupt:
        raise
    except IndexStoreError:
        database.rollback()


def shrink(database: Database, indices: Sequence[StoredIndex], space: Space) -> None:
    """One step, within a transaction: first what the indices can let go, then the file's end."""
    pages = max(1, STEP_BYTES // space.page_bytes)
    compacting = [index for index in indices if isinstance(index, Compacts)]
    if not any(index.compact(database, pages) for index in compacting):
        # One at a time: the statement gives a row without columns for each page, and Python's
        # module takes the first for its end.
        for _ in range(min(pages, space.free_pages)):
            database.run("PRAGMA incremental_vacuum(1)")


def has_long_log(database: Database) -> bool:
    log, _ = other_paths(database.path)
    try:
        return os.stat(log).st_size > LOG_BYTES
    except OSError:
        return False


def put_log_away(database: Database) -> None:
    """Moves a long log into the store's file, whose end is cut off by that. Waits for nobody: with
    someone who reads, the log stays."""
    if has_long_log(database):
        with suppress(IndexStoreError), database.impatient():
            database.all("PRAGMA wal_checkpoint(TRUNCATE)")
