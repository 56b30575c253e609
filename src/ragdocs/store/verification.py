"""Whether a store is what it says it is."""

from pathlib import Path

from ragdocs.config.making import differences_text, read_making
from ragdocs.errors import (
    IndexCorrupt,
    IndexMissing,
    OtherFolders,
    OtherSettings,
    OthersIndex,
    OtherVersion,
)
from ragdocs.store import embedding_cache
from ragdocs.store.change_log import SELECT_GENERATIONS
from ragdocs.store.chunk_rows import SELECT_CHUNKS, SELECT_CODE
from ragdocs.store.community_rows import SELECT_COMMUNITIES
from ragdocs.store.connection import Database
from ragdocs.store.document_rows import SELECT_DOCUMENTS, SELECT_HEADINGS, read_document
from ragdocs.store.file_rows import SELECT_FAILURES, SELECT_FILES, read_failure
from ragdocs.store.ledger import Ledger, Meta, read_meta
from ragdocs.store.link_resolution import Names
from ragdocs.store.link_rows import SELECT_LINKS
from ragdocs.store.rows import check_row, storable
from ragdocs.store.schema import SCHEMA_VERSION, check_schema, schema_version, table_names

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
        raise IndexCorrupt(f"{database.path} is damaged ({found[0][0]}): rebuild the index")


def check_structure(database: Database) -> None:
    """Pages, tables, counts, sums of hashes and references: all of it without rereading texts."""
    check_pages(database)
    check_schema(database)
    differing = read_meta(database).ledger.differing(Ledger.counted(database))
    if differing:
        tables = ", ".join(differing)
        raise IndexCorrupt(f"{database.path} has lost or changed rows ({tables}): rebuild it")
    dangling = database.one("PRAGMA foreign_key_check")
    if dangling:
        raise IndexCorrupt(f"{database.path} has dangling {dangling[0]}: rebuild the index")


def check_rows(database: Database) -> None:
    """Every row against its hash, and every index against its table: reads the whole store."""
    check_pages(database, "integrity_check")
    for select, kind, place in _CHECKED:
        for row in database.each(select):
            check_row(kind, row[place + 1 :], row[place])
    for row in database.each(SELECT_FAILURES):
        read_failure(row)
    embedding_cache.check_vectors(database)
    _check_names(database)


def _check_names(database: Database) -> None:
    expected: set[tuple[object, int]] = set()
    for key, *row in database.each(SELECT_DOCUMENTS.replace("SELECT", "SELECT key,")):
        found = read_document(tuple(row))
        aliases = found.front_matter.aliases
        names = Names(key, found.id, found.tree, found.path, found.title, aliases)
        expected |= {(name, key) for name in storable(sorted(names.match_keys()))}
    if expected != set(database.each("SELECT match_key, doc FROM names")):
        raise IndexCorrupt(f"{database.path} has lost names of documents: rebuild the index")
