"""The writer: makes a store ready (creates, checks or empties it) and opens transactions."""

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
    is_sealed,
    read_seal,
    seal,
    sealed_position,
    seen,
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
from ragdocs.store.stored_index import StoredIndex, bring_up, in_step, is_shrinkable, note, repair
from ragdocs.store.transaction import Transaction

# Making a store ready for its writer: created, checked, or emptied when it cannot be used.

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
    """A checked connection, why its store was emptied, and whether another program had made it."""

    database: Database
    rebuilt: str | None
    took_over: bool = False


def open_prepared(path: Path, expected: Expected) -> PreparedStore:
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


def _prepare(database: Database, expected: Expected, created: bool) -> PreparedStore:
    """Makes the store usable; says why it had to be emptied, unless it is simply new."""
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
    position = generations.next_position(previous)
    generations.append(database, position, {})
    write_meta(database, Meta(expected.fingerprint, position, ledger, settings=expected.settings))
    bring_up(database, expected.indices, position)
    database.run("COMMIT")
    database.run("PRAGMA foreign_keys = ON")


# The one that writes. Its caller holds the write lock while it is opened and in transactions.


class StoreWriter(Closable):
    """An open store that can be changed, one transaction at a time, by one thread."""

    def __init__(self, prepared: PreparedStore, expected: Expected) -> None:
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
            writer = cls._open_whole(path, expected)
        except OpenedReadOnly:
            release_all(directory)
            raise
        except IndexCorrupt as error:
            release_all(directory)  # Windows deletes no file that is open
            delete_files(path)
            reason = error.what
            writer = cls._open_whole(path, expected)
        writer.rebuilt = writer.rebuilt or reason
        return writer

    @classmethod
    def _open_whole(cls, path: Path, expected: Expected) -> Self:
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
            stored_index.make_shrinkable(writer._database)
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
        position = generations.next_position(meta.position)
        generations.append(self._database, position, {})
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
        with self._begin() as meta:
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
        if not stored_index.is_shrinkable(
            self._database
        ):  # it could not be converted: no step would help
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
        """Someone read while the log was to be put away: `shrink_some` tries it again."""
        return stored_index.is_shrinkable(self._database) and stored_index.has_long_log(
            self._database
        )

    def mark_unused(self, keys: Collection[int], now: int) -> None:
        """Notes since when these vectors have been unused. No document changes, so it is the same
        commit before and after.

        Raises Unsealed as `transaction` does.
        """
        with self._begin() as meta:
            mark_unused(self._database, keys, now)
            self._database.run("COMMIT")
        self._seal(meta.position)

    @contextmanager
    def _begin(self) -> Generator[Meta]:
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
            with self._seal_again(meta.position):
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
    def _seal_again(self, position: Position) -> Generator[None]:
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
