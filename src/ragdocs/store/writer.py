"""The writer: prepares a store (creates, checks or empties it) and opens transactions."""

from collections.abc import Collection, Generator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from ragdocs.config.fingerprint import read_making
from ragdocs.errors import (
    IndexCorrupt,
    IndexIncompatible,
    IndexStoreError,
    OthersIndex,
    OtherVersion,
)
from ragdocs.models import Closable
from ragdocs.store import generations, stored_index
from ragdocs.store.database import (
    Database,
    OpenedReadOnly,
    create_file,
    delete_files,
    is_empty,
    make_way,
    shared_name,
    store_path,
    take_copies,
)
from ragdocs.store.embeddings import check_vectors, mark_unused
from ragdocs.store.generations import Ledger, Meta, read_meta, write_meta
from ragdocs.store.integrity import (
    Seal,
    Unsealed,
    check_compatible,
    check_pages,
    check_rows,
    check_structure,
    current_seal,
    is_sealed,
    read_seal,
    seal,
    sealed_position,
)
from ragdocs.store.reader import release_all
from ragdocs.store.records import Position
from ragdocs.store.schema import (
    SCHEMA_VERSION,
    check_schema,
    has_schema,
    recreate,
    schema_version,
    table_names,
)
from ragdocs.store.stored_index import (
    StoredIndex,
    find_up_to_date,
    is_shrinkable,
    rebuild_outdated,
    record_applied,
    repair,
)
from ragdocs.store.transaction import Transaction

# Prepares a store for its writer: creates it, checks it, or empties it when it cannot be used.

_NOTHING = Position(0, "")
_WAL_BYTES = 8 << 20


@dataclass(frozen=True, slots=True)
class Expected:
    """What a store is opened with; see `StoreWriter.open`."""

    fingerprint: str
    settings: str
    indices: Sequence[StoredIndex]
    deep: bool
    takes_over: bool


@dataclass(frozen=True, slots=True)
class PreparedStore:
    """A checked connection, why its store was emptied, and whether another program created it."""

    database: Database
    rebuilt: str | None
    took_over: bool = False


def open_prepared(path: Path, expected: Expected) -> PreparedStore:
    created = create_file(path)
    if not created and is_empty(path):
        # Processes that still have it open would prevent creating a store in it: it needs a new
        # file.
        raise IndexCorrupt(f"{path} was empty")
    database = Database(path, write=True)
    try:
        return _prepare(database, expected, created)
    except BaseException:
        database.rollback()
        database.close()
        raise


def _prepare(database: Database, expected: Expected, created: bool) -> PreparedStore:
    """Makes the store usable; returns why it had to be emptied, unless it is new."""
    _configure(database)
    if not table_names(database):
        _empty(database, expected)
        return PreparedStore(database, None if created else f"{database.path} was empty")
    _check_ours(database)
    try:
        check_compatible(database, expected.fingerprint, expected.settings)
    except OthersIndex as error:
        is_others = _is_others(database, expected.fingerprint)
        if is_others and not expected.takes_over:
            raise
        check_pages(database)
        _empty(database, expected)
        return PreparedStore(database, error.what, took_over=is_others)
    check_structure(database)
    if expected.deep:
        check_rows(database)
    return PreparedStore(database, None)


def _configure(database: Database) -> None:
    # Before the first page is written: from then on only VACUUM changes it. Not set again, because
    # that would write to the store.
    if not is_shrinkable(database):
        database.run("PRAGMA auto_vacuum = INCREMENTAL")
    mode = database.one("PRAGMA journal_mode = WAL")
    if mode != ("wal",):
        raise IndexStoreError(f"{database.path} is on a file system without shared memory")
    # A finished commit is on the disk, so that a power cut loses none.
    database.run("PRAGMA synchronous = FULL")
    database.run("PRAGMA foreign_keys = ON")
    database.run(f"PRAGMA journal_size_limit = {_WAL_BYTES}")


def _check_ours(database: Database) -> None:
    """Refuses to empty a healthy database of another program under this name."""
    if schema_version(database) is None and not {"meta", "chunks"} <= table_names(database):
        raise IndexStoreError(f"{database.path} is not an index of this program: move it away")


def _is_others(database: Database, fingerprint: str) -> bool:
    """Whether an unusable store is another program's, rather than ours with a damaged header."""
    if schema_version(database) is None:
        return False
    try:
        check_schema(database)
        return read_meta(database).fingerprint != fingerprint
    except IndexCorrupt:
        return True


