"""The values that cross package boundaries. Frozen; only SourceText computes anything."""

from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import NewType, Self

# What is used in a `with`, and closed at its end.


class Closable(ABC):
    """Open until it is closed, or until its `with` ends."""

    @abstractmethod
    def close(self) -> None: ...

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


TreeName = NewType("TreeName", str)
DocId = NewType("DocId", str)
"""`tree:path`, with awkward characters of the path percent-encoded (see parsers/ids.py)."""
ChunkId = NewType("ChunkId", str)
"""`tree:path#slug`, a document without headings `tree:path`, split parts `…~1`, `…~2`."""
Slug = NewType("Slug", str)
PREAMBLE = Slug("preamble")
"""The reserved slug of the text before the first heading."""


@dataclass(frozen=True, slots=True)
class Span:
    """Where something stands in the file: bytes [start, end), lines first to last, from 1."""

    byte_start: int
    byte_end: int
    line_start: int
    line_end: int


@dataclass(frozen=True, slots=True)
class SourceText:
    """A file's text, and the way back from character offsets to its bytes and lines.

    `text` has only LF line ends and no NUL or lone surrogate; `exact` is the same characters one
    for one before those were replaced, so that its encoding has the length the file's bytes have.
    `marks` are characters whose byte is known: every line's first, and more within long lines.
    """

    text: str
    exact: str
    encoding: str
    errors: str
    line_starts: Sequence[int]
    marks: Sequence[int]
    mark_bytes: Sequence[int]
    size: int

    def line_of(self, offset: int) -> int:
        """The line, from 0, that the character at `offset` stands on."""
        return bisect_right(self.line_starts, offset) - 1

    def byte_of(self, offset: int) -> int:
        """The byte of a character: from the last mark before it, which is never far."""
        if offset >= len(self.text):
            return self.size
        if self.mark_bytes is self.marks:
            return offset  # characters are bytes throughout
        index = bisect_right(self.marks, offset) - 1
        start = self.marks[index]
        if offset == start:
            return self.mark_bytes[index]
        return self.mark_bytes[index] + len(
            self.exact[start:offset].encode(self.encoding, self.errors)
        )

    def span(self, start: int, end: int) -> Span:
        """The bytes and lines of characters [start, end)."""
        last = max(start, end - 1)
        return Span(
            self.byte_of(start), self.byte_of(end), self.line_of(start) + 1, self.line_of(last) + 1
        )


class LinkKind(StrEnum):
    """How one document refers to another: the type of the graph's edge."""

    LINKS_TO = "links_to"
    EMBEDS = "embeds"
    RELATED = "related"


class LinkSyntax(StrEnum):
    """How a link was written, because that decides how its target is resolved."""

    WIKI = "wiki"
    MARKDOWN = "markdown"
    FRONT_MATTER = "front_matter"


class NodeKind(StrEnum):
    """What a node of the chunk tree stands for."""

    DOCUMENT = "document"
    PREAMBLE = "preamble"
    SECTION = "section"
    PART = "part"


class DateSource(StrEnum):
    """Which of a document's dates is in force."""

    MODIFIED = "modified"
    DATE = "date"
    CREATED = "created"
    MTIME = "mtime"


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading: its plain text, and the span of the heading itself (not of its section)."""

    level: int
    text: str
    slug: Slug
    span: Span


@dataclass(frozen=True, slots=True)
class Link:
    """A reference as it was written; the store resolves it against the set of documents.

    `target` is a path, file name, title or alias, and empty for a link within the document;
    `anchor` a heading, its slug, or `^block`.
    """

    kind: LinkKind
    syntax: LinkSyntax
    target: str
    anchor: str
    text: str
    span: Span


@dataclass(frozen=True, slots=True)
class CodeBlock:
    """A fenced or indented code block. `language` is lower-cased and empty when unknown."""

    language: str
    code: str
    span: Span


@dataclass(frozen=True, slots=True)
class FrontMatter:
    """A document's metadata, cleaned: always these types, whatever the YAML said."""

    title: str = ""
    description: str = ""
    keywords: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    author: str = ""
    category: str = ""
    related: tuple[str, ...] = ()
    dates: Mapping[DateSource, datetime] = field(default_factory=dict[DateSource, datetime])


class WarningKind(StrEnum):
    """What was odd about a file that was indexed all the same."""

    REPLACED_BYTES = "replaced_bytes"
    """It is not in the encoding that it was read in: bytes are shown as U+FFFD, and the words
    around them cannot be found."""
    ENCODING = "encoding"
    """It was read in another encoding than UTF-8, as its byte-order mark says: nothing is lost."""
    FRONT_MATTER = "front_matter"
    """Some of its metadata was left out."""
    TOO_MANY_LINES = "too_many_lines"
    """The rest was read as plain text: it can be found, but has no headings, links or code."""
    TOO_MANY_HEADINGS = "too_many_headings"
    """The rest are text like any other."""
    TOO_MANY_LINKS = "too_many_links"
    """The rest are not followed."""
    TOO_MANY_REFERENCES = "too_many_references"
    """Links by the other definitions lead nowhere."""
    TOO_MANY_TAGS = "too_many_tags"
    """The others can be found as text, not as tags."""
    TOO_MANY_CODE_BLOCKS = "too_many_code_blocks"
    """The others can be found as text, not as code."""


