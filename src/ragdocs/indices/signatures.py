"""N-gram signatures of passages, computed when they are indexed: computing those of a query's
candidates took three times as long as comparing them.
"""

import json
import sys
from collections.abc import Collection, Iterable, Iterator

from ragdocs.indices.fts5 import has_exactly
from ragdocs.indices.hits import PassageSignature
from ragdocs.indices.ngrams import SIGNATURE_BITS, ngram_signature
from ragdocs.memory import BoundedCache
from ragdocs.models import DocId
from ragdocs.store.database import Database, Row
from ragdocs.store.records import ChunkKey
from ragdocs.store.schema import check_row, row_hash
from ragdocs.store.snapshot import Snapshot

TABLE = "signatures"
_KIND = "signature"
_BYTES = SIGNATURE_BITS // 8
ROWS_BYTES = 4 << 20
"""As with chunks (store/snapshot.py): a row that equals a checked one, byte for byte, need not be
checked again."""


ROWS_AT_ONCE = 2_048


class SignatureIndex:
    """The table: one bitmap for every leaf."""

    name = TABLE
    version = f"1;{SIGNATURE_BITS}"

    def create(self, database: Database) -> None:
        database.run(
            f"CREATE TABLE {TABLE} (key INTEGER PRIMARY KEY, row_hash BLOB NOT NULL, "
            "ngrams BLOB NOT NULL)"
        )

    def drop(self, database: Database) -> None:
        database.run(f"DROP TABLE IF EXISTS {TABLE}")

    def put(self, database: Database, doc: int) -> None:
        database.many(
            f"INSERT INTO {TABLE} (key, row_hash, ngrams) VALUES (?, ?, ?)", _rows(database, doc)
        )

    def remove(self, database: Database, doc: int) -> None:
        database.run(
            f"DELETE FROM {TABLE} WHERE key IN (SELECT key FROM chunks WHERE doc = ?)", (doc,)
        )

    def check_rows(self, database: Database) -> None:
        for key, hashed, ngrams in database.each(f"SELECT key, row_hash, ngrams FROM {TABLE}"):
            check_row(_KIND, (key, ngrams), hashed)

    def holds(self, database: Database, docs: Iterable[int]) -> bool:
        return has_exactly(
            database,
            f"SELECT key, row_hash, ngrams FROM {TABLE} WHERE key IN (*)",
            f"SELECT count(*) FROM {TABLE}",
            (list(_rows(database, doc)) for doc in docs),
        )


def signatures_of(snapshot: Snapshot, keys: Collection[ChunkKey]) -> dict[ChunkKey, int]:
    """The bitmaps of the chunks that have one."""
    read = snapshot.numbers(TABLE)
    unread = [key for key in keys if key not in read]
    if unread:
        rows = snapshot.select(
            f"SELECT key, row_hash, ngrams FROM {TABLE} "
            "WHERE key IN (SELECT value FROM json_each(?))",
            (json.dumps(unread),),
        )
        read.update((row[0], _bitmaps[row]) for row in rows)
    return {key: read[key] for key in keys if key in read}


def all_signatures(snapshot: Snapshot) -> Iterator[PassageSignature]:
    """Those of all passages, by key; page by page, because each takes half a kilobyte."""
    last = -1
    while rows := snapshot.select(
        f"""SELECT s.key, s.row_hash, s.ngrams, d.id, c.line_start, c.line_end, c.text_hash
        FROM {TABLE} s JOIN chunks c ON c.key = s.key JOIN documents d ON d.key = c.doc
        WHERE s.key > ? ORDER BY s.key LIMIT ?""",
        (last, ROWS_AT_ONCE),
    ):
        for key, hashed, ngrams, doc_id, first, final, text in rows:
            check_row(_KIND, (key, ngrams), hashed)
            yield PassageSignature(DocId(doc_id), first, final, text, ngrams)
        last = rows[-1][0]


def _read(row: Row) -> int:
    key, hashed, ngrams = row
    check_row(_KIND, (key, ngrams), hashed)
    return int.from_bytes(ngrams, "little")


def _row_bytes(row: Row, ngrams: int) -> int:
    return sys.getsizeof(row) + sum(map(sys.getsizeof, row)) + sys.getsizeof(ngrams)


_bitmaps = BoundedCache(_read, ROWS_BYTES, _row_bytes)


def _rows(database: Database, doc: int) -> Iterator[Row]:
    select = "SELECT key, text, position FROM chunks WHERE doc = ? AND text IS NOT NULL"
    for key, text, _ in database.paged(select, (doc,), "position", 2):
        yield _row(key, text)


def _row(key: int, text: str) -> tuple[int, bytes, bytes]:
    ngrams = ngram_signature(text).to_bytes(_BYTES, "little")
    return key, row_hash(_KIND, (key, ngrams)), ngrams
