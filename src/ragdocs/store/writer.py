"""The one that writes. Its caller holds the write lock while it is opened and in transactions."""

from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from ragdocs.errors import IndexCorrupt, IndexIncompatible, IndexMissing, IndexStoreError
from ragdocs.store import change_log
from ragdocs.store.connection import BUSY_SECONDS, Database, identity_of, store_path
from ragdocs.store.embedding_cache import check_vectors
from ragdocs.store.files import create_file, delete_files, make_way
from ragdocs.store.ledger import Ledger, Meta, read_meta, write_meta
from ragdocs.store.records import Position
from ragdocs.store.schema import recreate, schema_version, table_names
from ragdocs.store.stored_index import StoredIndex, bring_up
from ragdocs.store.transaction import Transaction
from ragdocs.store.verification import (
    check_compatible,
    check_pages,
    check_rows,
    check_structure,
)

_NOTHING = Position(0, "")
_WAL_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class _Prepared:
    """A checked connection, and why its store was emptied."""

    database: Database
    rebuilt: str | None


class Writer:
    """An open store that can be changed, one transaction at a time, by one thread."""

    def __init__(
        self, prepared: _Prepared, fingerprint: str, indices: Sequence[StoredIndex]
    ) -> None:
        self._database = prepared.database
        self._fingerprint = fingerprint
        self._indices = indices
        self.rebuilt = prepared.rebuilt
        """Why the store had to be emptied when it was opened, if so: read all files again."""

    @classmethod
    def open(
        cls,
        directory: Path,
        fingerprint: str,
        *,
        indices: Sequence[StoredIndex] = (),
        deep: bool = False,
        timeout: float = BUSY_SECONDS,
    ) -> Self:
        """Opens, creates, or if it cannot be used as it is, empties the store in a directory.

        `deep` also checks every row against its hash: for when a reader has found damage.
        """
        path = store_path(directory)
        reason = make_way(path)
        try:
            writer = cls(_open_prepared(path, fingerprint, deep, timeout), fingerprint, indices)
        except IndexCorrupt as error:
            delete_files(path)
            reason = str(error)
            writer = cls(_open_prepared(path, fingerprint, deep, timeout), fingerprint, indices)
        writer.rebuilt = writer.rebuilt or reason
        try:
            writer._bring_up_indices()
        except BaseException:
            writer.close()
            raise
        return writer

    def _bring_up_indices(self) -> None:
        """Makes anew those indices inside the store that are not in step with it."""
        self._database.run("BEGIN IMMEDIATE")
        try:
            bring_up(self._database, self._indices, read_meta(self._database).position)
            self._database.run("COMMIT")
        except BaseException:
            self._database.rollback()
            raise

    @property
    def position(self) -> Position:
        return read_meta(self._database).position

    @contextmanager
    def transaction(self) -> Generator[Transaction]:
        """All that is done within takes effect together at the end, or not at all."""
        if not self._in_place():
            raise IndexIncompatible(f"{self._database.path} was replaced: open it again")
        self._database.run("BEGIN IMMEDIATE")
        try:
            meta = check_compatible(self._database, self._fingerprint)
            bring_up(self._database, self._indices, meta.position)
            transaction = Transaction(self._database, meta, self._indices)
            yield transaction
            if transaction.finish():
                self._database.run("COMMIT")
                transaction.committed()
            else:
                self._database.rollback()
        except BaseException:
            self._database.rollback()
            raise

    def close(self) -> None:
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _in_place(self) -> bool:
        try:
            return identity_of(self._database.path) == self._database.identity
        except IndexMissing:
            return False


def _open_prepared(path: Path, fingerprint: str, deep: bool, timeout: float) -> _Prepared:
    created = create_file(path)
    database = Database(path, write=True, timeout=timeout)
    try:
        return _Prepared(database, _prepare(database, fingerprint, deep, created))
    except BaseException:
        database.rollback()
        database.close()
        raise


def _prepare(database: Database, fingerprint: str, deep: bool, created: bool) -> str | None:
    """Makes the store usable; says why it had to be emptied, unless it is simply new."""
    _configure(database)
    if not table_names(database):
        _empty(database, fingerprint)
        return None if created else f"{database.path} was empty"
    _check_ours(database)
    try:
        check_compatible(database, fingerprint)
    except IndexIncompatible as error:
        check_pages(database)
        _empty(database, fingerprint)
        return str(error)
    check_structure(database)
    if deep:
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


def _empty(database: Database, fingerprint: str) -> None:
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
    write_meta(database, Meta(fingerprint, position, ledger))
    database.run("COMMIT")
    database.run("PRAGMA foreign_keys = ON")
