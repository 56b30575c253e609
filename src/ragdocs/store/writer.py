"""The one that writes. Its caller holds the write lock while it is opened and in transactions."""

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Self

from ragdocs.closable import Closable
from ragdocs.errors import IndexCorrupt, IndexIncompatible
from ragdocs.store import change_log
from ragdocs.store.connection import store_path
from ragdocs.store.files import delete_files, make_way
from ragdocs.store.ledger import read_meta, write_meta
from ragdocs.store.opening import Expected, Prepared, open_prepared
from ragdocs.store.reader import release_all
from ragdocs.store.records import Position
from ragdocs.store.sqlite_errors import OpenedReadOnly
from ragdocs.store.stored_index import StoredIndex, bring_up, remake, repair
from ragdocs.store.transaction import Transaction
from ragdocs.store.verification import check_compatible


class Writer(Closable):
    """An open store that can be changed, one transaction at a time, by one thread."""

    def __init__(self, prepared: Prepared, expected: Expected) -> None:
        self._database = prepared.database
        self._fingerprint = expected.fingerprint
        self._indices = expected.indices
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
        may_empty: bool = True,
    ) -> Self:
        """Opens, creates, or if it cannot be used as it is, empties the store in a directory.

        `deep` also checks every row against its hash: for when a reader has found damage. Without
        `may_empty`, a sound store of other settings, or of another version of this program, is
        left as it is, and IndexIncompatible says so.
        """
        path = store_path(directory)
        expected = Expected(fingerprint, indices, deep, may_empty)
        reason = make_way(path)
        try:
            writer = cls._whole(path, expected)
        except OpenedReadOnly:
            release_all(directory)
            raise
        except IndexCorrupt as error:
            delete_files(path)
            reason = str(error)
            writer = cls._whole(path, expected)
        writer.rebuilt = writer.rebuilt or reason
        return writer

    @classmethod
    def _whole(cls, path: Path, expected: Expected) -> Self:
        """With its indices, of which those that are behind or damaged are made anew."""
        writer = cls(open_prepared(path, expected), expected)
        try:
            with writer._exclusive():
                bring_up(writer._database, expected.indices, writer.position)
                repair(writer._database, expected.indices, writer.position)
        except BaseException:
            writer.close()
            raise
        return writer

    def remake_indices(self) -> None:
        """Makes the indices inside the store anew from its rows, also those that are in step.

        A generation of its own, in which no document changes: what is written shows as a commit.
        """
        with self._exclusive():
            meta = read_meta(self._database)
            position = change_log.next_position(meta.position)
            change_log.append(self._database, position, {})
            write_meta(self._database, replace(meta, position=position))
            remake(self._database, self._indices, position)

    @contextmanager
    def _exclusive(self) -> Generator[None]:
        try:
            self._database.run("BEGIN IMMEDIATE")
            yield
            self._database.run("COMMIT")
        finally:
            self._database.rollback()

    @property
    def position(self) -> Position:
        return read_meta(self._database).position

    @contextmanager
    def transaction(self) -> Generator[Transaction]:
        """All that is done within takes effect together at the end, or not at all."""
        if not self._database.is_in_place():
            raise IndexIncompatible(f"{self._database.path} was replaced: open it again")
        try:
            self._database.run("BEGIN IMMEDIATE")
            self._database.remember_sides()
            meta = check_compatible(self._database, self._fingerprint)
            is_remade = bring_up(self._database, self._indices, meta.position)
            transaction = Transaction(self._database, meta, self._indices)
            yield transaction
            is_changed = transaction.finish()
            if is_changed or is_remade:
                self._database.run("COMMIT")
            if is_changed:
                transaction.committed()
        finally:
            self._database.rollback()

    def close(self) -> None:
        """SQLite puts the log into the store's file when nobody else has it open. Otherwise it is
        left to the next commits: a file that changes without one would look changed by others."""
        self._database.close()
