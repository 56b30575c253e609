"""The headings of a document as sections: which lines each has, and how large it is."""

from collections.abc import Sequence
from dataclasses import dataclass

from ragdocs.models import PREAMBLE, ChunkId, Heading, Span
from ragdocs.search.budget import BYTES_PER_TOKEN
from ragdocs.search.library.answers import OutlineEntry
from ragdocs.search.library.cards import short
from ragdocs.store.records import StoredDocument
from ragdocs.store.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class HeadedSection:
    """A heading with all that stands below it; `path` are the titles from the document's to its
    own. Of the span, the lines are whole ones.
    """

    heading: Heading
    path: tuple[str, ...]
    span: Span


def headed_sections(snapshot: Snapshot, document: StoredDocument) -> list[HeadedSection]:
    """Each down to the next heading of its level or above; a skipped level simply nests."""
    root = snapshot.chunk(ChunkId(document.id))
    whole = root.chunk.span if root else Span(0, document.size, 1, document.lines)
    return nested(snapshot.headings(document.id), whole, short(document.title))


def nested(headings: Sequence[Heading], whole: Span, title: str) -> list[HeadedSection]:
    paths: list[tuple[str, ...]] = []
    spans = [heading.span for heading in headings]
    still_open: list[int] = []

    def close(level: int, line: int, byte: int) -> None:
        while still_open and headings[still_open[-1]].level >= level:
            at = still_open.pop()
            own = spans[at]
            spans[at] = Span(own.byte_start, byte, own.line_start, max(line, own.line_end))

    for at, heading in enumerate(headings):
        close(heading.level, heading.span.line_start - 1, heading.span.byte_start)
        above = paths[still_open[-1]] if still_open else (title,)
        own = short(heading.text)
        # As in a chunk's breadcrumb: a document named by its first heading is not named twice.
        paths.append((*above, own) if own and above[-1] != own else above)
        still_open.append(at)
    close(0, whole.line_end, whole.byte_end)
    return list(map(HeadedSection, headings, paths, spans))


def outline(snapshot: Snapshot, document: StoredDocument) -> list[OutlineEntry]:
    entries = [_entry(document, each) for each in headed_sections(snapshot, document)]
    before = snapshot.chunk(ChunkId(f"{document.id}#{PREAMBLE}"))
    if before is None:
        return entries
    return [_sized(document, 0, "", PREAMBLE, before.chunk.span), *entries]


def _entry(document: StoredDocument, section: HeadedSection) -> OutlineEntry:
    heading = section.heading
    return _sized(document, heading.level, short(heading.text), heading.slug, section.span)


def _sized(document: StoredDocument, level: int, text: str, slug: str, span: Span) -> OutlineEntry:
    size = span.byte_end - span.byte_start
    return OutlineEntry(
        id=f"{document.id}#{slug}",
        doc_id=document.id,
        level=level,
        text=text,
        slug=slug,
        line_start=span.line_start,
        line_end=span.line_end,
        bytes=size,
        tokens=-(-size // BYTES_PER_TOKEN),
    )
