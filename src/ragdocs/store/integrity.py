"""Checks that the store is as the last commit left it, by the seal beside the file, and that its
rows are intact.
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
from ragdocs.parsers.link_targets import Names
from ragdocs.store import embeddings
from ragdocs.store.database import Database, checksum, look_at, store_path
from ragdocs.store.folder import SEAL_FILE
from ragdocs.store.generations import SELECT_GENERATIONS, Ledger, Meta, read_meta
from ragdocs.store.links import SELECT_LINKS
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

# The seal: the state in which the last commit left the files, so that any process can verify it.
#
# SQLite trusts its files: it notices neither a page that another program wrote, nor an older log in
# place of its own, nor that its shared memory is a deleted file. Our processes change the store
# only under the write lock, and then write a seal: the last commit and the attributes of the files.
# A seal that does not match is a reason to check, not yet damage: the writer may have been killed
# between the commit and the seal. The seal itself is never trusted; it is only compared with the
# store.

# Of fixed length and written in place, so that it fits even on a full disk.
_BYTES = 512


class Unsealed(IndexIncompatible):
    """The store is not as the last commit left it, and must be checked before use."""


class StoreCondition(IntEnum):
    """Whether the store can be trusted; a greater value needs more work to fix."""

    SOUND = 0
    OTHER_SETTINGS = 1
    """Another program created it: it is read as it is."""
    LOST = 2
    """It is gone, or has lost commits that we knew."""
    CHANGED = 3
    """Something other than a commit changed or replaced it: it is reopened with every row checked,
    and compared with all files."""
    DAMAGED = 4
    """A page, a row or a count is wrong: it is repaired, or emptied and filled from the files."""


@dataclass(frozen=True, slots=True)
class StoreState:
    """Whether the store can be trusted, and if not, why. It comes from a snapshot
    (`Snapshot.state`) or from the error of a failed access (`after`).

    `is_compared`: whether all files were compared with it since it was created or found changed.
    """

    condition: StoreCondition = StoreCondition.SOUND
    reason: str = ""
    is_compared: bool = True

    @classmethod
    def after(cls, error: IndexStoreError) -> Self:
        """The state that an error implies."""
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
        """The worse of two reports on the same store."""
        return other if other.condition > self.condition else self


CHANGED_BY_OTHERS = "the index was copied, or changed by another program"

Seal = NewType("Seal", bytes)
"""A commit, and the state in which it left the store's file, its log, and the log's data in shared
memory. Starts with the commit; the rest is only ever compared."""


def current_seal(directory: Path, position: Position) -> Seal:
    """The seal of the files as they are now."""
    store = store_path(directory)
    log = look_at(store.with_name(f"{store.name}-wal"))
    if log and log.size:
        log = log._replace(ctime_ns=0)  # run as root, SQLite sets its owner at each opening
        memory = checksum(store.with_name(f"{store.name}-shm"))
    else:  # SQLite creates an empty one when it only reads
        log = memory = None
    parts = (position.generation, position.stamp, look_at(store), log, memory)
    return Seal(" ".join(map(str, parts)).encode().ljust(_BYTES))


def read_seal(directory: Path) -> Seal | None:
    """None when there is no readable seal."""
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
    """Call it after a commit, while still holding the write lock. If the seal cannot be written,
    other processes distrust the store, and the next one to open it checks it; the writer remembers
    the seal it returns."""
    made = current_seal(directory, position)
    if made == read_seal(directory):
        return made
    path = directory / SEAL_FILE
    with suppress(OSError):
        try:
            _write(path, made)
        except OSError:
            if not set_aside(path):
                path.unlink(missing_ok=True)  # another account's, or read-only
            _write(path, made)
    return made


def is_sealed(directory: Path, position: Position) -> bool:
    """Whether the seal matches this commit and the files. For the holder of the write lock."""
    return read_seal(directory) == current_seal(directory, position)


def sealed_position(directory: Path) -> Position | None:
    """The sealed commit, if its files are unchanged."""
    found = read_seal(directory) or b""
    try:
        generation, stamp, *_ = found.decode("ascii").split()
        position = Position(int(generation), stamp)
    except ValueError:
        return None
    return position if found == current_seal(directory, position) else None


def is_broken(directory: Path, position: Position, before: Seal | None) -> bool:
    """Whether the seal does not match, for a process without the lock that read the seal before the
    position. False while another process writes or has just written: that one checks it."""
    if before == current_seal(directory, position):
        return False
    return holder(directory / WRITE_LOCK) is None and read_seal(directory) == before


def _write(path: Path, made: Seal) -> None:
    descriptor = open_own(path, os.O_WRONLY | os.O_CREAT)
    try:
        write_at(descriptor, made, 0)
    finally:
        os.close(descriptor)


# Checks of a store's contents.

# The query of each table, the name of its rows in messages, and the column of their hash.
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
    """The store's description, if it has our schema and, if one is given, this fingerprint.

    `settings` are those of the fingerprint, so that the message can name those that differ.
    """
    version = schema_version(database)
    if version is None and not table_names(database):
        raise IndexMissing(f"the index at {database.path} is being created: try again")
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
    """The error for a store with other settings."""
    there, here = read_making(stored), read_making(own)
    if there and here and there.roots != here.roots:
        what = f"{path} is an index of {there.folders}, not of {here.folders}"
        return OtherFolders(what, stored)
    which = differences_text(stored, own)
    return OtherSettings(f"{path} was built with other settings{which}", stored)


def check_pages(database: Database, pragma: str = "quick_check") -> None:
    found = database.all(f"PRAGMA {pragma}(1)")
    if found != [("ok",)]:
        raise IndexCorrupt(f"{database.path} is damaged ({found[0][0]})", REBUILD)


def check_structure(database: Database) -> None:
    """Checks pages, tables, counts, sums of hashes and references, without reading texts."""
    check_pages(database)
    check_schema(database)
    differing = read_meta(database).ledger.differing(Ledger.from_tables(database))
    if differing:
        tables = ", ".join(differing)
        raise IndexCorrupt(f"{database.path} has lost or changed rows ({tables})", REBUILD)
    dangling = database.one("PRAGMA foreign_key_check")
    if dangling:
        raise IndexCorrupt(f"{database.path} has dangling {dangling[0]}", REBUILD)


def check_rows(database: Database) -> None:
    """Checks every row against its hash and every SQL index against its table; reads the whole
    store."""
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
