"""The values that cross package boundaries. Frozen; only SourceText computes anything."""

from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple, NewType, Self


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
    """A place in a file: bytes [start, end), and first and last line, counted from 1."""

    byte_start: int
    byte_end: int
    line_start: int
    line_end: int

    def contains(self, other: "Span") -> bool:
        """Whether all bytes of the other are in this one."""
        return self.byte_start <= other.byte_start and other.byte_end <= self.byte_end


CANVAS_SUFFIX = ".canvas"
JSON_STRINGS = "json"
"""The encoding of a canvas: its text is in JSON strings, where characters may be escapes."""
CANVAS_NOTE = "the text of a canvas: lines and bytes are those of its cards in the file"


@dataclass(frozen=True, slots=True)
class SourceText:
    """A file's text, with the mapping from character offsets back to its bytes and lines.

    `text` has only LF line ends and no NUL or lone surrogate; `exact` has the same characters one
    for one before those were replaced, so that its encoding is as long as the file's bytes.
    `marks` are characters whose byte offset is known: the first of each line, and more within long
    lines.
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
        """The line, from 0, of the character at `offset`."""
        return bisect_right(self.line_starts, offset) - 1

    def byte_of(self, offset: int) -> int:
        """The byte offset of a character, counted from the last mark, which is never far."""
        if offset >= len(self.text):
            return self.size
        if self.mark_bytes is self.marks:
            return offset  # every character is one byte
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
    """How one document refers to another: the type of an edge in the graph."""

    LINKS_TO = "links_to"
    EMBEDS = "embeds"
    RELATED = "related"


class LinkSyntax(StrEnum):
    """How a link was written, which decides how its target is resolved."""

    WIKI = "wiki"
    MARKDOWN = "markdown"
    FRONT_MATTER = "front_matter"


class NodeKind(StrEnum):
    """What a node of the chunk tree represents."""

    DOCUMENT = "document"
    PREAMBLE = "preamble"
    SECTION = "section"
    PART = "part"


class DateSource(StrEnum):
    """Where a document's date comes from."""

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
    """A document's metadata, normalised to these types whatever the YAML contains."""

    title: str = ""
    description: str = ""
    keywords: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    author: str = ""
    category: str = ""
    related: tuple[str, ...] = ()
    dates: Mapping[DateSource, datetime] = field(default_factory=dict[DateSource, datetime])


class Property(NamedTuple):
    """A front-matter property or an inline field (`key:: value`), with the texts of its values.

    The key is as filters name it: lower case, without blanks, nested keys joined by dots.
    """

    key: str
    values: tuple[str, ...]


class WarningKind(StrEnum):
    """A problem of a file that was indexed nevertheless."""

    REPLACED_BYTES = "replaced_bytes"
    """Some bytes are invalid in the file's encoding: they are shown as U+FFFD, and the words around
    them cannot be found."""
    ENCODING = "encoding"
    """Its byte order mark names an encoding other than UTF-8: nothing is lost."""
    FRONT_MATTER = "front_matter"
    """Some of its metadata was ignored."""
    TOO_MANY_LINES = "too_many_lines"
    """The rest was read as plain text: it can be found, but has no headings, links or code."""
    TOO_MANY_HEADINGS = "too_many_headings"
    """The rest are treated as ordinary text."""
    TOO_MANY_LINKS = "too_many_links"
    """The rest are not followed."""
    TOO_MANY_REFERENCES = "too_many_references"
    """Links that use the other definitions are broken."""
    TOO_MANY_TAGS = "too_many_tags"
    """The rest can be found as text, not as tags."""
    TOO_MANY_CARDS = "too_many_cards"
    """Only the first cards of a canvas are read; the rest cannot be found."""
    TOO_MANY_CODE_BLOCKS = "too_many_code_blocks"
    """The rest can be found as text, not as code."""
    TOO_MANY_PROPERTIES = "too_many_properties"
    """No filter finds the rest."""


@dataclass(frozen=True, slots=True)
class DocumentWarning:
    """One kind of warning about one file: how often it occurs, and its text."""

    kind: WarningKind
    count: int
    text: str

    @property
    def is_loss(self) -> bool:
        """Whether some of the file cannot be found, or cannot be shown as written."""
        return self.kind not in (WarningKind.ENCODING, WarningKind.FRONT_MATTER)


class BlockKind(StrEnum):
    """How a block may be split: text at any sensible place, a heading never from the text below it,
    a whole block (code, table, math, HTML) only if it alone exceeds the maximum.
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
class Card:
    """A card of a canvas, with characters [start, end) of the source's text. The slug of its
    heading is its id; the heading's span is the JSON string with its text."""

    heading: Heading
    start: int
    end: int


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
    properties: tuple[Property, ...] = ()
    cards: tuple[Card, ...] = ()
    """Only of a canvas."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """A node of the chunk tree. Leaves have text, and their spans tile the document's body; a
    section spans exactly its own lines, even if it shares a leaf with other sections.

    `text` is exactly the characters of `span`; `overlap` is the end of the previous part, which is
    context for the embedder and never part of this chunk. `headings` are the titles of the
    sections that start in a leaf.
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
    """Distinguishes two versions of a file."""

    size: int
    mtime_ns: int
    content_hash: str


@dataclass(frozen=True, slots=True)
class IndexedFile:
    """Everything that one file contributes to the index, ready to be stored."""

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
    """A word as typed; analysis may split it into several tokens, which must all match."""

    text: str


@dataclass(frozen=True, slots=True)
class Phrase:
    """Words in quotation marks, which must follow one another."""

    text: str


@dataclass(frozen=True, slots=True)
class Not:
    """An expression that must not match."""

    expression: "QueryExpression"


@dataclass(frozen=True, slots=True)
class And:
    """Two or more expressions that must all match; none of them is an And."""

    expressions: tuple["QueryExpression", ...]


@dataclass(frozen=True, slots=True)
class Or:
    """Two or more expressions of which one must match; none of them is an Or."""

    expressions: tuple["QueryExpression", ...]


@dataclass(frozen=True, slots=True)
class Field:
    """An expression that must match in one field. In `tree` a term is a tree's name, in `path` the
    start of a path. Of nested fields the inner one applies.
    """

    name: QueryField
    expression: "QueryExpression"


@dataclass(frozen=True, slots=True)
class Boost:
    """An expression whose matches count `factor` times as much."""

    expression: "QueryExpression"
    factor: float


QueryExpression = Term | Phrase | Not | And | Or | Field | Boost


class QueryReading(StrEnum):
    """Why a query is strict or not."""

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
    """A parsed query.

    A plain query is words, ranked by how many and which match; `wishes` are its quotations, and
    passages with them come first. A strict query returns only passages that fulfil `expression`.
    `text` is the query without operators, exclusions and filters (for the embedder); `as_text` are
    the operator characters that were read as text, and `notes` say what was read differently from
    what may have been meant. An expression of None finds nothing.
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
