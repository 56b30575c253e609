"""Reads a document, a section or some lines, in pages; from the file unless it has changed."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Protocol

from ragdocs.errors import NotThere, QueryError, SourceError
from ragdocs.indices.view import View
from ragdocs.library.answers import (
    DocumentPart,
    DocumentText,
    OutlineEntry,
    TextState,
    short,
    shown_tags,
)
from ragdocs.library.paging import (
    Value,
    decode_cursor,
    encode_cursor,
    entry_tokens,
    pack_page,
    page_end,
    short_digest,
)
from ragdocs.library.requests import DocumentRequest
from ragdocs.limits import MAX_LINE
from ragdocs.models import (
    CANVAS_NOTE,
    JSON_STRINGS,
    PREAMBLE,
    ChunkId,
    Heading,
    Link,
    LinkKind,
    LinkSyntax,
    NodeKind,
    Span,
    TreeName,
)
from ragdocs.parsers.decoding import decode
from ragdocs.parsers.link_targets import Anchors, block_ids, block_lines
from ragdocs.places import Places, printable_name, shown_path
from ragdocs.references import MAX_NAMED, ReferenceTarget, Resolver, nearest, nearest_are
from ragdocs.search.budget import BYTES_PER_TOKEN, tokens
from ragdocs.search.candidates import ChunkTree
from ragdocs.search.passages import Passage
from ragdocs.store.records import StoredChunk, StoredDocument

# The headings of a document as sections, with their lines and sizes.


@dataclass(frozen=True, slots=True)
class HeadedSection:
    """A heading with everything below it; `path` has the titles from the document's to its own. The
    span has whole lines.
    """

    heading: Heading
    path: tuple[str, ...]
    span: Span


def headed_sections(view: View, document: StoredDocument) -> list[HeadedSection]:
    """Each down to the next heading of its level or above; skipped levels simply nest."""
    root = view.chunk(ChunkId(document.id))
    whole = root.chunk.span if root else Span(0, document.size, 1, document.lines)
    return nest_headings(view.headings(document.id), whole, short(document.title))


def nest_headings(headings: Sequence[Heading], whole: Span, title: str) -> list[HeadedSection]:
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
        # As in a chunk's breadcrumb, a title equal to the one above it is not repeated.
        paths.append((*above, own) if own and above[-1] != own else above)
        still_open.append(at)
    close(0, whole.line_end, whole.byte_end)
    return list(map(HeadedSection, headings, paths, spans))


def outline(view: View, document: StoredDocument) -> list[OutlineEntry]:
    entries = [_entry(document, each) for each in headed_sections(view, document)]
    before = view.chunk(ChunkId(f"{document.id}#{PREAMBLE}"))
    if before is None:
        return entries
    return [_outline_entry(document, 0, "", PREAMBLE, before.chunk.span), *entries]


def _entry(document: StoredDocument, section: HeadedSection) -> OutlineEntry:
    heading = section.heading
    return _outline_entry(document, heading.level, short(heading.text), heading.slug, section.span)


def _outline_entry(
    document: StoredDocument, level: int, text: str, slug: str, span: Span
) -> OutlineEntry:
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


# A document's text: the file's own if it is still what was indexed, otherwise the stored one.
#
# The store keeps the body, cut into leaves, and only the values of front matter. So the file is
# read again, through a protocol, because containment is not checked here. A text other than the
# indexed one is never shown, because no line number would fit it.

PathMatcher = Callable[[Sequence[str], str], bool]
"""Whether a path matches any of some patterns, which are written as in the trees' settings."""


@dataclass(frozen=True, slots=True)
class CurrentFile:
    """A file's bytes, and their hash as in the manifest."""

    data: bytes
    content_hash: str


class TextSource(Protocol):
    """Reads a file of a tree, never one outside it."""

    def read(self, tree: TreeName, path: str) -> CurrentFile:
        """Raises SourceError if it cannot be read."""
        ...


