"""What the library returns: documents, listings, related documents, context. Values."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum

from ragdocs.chunking.chunker import MAX_TITLE_CHARS
from ragdocs.limits import MAX_TAGS_SHOWN
from ragdocs.parsers.ids import encode_path
from ragdocs.search.budget import LeftOut
from ragdocs.search.responses import Explanation, IndexState, Presented, SearchResult
from ragdocs.store.records import StoredDocument

# What `get` and `list` answer with. Plain values: everything here can become JSON as it is.


class DocumentPart(StrEnum):
    """What part of a document is given."""

    DOCUMENT = "document"
    SECTION = "section"
    """A heading and all below it, down to the next heading of its level."""
    CHUNK = "chunk"
    """A node of the chunk tree, as search cites it; short neighbours may be in it."""
    LINES = "lines"
    OUTLINE = "outline"


class TextState(StrEnum):
    """How the text stands to the file."""

    CURRENT = "current"
    """The file's own, and it is what was indexed."""
    CHANGED = "changed"
    """The indexed text: the file has been edited since."""
    UNREADABLE = "unreadable"
    """The indexed text: the file cannot be read any more."""
    UNCHECKED = "unchecked"
    """The indexed text: the file was not looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutlineEntry:
    """A heading, and the size of its section: all down to the next heading of its level or above.

    `id` is a reference for `get`. The text before the first heading has the level 0.
    """

    id: str
    doc_id: str
    level: int
    text: str
    slug: str
    line_start: int
    line_end: int
    bytes: int
    tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentText:
    """A page of what was asked for. The pages' texts, joined, are exactly that.

    `text` is the file's text at the lines given, with LF line ends. The bytes are those in the
    file, or None where a stored text leaves them in doubt. `tokens` are of this page,
    `total_tokens` of all that was asked for. With `cursor` the next page is had; None is the last.
    An outline has entries in place of text.
    """

    id: str
    doc_id: str
    tree: str
    path: str
    title: str
    tags: tuple[str, ...]
    modified: datetime
    heading_path: tuple[str, ...]
    extent: DocumentPart
    line_start: int
    line_end: int
    byte_start: int | None
    byte_end: int | None
    total_lines: int
    text: str
    tokens: int
    total_tokens: int
    cursor: str | None
    state: TextState
    outline: tuple[OutlineEntry, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeEntry:
    """A configured tree and how much of it is indexed."""

    name: str
    scope: str
    root: str
    documents: int
    passages: int
    bytes: int
    failed_files: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentEntry:
    """A document; `passages` are the pieces that search finds, `chunks` all nodes of its tree."""

    id: str
    tree: str
    path: str
    title: str
    tags: tuple[str, ...]
    modified: datetime
    bytes: int
    tokens: int
    lines: int
    chunks: int
    passages: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TagEntry:
    """A tag and the number of documents that have it."""

    tag: str
    documents: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkEntry:
    """A node of a document's chunk tree; only a leaf is a passage that search finds."""

    id: str
    doc_id: str
    parent_id: str | None
    kind: str
    depth: int
    heading_path: tuple[str, ...]
    line_start: int
    line_end: int
    bytes: int
    tokens: int
    is_leaf: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """A page of a list, in an order that stays; `total` is how many entries it has in all.

    Only the list that was asked for (`kind`) is filled.
    """

    kind: str
    total: int
    cursor: str | None
    trees: tuple[TreeEntry, ...] = ()
    documents: tuple[DocumentEntry, ...] = ()
    outlines: tuple[OutlineEntry, ...] = ()
    tags: tuple[TagEntry, ...] = ()
    chunks: tuple[ChunkEntry, ...] = ()
    notes: tuple[str, ...] = ()


# How documents and their parts are named in answers: always writable, never at any length.


def shown_path(document: StoredDocument) -> str:
    """The path as it is; a name that is not UTF-8 as it stands in the id, which can be written."""
    path = document.path
    if path.isascii() or not any("\ud800" <= char <= "\udfff" for char in path):
        return path
    return encode_path(path)


def shown_tags(document: StoredDocument) -> tuple[str, ...]:
    """Thousands may stand in one front matter."""
    return tuple(map(short, document.tags[:MAX_TAGS_SHOWN]))


