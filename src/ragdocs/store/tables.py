"""Converts documents, chunks, code blocks, files and communities to rows and back."""

import json
import sys
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from json.encoder import encode_basestring_ascii as quoted

from ragdocs.chunking.splitting import embedding_text
from ragdocs.memory import BoundedCache
from ragdocs.models import (
    Chunk,
    ChunkId,
    CodeBlock,
    DateSource,
    DocId,
    DocumentWarning,
    FileState,
    FrontMatter,
    Heading,
    IndexedFile,
    NodeKind,
    Property,
    Slug,
    Span,
    TreeName,
    WarningKind,
)
from ragdocs.parsers.ids import decode_path, document_id, encode_path
from ragdocs.store.database import Database, Row
from ragdocs.store.generations import Ledger
from ragdocs.store.records import (
    ChunkKey,
    FileFailure,
    ManifestEntry,
    Position,
    StoredChunk,
    StoredCodeBlock,
    StoredDocument,
    TextHash,
)
from ragdocs.store.schema import (
    HASH_BYTES,
    Value,
    Values,
    check_row,
    row_hash,
    span_values,
    storable,
    strings,
    strings_json,
    to_json,
)
from ragdocs.text import without_surrogates

# The chunk tree and the code blocks as rows, and back.

SELECT_CHUNKS = """SELECT c.key, c.row_hash, c.id, d.id, p.id, c.kind, c.depth, c.position,
    c.title, c.slug, c.breadcrumb, c.byte_start, c.byte_end, c.line_start, c.line_end, c.overlap,
    c.headings, c.text_hash, c.text FROM chunks c JOIN documents d ON d.key = c.doc
    LEFT JOIN chunks p ON p.key = c.parent"""
POSITION = 7
"""The column of SELECT_CHUNKS with the position in the document."""
SELECT_CODE = """SELECT b.key, b.row_hash, d.id, b.position, c.id, b.language, b.byte_start,
    b.byte_end, b.line_start, b.line_end, b.code FROM code_blocks b
    JOIN documents d ON d.key = b.doc LEFT JOIN chunks c ON c.key = b.chunk"""

# A query reads a hundred chunks: calling the enum and parsing the same titles again would take a
# sixth of that time.
_KINDS = {kind.value: kind for kind in NodeKind}
TITLES_BYTES = 1 << 20
_titles = BoundedCache(strings, TITLES_BYTES)
_CHUNK_OBJECTS_BYTES = 800
"""The size of a row's objects apart from its texts."""


def text_hash(chunk: Chunk) -> TextHash | None:
    text = "" if chunk.text is None else embedding_text(chunk)
    return TextHash(row_hash("text", (without_surrogates(text),))) if text else None


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
    """Assigns the keys here, in order, so that a parent's key is known wherever its row is."""
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


def chunk_row_bytes(row: Row, _: object = None) -> int:
    """The size of a row and the chunk read from it, which share their texts."""
    return sum(map(sys.getsizeof, row)) + _CHUNK_OBJECTS_BYTES


def code_values(
    doc_id: DocId, blocks: Sequence[CodeBlock], chunks: Sequence[Chunk]
) -> Iterator[Values]:
    """A block belongs to the leaf in which it begins; a very long one may continue in the next."""
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


# The communities of linked documents as rows, and the links that they were computed from.
#
# A document without links has no row; a deleted one loses its row in the same commit.

SELECT_COMMUNITIES = """SELECT m.row_hash, d.id, m.number FROM communities m
    JOIN documents d ON d.key = m.doc"""
# Only what communities depend on: most edits move links without connecting other documents.
_EDGES = """SELECT DISTINCT doc, target_doc, kind FROM links
    WHERE target_doc <> doc ORDER BY doc, target_doc, kind"""
NO_EDGES = ""


@dataclass(frozen=True, slots=True)
class CommunityOrigin:
    """The commit whose links the stored communities were computed from, and these links' digest."""

    position: Position
    edges: str

    def encode(self) -> str:
        return to_json([self.position.generation, self.position.stamp, self.edges])

    @classmethod
    def decode(cls, encoded: str) -> "CommunityOrigin | None":
        if not encoded:
            return None
        generation, stamp, edges = json.loads(encoded)
        return cls(Position(generation, stamp), edges)


def edges_digest(database: Database) -> str:
    """Changes whenever the linked pairs of documents change, or the kinds of their links; empty
    without links."""
    hashed, is_any = blake2b(digest_size=HASH_BYTES), False
    for doc, target, kind in database.each(_EDGES, size=4096):
        hashed.update(f"{doc} {target} {kind}\n".encode())
        is_any = True
    return hashed.hexdigest() if is_any else NO_EDGES


