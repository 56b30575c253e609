"""Space that deletions leave in the store's file, given back in short steps.

A step holds the write lock for some milliseconds: it takes free pages off the end of the file, and
what the indices inside the store still keep of deleted documents out of them. No document changes,
so no step is a generation.
"""

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from ragdocs.errors import IndexCorrupt, IndexStoreError
from ragdocs.store.connection import Database, other_paths
from ragdocs.store.stored_index import Compacts, StoredIndex

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
