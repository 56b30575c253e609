"""The chunk tree and the code blocks as rows, and back."""

import sys
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence

from ragdocs.bounded_cache import BoundedCache
from ragdocs.chunking.embedding_text import embedding_text
from ragdocs.models import Chunk, ChunkId, CodeBlock, DocId, NodeKind, Slug, Span
from ragdocs.store.connection import Database, Row
from ragdocs.store.records import ChunkKey, StoredChunk, StoredCodeBlock, TextHash
from ragdocs.store.rows import (
    Value,
    Values,
    check_row,
    clean,
    row_hash,
    span_values,
    storable,
    strings,
    strings_json,
)

SELECT_CHUNKS = """SELECT c.key, c.row_hash, c.id, d.id, p.id, c.kind, c.depth, c.position,
    c.title, c.slug, c.breadcrumb, c.byte_start, c.byte_end, c.line_start, c.line_end, c.overlap,
    c.headings, c.text_hash, c.text FROM chunks c JOIN documents d ON d.key = c.doc
    LEFT JOIN chunks p ON p.key = c.parent"""
POSITION = 7
"""The column of SELECT_CHUNKS that has the place within the document."""
SELECT_CODE = """SELECT b.key, b.row_hash, d.id, b.position, c.id, b.language, b.byte_start,
    b.byte_end, b.line_start, b.line_end, b.code FROM code_blocks b
    JOIN documents d ON d.key = b.doc LEFT JOIN chunks c ON c.key = b.chunk"""

# A hundred chunks are read for a query: calling the enum and parsing the same titles again
# would be a sixth of that.
_KINDS = {kind.value: kind for kind in NodeKind}
TITLES_BYTES = 1 << 20
_titles = BoundedCache(strings, TITLES_BYTES)
_OBJECTS_BYTES = 800
"""Of what is made of a row beside its texts."""


def text_hash(chunk: Chunk) -> TextHash | None:
    text = "" if chunk.text is None else embedding_text(chunk)
    return TextHash(row_hash("text", (clean(text),))) if text else None


def chunk_values(chunk: Chunk) -> Values:
    return storable(
        (
            chunk.id,
            chunk.doc_id,
            chunk.parent_id,
            chunk.kind,
            chunk.depth,
            chunk.position,
            chunk.title,
            chunk.slug,
            strings_json(chunk.breadcrumb),
            *span_values(chunk.span),
            chunk.overlap,
            strings_json(chunk.headings),
            text_hash(chunk),
            chunk.text,
        )
    )


def next_chunk_key(database: Database) -> int:
    found = database.one("SELECT seq FROM sqlite_sequence WHERE name = 'chunks'")
    return found[0] + 1 if found else 1


def insert_chunks(
    database: Database, doc: int, rows: Sequence[Values], hashes: Iterable[bytes]
) -> None:
    """Keys are given here, in order, so that a parent's is known wherever it stands."""
    first = next_chunk_key(database)
    keys = {row[0]: first + number for number, row in enumerate(rows)}
    database.many(
        """INSERT INTO chunks (key, row_hash, doc, id, parent, kind, depth, position, title, slug,
        breadcrumb, byte_start, byte_end, line_start, line_end, overlap, headings,
        text_hash, text) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)""",
        (
            (first + number, hashed, doc, row[0], _parent_key(keys, row), *row[3:])
            for number, (row, hashed) in enumerate(zip(rows, hashes, strict=True))
        ),
    )


def _parent_key(keys: Mapping[Value, int], row: Values) -> int | None:
    return None if row[2] is None else keys[row[2]]


def read_chunk(row: Row) -> StoredChunk:
    key, hashed, *values = row
    check_row("chunk", values, hashed)
    chunk_id, doc_id, parent_id, kind, depth, position, title, slug, breadcrumb = values[:9]
    overlap, headings, hashed_text, text = values[13:]
    chunk = Chunk(
        id=ChunkId(chunk_id),
        doc_id=DocId(doc_id),
        parent_id=parent_id,
        kind=_KINDS[kind],
        depth=depth,
        position=position,
        title=title,
        slug=Slug(slug),
        breadcrumb=_titles[breadcrumb],
        span=Span(*values[9:13]),
        text=text,
        overlap=overlap,
        headings=_titles[headings],
    )
    return StoredChunk(ChunkKey(key), chunk, hashed_text)


def row_bytes(row: Row, _: object = None) -> int:
    """Of a row and the chunk that is read from it: they have their texts in common."""
    return sum(map(sys.getsizeof, row)) + _OBJECTS_BYTES


def code_values(
    doc_id: DocId, blocks: Sequence[CodeBlock], chunks: Sequence[Chunk]
) -> Iterator[Values]:
    """A block belongs to the leaf in which it begins; a very long one may go on in the next."""
    leaves = sorted(
        (chunk for chunk in chunks if chunk.text is not None),
        key=lambda chunk: chunk.span.byte_start,
    )
    starts = [leaf.span.byte_start for leaf in leaves]
    for position, block in enumerate(blocks):
        before = bisect_right(starts, block.span.byte_start)
        leaf = leaves[before - 1].id if before else None
        yield storable(
            (doc_id, position, leaf, block.language, *span_values(block.span), block.code)
        )


def insert_code(
    database: Database, doc: int, rows: Iterable[Values], hashes: Iterable[bytes]
) -> None:
    database.many(
        """INSERT INTO code_blocks (row_hash, doc, position, chunk, language, byte_start,
        byte_end, line_start, line_end, code)
        VALUES (?,?,?,(SELECT key FROM chunks WHERE id = ?),?,?,?,?,?,?)""",
        ((hashed, doc, *row[1:]) for row, hashed in zip(rows, hashes, strict=True)),
    )


def read_code(row: Row) -> StoredCodeBlock:
    key, hashed, *values = row
    check_row("code block", values, hashed)
    doc_id, _, chunk_id, language, *span, code = values
    return StoredCodeBlock(key, doc_id, chunk_id, CodeBlock(language, code, Span(*span)))
