"""Checks that the indices inside the store match its rows."""

from collections.abc import Iterator, Sequence

from ragdocs.indices.code import TABLE as CODE
from ragdocs.indices.fts5 import TABLE as KEYWORD
from ragdocs.indices.signatures import TABLE as SIGNATURES
from ragdocs.indices.signatures import signatures_of
from ragdocs.store.generations import TABLES
from ragdocs.store.records import ChunkKey
from ragdocs.store.snapshot import Snapshot
from ragdocs.store.stored_index import StoredIndex

KEYS_AT_ONCE = 5000
# A document without text has one row too, for its title.
_KEYWORD_LACKS = f"""SELECT
    (SELECT count(*) FROM chunks c WHERE c.text IS NOT NULL
        AND c.key NOT IN (SELECT id FROM {KEYWORD}_docsize)) +
    (SELECT count(*) FROM documents d WHERE NOT EXISTS (SELECT 1 FROM chunks c
        JOIN {KEYWORD}_docsize k ON k.id = c.key WHERE c.doc = d.key))"""
_LACKING = {
    KEYWORD: _KEYWORD_LACKS,
    CODE: f"""SELECT count(*) FROM code_blocks
        WHERE key NOT IN (SELECT id FROM {CODE}_docsize)""",
    SIGNATURES: f"""SELECT count(*) FROM chunks WHERE text IS NOT NULL
        AND key NOT IN (SELECT key FROM {SIGNATURES})""",
}
_BEYOND = {
    KEYWORD: f"""SELECT count(*) FROM {KEYWORD}_docsize
        WHERE id NOT IN (SELECT key FROM chunks)""",
    CODE: f"""SELECT count(*) FROM {CODE}_docsize
        WHERE id NOT IN (SELECT key FROM code_blocks)""",
    SIGNATURES: f"""SELECT count(*) FROM {SIGNATURES}
        WHERE key NOT IN (SELECT key FROM chunks)""",
}
_FTS5 = (KEYWORD, CODE)


def find_inconsistencies(snapshot: Snapshot, tables: Sequence[StoredIndex]) -> Iterator[str]:
    """Yields a sentence for each. Raises IndexCorrupt at a damaged row."""
    yield from _check_tables(snapshot)
    yield from _check_indices(snapshot, tables)


def _check_tables(snapshot: Snapshot) -> Iterator[str]:
    for table in TABLES:
        expected, found = snapshot.ledger.count(table), _count(snapshot, table)
        if expected != found:
            yield f"{table} has {found:,} rows but should have {expected:,}"


def _check_indices(snapshot: Snapshot, tables: Sequence[StoredIndex]) -> Iterator[str]:
    known = {row[0]: row[1:] for row in snapshot.select("SELECT * FROM stored_indices")}
    at = (snapshot.position.generation, snapshot.position.stamp)
    for table in tables:
        version, *position = known.get(table.name, ("",))
        if version != table.version:
            continue  # another version: the next writer rebuilds it
        if tuple(position) != at:
            yield f"the index {table.name} has missed a commit"
        elif table.name in _LACKING:
            yield from _check_index(snapshot, table.name)


def _check_index(snapshot: Snapshot, name: str) -> Iterator[str]:
    lacking = snapshot.select(_LACKING[name])[0][0]
    beyond = snapshot.select(_BEYOND[name])[0][0]
    if lacking or beyond:
        yield f"the index {name} lacks {lacking:,} entries and has {beyond:,} too many"
    elif name in _FTS5:
        yield from _check_terms(snapshot, name)
    else:
        _check_signatures(snapshot)


def _check_terms(snapshot: Snapshot, name: str) -> Iterator[str]:
    """Compares the sum of the rows' word counts with the sum of the words' counts. Both cover
    everything that was put in, and reading them decodes the whole index."""
    by_row = sum(_varints(row[0]) for row in snapshot.select(f"SELECT sz FROM {name}_docsize"))
    by_term = snapshot.select(f"SELECT coalesce(sum(cnt), 0) FROM {name}_vocabulary")[0][0]
    if by_row != by_term:
        yield f"the index {name} has {by_term:,} words but should have {by_row:,}"


def _varints(packed: bytes) -> int:
    """The sum of numbers in SQLite's variable-length encoding; word counts need few bytes."""
    total = value = 0
    for byte in packed:
        value = (value << 7) | (byte & 0x7F)
        if byte < 0x80:
            total, value = total + value, 0
    return total


def _check_signatures(snapshot: Snapshot) -> None:
    """Raises IndexCorrupt at the first damaged one."""
    keys = [ChunkKey(row[0]) for row in snapshot.select(f"SELECT key FROM {SIGNATURES}")]
    for start in range(0, len(keys), KEYS_AT_ONCE):
        signatures_of(snapshot, keys[start : start + KEYS_AT_ONCE])


def _count(snapshot: Snapshot, table: str) -> int:
    return int(snapshot.select(f"SELECT count(*) FROM {table}")[0][0])
