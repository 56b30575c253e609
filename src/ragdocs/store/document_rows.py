"""Documents and their headings as rows, and back."""

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta

from ragdocs.models import (
    DateSource,
    DocId,
    DocumentWarning,
    FrontMatter,
    Heading,
    IndexedFile,
    Slug,
    Span,
    TreeName,
    WarningKind,
)
from ragdocs.parsers.identity import decode_path, encode_path
from ragdocs.store.connection import Database, Row
from ragdocs.store.records import StoredDocument
from ragdocs.store.rows import (
    Values,
    check_row,
    clean,
    row_hash,
    span_values,
    storable,
    strings,
    strings_json,
    to_json,
)

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)

_TEXT_FIELDS = ("title", "description", "author", "category")
_LIST_FIELDS = ("keywords", "tags", "aliases", "related")
_DOCUMENT = """id, tree, path, title, date, date_us, date_source, encoding, size, lines,
    body_start, headings, links, code_blocks, chunks, tags, front_matter, warnings, digest"""
SELECT_DOCUMENTS = f"SELECT row_hash, {_DOCUMENT} FROM documents"
SELECT_HEADINGS = """SELECT h.row_hash, d.id, h.position, h.level, h.text, h.slug, h.byte_start,
    h.byte_end, h.line_start, h.line_end FROM headings h JOIN documents d ON d.key = h.doc"""

_OBJECTS_BYTES = 1200
"""Of what is made of a row beside its texts."""


def row_bytes(row: Row, _: object = None) -> int:
    """Of a row and the document that is read from it, which has the front matter once more."""
    return 2 * sum(map(sys.getsizeof, row)) + _OBJECTS_BYTES


def document_values(file: IndexedFile) -> Values:
    """Everything but the digest, which stands for the document's other rows too."""
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
            # Up to the last character: a line end ends a line and begins none.
            source.line_of(max(0, len(source.text) - 1)) + 1,
            document.body_start,
            len(document.headings),
            len(document.links),
            len(document.code_blocks),
            len(file.chunks),
            strings_json(document.tags),
            _front_matter_json(document.front_matter),
            _warnings_json(document.warnings),
        )
    )


def microseconds(date: datetime) -> int:
    """Since 1970, so that dates of any time zone compare as numbers; naive ones count as UTC."""
    aware = date if date.tzinfo else date.replace(tzinfo=UTC)
    return (aware - _EPOCH) // _MICROSECOND


def insert_document(database: Database, key: int | None, values: Values, digest: bytes) -> bytes:
    """Writes a new row, or with a key the one that is there; returns its hash."""
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
    body_start, _, _, _, _, tags, front_matter, warnings, _ = values[10:]
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
    )


def _warnings_json(warnings: Iterable[DocumentWarning]) -> str:
    return to_json([(one.kind.value, one.count, clean(one.text)) for one in warnings])


def _warnings_of(encoded: str) -> tuple[DocumentWarning, ...]:
    return tuple(
        DocumentWarning(WarningKind(kind), count, text) for kind, count, text in json.loads(encoded)
    )


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
    texts = {name: clean(getattr(matter, name)) for name in _TEXT_FIELDS}
    lists = {name: [clean(text) for text in getattr(matter, name)] for name in _LIST_FIELDS}
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
