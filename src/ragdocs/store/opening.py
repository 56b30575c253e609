"""Making a store ready for its writer: created, checked, or emptied when it cannot be used."""

from collections.abc import Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

from ragdocs.config.making import read_making
from ragdocs.errors import IndexCorrupt, IndexStoreError, OthersIndex, OtherVersion
from ragdocs.store import change_log
from ragdocs.store.connection import Database, store_path
from ragdocs.store.embedding_cache import check_vectors
from ragdocs.store.files import create_file, is_empty
from ragdocs.store.ledger import Ledger, Meta, read_meta, write_meta
from ragdocs.store.records import Position
from ragdocs.store.schema import (
    SCHEMA_VERSION,
    check_schema,
    has_schema,
    recreate,
    schema_version,
    table_names,
)
from ragdocs.store.space import is_shrinkable
from ragdocs.store.stored_index import StoredIndex, bring_up
from ragdocs.store.verification import (
    check_compatible,
    check_pages,
    check_rows,
    check_structure,
)

_NOTHING = Position(0, "")
_WAL_BYTES = 8 << 20


@dataclass(frozen=True, slots=True)
class Expected:
    """What a store is opened with; see `Writer.open`."""

    fingerprint: str
    settings: str
    indices: Sequence[StoredIndex]
    deep: bool
    takes_over: bool


@dataclass(frozen=True, slots=True)
class Prepared:
    """A checked connection, why its store was emptied, and whether another program had made it."""

    database: Database
    rebuilt: str | None
    took_over: bool = False


def open_prepared(path: Path, expected: Expected) -> Prepared:
    created = create_file(path)
    if not created and is_empty(path):
        # Those who still have it open would not let it be made a store again: it needs a new file.
        raise IndexCorrupt(f"{path} was empty")
    database = Database(path, write=True)
    try:
        return _prepare(database, expected, created)
    except BaseException:
        database.rollback()
        database.close()
        raise


def _prepare(database: Database, expected: Expected, created: bool) -> Prepared:
    """Makes the store usable; says why it had to be emptied, unless it is simply new."""
    _configure(database)
    if not table_names(database):
        _empty(database, expected)
        return Prepared(database, None if created else f"{database.path} was empty")
    _check_ours(database)
    try:
        check_compatible(database, expected.fingerprint, expected.settings)
    except OthersIndex as error:
        is_others = _is_others(database, expected.fingerprint)
        if is_others and not expected.takes_over:
            raise
        check_pages(database)
        _empty(database, expected)
        return Prepared(database, error.what, took_over=is_others)
    check_structure(database)
    if expected.deep:
        check_rows(database)
    return Prepared(database, None)


def _configure(database: Database) -> None:
    # Before the first page is written: from then on only VACUUM changes it. Not said again, which
    # would write to the store.
    if not is_shrinkable(database):
        database.run("PRAGMA auto_vacuum = INCREMENTAL")
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
    """Whether a store that cannot be used is another program's, rather than ours with a damaged
    header."""
    if schema_version(database) is None:
        return False
    try:
        check_schema(database)
        return read_meta(database).fingerprint != fingerprint
    except IndexCorrupt:
        return True


def check_ours(directory: Path, fingerprint: str, settings: str) -> None:
    """Reads only. Raises OthersIndex when another program has made the store there; not for one
    that is damaged, which whoever opens it repairs."""
    with closing(Database(store_path(directory), write=False)) as database:
        try:
            check_compatible(database, fingerprint, settings)
        except OthersIndex:
            if _is_others(database, fingerprint):
                raise


def stored_settings(directory: Path) -> str:
    """What the store there was made with; empty when there is none, or none that can be read.

    Raises OtherVersion. A damaged header is none: the store says by which version it was made.
    """
    try:
        with closing(Database(store_path(directory), write=False)) as database:
            try:
                return check_compatible(database, None).settings
            except OtherVersion:
                if schema_version(database) is None:  # of some other program
                    return ""
                making = read_making(read_meta(database).settings) if has_schema(database) else None
                if making is not None and making.schema == SCHEMA_VERSION:
                    return making.text
                raise
    except OtherVersion:
        raise
    except IndexStoreError:
        return ""


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
    write_meta(database, Meta(expected.fingerprint, position, ledger, settings=expected.settings))
    bring_up(database, expected.indices, position)
    database.run("COMMIT")
    database.run("PRAGMA foreign_keys = ON")
