"""Making a store ready for its writer: created, checked, or emptied when it cannot be used."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ragdocs.errors import IndexCorrupt, IndexIncompatible, IndexStoreError
from ragdocs.store import change_log
from ragdocs.store.connection import Database
from ragdocs.store.embedding_cache import check_vectors
from ragdocs.store.files import create_file, is_empty
from ragdocs.store.ledger import Ledger, Meta, read_meta, write_meta
from ragdocs.store.records import Position
from ragdocs.store.schema import check_schema, recreate, schema_version, table_names
from ragdocs.store.stored_index import StoredIndex, bring_up
from ragdocs.store.verification import (
    check_compatible,
    check_pages,
    check_rows,
    check_structure,
)

_NOTHING = Position(0, "")
_WAL_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Expected:
    """What a store is opened with; see `Writer.open`."""

    fingerprint: str
    indices: Sequence[StoredIndex]
    deep: bool
    may_empty: bool


@dataclass(frozen=True, slots=True)
class Prepared:
    """A checked connection, and why its store was emptied."""

    database: Database
    rebuilt: str | None


def open_prepared(path: Path, expected: Expected) -> Prepared:
    created = create_file(path)
    if not created and is_empty(path):
        # Those who still have it open would not let it be made a store again: it needs a new file.
        raise IndexCorrupt(f"{path} was empty")
    database = Database(path, write=True)
    try:
        return Prepared(database, _prepare(database, expected, created))
    except BaseException:
        database.rollback()
        database.close()
        raise


def _prepare(database: Database, expected: Expected, created: bool) -> str | None:
    """Makes the store usable; says why it had to be emptied, unless it is simply new."""
    _configure(database)
    if not table_names(database):
        _empty(database, expected)
        return None if created else f"{database.path} was empty"
    _check_ours(database)
    try:
        check_compatible(database, expected.fingerprint)
    except IndexIncompatible as error:
        if not expected.may_empty and _is_others(database, expected.fingerprint):
            raise
        check_pages(database)
        _empty(database, expected)
        return str(error)
    check_structure(database)
    if expected.deep:
        check_rows(database)
    return None


def _configure(database: Database) -> None:
    mode = database.one("PRAGMA journal_mode = WAL")
    if mode != ("wal",):
        raise IndexStoreError(f"{database.path} is on a file system without shared memory")
    # Every commit is on the disk when it is said to be: a power cut loses none.
    database.run("PRAGMA synchronous = FULL")
    database.run("PRAGMA foreign_keys = ON")
    database.run(f"PRAGMA journal_size_limit = {_WAL_BYTES}")


def _check_ours(database: Database) -> None:
    """A healthy database that someone else keeps under this name is not ours to empty."""
    if schema_version(database) is None and not {"meta", "chunks"} <= table_names(database):
        raise IndexStoreError(f"{database.path} is not an index of this program: move it away")


def _is_others(database: Database, fingerprint: str) -> bool:
    """Whether an incompatible store is someone's, rather than ours with a damaged header."""
    if schema_version(database) is None:
        return False
    try:
        check_schema(database)
        return read_meta(database).fingerprint != fingerprint
    except IndexCorrupt:
        return True


def _empty(database: Database, expected: Expected) -> None:
    """One transaction, so that readers see the old store or the new one. Vectors are kept."""
    previous = _NOTHING
    with suppress(IndexStoreError):
        previous = read_meta(database).position
    database.run("PRAGMA foreign_keys = OFF")
    database.run("BEGIN IMMEDIATE")
    ledger = Ledger()
    if recreate(database):
        check_vectors(database)
        ledger = Ledger.counted(database, ["embeddings"])
    position = change_log.next_position(previous)
    change_log.append(database, position, {})
    write_meta(database, Meta(expected.fingerprint, position, ledger))
    bring_up(database, expected.indices, position)
    database.run("COMMIT")
    database.run("PRAGMA foreign_keys = ON")
