"""What `get` and `list` answer with. Plain values: everything here can become JSON as it is."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class Extent(StrEnum):
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
    extent: Extent
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