@dataclass(frozen=True, slots=True)
class DocumentContent:
    """A document's text. `body_start` is the first character that is in a leaf, `first_line` the
    line of the first character; `span_of` returns the bytes of a stretch, None if uncertain.
    """

    text: str
    body_start: int
    first_line: int
    state: TextState
    span_of: Callable[[int, int], Span | None]
    notes: tuple[str, ...] = ()

    @property
    def last_line(self) -> int:
        """The last line that has a character."""
        return self.line_of(max(0, len(self.text) - 1))

    def line_of(self, offset: int) -> int:
        return self.first_line + self.text.count("\n", 0, offset)

    def range_of_lines(self, first: int, last: int) -> tuple[int, int]:
        """The characters of these lines, as far as they exist."""
        lengths = (len(line) + 1 for line in self.text.split("\n"))
        starts = list(accumulate(lengths, initial=0))
        starts[-1] = len(self.text)

        def start_of(line: int) -> int:
            return starts[min(max(line - self.first_line, 0), len(starts) - 1)]

        return start_of(first), start_of(last + 1)


@dataclass(frozen=True, slots=True)
class CanvasContent(DocumentContent):
    """The text of the cards. A line of the file has any number of cards, and a card one line."""

    passage: Passage = field(kw_only=True)

    def line_of(self, offset: int) -> int:
        return self.passage.places((offset,))[offset].line

    def range_of_lines(self, first: int, last: int) -> tuple[int, int]:
        """The cards on these lines."""
        spans = [own for _, own in self.passage.strings if first <= own.line_start <= last]
        if not spans:
            return len(self.text), len(self.text)
        return self.range_of(Span(spans[0].byte_start, spans[-1].byte_end, first, last))

    def range_of(self, span: Span) -> tuple[int, int]:
        """The strings within these bytes of the file."""
        return self.passage.strings_within(span)


def content_of(view: View, document: StoredDocument, files: TextSource | None) -> DocumentContent:
    """The text of a document. Its leaves, thousands in a large one, are read only if needed."""
    if files is None:
        return _read_stored(view, document, TextState.UNCHECKED)
    try:
        found = files.read(document.tree, document.path)
    except SourceError as error:
        note = f"the file can no longer be read ({error}); showing its last indexed text"
        return _read_stored(view, document, TextState.UNREADABLE, note)
    entry = view.file(document.id)
    if entry is None or entry.state is None or entry.state.content_hash != found.content_hash:
        note = "the file has changed since it was indexed; showing its last indexed text"
        return _read_stored(view, document, TextState.CHANGED, note)
    if document.encoding == JSON_STRINGS:
        return _read_stored(view, document, TextState.CURRENT)
    source = decode(found.data).source
    return DocumentContent(source.text, document.body_start, 1, TextState.CURRENT, source.span)


def _read_stored(
    view: View, document: StoredDocument, state: TextState, note: str = ""
) -> DocumentContent:
    notes = (note,) if note else ()
    nodes = view.chunks(document.id)
    pieces = [(node.chunk.text, node.chunk.span) for node in nodes if node.chunk.text is not None]
    if not pieces:
        return DocumentContent("", 0, 1, state, lambda _start, _end: None, notes)
    passage = Passage.of(pieces, document.encoding)

    def span_of(start: int, end: int) -> Span | None:
        part = passage.part(start, end)
        return part.span if part else None

    first = passage.span.line_start
    if passage.strings:
        notes = (*notes, CANVAS_NOTE)
        return CanvasContent(passage.text, 0, first, state, span_of, notes, passage=passage)
    if first > 1:
        notes = (*notes, f"lines 1-{first - 1} (the front matter) are not stored in the index")
    return DocumentContent(passage.text, 0, first, state, span_of, notes)


# The part of a document that a reference or a request means.

MAX_COMPARED_SLUGS = 2_000
_SOMEWHERE = Span(0, 0, 1, 1)


@dataclass(frozen=True, slots=True)
class DocumentPlace:
    """A part of a document, by lines or by a node of its chunk tree; with neither, all of it."""

    id: str
    extent: DocumentPart
    heading_path: tuple[str, ...]
    lines: tuple[int, int] | None = None
    chunk_id: ChunkId | None = None
    is_body: bool = False
    """Excludes front matter, even if the lines include it."""


