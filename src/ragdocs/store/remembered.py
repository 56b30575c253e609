"""What has been read and checked of one commit, for all that look at it.

Queries ask for the same chunks and documents again and again. As long as no other commit comes, and
nothing else touches the file, a row that was whole is whole: it need not be read again.
"""

from dataclasses import dataclass, field

from ragdocs.models import DocId
from ragdocs.store.records import ChunkKey, Position, StoredChunk, StoredDocument

MOST_BYTES = 8 << 20
"""Of chunks and documents."""
MOST_NUMBERS = 4096
"""Of each view; none takes a kilobyte."""

Numbers = dict[int | str, int]
"""By a chunk's number, or a document's id."""


@dataclass(slots=True)
class Remembered:
    """Filled by every snapshot of the commit, in whichever thread."""

    position: Position
    chunks: dict[ChunkKey, StoredChunk] = field(default_factory=dict[ChunkKey, StoredChunk])
    documents: dict[DocId, StoredDocument] = field(default_factory=dict[DocId, StoredDocument])
    numbers: dict[str, Numbers] = field(default_factory=dict[str, Numbers])
    """What views have read of their own tables, by the view's name."""
    bytes: int = 0
    """Of the chunks and documents, about: two threads may count at the same moment."""

    def serves(self, position: Position) -> bool:
        """Whether it is of that commit, and has room."""
        numbers = max(map(len, self.numbers.values()), default=0)
        has_room = self.bytes < MOST_BYTES and numbers < MOST_NUMBERS
        return self.position == position and has_room
