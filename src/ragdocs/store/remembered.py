"""What has been read and checked of one commit, for all that look at it.

Queries ask for the same chunks and documents again and again. As long as no other commit comes, and
nothing else touches the file, a row that was whole is whole: it need not be read again.
"""

from dataclasses import dataclass, field

from ragdocs.models import DocId
from ragdocs.store.records import ChunkKey, Position, StoredChunk, StoredDocument

MOST_CHUNKS = 4096
"""About 10 MB of passages; the documents are no more than those."""

Numbers = dict[int | str, int]
"""By a chunk's number, or a document's id."""


@dataclass(frozen=True, slots=True)
class Remembered:
    """Filled by every snapshot of the commit, in whichever thread."""

    position: Position
    chunks: dict[ChunkKey, StoredChunk] = field(default_factory=dict[ChunkKey, StoredChunk])
    documents: dict[DocId, StoredDocument] = field(default_factory=dict[DocId, StoredDocument])
    numbers: dict[str, Numbers] = field(default_factory=dict[str, Numbers])
    """What views have read of their own tables, by the view's name."""

    def serves(self, position: Position) -> bool:
        """Whether it is of that commit, and has room."""
        held = max(len(self.chunks), len(self.documents), *map(len, self.numbers.values()))
        return self.position == position and held < MOST_CHUNKS
