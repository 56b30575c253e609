"""`get`: a document, a section, a chunk or some lines, page by page; or the headings."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ragdocs.errors import NotThere, QueryError
from ragdocs.models import ChunkId, DocId, TreeName
from ragdocs.search.budget import tokens
from ragdocs.search.library.answers import DocumentText, Extent, OutlineEntry, TextState
from ragdocs.search.library.cards import short, shown_path, shown_tags
from ragdocs.search.library.cursors import Value, decode_cursor, encode_cursor
from ragdocs.search.library.outlines import outline
from ragdocs.search.library.packing import entry_tokens, packed
from ragdocs.search.library.paging import page_end
from ragdocs.search.library.requests import MAX_LINE, DocumentRequest
from ragdocs.search.library.resolution import Resolver, Target
from ragdocs.search.library.selection import (
    Place,
    characters,
    lines_place,
    place_of,
    whole_place,
)
from ragdocs.search.library.sources import TextSource, content_of
from ragdocs.store.holdings import version_of
from ragdocs.store.records import StoredDocument
from ragdocs.store.snapshot import Snapshot

_CURSOR = "document"


@dataclass(frozen=True, slots=True)
class _Wanted:
    """A place in a document, and how much of it was given before: characters from the body's start
    (front matter may be there or not), or entries of the outline.
    """

    document: StoredDocument
    place: Place
    is_outline: bool
    at: int | None = None


class DocumentReader:
    """Answers from one snapshot."""

    def __init__(
        self, snapshot: Snapshot, trees: Sequence[TreeName], files: TextSource | None
    ) -> None:
        self._snapshot = snapshot
        self._resolver = Resolver(snapshot, trees)
        self._files = files

    def read(self, request: DocumentRequest) -> DocumentText:
        """Raises QueryError when there is no such document, heading, line or page."""
        wanted = self._resumed(request) if request.cursor else self._begun(request)
        if wanted.is_outline:
            return self._outline_page(wanted, request.max_tokens)
        return self._text_page(wanted, request.max_tokens)

    def _begun(self, request: DocumentRequest) -> _Wanted:
        target = self._resolver.find(request.reference)
        document = target.document
        if request.full_document:
            place = whole_place(document)
        elif request.has_lines:
            place = lines_place(document, (request.start_line or 1, request.end_line or MAX_LINE))
        else:
            place = place_of(self._snapshot, target)
        return _Wanted(document, place, request.outline)

    def _resumed(self, request: DocumentRequest) -> _Wanted:
        values = decode_cursor(_CURSOR, request.cursor)
        doc_id, line = DocId(str(values["doc"])), values["line"]
        document = self._snapshot.document(doc_id)
        if document is None:
            raise NotThere(f"`{doc_id}` is no longer there: list the documents to see what is")
        if version_of(self._snapshot, doc_id) != values["version"]:
            raise QueryError(
                f"`{doc_id}` has changed since the page before: begin again without the cursor, "
                f"or go on with start_line {line}"
            )
        if request.reference and self._resolver.find(request.reference).document.id != doc_id:
            raise QueryError("the cursor is of another document: give one of the two")
        place = place_of(self._snapshot, self._target(document, values))
        return _Wanted(document, place, bool(values["outline"]), int(str(values["at"])))

    def _target(self, document: StoredDocument, values: dict[str, Value]) -> Target:
        name, first, last = str(values["name"]), values["first"], values["last"]
        match Extent(str(values["extent"])):
            case Extent.CHUNK:
                return Target(document, chunk=self._snapshot.chunk(ChunkId(name)))
            case Extent.SECTION:
                return Target(document, fragment=name.partition("#")[2])
            case Extent.LINES:
                return Target(document, lines=(int(str(first)), int(str(last))))
            case _:
                return Target(document)

    def _text_page(self, wanted: _Wanted, max_tokens: int) -> DocumentText:
        content = content_of(self._snapshot, wanted.document, self._files)
        first, end = characters(self._snapshot, wanted.place, content)
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
        root = self._snapshot.chunk(ChunkId(wanted.document.id))
        last_line = root.chunk.span.line_end if root else wanted.document.lines
        entries = self._entries(wanted)
        start = wanted.at or 0
        rows = (((at,), entry) for at, entry in enumerate(entries[start:], start=start))
        page = packed(rows, len(entries), max_tokens)
        stop = start + len(page.entries)
        cursor = None
        if stop < len(entries):
            cursor = self._cursor(wanted, stop, entries[stop].line_start)
        return replace(
            _blank(wanted),
            extent=Extent.OUTLINE,
            line_start=min((entry.line_start for entry in page.entries), default=1),
            line_end=max((entry.line_end for entry in page.entries), default=last_line),
            total_lines=last_line,
            tokens=page.tokens,
            total_tokens=sum(map(entry_tokens, entries)),
            cursor=cursor,
            outline=page.entries,
            notes=() if entries else ("there are no headings here",),
        )

    def _entries(self, wanted: _Wanted) -> list[OutlineEntry]:
        """Those of the whole document, or those that begin within the place."""
        entries = outline(self._snapshot, wanted.document)
        lines = wanted.place.lines
        if wanted.place.chunk_id is not None:
            stored = self._snapshot.chunk(wanted.place.chunk_id)
            lines = (stored.chunk.span.line_start, stored.chunk.span.line_end) if stored else None
        if lines is None:
            return entries
        return [entry for entry in entries if lines[0] <= entry.line_start <= lines[1]]

    def _cursor(self, wanted: _Wanted, at: int, line: int) -> str:
        document, place = wanted.document, wanted.place
        first, last = place.lines or (0, 0)
        return encode_cursor(
            _CURSOR,
            {
                "doc": document.id,
                "version": version_of(self._snapshot, document.id),
                "extent": place.extent,
                "name": place.id,
                "first": first,
                "last": last,
                "outline": int(wanted.is_outline),
                "at": at,
                "line": line,
            },
        )


def _blank(wanted: _Wanted) -> DocumentText:
    """An answer that says only what it is about."""
    document, place = wanted.document, wanted.place
    return DocumentText(
        id=place.id,
        doc_id=document.id,
        tree=document.tree,
        path=shown_path(document),
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