def place_of(view: View, target: ReferenceTarget) -> DocumentPlace:
    """Raises QueryError if the document has no such heading."""
    document = target.document
    if document.encoding == JSON_STRINGS and (card := _card_of(view, target)) is not None:
        chunk = card.chunk
        return DocumentPlace(chunk.id, DocumentPart.CHUNK, chunk.breadcrumb, chunk_id=chunk.id)
    if target.chunk is not None:
        return _chunk_place(target.chunk)
    if target.lines is not None:
        return lines_place(document, *target.lines)
    if target.fragment is None:
        return whole_place(document)
    last = target.fragment.rpartition("#")[2].strip()
    if last.startswith("^"):
        return _block_place(view, document, last.removeprefix("^"))
    part = view.chunk(ChunkId(f"{document.id}#{target.fragment}"))
    if "~" in target.fragment and part is not None:
        return _chunk_place(part)
    return _section_place(view, document, target.fragment)


def _card_of(view: View, target: ReferenceTarget) -> StoredChunk | None:
    """The card of a canvas, or the part of one, that a reference names."""
    if target.chunk is not None:
        return target.chunk if target.chunk.chunk.parent_id is not None else None
    if target.fragment is None:
        return None
    return view.chunk(ChunkId(f"{target.document.id}#{target.fragment}"))


def whole_place(document: StoredDocument) -> DocumentPlace:
    return DocumentPlace(document.id, DocumentPart.DOCUMENT, (short(document.title),))


def lines_place(document: StoredDocument, first: int, last: int) -> DocumentPlace:
    if not 1 <= first <= last:
        raise QueryError(f"the range {first}-{last} is backwards, or starts before line 1")
    return DocumentPlace(document.id, DocumentPart.LINES, (short(document.title),), (first, last))


def refuse_lines_beyond(
    view: View, document: StoredDocument, lines: tuple[int, int] | None
) -> None:
    """Raises NotThere for lines that begin after the last one that was indexed."""
    if lines is None:
        return
    root = view.chunk(ChunkId(document.id))
    last = root.chunk.span.line_end if root else document.lines
    if lines[0] > last:
        raise NotThere(_describe_no_line(last, lines[0]))


def _describe_no_line(last: int, line: int) -> str:
    return f"there is no line {line:,}: the document has {last:,} lines"


def characters(view: View, place: DocumentPlace, content: DocumentContent) -> tuple[int, int]:
    """The characters of the place in the content's text."""
    if place.chunk_id is not None:
        stored = view.chunk(place.chunk_id)
        if isinstance(content, CanvasContent) and stored is not None:
            return content.range_of(stored.chunk.span)
        nodes = view.chunks(stored.chunk.doc_id) if stored else ()
        return _chunk_range(place.chunk_id, content, nodes)
    if place.lines is None:
        return 0, len(content.text)
    first, last = place.lines
    if first > content.last_line:
        raise NotThere(_describe_no_line(content.last_line, first))
    start, end = content.range_of_lines(first, last)
    return (max(start, content.body_start), end) if place.is_body else (start, end)


