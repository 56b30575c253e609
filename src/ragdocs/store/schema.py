"""The tables, the encoding of their values, and the hash of a row. Other versions are never
migrated.
"""

import json
from collections.abc import Iterable, Sequence
from hashlib import blake2b

from ragdocs.errors import REBUILD, IndexCorrupt
from ragdocs.models import Span
from ragdocs.store.database import Database
from ragdocs.store.folder import APPLICATION_ID
from ragdocs.text import without_surrogates

# Values as SQLite stores them, and the hash that reveals a damaged row.
#
# A row's hash covers what the row means (ids, not internal keys), in a canonical encoding: ASCII
# JSON, which every version of Python and SQLite writes in the same way.

Value = str | int | bytes | None
Values = tuple[Value, ...]

HASH_BYTES = 16
_encode = json.JSONEncoder(
    ensure_ascii=True, check_circular=False, separators=(",", ":"), default=bytes.hex
).encode


def row_hash(kind: str, values: Sequence[Value]) -> bytes:
    return blake2b(_encode((kind, *values)).encode("ascii"), digest_size=HASH_BYTES).digest()


def joint_hash(hashes: Iterable[bytes]) -> bytes:
    return blake2b(b"".join(hashes), digest_size=HASH_BYTES).digest()


def check_row(kind: str, values: Sequence[Value], stored: bytes) -> None:
    """The first value identifies the row in the message."""
    if row_hash(kind, values) != stored:
        raise IndexCorrupt(f"the stored {kind} {values[0]!r} is damaged", REBUILD)


def storable(values: Sequence[Value]) -> Values:
    return tuple(without_surrogates(value) if isinstance(value, str) else value for value in values)


def to_json(value: object) -> str:
    return _encode(value)


def strings_json(values: Iterable[str]) -> str:
    return _encode([without_surrogates(value) for value in values])


def strings(encoded: str) -> tuple[str, ...]:
    return tuple(json.loads(encoded))


def span_values(span: Span) -> tuple[int, int, int, int]:
    return span.byte_start, span.byte_end, span.line_start, span.line_end


# The tables. Other versions are never migrated: the files are read again instead.
#
# `row_hash` comes before the long columns, so that comparing all hashes reads no overflow pages.

SCHEMA_VERSION = 7

_SPAN = """byte_start INTEGER NOT NULL, byte_end INTEGER NOT NULL,
    line_start INTEGER NOT NULL, line_end INTEGER NOT NULL"""

# Vectors cost far more to recompute than everything else, so these tables survive a rebuild as long
# as they are declared exactly like this.
_KEPT = (
    """CREATE TABLE models (key INTEGER PRIMARY KEY, identity TEXT NOT NULL UNIQUE,
    dimension INTEGER NOT NULL)""",
    """CREATE TABLE embeddings (key INTEGER PRIMARY KEY,
    model INTEGER NOT NULL REFERENCES models (key), text_hash BLOB NOT NULL,
    row_hash BLOB NOT NULL, vector BLOB NOT NULL, UNIQUE (model, text_hash))""",
)

