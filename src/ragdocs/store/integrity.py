"""Whether the store is what the last commit left: the seal beside the file, and the checks of its
rows.
"""

import os
from contextlib import suppress
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import NewType, Self

from ragdocs.config.fingerprint import differences_text, read_making
from ragdocs.errors import (
    REBUILD,
    IndexCorrupt,
    IndexIncompatible,
    IndexMissing,
    IndexStoreError,
    OtherFolders,
    OtherSettings,
    OthersIndex,
    OtherVersion,
)
from ragdocs.files import open_file, open_own, read_at, set_aside, write_at
from ragdocs.locks import holder
from ragdocs.store import embeddings
from ragdocs.store.database import Database, checksum, look_at, store_path
from ragdocs.store.folder import SEAL_FILE
from ragdocs.store.generations import SELECT_GENERATIONS, Ledger, Meta, read_meta
from ragdocs.store.links import SELECT_LINKS, Names
from ragdocs.store.lock import WRITE_LOCK
from ragdocs.store.records import Position
from ragdocs.store.schema import (
    SCHEMA_VERSION,
    check_row,
    check_schema,
    schema_version,
    storable,
    table_names,
)
from ragdocs.store.tables import (
    SELECT_CHUNKS,
    SELECT_CODE,
    SELECT_COMMUNITIES,
    SELECT_DOCUMENTS,
    SELECT_FAILURES,
    SELECT_FILES,
    SELECT_HEADINGS,
    read_document,
    read_failure,
)

# What the last commit left on the disk, so that anyone can tell whether it is still that.
#
# SQLite believes its files: it notices neither a page that something else has written, nor an older
# log in place of its own, nor that the memory it shares with others is a file that was deleted. Our
# processes change the store under the write lock only, and seal what they leave: which commit is
# the last, and how the files look. A seal that does not fit is a doubt, not yet damage: whoever
# wrote may have been killed between the commit and the seal. It is never believed itself: what it
# is compared with is the store.

# Always as long, and written in place: on a full disk there is room for it.
_BYTES = 512


class Unsealed(IndexIncompatible):
    """The store is not as the last commit left it: it is to be checked before it is used."""


class StoreCondition(IntEnum):
    """Whether the store may be trusted; the greater, the more has to be done about it."""

    SOUND = 0
    OTHER_SETTINGS = 1
    """Another program has made it: it is read as it is."""
    LOST = 2
    """It is gone, or commits that were known here are."""
    CHANGED = 3
    """Something else than a commit has changed or replaced it: it is opened again with every row
    checked, and all files are compared with it."""
    DAMAGED = 4
    """A page, a row or a count is wrong: it is repaired, or emptied and filled from the files."""


@dataclass(frozen=True, slots=True)
class StoreState:
    """Whether the store may be trusted, and why not. A look at it finds this (`Snapshot.state`),
    or fails with an error that says it (`after`).

    `is_compared`: whether all files were compared with it since it was made, or found changed.
    """

    condition: StoreCondition = StoreCondition.SOUND
    reason: str = ""
    is_compared: bool = True

    @classmethod
    def after(cls, error: IndexStoreError) -> Self:
        """What an error says of the store."""
        match error:
            case OthersIndex():
                condition = StoreCondition.OTHER_SETTINGS
            case IndexIncompatible():
                condition = StoreCondition.CHANGED
            case IndexCorrupt():
                condition = StoreCondition.DAMAGED
            case _:
                condition = StoreCondition.LOST
        return cls(condition, str(error))

    @property
    def is_sound(self) -> bool:
        return self.condition is StoreCondition.SOUND

    def worst(self, other: "StoreState") -> "StoreState":
        """Of two reports on one store, the one about which more has to be done."""
        return other if other.condition > self.condition else self


CHANGED_BY_OTHERS = "the index was copied, or changed by another program"

Seal = NewType("Seal", bytes)
"""A commit, and how it left the store's file, its log, and what is said about the log in the memory
that all share. Begins with the commit, and is otherwise only ever compared."""


def seen(directory: Path, position: Position) -> Seal:
    """What a seal would be that is made now."""
    store = store_path(directory)
    log = look_at(store.with_name(f"{store.name}-wal"))
    if log and log.size:
        log = log._replace(ctime_ns=0)  # SQLite, run by root, gives it its owner at each opening
        memory = checksum(store.with_name(f"{store.name}-shm"))
    else:  # SQLite makes an empty one when it only looks
        log = memory = None
    parts = (position.generation, position.stamp, look_at(store), log, memory)
    return Seal(" ".join(map(str, parts)).encode().ljust(_BYTES))


def read_seal(directory: Path) -> Seal | None:
    """None when there is none that can be read."""
    try:
        descriptor = open_file(directory / SEAL_FILE, os.O_RDONLY)
    except OSError:
        return None
    try:
        return Seal(read_at(descriptor, _BYTES, 0))
    except OSError:
        return None
    finally:
        os.close(descriptor)