def _chunk_range(
    chunk_id: ChunkId, content: DocumentContent, nodes: Sequence[StoredChunk]
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


def _chunk_place(stored: StoredChunk) -> DocumentPlace:
    chunk, span = stored.chunk, stored.chunk.span
    if chunk.kind is NodeKind.PART:
        return DocumentPlace(chunk.id, DocumentPart.CHUNK, chunk.breadcrumb, chunk_id=chunk.id)
    # A section has whole lines; its leaves may extend beyond them.
    lines = span.line_start, span.line_end
    return DocumentPlace(chunk.id, DocumentPart.CHUNK, chunk.breadcrumb, lines, is_body=True)


def _section_place(view: View, document: StoredDocument, fragment: str) -> DocumentPlace:
    found = headed_sections(view, document)
    if fragment == PREAMBLE:
        return _preamble_place(document, found)
    anchors = Anchors((section.heading.text, section.heading.slug) for section in found)
    link = Link(LinkKind.LINKS_TO, LinkSyntax.MARKDOWN, "", fragment, "", _SOMEWHERE)
    slug = anchors.find(link)
    for section in found:
        if section.heading.slug == slug:
            lines = section.span.line_start, section.span.line_end
            return DocumentPlace(f"{document.id}#{slug}", DocumentPart.SECTION, section.path, lines)
    raise NotThere(_describe_unknown(document, fragment, found))


def _block_place(view: View, document: StoredDocument, block_id: str) -> DocumentPlace:
    """The lines of an Obsidian block (`^id`), in the text that was indexed."""
    content = _read_stored(view, document, TextState.UNCHECKED)
    found = block_lines(content.text, block_id)
    if found is None:
        raise NotThere(_describe_no_block(document, block_id, block_ids(content.text)))
    first, last = (content.first_line + line for line in found)
    above = [
        section.path
        for section in headed_sections(view, document)
        if section.span.line_start <= first <= section.span.line_end
    ]
    return replace(
        lines_place(document, first, last),
        heading_path=above[-1] if above else (short(document.title),),
    )


def _describe_no_block(document: StoredDocument, block_id: str, known: Sequence[str]) -> str:
    name = printable_name(document.id)
    message = f"`{name}` has no block `^{printable_name(block_id)}`"
    near = nearest(block_id, known[:MAX_COMPARED_SLUGS], MAX_NAMED)
    return f"{message}; {nearest_are(near, '#^')}" if near else message


def _preamble_place(document: StoredDocument, found: Sequence[HeadedSection]) -> DocumentPlace:
    first = found[0].span.line_start if found else document.lines + 1
    if first <= 1:
        raise NotThere(
            f"`{printable_name(document.id)}` begins with a heading, so it has no text before one"
        )
    path = (short(document.title),)
    name = f"{document.id}#{PREAMBLE}"
    return DocumentPlace(name, DocumentPart.SECTION, path, (1, first - 1), is_body=True)


def _describe_unknown(
    document: StoredDocument, fragment: str, found: Sequence[HeadedSection]
) -> str:
    slugs = [section.heading.slug for section in found[:MAX_COMPARED_SLUGS]]
    near = nearest(fragment, slugs, MAX_NAMED)
    message = f"`{printable_name(document.id)}` has no heading `{printable_name(fragment)}`"
    if near:
        return f"{message}; {nearest_are(near, '#')}"
    return f"{message}: its outline lists the headings"


# `get`: a document, a section, a chunk or some lines, page by page; or the headings.

_CURSOR = "document"


@dataclass(frozen=True, slots=True)
class _Wanted:
    """A place in a document, and how much of it earlier pages have: characters from the body's
    start (front matter may be missing), or entries of the outline.
    """

    document: StoredDocument
    place: DocumentPlace
    is_outline: bool
    at: int | None = None


class DocumentReader:
    """Answers from one view."""

    def __init__(self, view: View, places: Places, files: TextSource | None) -> None:
        self._view = view
        self._resolver = Resolver(view, places)
        self._files = files

    def read(self, request: DocumentRequest) -> DocumentText:
        """Raises QueryError if there is no such document, heading, line or page."""
        wanted = self._resume(request) if request.cursor else self._begin(request)
        if wanted.is_outline:
            return self._outline_page(wanted, request.max_tokens)
        return self._text_page(wanted, request.max_tokens)

    def _begin(self, request: DocumentRequest) -> _Wanted:
        target = self._resolver.find(request.reference)
        document = target.document
        if request.full_document:
            place = whole_place(document)
        elif request.has_lines:
            place = lines_place(document, request.start_line or 1, request.end_line or MAX_LINE)
        else:
            place = place_of(self._view, target)
        return _Wanted(document, place, request.outline)

    def _resume(self, request: DocumentRequest) -> _Wanted:
        values = decode_cursor(_CURSOR, request.cursor)
        line, wanted = values.get("line", 1), values.get("doc")
        known = (each for each in self._view.document_ids() if short_digest(each) == wanted)
        doc_id = next(known, None)
        document = self._view.document(doc_id) if doc_id is not None else None
        if doc_id is None or document is None:
            raise NotThere(
                "the document of this cursor no longer exists: list the documents to see which do",
                listed_by="ls",
            )
        if short_digest(self._view.version(doc_id)) != values.get("version"):
            raise QueryError(
                f"`{doc_id}` has changed since the previous page: start again without the cursor, "
                f"or continue with start_line {line}"
            )
        if request.reference and self._resolver.find(request.reference).document.id != doc_id:
            raise QueryError(
                "the cursor belongs to another document: give either the cursor or the document"
            )
        place = place_of(self._view, self._target(document, values))
        return _Wanted(document, place, bool(values.get("outline")), int(str(values.get("at", 0))))

    def _target(self, document: StoredDocument, values: dict[str, Value]) -> ReferenceTarget:
        name = f"{document.id}{values.get('part', '')}"
        first, last = values.get("first", 0), values.get("last", 0)
        match DocumentPart(str(values.get("extent", DocumentPart.DOCUMENT))):
            case DocumentPart.CHUNK:
                return ReferenceTarget(document, chunk=self._view.chunk(ChunkId(name)))
            case DocumentPart.SECTION:
                return ReferenceTarget(document, fragment=name.partition("#")[2])
            case DocumentPart.LINES:
                return ReferenceTarget(document, lines=(int(str(first)), int(str(last))))
            case _:
                return ReferenceTarget(document)

    def _text_page(self, wanted: _Wanted, max_tokens: int) -> DocumentText:
        content = content_of(self._view, wanted.document, self._files)
        first, end = characters(self._view, wanted.place, content)
        start = first
        if wanted.at is not None:
            start = min(max(wanted.at + content.body_start, first), end)
        stop = page_end(content.text, start, end, max_tokens)
        text = content.text[start:stop]
        cursor = None
        if stop < end:
            line = content.line_of(stop)
            cursor = self._cursor(wanted, stop - content.body_start, line)
        span = content.span_of(start, stop)
        return replace(
            _blank(wanted),
            line_start=content.line_of(start),
            line_end=content.line_of(max(start, stop - 1)),
            byte_start=span.byte_start if span else None,
            byte_end=span.byte_end if span else None,
            total_lines=content.last_line,
            text=text,
            tokens=tokens(text),
            total_tokens=tokens(content.text[first:end]),
            cursor=cursor,
            state=content.state,
            notes=content.notes,
        )

    def _outline_page(self, wanted: _Wanted, max_tokens: int) -> DocumentText:
        root = self._view.chunk(ChunkId(wanted.document.id))
        last_line = root.chunk.span.line_end if root else wanted.document.lines
        entries = self._entries(wanted)
        start = wanted.at or 0
        rows = (((at,), entry) for at, entry in enumerate(entries[start:], start=start))
        page = pack_page(rows, len(entries), max_tokens)
        stop = start + len(page.entries)
        cursor = None
        if stop < len(entries):
            cursor = self._cursor(wanted, stop, entries[stop].line_start)
        return replace(
            _blank(wanted),
            extent=DocumentPart.OUTLINE,
            line_start=min((entry.line_start for entry in page.entries), default=1),
            line_end=max((entry.line_end for entry in page.entries), default=last_line),
            total_lines=last_line,
            tokens=page.tokens,
            total_tokens=sum(map(entry_tokens, entries)),
            cursor=cursor,
            outline=page.entries,
            notes=() if entries else ("there are no headings",),
        )

    def _entries(self, wanted: _Wanted) -> list[OutlineEntry]:
        """The entries of the whole document, or those that begin within the place."""
        entries = outline(self._view, wanted.document)
        lines = wanted.place.lines
        if wanted.place.chunk_id is not None:
            stored = self._view.chunk(wanted.place.chunk_id)
            lines = (stored.chunk.span.line_start, stored.chunk.span.line_end) if stored else None
        if lines is None:
            return entries
        return [entry for entry in entries if lines[0] <= entry.line_start <= lines[1]]

    def _cursor(self, wanted: _Wanted, at: int, line: int) -> str:
        document, place = wanted.document, wanted.place
        first, last = place.lines or (0, 0)
        values: dict[str, Value] = {
            "doc": short_digest(document.id),
            "version": short_digest(self._view.version(document.id)),
            "part": place.id.removeprefix(document.id),
            "first": first,
            "last": last,
            "outline": int(wanted.is_outline),
            "at": at,
            "line": line,
        }
        if place.extent is not DocumentPart.DOCUMENT:
            values["extent"] = place.extent
        return encode_cursor(_CURSOR, values)


def _blank(wanted: _Wanted) -> DocumentText:
    """An answer without its text."""
    document, place = wanted.document, wanted.place
    return DocumentText(
        id=place.id,
        doc_id=document.id,
        tree=document.tree,
        path=shown_path(document.path),
        title=short(document.title),
        tags=shown_tags(document),
        modified=document.date,
        heading_path=place.heading_path,
        extent=place.extent,
        line_start=1,
        line_end=1,
        byte_start=None,
        byte_end=None,
        total_lines=1,
        text="",
        tokens=0,
        total_tokens=0,
        cursor=None,
        state=TextState.UNCHECKED,
    )
