"""The manifest, and the failures of files that could not be indexed."""

from hashlib import blake2b
from json.encoder import encode_basestring_ascii as quoted

from ragdocs.models import DocId, FileState
from ragdocs.parsers.identity import decode_path, document_id, encode_path
from ragdocs.store.connection import Database, Row
from ragdocs.store.ledger import Ledger
from ragdocs.store.records import FileFailure, ManifestEntry
from ragdocs.store.rows import HASH_BYTES, Value, Values, check_row, row_hash, storable

_FILE = "doc_id, tree, path, size, mtime_ns, content_hash, read_ns"
SELECT_FILES = f"SELECT row_hash, {_FILE} FROM files"
SELECT_FAILURES = f"""SELECT e.row_hash, e.kind, e.reason, f.row_hash, {_FILE}
    FROM failures e JOIN files f ON f.key = e.file"""


def file_values(entry: ManifestEntry) -> Values:
    state = entry.state
    known: tuple[Value, ...] = (
        (state.size, state.mtime_ns, state.content_hash) if state else (None, None, None)
    )
    path = encode_path(entry.path)
    return storable((entry.doc_id, entry.tree, path, *known, entry.read_ns))


def put_file(database: Database, ledger: Ledger, entry: ManifestEntry) -> bool:
    """Writes the entry, without a failure; says whether anything had to be written."""
    values = file_values(entry)
    hashed = row_hash("file", values)
    old = database.one("SELECT row_hash FROM files WHERE doc_id = ?", (entry.doc_id,))
    cleared = clear_failure(database, ledger, entry.doc_id)
    if old and old[0] == hashed:
        return cleared
    if old:
        ledger.drop("files", old)
    database.run(
        f"""INSERT INTO files ({_FILE}, row_hash) VALUES (?,?,?,?,?,?,?,?)
        ON CONFLICT (doc_id) DO UPDATE SET size = excluded.size, mtime_ns = excluded.mtime_ns,
        content_hash = excluded.content_hash, read_ns = excluded.read_ns,
        row_hash = excluded.row_hash""",
        (*values, hashed),
    )
    ledger.add("files", [hashed])
    return True


def put_failure(database: Database, ledger: Ledger, failure: FileFailure) -> None:
    doc_id = document_id(failure.tree, failure.path)
    entry = ManifestEntry(doc_id, failure.tree, failure.path, failure.state, failure.read_ns)
    put_file(database, ledger, entry)
    kind, reason = storable((failure.kind, failure.reason))
    hashed = row_hash("failure", (doc_id, kind, reason))
    database.run(
        """INSERT INTO failures (file, row_hash, kind, reason)
        VALUES ((SELECT key FROM files WHERE doc_id = ?), ?, ?, ?)""",
        (doc_id, hashed, kind, reason),
    )
    ledger.add("failures", [hashed])


def has_failure(database: Database, failure: FileFailure) -> bool:
    """Whether this very failure, of the same state of the file, is on record."""
    doc_id = document_id(failure.tree, failure.path)
    row = database.one(f"{SELECT_FAILURES} WHERE f.doc_id = ?", (doc_id,))
    return row is not None and read_failure(row) == failure


def clear_failure(database: Database, ledger: Ledger, doc_id: DocId) -> bool:
    old = database.one(
        "SELECT row_hash, file FROM failures WHERE file = (SELECT key FROM files WHERE doc_id = ?)",
        (doc_id,),
    )
    if not old:
        return False
    database.run("DELETE FROM failures WHERE file = ?", old[1:])
    ledger.drop("failures", old[:1])
    return True


def remove_file(database: Database, ledger: Ledger, doc_id: DocId) -> bool:
    clear_failure(database, ledger, doc_id)
    old = database.one("SELECT row_hash FROM files WHERE doc_id = ?", (doc_id,))
    if not old:
        return False
    database.run("DELETE FROM files WHERE doc_id = ?", (doc_id,))
    ledger.drop("files", old)
    return True


def read_file(row: Row) -> ManifestEntry:
    hashed, doc_id, tree, path, size, mtime_ns, content_hash, read_ns = row
    try:
        # What `row_hash` makes of a usual row, in a third of the time: every start reads all rows.
        names = f"{quoted(doc_id)},{quoted(tree)},{quoted(path)}"
        known = f"{size:d},{mtime_ns:d},{quoted(content_hash)},{read_ns:d}"
        encoded = f'["file",{names},{known}]'.encode("ascii")
        is_whole = blake2b(encoded, digest_size=HASH_BYTES).digest() == hashed
    except (TypeError, ValueError):  # without a state, or damaged
        is_whole = False
    if not is_whole:
        check_row("file", row[1:], hashed)
    state = None if size is None else FileState(size, mtime_ns, content_hash)
    plain = decode_path(path) if "%" in path else path
    return ManifestEntry(doc_id, tree, plain, state, read_ns)


def read_failure(row: Row) -> FileFailure:
    hashed, kind, reason, *file_row = row
    entry = read_file(tuple(file_row))
    check_row("failure", (entry.doc_id, kind, reason), hashed)
    return FileFailure(entry.tree, entry.path, kind, reason, entry.state, entry.read_ns)
