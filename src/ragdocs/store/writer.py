"""The one that writes. Its caller holds the write lock while it is opened and in transactions."""

from collections.abc import Collection, Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Self

from ragdocs.closable import Closable
from ragdocs.errors import IndexCorrupt, IndexIncompatible
from ragdocs.store import change_log, space
from ragdocs.store.connection import shared_name, store_path
from ragdocs.store.embedding_cache import mark_unused
from ragdocs.store.files import delete_files, make_way, take_copies
from ragdocs.store.ledger import Meta, read_meta, write_meta
from ragdocs.store.opening import Expected, Prepared, open_prepared
from ragdocs.store.reader import release_all
from ragdocs.store.records import Position
from ragdocs.store.seal import (
    Seal,
    Unsealed,
    is_sealed,
    read_seal,
    seal,
    sealed_position,
    seen,
)
from ragdocs.store.sqlite_errors import OpenedReadOnly
from ragdocs.store.stored_index import StoredIndex, bring_up, in_step, note, repair
from ragdocs.store.transaction import Transaction
from ragdocs.store.verification import check_compatible, check_rows


class Writer(Closable):
    """An open store that can be changed, one transaction at a time, by one thread."""

    def __init__(self, prepared: Prepared, expected: Expected) -> None:
        self._database = prepared.database
        self._directory = prepared.database.path.parent
        self._fingerprint = expected.fingerprint
        self._settings = expected.settings
        self._indices = expected.indices
        self._left: Seal | None = None
        """What this one has sealed last, in case it could not be written down."""
        self.rebuilt = prepared.rebuilt
        """Why the store had to be emptied when it was opened, if so: read all files again."""
        self.took_over = prepared.took_over
        """Whether that was because another program had made it."""

    @classmethod
    def open(  # noqa: PLR0913 - each is a question of its own
        cls,
        directory: Path,
        fingerprint: str,
        *,
        settings: str = "",
        indices: Sequence[StoredIndex] = (),
        deep: bool = False,
        takes_over: bool = True,
    ) -> Self:
        """Opens, creates, or if it cannot be used as it is, empties the store in a directory.

        One that is not as it was sealed may be damaged, or an older copy: every row is checked, all
        files are to be looked at, and until that was done, everybody is told so.

        `deep` checks every row in any case: for when a reader has found damage. Without
        `takes_over`, a sound store of other settings, or of another version of this program, is
        left as it is: OtherSettings or OtherVersion. `settings` are what the fingerprint is of.
        """
        path = store_path(directory)
        expected = Expected(fingerprint, settings, indices, deep, takes_over)
        reason = make_way(path)
        if shared_name(path) is not None:
            release_all(directory)
            take_copies(path)
        try:
            writer = cls._whole(path, expected)
        except OpenedReadOnly:
            release_all(directory)
            raise
        except IndexCorrupt as error:
            release_all(directory)  # Windows deletes no file that is open
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
            is_as_left = is_sealed(path.parent, writer.position)
            if not is_as_left:
                # Before it is checked, which takes a while: nobody else can tell meanwhile.
                with writer._exclusive():
                    writer._distrust()
                if not writer.rebuilt and not expected.deep:
                    check_rows(writer._database)
            with writer._exclusive():
                bring_up(writer._database, expected.indices, writer.position)
                deep = expected.deep or not is_as_left
                repair(writer._database, expected.indices, writer.position, deep=deep)
            space.make_shrinkable(writer._database)
            writer._seal(writer.position)
        except BaseException:
            writer.close()
            raise
        return writer

    def _distrust(self) -> None:
        """What is stored may be sound and yet not of the files as they are. Says so in a generation
        in which no document changes."""
        meta = read_meta(self._database)
        if meta.waiting is None:
            return
        position = change_log.next_position(meta.position)
        change_log.append(self._database, position, {})
        write_meta(self._database, replace(meta, position=position, waiting=None))
        current = in_step(self._database, self._indices, meta.position)
        note(self._database, current, position)

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

    def is_as_left(self, position: Position) -> bool:
        """Whether the store is as the last commit left it. While the write lock is held.

        Where only the seal is not, and that commit was our own, it is sealed again.
        """
        found = seen(self._directory, position)
        if found == read_seal(self._directory):
            return True
        if found != self._left:
            return False
        self._seal(position)
        return True

    @contextmanager
    def transaction(self) -> Generator[Transaction]:
        """All that is done within takes effect together at the end, or not at all.

        Raises Unsealed when something else has changed the store since the last one.
        """
        with self._begun() as meta:
            is_remade = bring_up(self._database, self._indices, meta.position)
            transaction = Transaction(self._database, meta, self._indices)
            yield transaction
            is_changed = transaction.finish()
            if is_changed or is_remade:
                self._database.run("COMMIT")
            if is_changed:
                transaction.committed()
        self._seal(transaction.position)

    def shrink_some(self) -> bool:
        """One short step of giving space back, if much of the file is free; whether there may be
        more to do. The documents are those of the same commit before and after.

        Raises Unsealed as `transaction` does.
        """
        if not space.is_shrinkable(self._database):  # it could not be converted: no step would help
            return False
        with self._begun() as meta:
            found = space.measure(self._database)
            if found.is_wasted:
                space.shrink(self._database, self._indices, found)
                self._database.run("COMMIT")
        left = space.measure(self._database)
        if not left.is_wasted:
            space.put_log_away(self._database)
        self._seal(meta.position)
        return left.is_wasted

    @property
    def has_long_log(self) -> bool:
        """Someone read while the log was to be put away: `shrink_some` tries it again."""
        return space.is_shrinkable(self._database) and space.has_long_log(self._database)

    def mark_unused(self, keys: Collection[int], now: int) -> None:
        """Notes since when these vectors have been unused. No document changes, so it is the same
        commit before and after.

        Raises Unsealed as `transaction` does.
        """
        with self._begun() as meta:
            mark_unused(self._database, keys, now)
            self._database.run("COMMIT")
        self._seal(meta.position)

    @contextmanager
    def _begun(self) -> Generator[Meta]:
        """A transaction on the store as it was left; rolled back unless it was committed."""
        if not self._database.is_in_place():
            raise IndexIncompatible(f"{self._database.path} was replaced: open it again")
        try:
            self._database.run("BEGIN IMMEDIATE")
            self._database.remember_sides()
            meta = check_compatible(self._database, self._fingerprint, self._settings)
            if not self.is_as_left(meta.position):
                where = self._database.path
                raise Unsealed(f"{where} was changed by another program: it is checked")
            with self._sealed_again(meta.position):
                yield meta
        finally:
            self._database.rollback()

    def close(self) -> None:
        """While the write lock is held: SQLite puts the log into the store's file when nobody else
        has it open, and that is sealed again. Otherwise it is left to the next commits."""
        position = sealed_position(self._directory)
        self.abandon()
        if position is not None:
            seal(self._directory, position)

    def abandon(self) -> None:
        """Closes it without the write lock: someone else may be sealing a commit."""
        self._database.close()

    @contextmanager
    def _sealed_again(self, position: Position) -> Generator[None]:
        """What fails, on a full disk for example, may have left pages in the log that count for
        nothing."""
        try:
            yield
        except BaseException as error:
            self._database.rollback()
            if not isinstance(error, IndexCorrupt):
                self._seal(position)
            raise

    def _seal(self, position: Position) -> None:
        self._left = seal(self._directory, position)