def check_ours(directory: Path, fingerprint: str, settings: str) -> None:
    """Read-only. Raises OthersIndex if another program created the store there; not for a damaged
    one, which is repaired when it is opened."""
    with closing(Database(store_path(directory), write=False)) as database:
        try:
            check_compatible(database, fingerprint, settings)
        except OthersIndex:
            if _is_others(database, fingerprint):
                raise


def stored_settings(directory: Path) -> str:
    """The settings that the store was built with; empty if there is no readable store.

    Raises OtherVersion; not for a damaged header, because the stored settings name the version.
    """
    try:
        with closing(Database(store_path(directory), write=False)) as database:
            try:
                return check_compatible(database, None).settings
            except OtherVersion:
                if schema_version(database) is None:  # another program's file
                    return ""
                making = read_making(read_meta(database).settings) if has_schema(database) else None
                if making is not None and making.schema == SCHEMA_VERSION:
                    return making.text
                raise
    except OtherVersion:
        raise
    except IndexStoreError:
        return ""


def recorded_settings(directory: Path) -> str:
    """The same, whichever version wrote the store, and without checking the row: for showing what
    is on this machine. Empty if it cannot be read."""
    try:
        with closing(Database(store_path(directory), write=False)) as database:
            if schema_version(database) is None:
                return ""
            row = database.one("SELECT settings FROM meta")
    except IndexStoreError:
        return ""
    return row[0] if row and isinstance(row[0], str) else ""


def _empty(database: Database, expected: Expected) -> None:
    """Empties it in one transaction, so that readers see the old store or the new one. Keeps
    vectors."""
    previous = _NOTHING
    with suppress(IndexStoreError):
        previous = read_meta(database).position
    database.run("PRAGMA foreign_keys = OFF")
    database.run("BEGIN IMMEDIATE")
    ledger = Ledger()
    if recreate(database):
        check_vectors(database)
        ledger = Ledger.from_tables(database, ["embeddings"])
    position = generations.next_position(previous)
    generations.append(database, position, {})
    write_meta(database, Meta(expected.fingerprint, position, ledger, settings=expected.settings))
    rebuild_outdated(database, expected.indices, position)
    database.run("COMMIT")
    database.run("PRAGMA foreign_keys = ON")


# The writer. Its caller holds the write lock while opening it and during transactions.


