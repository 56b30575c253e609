"""N-gram signatures of passages, stored at indexing time, by which near duplicates are found."""

import json
import math
import sys
import unicodedata
from collections.abc import Collection, Iterable, Iterator
from functools import cache

from ragdocs.indices.fts5 import has_exactly
from ragdocs.memory import BoundedCache
from ragdocs.store.database import Database, Row
from ragdocs.store.records import ChunkKey
from ragdocs.store.schema import check_row, row_hash
from ragdocs.store.snapshot import Snapshot

# A text's character trigrams as a small bitmap, so that many texts can be compared in no time.
#
# Sixty sets of trigrams take several milliseconds to compare, their bitmaps less than one. A bitmap
# gives the similarity to about two hundredths; who needs it nearer compares the sets.

# Seed 000, P12.
NGRAM_CHARS = 3
# 512 bytes for a passage. Twice as many distinct trigrams as a leaf of 2,000 characters has.
SIGNATURE_BITS = 4096
# Of a fuller bitmap the number of trigrams can no longer be told.
MAX_BITS_SET = SIGNATURE_BITS * 7 // 8
# Of an emptier one a single shared bit would decide.
MIN_BITS_SET = 64

# Fibonacci hashing (Knuth, vol. 3, 6.4): the upper bits of the product spread well.
_MULTIPLIER = 0x9E3779B97F4A7C15
_SHIFT = 64 - SIGNATURE_BITS.bit_length() + 1
# Code points have 21 bits: three of them in one number, exactly.
_POINT_BITS = 21


def ngrams(text: str) -> frozenset[str]:
    """The distinct trigrams, lower-cased and with spaces collapsed; a shorter text is its own."""
    folded = _folded(text)
    if len(folded) <= NGRAM_CHARS:
        return frozenset([folded] if folded else [])
    parts = (folded[start:] for start in range(NGRAM_CHARS))
    return frozenset(map("".join, zip(*parts, strict=False)))


def jaccard(one: frozenset[str], other: frozenset[str]) -> float:
    """What two sets have in common, as a part of what they have together; 0 for an empty one."""
    common = len(one & other)
    return common / (len(one) + len(other) - common) if common else 0.0


def ngram_signature(text: str) -> int:
    """A bit for every trigram; 0 is a text without any."""
    import numpy as np

    folded = _folded(text)
    if not folded:
        return 0
    encoded = folded.ljust(NGRAM_CHARS, "\0").encode("utf-32-le", "replace")
    points = np.frombuffer(encoded, dtype="<u4").astype(np.uint64)
    size = len(points) - NGRAM_CHARS + 1
    packed = np.zeros(size, dtype=np.uint64)
    for start in range(NGRAM_CHARS):
        packed = (packed << np.uint64(_POINT_BITS)) | points[start : start + size]
    places = (packed * np.uint64(_MULTIPLIER)) >> np.uint64(_SHIFT)
    bits = np.zeros(SIGNATURE_BITS, dtype=np.bool_)
    bits[places.astype(np.intp)] = True
    return int.from_bytes(np.packbits(bits, bitorder="little").tobytes(), "little")


def estimated_jaccard(one: int, other: int) -> float:
    """The similarity of the sets behind two bitmaps, by linear counting (Whang et al. 1990)."""
    if not one or not other:
        return 0.0
    sizes = ngram_counts()
    apart = sizes[one.bit_count()] + sizes[other.bit_count()]
    return max(0.0, apart / sizes[(one | other).bit_count()] - 1.0)


@cache
def ngram_counts() -> tuple[float, ...]:
    """How many distinct trigrams set so many bits, on average: several may share one."""
    unset = (max(1, SIGNATURE_BITS - bits) for bits in range(SIGNATURE_BITS + 1))
    return tuple(SIGNATURE_BITS * math.log(SIGNATURE_BITS / bits) for bits in unset)


def _folded(text: str) -> str:
    return " ".join(unicodedata.normalize("NFC", text).lower().split())


# Every leaf's trigrams, counted when it is indexed: comparing wordings then costs a query nothing.
#
# Making the bitmaps of a query's candidates took three times as long as comparing them.

TABLE = "signatures"
_KIND = "signature"
_BYTES = SIGNATURE_BITS // 8
ROWS_BYTES = 4 << 20
"""As with chunks (store/snapshot.py): what equals a row that was checked, to the last byte, needs
no check again."""


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
    """The bitmaps of those of the chunks that have one."""
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