def seal(directory: Path, position: Position) -> Seal:
    """After a commit, while the write lock is still held. What cannot be sealed is a doubt to all
    others, and checked by whoever opens it next; the one that wrote it remembers what it left."""
    made = seen(directory, position)
    if made == read_seal(directory):
        return made
    path = directory / SEAL_FILE
    with suppress(OSError):
        try:
            _write(path, made)
        except OSError:
            if not set_aside(path):
                path.unlink(missing_ok=True)  # someone else's, or not to be written
            _write(path, made)
    return made


def is_sealed(directory: Path, position: Position) -> bool:
    """Whether this is the commit that was sealed, in the files that were. For who has the lock."""
    return read_seal(directory) == seen(directory, position)


def sealed_position(directory: Path) -> Position | None:
    """The commit that was sealed, if its files are as they were."""
    found = read_seal(directory) or b""
    try:
        generation, stamp, *_ = found.decode("ascii").split()
        position = Position(int(generation), stamp)
    except ValueError:
        return None
    return position if found == seen(directory, position) else None


def is_broken(directory: Path, position: Position, before: Seal | None) -> bool:
    """The same for who has no lock, and knows the seal from before the position was read. While
    someone writes, or has just written, nothing can be told: that one looks by itself."""
    if before == seen(directory, position):
        return False
    return holder(directory / WRITE_LOCK) is None and read_seal(directory) == before


def _write(path: Path, made: Seal) -> None:
    descriptor = open_own(path, os.O_WRONLY | os.O_CREAT)
    try:
        write_at(descriptor, made, 0)
    finally:
        os.close(descriptor)


# Whether a store is what it says it is.

# What to read of each table, what its rows are called, and at which place their hash stands.
_CHECKED = (
    (SELECT_FILES, "file", 0),
    (SELECT_HEADINGS, "heading", 0),
    (SELECT_CHUNKS, "chunk", 1),
    (SELECT_LINKS, "link of", 1),
    (SELECT_CODE, "code block", 1),
    (SELECT_COMMUNITIES, "community of", 0),
    (SELECT_GENERATIONS, "generation", 0),
)


def check_compatible(database: Database, fingerprint: str | None, settings: str = "") -> Meta:
    """The store's description, when it is of this schema and, if one is given, fingerprint.

    `settings` are those of the fingerprint, to tell which of them differ.
    """
    version = schema_version(database)
    if version is None and not table_names(database):
        raise IndexMissing(f"the index at {database.path} is being made: try again")
    if version != SCHEMA_VERSION:
        raise OtherVersion(
            f"{database.path} was written by another version of this program (schema "
            f"{version}, ours {SCHEMA_VERSION})"
        )
    meta = read_meta(database)
    if fingerprint is not None and meta.fingerprint != fingerprint:
        raise refusal(database.path, meta.settings, settings)
    return meta


def refusal(path: Path, stored: str, own: str) -> OthersIndex:
    """Why a store of other settings is not simply used."""
    there, here = read_making(stored), read_making(own)
    if there and here and there.roots != here.roots:
        what = f"{path} is an index of {there.folders}, and not of {here.folders}"
        return OtherFolders(what, stored)
    which = differences_text(stored, own)
    return OtherSettings(f"{path} was built with other settings{which}", stored)


def check_pages(database: Database, pragma: str = "quick_check") -> None:
    found = database.all(f"PRAGMA {pragma}(1)")
    if found != [("ok",)]:
        raise IndexCorrupt(f"{database.path} is damaged ({found[0][0]})", REBUILD)


def check_structure(database: Database) -> None:
    """Pages, tables, counts, sums of hashes and references: all of it without rereading texts."""
    check_pages(database)
    check_schema(database)
    differing = read_meta(database).ledger.differing(Ledger.counted(database))
    if differing:
        tables = ", ".join(differing)
        raise IndexCorrupt(f"{database.path} has lost or changed rows ({tables})", REBUILD)
    dangling = database.one("PRAGMA foreign_key_check")
    if dangling:
        raise IndexCorrupt(f"{database.path} has dangling {dangling[0]}", REBUILD)


def check_rows(database: Database) -> None:
    """Every row against its hash, and every index against its table: reads the whole store."""
    check_pages(database, "integrity_check")
    for select, kind, place in _CHECKED:
        for row in database.each(select):
            check_row(kind, row[place + 1 :], row[place])
    for row in database.each(SELECT_FAILURES):
        read_failure(row)
    embeddings.check_vectors(database)
    _check_names(database)


def _check_names(database: Database) -> None:
    expected: set[tuple[object, int]] = set()
    for key, *row in database.each(SELECT_DOCUMENTS.replace("SELECT", "SELECT key,")):
        found = read_document(tuple(row))
        aliases = found.front_matter.aliases
        names = Names(key, found.id, found.tree, found.path, found.title, aliases)
        expected |= {(name, key) for name in storable(sorted(names.match_keys()))}
    if expected != set(database.each("SELECT match_key, doc FROM names")):
        raise IndexCorrupt(f"{database.path} has lost names of documents", REBUILD)