def read_community(row: Row) -> tuple[DocId, int]:
    hashed, *values = row
    check_row("community of", values, hashed)
    return DocId(values[0]), values[1]


def communities_of(database: Database, doc_ids: Collection[DocId]) -> dict[DocId, int]:
    """The community number of each document that is in one."""
    return dict(
        map(read_community, database.all_in(f"{SELECT_COMMUNITIES} WHERE d.id IN (*)", doc_ids))
    )


def members_with(database: Database, doc_id: DocId) -> tuple[DocId, ...]:
    """All documents of the document's community, including itself, in id order."""
    rows = database.all(
        f"""{SELECT_COMMUNITIES} WHERE m.number = (SELECT o.number FROM communities o
        JOIN documents s ON s.key = o.doc WHERE s.id = ?) ORDER BY d.id""",
        (doc_id,),
    )
    return tuple(member for member, _ in map(read_community, rows))


def count_communities(database: Database) -> int:
    found = database.one("SELECT count(DISTINCT number) FROM communities")
    return found[0] if found else 0


def replace_communities(database: Database, ledger: Ledger, numbers: Mapping[DocId, int]) -> bool:
    """Writes only the rows that change; returns whether any did. Skips documents that are gone."""
    old: dict[DocId, int] = {}
    hashes: dict[DocId, bytes] = {}
    for row in database.each(SELECT_COMMUNITIES):
        doc_id, number = read_community(row)
        old[doc_id], hashes[doc_id] = number, row[0]
    changed = [doc_id for doc_id in {**old, **numbers} if old.get(doc_id) != numbers.get(doc_id)]
    keys = dict(database.all_in("SELECT id, key FROM documents WHERE id IN (*)", changed))
    new = [
        (doc, numbers[doc_id], row_hash("community of", (doc_id, numbers[doc_id])))
        for doc_id, doc in keys.items()
        if doc_id in numbers
    ]
    database.many("DELETE FROM communities WHERE doc = ?", ((doc,) for doc in keys.values()))
    ledger.drop("communities", (hashes[doc_id] for doc_id in keys if doc_id in hashes))
    database.many("INSERT INTO communities (doc, number, row_hash) VALUES (?, ?, ?)", new)
    ledger.add("communities", (hashed for *_, hashed in new))
    return bool(keys)


def remove_community(database: Database, ledger: Ledger, doc: int) -> None:
    """Removes the document from its community, if it is in one."""
    rows = database.all("SELECT row_hash FROM communities WHERE doc = ?", (doc,))
    ledger.drop("communities", (hashed for (hashed,) in rows))
    database.run("DELETE FROM communities WHERE doc = ?", (doc,))


# Documents and their headings as rows, and back.

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)

_TEXT_FIELDS = ("title", "description", "author", "category")
_LIST_FIELDS = ("keywords", "tags", "aliases", "related")
_DOCUMENT = """id, tree, path, title, date, date_us, date_source, encoding, size, lines,
    body_start, headings, links, code_blocks, chunks, tags, front_matter, warnings, properties,
    digest"""
SELECT_DOCUMENTS = f"SELECT row_hash, {_DOCUMENT} FROM documents"
SELECT_HEADINGS = """SELECT h.row_hash, d.id, h.position, h.level, h.text, h.slug, h.byte_start,
    h.byte_end, h.line_start, h.line_end FROM headings h JOIN documents d ON d.key = h.doc"""

PROPERTIES_BYTES = 2 << 20
_DOCUMENT_OBJECTS_BYTES = 1200
"""The size of a row's objects apart from its texts."""


def document_row_bytes(row: Row, _: object = None) -> int:
    """The size of a row and the document read from it, which contains the front matter again."""
    return 2 * sum(map(sys.getsizeof, row)) + _DOCUMENT_OBJECTS_BYTES


def document_values(file: IndexedFile) -> Values:
    """All values except the digest, which also covers the document's other rows."""
    document = file.document
    source = document.source
    return storable(
        (
            document.id,
            document.tree,
            encode_path(document.path),
            document.title,
            document.date.isoformat(),
            microseconds(document.date),
            document.date_source,
            source.encoding,
            source.size,
            # Up to the last character: a line break ends a line and does not start one.
            source.line_of(max(0, len(source.text) - 1)) + 1,
            document.body_start,
            len(document.headings),
            len(document.links),
            len(document.code_blocks),
            len(file.chunks),
            strings_json(document.tags),
            _front_matter_json(document.front_matter),
            _warnings_json(document.warnings),
            _properties_json(document.properties),
        )
    )


def microseconds(date: datetime) -> int:
    """Microseconds since 1970, so that dates of any time zone compare as numbers; naive dates count
    as UTC."""
    aware = date if date.tzinfo else date.replace(tzinfo=UTC)
    return (aware - _EPOCH) // _MICROSECOND