_REBUILT = (
    """CREATE TABLE meta (key INTEGER PRIMARY KEY CHECK (key = 1), fingerprint TEXT NOT NULL,
    generation INTEGER NOT NULL, stamp TEXT NOT NULL, ledger TEXT NOT NULL, waiting INTEGER,
    settings TEXT NOT NULL, communities TEXT NOT NULL, unread TEXT NOT NULL,
    row_hash BLOB NOT NULL)""",
    """CREATE TABLE generations (generation INTEGER PRIMARY KEY, stamp TEXT NOT NULL,
    row_hash BLOB NOT NULL, changes TEXT NOT NULL)""",
    """CREATE TABLE stored_indices (name TEXT PRIMARY KEY, version TEXT NOT NULL,
    generation INTEGER NOT NULL, stamp TEXT NOT NULL)""",
    """CREATE TABLE files (key INTEGER PRIMARY KEY, doc_id TEXT NOT NULL UNIQUE,
    row_hash BLOB NOT NULL, tree TEXT NOT NULL, path TEXT NOT NULL, size INTEGER,
    mtime_ns INTEGER, content_hash TEXT, read_ns INTEGER NOT NULL)""",
    """CREATE TABLE failures (file INTEGER PRIMARY KEY REFERENCES files (key),
    row_hash BLOB NOT NULL, kind TEXT NOT NULL, reason TEXT NOT NULL)""",
    """CREATE TABLE documents (key INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE,
    row_hash BLOB NOT NULL, digest BLOB NOT NULL, tree TEXT NOT NULL, path TEXT NOT NULL,
    title TEXT NOT NULL, date TEXT NOT NULL, date_us INTEGER NOT NULL,
    date_source TEXT NOT NULL, encoding TEXT NOT NULL, size INTEGER NOT NULL,
    lines INTEGER NOT NULL, body_start INTEGER NOT NULL, headings INTEGER NOT NULL,
    links INTEGER NOT NULL, code_blocks INTEGER NOT NULL, chunks INTEGER NOT NULL,
    tags TEXT NOT NULL,
    front_matter TEXT NOT NULL, warnings TEXT NOT NULL, properties TEXT NOT NULL)""",
    "CREATE INDEX documents_warned ON documents (id) WHERE warnings <> '[]'",
    """CREATE TABLE names (match_key TEXT NOT NULL, doc INTEGER NOT NULL
    REFERENCES documents (key), PRIMARY KEY (match_key, doc)) WITHOUT ROWID""",
    "CREATE INDEX names_doc ON names (doc)",
    f"""CREATE TABLE headings (key INTEGER PRIMARY KEY,
    doc INTEGER NOT NULL REFERENCES documents (key), position INTEGER NOT NULL,
    row_hash BLOB NOT NULL, level INTEGER NOT NULL, text TEXT NOT NULL, slug TEXT NOT NULL,
    {_SPAN}, UNIQUE (doc, position))""",
    f"""CREATE TABLE chunks (key INTEGER PRIMARY KEY AUTOINCREMENT,
    doc INTEGER NOT NULL REFERENCES documents (key), parent INTEGER REFERENCES chunks (key),
    id TEXT NOT NULL UNIQUE, row_hash BLOB NOT NULL, text_hash BLOB, kind TEXT NOT NULL,
    depth INTEGER NOT NULL, position INTEGER NOT NULL, title TEXT NOT NULL, slug TEXT NOT NULL,
    breadcrumb TEXT NOT NULL, {_SPAN}, overlap TEXT NOT NULL, headings TEXT NOT NULL,
    text TEXT)""",
    "CREATE INDEX chunks_doc ON chunks (doc, position)",
    "CREATE INDEX chunks_parent ON chunks (parent, position)",
    "CREATE INDEX chunks_text ON chunks (text_hash, doc)",
    "CREATE INDEX leaves ON chunks (doc, byte_start) WHERE text IS NOT NULL",
    "CREATE INDEX sections ON chunks (doc, byte_start) WHERE text IS NULL",
    f"""CREATE TABLE links (key INTEGER PRIMARY KEY,
    doc INTEGER NOT NULL REFERENCES documents (key), position INTEGER NOT NULL,
    target_doc INTEGER REFERENCES documents (key), target_slug TEXT, match_key TEXT,
    row_hash BLOB NOT NULL, kind TEXT NOT NULL, syntax TEXT NOT NULL, target TEXT NOT NULL,
    anchor TEXT NOT NULL, text TEXT NOT NULL, {_SPAN}, UNIQUE (doc, position))""",
    "CREATE INDEX links_target ON links (target_doc)",
    "CREATE INDEX links_match ON links (match_key)",
    """CREATE TABLE communities (doc INTEGER PRIMARY KEY REFERENCES documents (key),
    number INTEGER NOT NULL, row_hash BLOB NOT NULL)""",
    "CREATE INDEX communities_number ON communities (number)",
    f"""CREATE TABLE code_blocks (key INTEGER PRIMARY KEY AUTOINCREMENT,
    doc INTEGER NOT NULL REFERENCES documents (key), position INTEGER NOT NULL,
    chunk INTEGER REFERENCES chunks (key), row_hash BLOB NOT NULL, language TEXT NOT NULL,
    {_SPAN}, code TEXT NOT NULL, UNIQUE (doc, position))""",
    "CREATE INDEX code_blocks_chunk ON code_blocks (chunk)",
)


def schema_version(database: Database) -> int | None:
    """None if the file is empty or was never one of our stores."""
    (application,) = database.one("PRAGMA application_id") or (0,)
    if application != APPLICATION_ID:
        return None
    (version,) = database.one("PRAGMA user_version") or (0,)
    return version


def table_names(database: Database) -> set[str]:
    return {name for (name,) in database.all("SELECT name FROM sqlite_master")}


def has_schema(database: Database) -> bool:
    """Whether its tables are declared as this version declares them."""
    return not _missing(database)


def check_schema(database: Database) -> None:
    if missing := _missing(database):
        names = ", ".join(sorted(sql.split()[2] for sql in missing))
        raise IndexCorrupt(f"{database.path} lacks {names}", REBUILD)


def _missing(database: Database) -> set[str]:
    declared = {sql for (sql,) in database.all("SELECT sql FROM sqlite_master WHERE sql NOT NULL")}
    return {*_KEPT, *_REBUILT} - declared


def recreate(database: Database) -> bool:
    """Drops and creates all tables, within the caller's transaction; returns whether vectors were
    kept.

    Chunk numbers continue where they were, so that no number ever means two different chunks.
    """
    declared = {sql for (sql,) in database.all("SELECT sql FROM sqlite_master")}
    kept = declared.issuperset(_KEPT)
    sequences = _sequences(database)
    _drop_all(database, spared={"models", "embeddings"} if kept else set())
    for statement in _REBUILT if kept else (*_KEPT, *_REBUILT):
        database.run(statement)
    database.many("INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)", sequences)
    database.run(f"PRAGMA application_id = {APPLICATION_ID}")
    database.run(f"PRAGMA user_version = {SCHEMA_VERSION}")
    return kept


def _sequences(database: Database) -> list[tuple[str, int]]:
    if "sqlite_sequence" not in table_names(database):
        return []
    found = database.all(
        "SELECT name, seq FROM sqlite_sequence WHERE name IN ('chunks', 'documents', 'code_blocks')"
    )
    return [(name, seq) for name, seq in found]


def _drop_all(database: Database, spared: set[str]) -> None:
    # Dropping a virtual table drops its shadow tables, which cannot be dropped separately.
    virtual = "SELECT name FROM sqlite_master WHERE sql LIKE 'CREATE VIRTUAL%'"
    ordinary = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite@_%'"
    for query in (virtual, ordinary + " ESCAPE '@'"):
        for (name,) in database.all(query):
            if name not in spared:
                quoted = name.replace('"', '""')
                database.run(f'DROP TABLE "{quoted}"')
