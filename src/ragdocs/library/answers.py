"""The answers of the library: documents, listings, related documents, context."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum

from ragdocs.chunking.chunker import MAX_TITLE_CHARS
from ragdocs.limits import MAX_TAGS_SHOWN
from ragdocs.search.budget import LeftOut
from ragdocs.search.responses import Explanation, IndexState, Packer, SearchResult
from ragdocs.store.records import StoredDocument

# The answers of `get` and `list`. Plain values, which become JSON as they are. `file` is the real
# path of a document, which the edges add (`Places.with_files`).


class DocumentPart(StrEnum):
    """Which part of a document is returned."""

    DOCUMENT = "document"
    SECTION = "section"
    """A heading and all below it, down to the next heading of its level."""
    CHUNK = "chunk"
    """A node of the chunk tree, as search cites it; it may include short neighbours."""
    LINES = "lines"
    OUTLINE = "outline"


class TextState(StrEnum):
    """How the text relates to the file."""

    CURRENT = "current"
    """The file's text, which is what was indexed."""
    CHANGED = "changed"
    """The indexed text: the file has been edited since."""
    UNREADABLE = "unreadable"
    """The indexed text: the file can no longer be read."""
    UNCHECKED = "unchecked"
    """The indexed text: the file was not checked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutlineEntry:
    """A heading, and the size of its section: down to the next heading of its level or above.

    `id` is a reference for `get`. The text before the first heading has the level 0. Only a list of
    several documents names the document of each.
    """

    id: str
    doc_id: str
    tree: str | None = None
    path: str | None = None
    file: str | None = None
    level: int
    text: str
    slug: str
    line_start: int
    line_end: int
    bytes: int
    tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentText:
    """One page of the requested text; the texts of all pages, joined, are exactly that.

    `text` is the file's text at these lines, with LF line ends. The bytes are those in the file, or
    None if a stored text leaves them uncertain. `tokens` are those of this page, `total_tokens`
    those of everything requested. `cursor` requests the next page; None on the last. An outline has
    entries in place of text.
    """

    id: str
    doc_id: str
    tree: str
    path: str
    file: str | None = None
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
    """A document; `passages` counts the leaves that search finds, `chunks` all its nodes."""

    id: str
    tree: str
    path: str
    file: str | None = None
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
class PropertyEntry:
    """A property as filters name it, how its values compare (`kinds`, the most frequent first), the
    number of documents that have it, and its most frequent values with theirs."""

    key: str
    kinds: tuple[str, ...]
    documents: int
    distinct_values: int
    values: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkEntry:
    """A node of a document's chunk tree; only a leaf is a passage that search finds."""

    id: str
    doc_id: str
    tree: str
    path: str
    file: str | None = None
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
    """A page of a list, in a stable order; `total` counts all of its entries.

    Only the requested list (`kind`) is filled.
    """

    kind: str
    total: int
    cursor: str | None
    trees: tuple[TreeEntry, ...] = ()
    documents: tuple[DocumentEntry, ...] = ()
    outlines: tuple[OutlineEntry, ...] = ()
    tags: tuple[TagEntry, ...] = ()
    properties: tuple[PropertyEntry, ...] = ()
    chunks: tuple[ChunkEntry, ...] = ()
    notes: tuple[str, ...] = ()


# The names of documents and their parts in answers: always valid text, of limited length.


def shown_tags(document: StoredDocument) -> tuple[str, ...]:
    """Limited, because one front matter may have thousands."""
    return tuple(map(short, document.tags[:MAX_TAGS_SHOWN]))


def short(text: str) -> str:
    """Shortens a title, or the text of a link, to the maximum of a chunk's title."""
    return text if len(text) <= MAX_TITLE_CHARS else text[: MAX_TITLE_CHARS - 1] + "…"


# The answer of `context`: the documentation for some files, and why.


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextFile:
    """A given file: the patterns of the rules that apply to it, the document that it is itself
    (which is not among the results), and why it was not read in full, if so.
    """

    name: str
    rules: tuple[str, ...] = ()
    doc_id: str | None = None
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class IncludedDocument:
    """A document that a rule always includes; `because` is the pattern that matched."""

    doc_id: str
    tree: str
    path: str
    file: str | None = None
    title: str
    lines: int
    tokens: int
    because: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextTerm:
    """A word of the query: where in the files it occurs, how often, in how many documents, its
    score, and its weight in the query. A rule's own word has no figures.
    """

    word: str
    origins: tuple[str, ...]
    frequency: int
    documents: int
    score: float
    weight: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextExplanation:
    """The terms, first those of rules, then the best; the query made of them; the query of the
    rules' terms alone; the plain texts that are searched by meaning; and the explanation of the
    search.
    """

    terms: tuple[ContextTerm, ...]
    query: str
    rule_query: str
    meanings: tuple[str, ...]
    trees: tuple[str, ...]
    search: Explanation | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextAnswer:
    """Passages, best first, and the documents that rules add; `left_out` did not fit.

    `index` is None if there was nothing to search for.
    """

    files: tuple[ContextFile, ...]
    included: tuple[IncludedDocument, ...]
    results: tuple[SearchResult, ...]
    left_out: tuple[LeftOut, ...]
    index: IndexState | None
    explanation: ContextExplanation | None
    notes: tuple[str, ...] = ()
    pack: Packer | None = field(default=None, compare=False, repr=False)
    """None if nothing was searched."""

    def within(self, max_tokens: int, text_from: float = 0.0) -> "ContextAnswer":
        """The same answer in another budget: packed again, never searched again."""
        if self.pack is None:
            return self
        shown = self.pack(max_tokens, text_from)
        return replace(self, results=shown.results, left_out=shown.left_out)


# The answer of `related`: four kinds of relation, each in its own list.


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkEntry:
    """A link and the document at its other end.

    `line` is the line of the link: in the requested document, or for backlinks in the other. A
    broken link has no document, only the target as written.
    """

    doc_id: str | None
    tree: str | None
    path: str
    file: str | None = None
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
    tree: str
    path: str
    file: str | None = None
    title: str
    is_linked: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SimilarEntry:
    """The most similar passage of another document.

    `score` is a cosine if it was found by meaning, otherwise the share of the highest possible word
    score; `terms` are the common words, if it was found by words.
    """

    id: str
    doc_id: str
    tree: str
    path: str
    file: str | None = None
    title: str
    heading_path: tuple[str, ...]
    line_start: int
    line_end: int
    score: float
    snippet: str
    terms: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Related:
    """What is related to a document or section, never itself. The totals include what is not
    listed.

    `community_size` is None as long as no communities are stored.
    """

    id: str
    doc_id: str
    tree: str
    path: str
    file: str | None = None
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
        """At most `limit` of each kind, as if the request had asked for that."""
        return replace(
            self,
            links=self.links[:limit],
            backlinks=self.backlinks[:limit],
            community=self.community[:limit],
            similar_by_meaning=self.similar_by_meaning[:limit],
            similar_by_words=self.similar_by_words[:limit],
        )