class StoreWriter(Closable):
    """An open store that can be changed, one transaction at a time, by one thread."""

    def __init__(self, prepared: PreparedStore, expected: Expected) -> None:
        self._database = prepared.database
        self._directory = prepared.database.path.parent
        self._fingerprint = expected.fingerprint
        self._settings = expected.settings
        self._indices = expected.indices
        self._left: Seal | None = None
        """Our last seal, in case it could not be written."""
        self.rebuilt = prepared.rebuilt
        """Why the store had to be emptied when it was opened, if it was: read all files again."""
        self.took_over = prepared.took_over
        """Whether it was emptied because another program created it."""

    @classmethod
    def open(
        cls,
        directory: Path,
        fingerprint: str,
        *,
        settings: str = "",
        indices: Sequence[StoredIndex] = (),
        deep: bool = False,
        takes_over: bool = True,
    ) -> Self:
        """Opens or creates the store in a directory, or empties it if it cannot be used as it is.

        A store that does not match its seal may be damaged, or an older copy: every row is checked,
        all files must be compared, and until then answers mention it.

        `deep` checks every row in any case, for when a reader has found damage. Without
        `takes_over`, a sound store with other settings, or of another version of this program, is
        left as it is: OtherSettings or OtherVersion. The fingerprint is computed from `settings`.
        """
        path = store_path(directory)
        expected = Expected(fingerprint, settings, indices, deep, takes_over)
        reason = make_way(path)
        if shared_name(path) is not None:
            release_all(directory)
            take_copies(path)
        try:
            writer = cls._open_whole(path, expected)
        except OpenedReadOnly:
            release_all(directory)
            raise
        except IndexCorrupt as error:
            release_all(directory)  # Windows cannot delete an open file
            delete_files(path)
            reason = error.what
            writer = cls._open_whole(path, expected)
        writer.rebuilt = writer.rebuilt or reason
        return writer

    @classmethod
    def _open_whole(cls, path: Path, expected: Expected) -> Self:
        """Opens it with its indices, and rebuilds those that are out of date or damaged."""
        writer = cls(open_prepared(path, expected), expected)
        try:
            is_as_left = is_sealed(path.parent, writer.position)
            if not is_as_left:
                # Before the check, which takes a while: other processes cannot notice meanwhile.
                with writer._exclusive():
                    writer._distrust()
                if not writer.rebuilt and not expected.deep:
                    check_rows(writer._database)
            with writer._exclusive():
                rebuild_outdated(writer._database, expected.indices, writer.position)
                deep = expected.deep or not is_as_left
                repair(writer._database, expected.indices, writer.position, deep=deep)
            stored_index.make_shrinkable(writer._database)
            writer._seal(writer.position)
        except BaseException:
            writer.close()
            raise
        return writer

    def _distrust(self) -> None:
        """Marks the index as not yet compared with the files, in a generation in which no document
        changes: the store may be sound and still not match the files."""
        meta = read_meta(self._database)
        if meta.waiting is None:
            return
        position = generations.next_position(meta.position)
        generations.append(self._database, position, {})
        write_meta(self._database, replace(meta, position=position, waiting=None))
        current = find_up_to_date(self._database, self._indices, meta.position)
        record_applied(self._database, current, position)

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
        """Whether the store is as the last commit left it. Call it while holding the write lock.

        If only the seal differs, and that commit was ours, writes the seal again.
        """
        found = current_seal(self._directory, position)
        if found == read_seal(self._directory):
            return True
        if found != self._left:
            return False
        self._seal(position)
        return True

    @contextmanager
    def transaction(self) -> Generator[Transaction]:
        """Everything done inside takes effect together at the end, or not at all.

        Raises Unsealed if something else has changed the store since the last transaction.
        """
        with self._begin() as meta:
            is_remade = rebuild_outdated(self._database, self._indices, meta.position)
            transaction = Transaction(self._database, meta, self._indices)
            yield transaction
            is_changed = transaction.finish()
            if is_changed or is_remade:
                self._database.run("COMMIT")
            if is_changed:
                transaction.mark_committed()
        self._seal(transaction.position)

    def shrink_some(self) -> bool:
        """Takes one short step to reclaim space, if much of the file is free; returns whether there
        may be more to do. No document changes, so the commit stays the same.

        Raises Unsealed like `transaction`.
        """
        if not stored_index.is_shrinkable(
            self._database
        ):  # it could not be converted, so no step would help
            return False
        with self._begin() as meta:
            found = stored_index.measure(self._database)
            if found.is_wasted:
                stored_index.shrink(self._database, self._indices, found)
                self._database.run("COMMIT")
        left = stored_index.measure(self._database)
        if not left.is_wasted:
            stored_index.put_log_away(self._database)
        self._seal(meta.position)
        return left.is_wasted

    @property
    def has_long_log(self) -> bool:
        """Whether the log could not be merged because a process was reading; `shrink_some` tries
        again."""
        return stored_index.is_shrinkable(self._database) and stored_index.has_long_log(
            self._database
        )

    def mark_unused(self, keys: Collection[int], now: int) -> None:
        """Records since when these vectors have been unused. No document changes, so the commit
        stays the same.

        Raises Unsealed like `transaction`.
        """
        with self._begin() as meta:
            mark_unused(self._database, keys, now)
            self._database.run("COMMIT")
        self._seal(meta.position)

    @contextmanager
    def _begin(self) -> Generator[Meta]:
        """Starts a transaction on an unchanged store; rolls it back unless it was committed."""
        if not self._database.is_in_place():
            raise IndexIncompatible(f"{self._database.path} was replaced: open it again")
        try:
            self._database.run("BEGIN IMMEDIATE")
            self._database.remember_sides()
            meta = check_compatible(self._database, self._fingerprint, self._settings)
            if not self.is_as_left(meta.position):
                where = self._database.path
                raise Unsealed(f"{where} was changed by another program; checking it")
            with self._seal_again(meta.position):
                yield meta
        finally:
            self._database.rollback()

    def close(self) -> None:
        """Call it while holding the write lock: SQLite merges the log into the store's file if no
        other process has it open, and the result is sealed again. Otherwise a later commit does."""
        position = sealed_position(self._directory)
        self.abandon()
        if position is not None:
            seal(self._directory, position)

    def abandon(self) -> None:
        """Closes it without the write lock; does not seal, because another process may be sealing a
        commit."""
        self._database.close()

    @contextmanager
    def _seal_again(self, position: Position) -> Generator[None]:
        """Seals again after a failure, on a full disk for example, which may have left unused pages
        in the log."""
        try:
            yield
        except BaseException as error:
            self._database.rollback()
            if not isinstance(error, IndexCorrupt):
                self._seal(position)
            raise

    def _seal(self, position: Position) -> None:
        self._left = seal(self._directory, position)
