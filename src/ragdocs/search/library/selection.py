"""Which characters of a document a reference and a request mean."""

from collections.abc import Sequence
from dataclasses import dataclass

from ragdocs.errors import NotThere, QueryError
from ragdocs.models import PREAMBLE, ChunkId, Link, LinkKind, LinkSyntax, NodeKind, Span
from ragdocs.search.chunk_tree import ChunkTree
from ragdocs.search.library.answers import Extent
from ragdocs.search.library.cards import short
from ragdocs.search.library.nearest import nearest
from ragdocs.search.library.outlines import HeadedSection, headed_sections
from ragdocs.search.library.references import shown
from ragdocs.search.library.resolution import MAX_NAMED, Target
from ragdocs.search.library.sources import Content
from ragdocs.store.anchors import Anchors
from ragdocs.store.records import StoredChunk, StoredDocument
from ragdocs.store.snapshot import Snapshot

MAX_COMPARED_SLUGS = 2_000
_SOMEWHERE = Span(0, 0, 1, 1)


@dataclass(frozen=True, slots=True)
class Place:
    """What is meant within a document, by lines or by a node of its chunk tree; neither is all."""

    id: str
    extent: Extent
    heading_path: tuple[str, ...]
    lines: tuple[int, int] | None = None
    chunk_id: ChunkId | None = None
    is_body: bool = False
    """Front matter is not in it, even if its lines are."""


def place_of(snapshot: Snapshot, target: Target) -> Place:
    """Raises QueryError when the document has no such heading."""
    document = target.document
    if target.chunk is not None:
        return _chunk_place(target.chunk)
    if target.lines is not None:
        return lines_place(document, target.lines)
    if target.fragment is None:
        return whole_place(document)
    part = snapshot.chunk(ChunkId(f"{document.id}#{target.fragment}"))
    if "~" in target.fragment and part is not None:
        return _chunk_place(part)
    return _section_place(snapshot, document, target.fragment)


def whole_place(document: StoredDocument) -> Place:
    return Place(document.id, Extent.DOCUMENT, (short(document.title),))


def lines_place(document: StoredDocument, lines: tuple[int, int]) -> Place:
    if not 1 <= lines[0] <= lines[1]:
        raise QueryError(f"lines {lines[0]}-{lines[1]} are no range: they count from 1, upwards")
    return Place(document.id, Extent.LINES, (short(document.title),), lines)


def characters(snapshot: Snapshot, place: Place, content: Content) -> tuple[int, int]:
    """The stretch of the content's text that the place is."""
    if place.chunk_id is not None:
        stored = snapshot.chunk(place.chunk_id)
        nodes = snapshot.chunks(stored.chunk.doc_id) if stored else ()
        return _chunk_range(place.chunk_id, content, nodes)
    if place.lines is None:
        return 0, len(content.text)
    first, last = place.lines
    if first > content.last_line:
        raise NotThere(f"the document has {content.last_line:,} lines: line {first:,} is not there")
    start, end = content.range_of_lines(first, last)
    return (max(start, content.body_start), end) if place.is_body else (start, end)


def _chunk_range(
    chunk_id: ChunkId, content: Content, nodes: Sequence[StoredChunk]
) -> tuple[int, int]:
    tree = ChunkTree(nodes)
    inside = {leaf.chunk.id for leaf in tree.leaves(chunk_id)}
    start, at, end = content.body_start, content.body_start, content.body_start
    for node in tree.nodes:
        if node.chunk.text is not None:
            after = at + len(node.chunk.text)
            if node.chunk.id in inside:
                start, end = (at if end == content.body_start else start), after
            at = after
    return start, end


def _chunk_place(stored: StoredChunk) -> Place:
    chunk, span = stored.chunk, stored.chunk.span
    if chunk.kind is NodeKind.PART:
        return Place(chunk.id, Extent.CHUNK, chunk.breadcrumb, chunk_id=chunk.id)
    # A section has whole lines, of which its leaves may have more.
    lines = span.line_start, span.line_end
    return Place(chunk.id, Extent.CHUNK, chunk.breadcrumb, lines, is_body=True)


def _section_place(snapshot: Snapshot, document: StoredDocument, fragment: str) -> Place:
    found = headed_sections(snapshot, document)
    if fragment == PREAMBLE:
        return _preamble_place(document, found)
    anchors = Anchors((section.heading.text, section.heading.slug) for section in found)
    link = Link(LinkKind.LINKS_TO, LinkSyntax.MARKDOWN, "", fragment, "", _SOMEWHERE)
    slug = anchors.find(link)
    for section in found:
        if section.heading.slug == slug:
            lines = section.span.line_start, section.span.line_end
            return Place(f"{document.id}#{slug}", Extent.SECTION, section.path, lines)
    raise NotThere(_unknown(document, fragment, found))


def _preamble_place(document: StoredDocument, found: Sequence[HeadedSection]) -> Place:
    first = found[0].span.line_start if found else document.lines + 1
    if first <= 1:
        raise NotThere(f"`{shown(document.id)}` begins with a heading: nothing stands before it")
    path = (short(document.title),)
    name = f"{document.id}#{PREAMBLE}"
    return Place(name, Extent.SECTION, path, (1, first - 1), is_body=True)


def _unknown(document: StoredDocument, fragment: str, found: Sequence[HeadedSection]) -> str:
    slugs = [section.heading.slug for section in found[:MAX_COMPARED_SLUGS]]
    near = ", ".join(f"`#{shown(slug)}`" for slug in nearest(fragment, slugs, MAX_NAMED))
    message = f"`{shown(document.id)}` has no heading `{shown(fragment)}`"
    if near:
        return f"{message}; the nearest are {near}"
    return f"{message}: ask for its outline to see the headings there are"