@dataclass(frozen=True, slots=True)
class DocumentWarning:
    """One kind of oddity of one file: how often it is there, and in words."""

    kind: WarningKind
    count: int
    text: str

    @property
    def is_loss(self) -> bool:
        """Whether something that stands in the file cannot be found or shown as it is there."""
        return self.kind not in (WarningKind.ENCODING, WarningKind.FRONT_MATTER)


class BlockKind(StrEnum):
    """How a block may be split: text anywhere sensible, a heading never from what follows it,
    a whole block (code, table, math, HTML) only when it alone exceeds the maximum.
    """

    TEXT = "text"
    HEADING = "heading"
    WHOLE = "whole"


@dataclass(frozen=True, slots=True)
class Block:
    """A leaf block as half-open character offsets into the source's text."""

    start: int
    end: int
    kind: BlockKind


@dataclass(frozen=True, slots=True)
class Document:
    """One parsed file. Character offsets are into `text`; spans are into the file's bytes."""

    id: DocId
    tree: TreeName
    path: str
    title: str
    front_matter: FrontMatter
    tags: tuple[str, ...]
    date: datetime
    date_source: DateSource
    source: SourceText
    body_start: int
    headings: tuple[Heading, ...]
    links: tuple[Link, ...]
    code_blocks: tuple[CodeBlock, ...]
    blocks: tuple[Block, ...]
    warnings: tuple[DocumentWarning, ...] = ()


@dataclass(frozen=True, slots=True)
class Chunk:
    """A node of the chunk tree. Leaves have text, and their spans tile the document's body; a
    section has exactly its own lines, also where it lies inside a leaf with others.

    `text` is exactly the characters of `span`; `overlap` is the end of the part before, given to
    the embedder as context and never counted as this chunk's own. `headings` are the titles of the
    sections that begin in a leaf.
    """

    id: ChunkId
    doc_id: DocId
    parent_id: ChunkId | None
    kind: NodeKind
    depth: int
    position: int
    title: str
    slug: Slug
    breadcrumb: tuple[str, ...]
    span: Span
    text: str | None = None
    overlap: str = ""
    headings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FileState:
    """What tells two versions of a file apart."""

    size: int
    mtime_ns: int
    content_hash: str


@dataclass(frozen=True, slots=True)
class IndexedFile:
    """Everything one file contributes to the index, ready to be stored in one go."""

    state: FileState
    document: Document
    chunks: tuple[Chunk, ...]


class QueryField(StrEnum):
    """What `field:` may name: the fields of keyword search, and the filter `tree`."""

    TITLE = "title"
    HEADERS = "headers"
    KEYWORDS = "keywords"
    DESCRIPTION = "description"
    TAGS = "tags"
    PATH = "path"
    ALIASES = "aliases"
    AUTHOR = "author"
    CONTENT = "content"
    TREE = "tree"


@dataclass(frozen=True, slots=True)
class Term:
    """A word as it was typed; the analysis may find several tokens in it, which all belong."""

    text: str


@dataclass(frozen=True, slots=True)
class Phrase:
    """Words that must follow one another, as they were typed between quotation marks."""

    text: str


@dataclass(frozen=True, slots=True)
class Not:
    """What must not match."""

    expression: "QueryExpression"


@dataclass(frozen=True, slots=True)
class And:
    """Two or more that must all match; none of them is an And."""

    expressions: tuple["QueryExpression", ...]


@dataclass(frozen=True, slots=True)
class Or:
    """Two or more of which one must match; none of them is an Or."""

    expressions: tuple["QueryExpression", ...]


@dataclass(frozen=True, slots=True)
class Field:
    """What must match in one field; within `tree` a term is a tree's name, within `path` the
    beginning of a path. Of nested fields the inner one holds.
    """

    name: QueryField
    expression: "QueryExpression"


@dataclass(frozen=True, slots=True)
class Boost:
    """What counts `factor` times as much when it matches."""

    expression: "QueryExpression"
    factor: float


QueryExpression = Term | Phrase | Not | And | Or | Field | Boost


class QueryReading(StrEnum):
    """Why a query is strict, or why it is not."""

    REQUESTED = "requested"
    OPERATORS = "operators"
    PHRASES = "phrases"
    NO_OPERATOR = "no operator"
    SENTENCE = "sentence"
    FUNCTION_WORDS = "function words"
    COMMAND = "command"
    MANY_TERMS = "many terms"
    LITERAL = "literal"
    UNFULFILLED = "unfulfilled"
    MANY_CONDITIONS = "many conditions"


STRICT_READINGS = (QueryReading.REQUESTED, QueryReading.OPERATORS, QueryReading.PHRASES)


@dataclass(frozen=True, slots=True)
class ParsedQuery:
    """A query as it was understood.

    Plain: words, ranked by how many and which match; `wishes` are the quotations in it, and what
    has them comes first. Strict: only what fulfils `expression` may be returned. `text` is what is
    looked for, without operators, exclusions and filters (for the embedder); `as_text` are the
    marks that were read as text, and `notes` say what was read in another way than it may have been
    meant. An expression of None looks for nothing.
    """

    text: str
    expression: QueryExpression | None
    reading: QueryReading
    wishes: tuple[str, ...] = ()
    as_text: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def is_strict(self) -> bool:
        return self.reading in STRICT_READINGS
