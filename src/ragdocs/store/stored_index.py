"""Indices inside the store, updated in the same transaction as its rows; and reclaiming free space
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

# Indices inside the store, updated in the same transaction as its rows.
#
# They are still views: each records its version and the last commit it applied. An index with
# another version, or that missed a commit, is rebuilt from the store's rows.


class StoredIndex(Protocol):
    """An index with its own tables in the store's file. `doc` is a document's internal key."""

    @property
    def name(self) -> str: ...

    @property
    def version(self) -> str:
        """Covers everything that determines its tables; another version means a rebuild."""
        ...

    def create(self, database: Database) -> None: ...

    def drop(self, database: Database) -> None: ...

    def put(self, database: Database, doc: int) -> None:
        """Adds a document that it does not contain yet, and whose rows are already stored."""
        ...

    def remove(self, database: Database, doc: int) -> None:
        """Removes a document whose rows are still stored."""
        ...

    def holds(self, database: Database, docs: Iterable[int]) -> bool:
        """Whether it contains exactly what these documents put there."""
        ...


@runtime_checkable
class Prepares(Protocol):
    """A stored index that can do much of its work before the lock is taken."""

    def prepare(self, texts: Iterable[str]) -> None:
        """Computes and keeps what `put` will need from the texts of some leaves, replacing what it
        kept before; `put` computes the rest itself."""
        ...


@runtime_checkable
class HoldsTexts(Protocol):
    """A stored index with its own texts that have vectors, which pruning must keep."""

    def text_hashes(self, database: Database) -> Iterator[TextHash]: ...


@runtime_checkable
class ChecksItself(Protocol):
    """A stored index whose rows have no hashes, but that can detect damage in another way."""

    def check(self, database: Database) -> None:
        """Raises IndexCorrupt. Call it within a write transaction."""
        ...


@runtime_checkable
class ChecksRows(Protocol):
    """A stored index whose rows have hashes, to check when the store is not trusted."""

    def check_rows(self, database: Database) -> None:
        """Raises IndexCorrupt."""
        ...


@runtime_checkable
class Compacts(Protocol):
    """A stored index that keeps data of deleted documents until it is compacted."""

    def compact(self, database: Database, pages: int) -> bool:
        """Writes about this many pages; returns whether there was anything to do. Call it within a
        transaction."""
        ...


def find_up_to_date(
    database: Database, indices: Sequence[StoredIndex], position: Position
) -> list[StoredIndex]:
    """The indices that have applied all commits up to this one."""
    late = find_outdated(database, indices, position)
    return [one for one in indices if one not in late]


def find_outdated(
    database: Database, indices: Sequence[StoredIndex], position: Position
) -> list[StoredIndex]:
    """The indices that have another version or missed a commit."""
    if not indices:
        return []
    rows = database.all("SELECT name, version, generation, stamp FROM stored_indices")
    states = {name: state for name, *state in rows}
    return [one for one in indices if states.get(one.name) != [*_expected(one, position)]]


def check_up_to_date(
    database: Database, indices: Sequence[StoredIndex], position: Position
) -> None:
    """For readers: out-of-date tables would return outdated results."""
    if missing := find_outdated(database, indices, position):
        names = ", ".join(index.name for index in missing)
        raise IndexIncompatible(
            f"{database.path} was last written by another version of this program or with another "
            f"keyword engine, which did not update what this one needs ({names}): update the index"
        )


def texts_of_indices(database: Database, indices: Sequence[StoredIndex]) -> set[TextHash]:
    """The indices' own texts that have vectors."""
    return {
        text
        for index in indices
        if isinstance(index, HoldsTexts)
        for text in index.text_hashes(database)
    }


def rebuild_outdated(
    database: Database, indices: Sequence[StoredIndex], position: Position
) -> bool:
    """Rebuilds out-of-date indices; returns whether any was. Call it within a transaction."""
    found = find_outdated(database, indices, position)
    rebuild(database, found, position)
    return bool(found)


def repair(
    database: Database, indices: Sequence[StoredIndex], position: Position, *, deep: bool
) -> None:
    """Rebuilds damaged indices; `deep` checks every row. Call it within a transaction."""
    rebuild(database, [index for index in indices if _is_damaged(database, index, deep)], position)


def _is_damaged(database: Database, index: StoredIndex, deep: bool) -> bool:
    try:
        if isinstance(index, ChecksItself):
            index.check(database)
        if deep and isinstance(index, ChecksRows):
            index.check_rows(database)
    except IndexCorrupt:
        return True
    return False


def rebuild(database: Database, indices: Sequence[StoredIndex], position: Position) -> None:
    """Rebuilds indices, whatever they contain. Call it within a transaction."""
    for index in indices:
        index.drop(database)
        index.create(database)
        for (doc,) in database.all("SELECT key FROM documents ORDER BY key"):
            index.put(database, doc)
    record_applied(database, indices, position)


def record_applied(database: Database, indices: Sequence[StoredIndex], position: Position) -> None:
    """Records that these indices have applied all commits up to this one."""
    database.many(
        "INSERT OR REPLACE INTO stored_indices (name, version, generation, stamp) VALUES (?,?,?,?)",
        [(index.name, *_expected(index, position)) for index in indices],
    )


def _expected(index: StoredIndex, position: Position) -> tuple[str, int, str]:
    return index.version, position.generation, position.stamp


# Reclaims the space that deletions leave in the store's file, in short steps.
#
# A step holds the write lock for some milliseconds: it removes data of deleted documents from the
# indices inside the store, and free pages from the end of the file. No document changes, so a step
# creates no generation.

FREE_SHARE, FREE_BYTES = 0.1, 1 << 20
"""Less than a tenth of the file, or less than a megabyte, stays free for later writes."""
STEP_BYTES = 1 << 20
LOG_BYTES = 1 << 20
"""A longer log is merged into the store's file at the end, unless a process is reading it."""
_INCREMENTAL = 2


@dataclass(frozen=True, slots=True)
class Space:
    """The size of the store's file, and how much of it is free."""

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
    """Rewrites a store of an earlier version once; on a full disk it stays as it is."""
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
    """Takes one step, within a transaction: compacts the indices first, then the file."""
    pages = max(1, STEP_BYTES // space.page_bytes)
    compacting = [index for index in indices if isinstance(index, Compacts)]
    if not any(index.compact(database, pages) for index in compacting):
        # One page at a time: the statement returns a row without columns for each page, and
        # Python's module stops at the first.
        for _ in range(min(pages, space.free_pages)):
            database.run("PRAGMA incremental_vacuum(1)")


def has_long_log(database: Database) -> bool:
    log, _ = other_paths(database.path)
    try:
        return os.stat(log).st_size > LOG_BYTES
    except OSError:
        return False


def put_log_away(database: Database) -> None:
    """Merges a long log into the store's file, which also truncates the file. Does not wait: while
    another process reads, the log stays."""
    if has_long_log(database):
        with suppress(IndexStoreError), database.impatient():
            database.all("PRAGMA wal_checkpoint(TRUNCATE)")
