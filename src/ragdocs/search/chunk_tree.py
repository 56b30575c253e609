"""One document's chunk tree, or a part of it: what is above a node, and which leaves are below it.

What is above is told by `parent_id` alone: a slug that begins like another says nothing.
"""

from collections.abc import Collection, Iterator, Sequence
from typing import Protocol

from ragdocs.models import ChunkId, DocId
from ragdocs.store.records import ChunkKey, StoredChunk


class NodesOf(Protocol):
    """Reads a part of a document's chunk tree, as `Snapshot.chunks_near` does; more does no harm,
    but a tree may have a hundred thousand nodes.
    """

    def __call__(
        self, doc_id: DocId, found: Collection[ChunkKey], /, *, inside: int = 0, beside: int = 0
    ) -> Sequence[StoredChunk]: ...


class ChunkTree:
    """The nodes in reading order, which has every parent before its children."""

    def __init__(self, nodes: Sequence[StoredChunk]) -> None:
        self.nodes = sorted(nodes, key=lambda node: node.chunk.position)
        self._by_id = {node.chunk.id: node for node in nodes}

    def __getitem__(self, node_id: ChunkId) -> StoredChunk:
        return self._by_id[node_id]

    def parent(self, node_id: ChunkId) -> StoredChunk | None:
        parent_id = self._by_id[node_id].chunk.parent_id
        return None if parent_id is None else self._by_id[parent_id]

    def ancestors(self, node_id: ChunkId) -> Iterator[StoredChunk]:
        """From the parent up to the document."""
        while (parent := self.parent(node_id)) is not None:
            yield parent
            node_id = parent.chunk.id

    def is_inside(self, node_id: ChunkId, other_id: ChunkId) -> bool:
        """Whether a node is another, or anywhere below it."""
        return node_id == other_id or any(
            node.chunk.id == other_id for node in self.ancestors(node_id)
        )

    def leaves(self, node_id: ChunkId) -> tuple[StoredChunk, ...]:
        """The leaves that have a node's text, in order; the first and the last may have more."""
        own = self._by_id[node_id].chunk.span
        return tuple(
            node
            for node in self.nodes
            if node.chunk.text is not None
            and node.chunk.span.byte_start < own.byte_end
            and node.chunk.span.byte_end > own.byte_start
        )