def short(text: str) -> str:
    """A title, or the text of a link, no longer than a chunk's title may be."""
    return text if len(text) <= MAX_TITLE_CHARS else text[: MAX_TITLE_CHARS - 1] + "…"


# What `context` answers with: the documentation for some files, and why it is that.


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextFile:
    """A file that was given: the patterns of the rules that apply to it, the document that it is
    itself (which is not among the results), and why it was not read whole, if it was not.
    """

    name: str
    rules: tuple[str, ...] = ()
    doc_id: str | None = None
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class IncludedDocument:
    """A document that a rule always gives; `because` is the pattern that matched."""

    doc_id: str
    path: str
    title: str
    lines: int
    tokens: int
    because: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextTerm:
    """A word of the query: where in the files it stands, how often, in how many documents, what
    that is worth, and the weight it has in the query. A rule's own word has no figures.
    """

    word: str
    origins: tuple[str, ...]
    frequency: int
    documents: int
    score: float
    weight: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextExplanation:
    """The terms, those of rules first, then the best; the query that they make; that of the rules'
    terms alone, and the plain texts whose meaning is looked for, beside it; and how the search
    went.
    """

    terms: tuple[ContextTerm, ...]
    query: str
    rule_query: str
    meanings: tuple[str, ...]
    trees: tuple[str, ...]
    search: Explanation | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextAnswer:
    """Passages, best first, and the documents that rules add; `left_out` is what did not fit.

    `index` is None when nothing could be searched for.
    """

    files: tuple[ContextFile, ...]
    included: tuple[IncludedDocument, ...]
    results: tuple[SearchResult, ...]
    left_out: tuple[LeftOut, ...]
    index: IndexState | None
    explanation: ContextExplanation | None
    notes: tuple[str, ...] = ()
    pack: "Callable[[int | None], Presented] | None" = field(
        default=None, compare=False, repr=False
    )
    """Packs the results into a number of tokens; None where nothing was searched for."""

    def within(self, max_tokens: int) -> "ContextAnswer":
        """The same answer in another budget: packed again, never searched again."""
        if self.pack is None:
            return self
        shown = self.pack(max_tokens)
        return replace(self, results=shown.results, left_out=shown.left_out)


# What `related` answers with: four kinds of nearness, each in a list of its own.


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkEntry:
    """A link and the document at its other end, from whichever side it is looked at.

    `line` is where the link stands, in the asked document for links out and in the other for
    backlinks. A link that leads nowhere has no document, only the target that was written.
    """

    doc_id: str | None
    path: str
    title: str
    slug: str | None
    kind: str
    text: str
    target: str
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NeighbourEntry:
    """A document of the same community; `is_linked`: a link joins the two, in either direction."""

    doc_id: str
    path: str
    title: str
    is_linked: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SimilarEntry:
    """The passage of another document that is most like what was asked about.

    `score` is a cosine when found by meaning, and otherwise the part of the most that the words
    could score; `terms` are the words they share, for those found by words.
    """

    id: str
    doc_id: str
    path: str
    title: str
    heading_path: tuple[str, ...]
    line_start: int
    line_end: int
    score: float
    snippet: str
    terms: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Related:
    """What goes with a document or section, never itself. The totals count what is not given too.

    `community_size` is None as long as no communities are stored.
    """

    id: str
    doc_id: str
    path: str
    title: str
    heading_path: tuple[str, ...]
    links: tuple[LinkEntry, ...]
    links_total: int
    backlinks: tuple[LinkEntry, ...]
    backlinks_total: int
    community: tuple[NeighbourEntry, ...]
    community_size: int | None
    similar_by_meaning: tuple[SimilarEntry, ...]
    similar_by_words: tuple[SimilarEntry, ...]
    notes: tuple[str, ...] = ()

    def first(self, limit: int) -> "Related":
        """At most so many of each kind: what `limit` in the request would have given."""
        return replace(
            self,
            links=self.links[:limit],
            backlinks=self.backlinks[:limit],
            community=self.community[:limit],
            similar_by_meaning=self.similar_by_meaning[:limit],
            similar_by_words=self.similar_by_words[:limit],
        )