def insert_document(database: Database, key: int | None, values: Values, digest: bytes) -> bytes:
    """Inserts a new row, or updates the one with the given key; returns its hash."""
    stored = (*values, digest)
    hashed = row_hash("document", stored)
    names = [name.strip() for name in _DOCUMENT.split(",")]
    if key is None:
        marks = ",".join("?" * (len(names) + 1))
        database.run(
            f"INSERT INTO documents ({_DOCUMENT}, row_hash) VALUES ({marks})", (*stored, hashed)
        )
    else:
        settings = ", ".join(f"{name} = ?" for name in names)
        database.run(
            f"UPDATE documents SET {settings}, row_hash = ? WHERE key = ?", (*stored, hashed, key)
        )
    return hashed


def read_document(row: Row) -> StoredDocument:
    hashed, *values = row
    check_row("document", values, hashed)
    doc_id, tree, path, title, date, _, date_source, encoding, size, lines = values[:10]
    body_start, _, _, _, _, tags, front_matter, warnings, properties, _ = values[10:]
    return StoredDocument(
        id=DocId(doc_id),
        tree=TreeName(tree),
        path=decode_path(path),
        title=title,
        front_matter=_front_matter_of(front_matter),
        tags=strings(tags),
        date=datetime.fromisoformat(date),
        date_source=DateSource(date_source),
        encoding=encoding,
        size=size,
        lines=lines,
        body_start=body_start,
        warnings=_warnings_of(warnings),
        properties=_properties_of(properties),
    )


def _warnings_json(warnings: Iterable[DocumentWarning]) -> str:
    return to_json([(one.kind.value, one.count, without_surrogates(one.text)) for one in warnings])


def _warnings_of(encoded: str) -> tuple[DocumentWarning, ...]:
    return tuple(
        DocumentWarning(WarningKind(kind), count, text) for kind, count, text in json.loads(encoded)
    )


def _properties_json(properties: Iterable[Property]) -> str:
    return to_json(
        [[without_surrogates(text) for text in (key, *values)] for key, values in properties]
    )


def _properties_of(encoded: str) -> tuple[Property, ...]:
    return tuple(_known_properties[tuple(texts)] for texts in json.loads(encoded))


def _property_of(texts: tuple[str, ...]) -> Property:
    return Property(sys.intern(texts[0]), texts[1:])


_known_properties = BoundedCache(_property_of, PROPERTIES_BYTES)
"""Shared, because all documents are in memory and thousands have the same `status: active`."""


def heading_values(doc_id: DocId, headings: Sequence[Heading]) -> Iterator[Values]:
    for position, heading in enumerate(headings):
        yield storable(
            (
                doc_id,
                position,
                heading.level,
                heading.text,
                heading.slug,
                *span_values(heading.span),
            )
        )


def insert_headings(
    database: Database, doc: int, rows: Iterable[Values], hashes: Iterable[bytes]
) -> None:
    database.many(
        """INSERT INTO headings (row_hash, doc, position, level, text, slug, byte_start, byte_end,
        line_start, line_end) VALUES (?,?,?,?,?,?,?,?,?,?)""",
        ((hashed, doc, *row[1:]) for row, hashed in zip(rows, hashes, strict=True)),
    )


def read_heading(row: Row) -> Heading:
    hashed, *values = row
    check_row("heading", values, hashed)
    _, _, level, text, slug, *span = values
    return Heading(level, text, Slug(slug), Span(*span))


def _front_matter_json(matter: FrontMatter) -> str:
    texts = {name: without_surrogates(getattr(matter, name)) for name in _TEXT_FIELDS}
    lists = {
        name: [without_surrogates(text) for text in getattr(matter, name)] for name in _LIST_FIELDS
    }
    dates = {kind.value: date.isoformat() for kind, date in sorted(matter.dates.items())}
    return to_json({**texts, **lists, "dates": dates})


def _front_matter_of(encoded: str) -> FrontMatter:
    found = json.loads(encoded)
    return FrontMatter(
        title=found["title"],
        description=found["description"],
        keywords=tuple(found["keywords"]),
        tags=tuple(found["tags"]),
        aliases=tuple(found["aliases"]),
        author=found["author"],
        category=found["category"],
        related=tuple(found["related"]),
        dates={
            DateSource(kind): datetime.fromisoformat(date) for kind, date in found["dates"].items()
        },
    )


# The manifest, and the failures of files that could not be indexed.

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
    """Writes the entry and clears any failure; returns whether anything had to be written."""
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
    """Whether the same failure, of the same state of the file, is already stored."""
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
        # The same as `row_hash` for a normal row, in a third of the time: every start reads all
        # rows.
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
