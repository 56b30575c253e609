"""The passage around a leaf: the enclosing section, within the size a reader can use.

Parent retrieval finds small leaves and returns this. A pure function over the chunk tree.
"""

from collections.abc import Mapping, Sequence

from ragdocs.chunking.splitting import Limits
from ragdocs.models import Chunk, ChunkId


def passage_around(leaf: Chunk, nodes: Sequence[Chunk], size: Limits) -> tuple[Chunk, ...]:
    """The leaves of the largest enclosing section that fits, in order, `leaf` among them.

    A section under the minimum takes in the leaves beside it, so long as the whole still fits;
    one over the maximum gives only the leaves around `leaf`.
    """
    leaves = [node for node in nodes if node.text is not None]
    by_id = {node.id: node for node in nodes}
    here = next(index for index, node in enumerate(leaves) if node.id == leaf.id)
    first, last = _enclosing(leaf, leaves, by_id, size.maximum) or (here, here)
    while _length(leaves, first, last) < size.minimum:
        grown = _grow(leaves, first, last, size.maximum)
        if grown is None:
            break
        first, last = grown
    return tuple(leaves[first : last + 1])


def _enclosing(
    leaf: Chunk, leaves: Sequence[Chunk], by_id: Mapping[ChunkId, Chunk], maximum: int
) -> tuple[int, int] | None:
    best: tuple[int, int] | None = None
    node = leaf
    while node.parent_id is not None:
        node = by_id[node.parent_id]
        inside = [
            index
            for index, other in enumerate(leaves)
            if other.span.byte_start < node.span.byte_end
            and other.span.byte_end > node.span.byte_start
        ]
        if _length(leaves, inside[0], inside[-1]) > maximum:
            break
        best = inside[0], inside[-1]
    return best


def _grow(leaves: Sequence[Chunk], first: int, last: int, maximum: int) -> tuple[int, int] | None:
    """One leaf more, the following first: a reader goes on rather than back."""
    for wider in ((first, last + 1), (first - 1, last)):
        inside = wider[0] >= 0 and wider[1] < len(leaves)
        if inside and _length(leaves, *wider) <= maximum:
            return wider
    return None


def _length(leaves: Sequence[Chunk], first: int, last: int) -> int:
    return sum(len(leaf.text or "") for leaf in leaves[first : last + 1])
