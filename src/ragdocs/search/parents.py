"""Found by a small passage, returned as the one around it (P13)."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from ragdocs.chunking.parents import passage_around
from ragdocs.chunking.splitting import Limits, overlap_before
from ragdocs.models import ChunkId, DocId
from ragdocs.search.candidates import Candidate
from ragdocs.search.chunk_tree import ChunkTree, NodesOf
from ragdocs.store.records import StoredChunk

MOST_BYTES_PER_CHARACTER = 4
"""Of every encoding that is read."""


def expand_to_parents(
    candidates: Sequence[Candidate],
    nodes_of: NodesOf,
    size: Limits,
    overlap: int,
    per_document: int,
) -> list[Candidate]:
    """Each result as its enclosing passage; children of one passage are one result, with the best
    child's score. Passages have no leaf in common, but each begins with up to `overlap` characters
    of what stands before it. Of a document only the first `per_document` are worth the reading.
    """
    expansion = _Expansion(nodes_of, size, overlap)
    expanded = Counter[DocId]()
    for item in candidates:
        # Merged sections are large enough, and what is in them is theirs.
        expansion.taken.update(dict.fromkeys((leaf.chunk.id for leaf in item.passage), item.id))
    results: dict[ChunkId, Candidate] = {}
    for item in candidates:
        bearer = expansion.taken.get(item.id)
        if bearer is not None and not item.passage:
            if bearer in results:
                results[bearer] = _joined(results[bearer], item)
        elif item.passage or expanded[item.document.id] >= per_document:
            results[item.id] = item
        else:
            expanded[item.document.id] += 1
            results[item.id] = expansion.of(item)
    return list(results.values())


class _Expansion:
    """Passages so far, and which leaves they hold."""

    def __init__(self, nodes_of: NodesOf, size: Limits, overlap: int) -> None:
        self.taken: dict[ChunkId, ChunkId] = {}
        """Leaf → the candidate whose passage holds it."""
        self._nodes_of = nodes_of
        self._size = size
        self._overlap = overlap

    def of(self, item: Candidate) -> Candidate:
        # No passage of this size reaches further.
        reach = self._size.maximum * MOST_BYTES_PER_CHARACTER
        tree = ChunkTree(self._nodes_of(item.document.id, (item.stored.key,), beside=reach))
        leaves = self._free_around(item.stored, self._passage(item, tree))
        self.taken.update(dict.fromkeys((leaf.chunk.id for leaf in leaves), item.id))
        if len(leaves) == 1 and leaves[0].chunk.id == item.id:
            return item
        node = _largest_inside(item.stored, leaves, tree)
        before, lead = self._before(leaves[0], tree)
        return replace(
            item,
            stored=node,
            constituents=item.found,
            matched=item.best,
            is_parent=True,
            passage=leaves,
            before=before,
            lead=lead,
        )

    def _before(self, first: StoredChunk, tree: ChunkTree) -> tuple[StoredChunk | None, int]:
        """The leaf before a passage, and how much of its end is shown: whole words."""
        for node in tree.nodes:
            text = node.chunk.text
            if text is not None and node.chunk.span.byte_end == first.chunk.span.byte_start:
                return node, len(overlap_before(text, 0, len(text), self._overlap))
        return None, 0

    def _passage(self, item: Candidate, tree: ChunkTree) -> tuple[StoredChunk, ...]:
        nodes = [node.chunk for node in tree.nodes]
        passage = passage_around(item.stored.chunk, nodes, self._size)
        return tuple(tree[leaf.id] for leaf in passage)

    def _free_around(
        self, stored: StoredChunk, leaves: Sequence[StoredChunk]
    ) -> tuple[StoredChunk, ...]:
        """The run of leaves around a chunk that no other passage has."""
        here = next(n for n, leaf in enumerate(leaves) if leaf.chunk.id == stored.chunk.id)
        is_taken = [leaf.chunk.id in self.taken for leaf in leaves]
        first, last = here, here
        while first > 0 and not is_taken[first - 1]:
            first -= 1
        while last + 1 < len(leaves) and not is_taken[last + 1]:
            last += 1
        return tuple(leaves[first : last + 1])


def _largest_inside(
    stored: StoredChunk, leaves: Sequence[StoredChunk], tree: ChunkTree
) -> StoredChunk:
    """What names a passage: the largest section around the match that lies wholly in it."""
    start, end = leaves[0].chunk.span.byte_start, leaves[-1].chunk.span.byte_end
    node = stored
    for above in tree.ancestors(stored.chunk.id):
        if above.chunk.span.byte_start < start or above.chunk.span.byte_end > end:
            break
        node = above
    return node


def _joined(result: Candidate, item: Candidate) -> Candidate:
    found = {node.key: node for node in (*result.found, *item.found)}
    return replace(
        result,
        score=max(result.score, item.score),
        confidence=max(result.confidence, item.confidence),
        constituents=tuple(sorted(found.values(), key=lambda node: node.chunk.position)),
    )
