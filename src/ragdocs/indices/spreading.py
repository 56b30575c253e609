"""How a hit's score spreads along links to the documents around it.

    weight of a neighbour = hit's score · edge's weight · damping of both ends · decay of depth

Damping is 1 for a page with few links and falls with the square root of their number above that:
an index page neither pulls in all it lists, nor is it pulled in by everything that links to it.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping
from heapq import nsmallest
from typing import NamedTuple

from ragdocs.models import DocId, LinkKind

EDGE_WEIGHTS: Mapping[LinkKind, float] = {
    # A mention, deliberate or in passing: with the setting's 0.5 it enters at half the hit's score.
    LinkKind.LINKS_TO: 1.0,
    # The author lists the other as belonging to this one.
    LinkKind.RELATED: 1.25,
    # The other's text is shown as part of this one.
    LinkKind.EMBEDS: 1.5,
}
MAX_GAIN = max(EDGE_WEIGHTS.values())
"""Several hits add up, but to no more than the best of them could give alone: with the setting's
0.5 a neighbour stays below the hits that brought it."""
FREE_LINKS = 10
"""Pages with up to so many links are no hubs (specs/0021)."""
DEPTH_DECAY = 0.5
"""Each further link halves what arrives, as the first one does by `graph_neighbor_weight`."""
MAX_FRONTIER = 50
"""From how many documents the walk goes on at each depth, so that a dense graph costs no more."""

Adjacent = Callable[[DocId], Mapping[DocId, float]]
"""The documents linked with one, in either direction, with the edge's weight and both dampings."""


class Neighbour(NamedTuple):
    """A document near some hits: how much of their scores reaches it, over how few links.

    A tuple, because hundreds are made for every query.
    """

    doc_id: DocId
    weight: float
    depth: int


def damping(links: int) -> float:
    return min(1.0, (FREE_LINKS / max(links, 1)) ** 0.5)


def spread(hits: Mapping[DocId, float], adjacent: Adjacent, depth: int) -> list[Neighbour]:
    """All documents within `depth` links of a hit, best first; a hit only if others lead to it."""
    weights: defaultdict[DocId, float] = defaultdict(float)
    depths: dict[DocId, int] = {}
    for origin in sorted(hits):
        for found in _around(origin, adjacent, depth):
            weights[found.doc_id] += hits[origin] * found.weight
            depths[found.doc_id] = min(found.depth, depths.get(found.doc_id, depth))
    limit = MAX_GAIN * max(hits.values(), default=0.0)
    neighbours = [
        Neighbour(doc_id, min(weight, limit), depths[doc_id]) for doc_id, weight in weights.items()
    ]
    return sorted(neighbours, key=_order)


def _around(origin: DocId, adjacent: Adjacent, depth: int) -> list[Neighbour]:
    """What one hit gives of each point of its score, by the shortest ways."""
    seen = {origin}
    found: list[Neighbour] = []
    frontier = [Neighbour(origin, 1.0, 0)]
    for step in range(1, depth + 1):
        reached: defaultdict[DocId, float] = defaultdict(float)
        factor = 1.0 if step == 1 else DEPTH_DECAY
        for node in frontier:
            for doc_id, weight in adjacent(node.doc_id).items():
                if doc_id not in seen:
                    reached[doc_id] += node.weight * weight * factor
        seen.update(reached)
        layer = [Neighbour(doc_id, weight, step) for doc_id, weight in reached.items()]
        found += layer
        if step < depth:
            frontier = nsmallest(MAX_FRONTIER, layer, key=_order)
    return found


def _order(neighbour: Neighbour) -> tuple[float, int, DocId]:
    return -neighbour.weight, neighbour.depth, neighbour.doc_id
