"""A document's text: the file's own while it is what was indexed, or else what the store has of it.

The store keeps the body, cut into leaves, and of front matter only its meaning. So the file is read
again, through a seam, because containment is not this layer's affair; a text that is not the
indexed one is never shown, since no line number would fit it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Protocol

from ragdocs.errors import SourceError
from ragdocs.models import Span, TreeName
from ragdocs.parsers.decoding import decode
from ragdocs.search.library.answers import TextState
from ragdocs.search.passages import Passage
from ragdocs.store.holdings import file_of
from ragdocs.store.records import StoredDocument
from ragdocs.store.snapshot import Snapshot

PathMatcher = Callable[[Sequence[str], str], bool]
"""Whether a path matches any of some patterns; they are those of the trees' settings."""


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file's bytes, and their hash as the manifest has it."""

    data: bytes
    content_hash: str


class TextSource(Protocol):
    """Reads a file of a tree, never outside of it."""

    def read(self, tree: TreeName, path: str) -> FoundFile:
        """Raises SourceError when it cannot be read."""
        ...


@dataclass(frozen=True, slots=True)
class Content:
    """A document's text. `body_start` is the first character that is in a leaf, `first_line` the
    line of the first character; `span_of` gives the bytes of a stretch, None when in doubt.
    """

    text: str
    body_start: int
    first_line: int
    state: TextState
    span_of: Callable[[int, int], Span | None]
    notes: tuple[str, ...] = ()

    @property
    def last_line(self) -> int:
        """The last that has a character."""
        return self.line_of(max(0, len(self.text) - 1))

    def line_of(self, offset: int) -> int:
        return self.first_line + self.text.count("\n", 0, offset)

    def range_of_lines(self, first: int, last: int) -> tuple[int, int]:
        """The characters of these lines, of those that are there."""
        lengths = (len(line) + 1 for line in self.text.split("\n"))
        starts = list(accumulate(lengths, initial=0))
        starts[-1] = len(self.text)

        def start_of(line: int) -> int:
            return starts[min(max(line - self.first_line, 0), len(starts) - 1)]

        return start_of(first), start_of(last + 1)


def content_of(snapshot: Snapshot, document: StoredDocument, files: TextSource | None) -> Content:
    """The text of a document. Its leaves, thousands in a large one, are read only if need be."""
    if files is None:
        return _stored(snapshot, document, TextState.UNCHECKED)
    try:
        found = files.read(document.tree, document.path)
    except SourceError as error:
        note = f"the file can no longer be read ({error}): this is the text that was indexed"
        return _stored(snapshot, document, TextState.UNREADABLE, note)
    entry = file_of(snapshot, document.id)
    if entry is None or entry.state is None or entry.state.content_hash != found.content_hash:
        note = "the file has changed since it was indexed: this is the text that was indexed"
        return _stored(snapshot, document, TextState.CHANGED, note)
    source = decode(found.data).source
    return Content(source.text, document.body_start, 1, TextState.CURRENT, source.span)


def _stored(
    snapshot: Snapshot, document: StoredDocument, state: TextState, note: str = ""
) -> Content:
    notes = (note,) if note else ()
    nodes = snapshot.chunks(document.id)
    pieces = [(node.chunk.text, node.chunk.span) for node in nodes if node.chunk.text is not None]
    if not pieces:
        return Content("", 0, 1, state, lambda _start, _end: None, notes)
    passage = Passage.of(pieces, document.encoding)

    def span_of(start: int, end: int) -> Span | None:
        part = passage.part(start, end)
        return part.span if part else None

    first = passage.span.line_start
    if first > 1:
        notes = (*notes, f"lines 1-{first - 1}, the front matter, are not kept in the index")
    return Content(passage.text, 0, first, state, span_of, notes)
