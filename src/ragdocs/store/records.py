"""What the store returns: frozen values, never rows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple, NewType

from ragdocs.models import (
    Chunk,
    ChunkId,
    CodeBlock,
    DateSource,
    DocId,
    DocumentWarning,
    FileState,
    FrontMatter,
    Link,
    Property,
    Slug,
    TreeName,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

ChunkKey = NewType("ChunkKey", int)
"""The number of a chunk, never reused in a store; a vector index uses it as its id."""
TextHash = NewType("TextHash", bytes)
"""Identifies the embedded text, independent of the model."""


UnreadCounts = Mapping[TreeName, Mapping[str, int]]
"""How many files of each tree have a format that is not read, by extension."""


@dataclass(frozen=True, slots=True)
class Position:
    """A commit. Its random stamp distinguishes it from the same number in another history."""

    generation: int
    stamp: str


class ChangeKind(StrEnum):
    """What a commit did to a document."""

    UPSERT = "upsert"
    DELETE = "delete"
    LINKS = "links"
    """Its outgoing links have new targets, because other documents came, went or changed."""
    VECTORS = "vectors"
    """Vectors of its chunks were added; its text is unchanged."""


@dataclass(frozen=True, slots=True)
class Change:
    """A document that changed since some commit, and how."""

    doc_id: DocId
    kinds: frozenset[ChangeKind]


@dataclass(frozen=True, slots=True)
class StoredDocument:
    """A document without its text, which is in its leaves."""

    id: DocId
    tree: TreeName
    path: str
    title: str
    front_matter: FrontMatter
    tags: tuple[str, ...]
    date: datetime
    date_source: DateSource
    encoding: str
    size: int
    lines: int
    body_start: int
    warnings: tuple[DocumentWarning, ...]
    properties: tuple[Property, ...] = ()


@dataclass(frozen=True, slots=True)
class StoredChunk:
    """A node of the chunk tree; only a leaf with something to embed has a text hash."""

    key: ChunkKey
    chunk: Chunk
    text_hash: TextHash | None


@dataclass(frozen=True, slots=True)
class ResolvedLink:
    """A link as written, and its target; a broken link has the target None."""

    source: DocId
    link: Link
    target: DocId | None
    slug: Slug | None


@dataclass(frozen=True, slots=True)
class StoredCodeBlock:
    """A code block and the leaf in which it begins."""

    key: int
    doc_id: DocId
    chunk_id: ChunkId | None
    block: CodeBlock


class ManifestEntry(NamedTuple):
    """A file as it was when it was read. Without a state, it must be read again.

    `read_ns` is the wall-clock time just before reading: if it is within two seconds of `mtime_ns`,
    an edit in the same tick of the file system's clock may have been missed. A tuple, because every
    start creates one for each file.
    """

    doc_id: DocId
    tree: TreeName
    path: str
    state: FileState | None
    read_ns: int


@dataclass(frozen=True, slots=True)
class FileFailure:
    """A file that could not be indexed, why, and its state at the time."""

    tree: TreeName
    path: str
    kind: str
    reason: str
    state: FileState | None
    read_ns: int


class ChunkPlace(NamedTuple):
    """Where a chunk stands in its document. A tuple: a document may have a hundred thousand."""

    key: ChunkKey
    parent: ChunkKey | None
    is_leaf: bool
    line_start: int
    line_end: int


class TokenPlace(NamedTuple):
    """A chunk that an exact token may stand in, and whether it does, letter by letter, in any case
    or in the same."""

    key: ChunkKey
    document: DocId
    text_hash: bytes | None
    is_written: bool
    is_same_case: bool


@dataclass(frozen=True, slots=True)
class ChunkCounts:
    """The nodes of a document's chunk tree, and those of them that have text."""

    nodes: int
    leaves: int


@dataclass(frozen=True, slots=True)
class ContentCounts:
    """What some documents have together."""

    headings: int
    chunks: int


@dataclass(frozen=True, slots=True)
class TreeCounts:
    """How much one tree holds."""

    documents: int
    size: int
    leaves: int
    failures: int


@dataclass(frozen=True, slots=True)
class PendingText:
    """A text that has no stored vector of a model yet."""

    text_hash: TextHash
    text: str


@dataclass(frozen=True, slots=True)
class VectorBatch:
    """Vectors of some chunks: `data` is their little-endian float32 values, row after row."""

    keys: Sequence[ChunkKey]
    doc_ids: Sequence[DocId]
    dimension: int
    data: bytes

    def array(self) -> "NDArray[np.float32]":
        import numpy as np

        return np.frombuffer(self.data, dtype="<f4").reshape(len(self.keys), self.dimension)
