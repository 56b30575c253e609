"""Links out of a document or section, and links to it."""

from collections.abc import Iterable, Mapping

from ragdocs.models import DocId
from ragdocs.search.library.cards import short, shown_path
from ragdocs.search.library.outlines import headed_sections
from ragdocs.search.library.relations import LinkEntry
from ragdocs.store.records import ResolvedLink, StoredDocument
from ragdocs.store.snapshot import Snapshot

Lines = tuple[int, int]


def links_out(
    snapshot: Snapshot, document: StoredDocument, lines: Lines | None
) -> list[ResolvedLink]:
    """In the order in which they stand; without those that stay in the document."""
    return [
        link
        for link in snapshot.links(document.id)
        if link.target != document.id and _is_within(link.link.span.line_start, lines)
    ]


def links_in(
    snapshot: Snapshot, document: StoredDocument, lines: Lines | None
) -> list[ResolvedLink]:
    """From other documents; to a section, those that name one of its headings."""
    found = [link for link in snapshot.backlinks(document.id) if link.source != document.id]
    if lines is None or not found:
        return found
    slugs = {
        section.heading.slug
        for section in headed_sections(snapshot, document)
        if _is_within(section.span.line_start, lines)
    }
    return [link for link in found if link.slug in slugs]


def link_entries(
    snapshot: Snapshot, links: Iterable[ResolvedLink], *, is_back: bool
) -> tuple[LinkEntry, ...]:
    """With the documents at the other end."""
    ends = [(link, link.source if is_back else link.target) for link in links]
    documents = snapshot.documents_by_id({end for _, end in ends if end is not None})
    return tuple(_entry(link, end, documents) for link, end in ends)


def _entry(
    link: ResolvedLink, end: DocId | None, documents: Mapping[DocId, StoredDocument]
) -> LinkEntry:
    other = documents.get(end) if end is not None else None
    written = link.link
    anchor = f"#{written.anchor}" if written.anchor else ""
    return LinkEntry(
        doc_id=other.id if other else None,
        path=shown_path(other) if other else "",
        title=short(other.title) if other else "",
        slug=link.slug,
        kind=written.kind.value,
        text=short(written.text),
        target=short(f"{written.target}{anchor}"),
        line=written.span.line_start,
    )


def _is_within(line: int, lines: Lines | None) -> bool:
    return lines is None or lines[0] <= line <= lines[1]
