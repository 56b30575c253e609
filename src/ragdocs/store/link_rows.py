"""Links as rows, and back."""

from collections.abc import Iterable, Iterator, Sequence

from ragdocs.models import DocId, Link, LinkKind, LinkSyntax, Span
from ragdocs.store.connection import Database, Row
from ragdocs.store.link_resolution import link_key
from ragdocs.store.records import ResolvedLink
from ragdocs.store.rows import Values, check_row, span_values, storable

SELECT_LINKS = """SELECT l.key, l.row_hash, d.id, l.position, l.kind, l.syntax, l.target, l.anchor,
    l.text, l.byte_start, l.byte_end, l.line_start, l.line_end, l.match_key, t.id, l.target_slug
    FROM links l JOIN documents d ON d.key = l.doc LEFT JOIN documents t ON t.key = l.target_doc"""


def link_values(doc_id: DocId, links: Sequence[Link]) -> Iterator[Values]:
    """Not resolved yet: that is done at the end of the transaction, for all links it concerns."""
    for position, link in enumerate(links):
        yield storable(
            (
                doc_id,
                position,
                link.kind,
                link.syntax,
                link.target,
                link.anchor,
                link.text,
                *span_values(link.span),
                link_key(link),
                None,
                None,
            )
        )


def insert_links(
    database: Database, doc: int, rows: Iterable[Values], hashes: Iterable[bytes]
) -> None:
    database.many(
        """INSERT INTO links (row_hash, doc, position, kind, syntax, target, anchor, text,
        byte_start, byte_end, line_start, line_end, match_key, target_doc, target_slug)
        VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)""",
        ((hashed, doc, *row[1:]) for row, hashed in zip(rows, hashes, strict=True)),
    )


def read_link(row: Row) -> ResolvedLink:
    _, hashed, *values = row
    check_row("link of", values, hashed)
    doc_id, _, kind, syntax, target, anchor, text, *span, _, target_doc, target_slug = values
    link = Link(LinkKind(kind), LinkSyntax(syntax), target, anchor, text, Span(*span))
    return ResolvedLink(DocId(doc_id), link, target_doc, target_slug)
