"""Which documents belong together, by how they are linked: Louvain's method.

The same links give the same communities, in whatever order they came: documents are numbered in
the order of their ids, and the seed is fixed.
"""

from collections.abc import Iterable, Mapping
from threading import Event
from typing import TYPE_CHECKING

from ragdocs.indices.spreading import EDGE_WEIGHTS
from ragdocs.models import DocId
from ragdocs.store.records import ResolvedLink

if TYPE_CHECKING:
    from networkx import Graph

# Other values give other communities: raise the store's SCHEMA_VERSION with them.
SEED = 42
RESOLUTION = 1.0
"""Louvain's usual value; more gives more and smaller communities."""

Pair = tuple[DocId, DocId]


def pair_weights(links: Iterable[ResolvedLink]) -> dict[Pair, float]:
    """Each pair of linked documents once, with the weight of the strongest link between them."""
    weights: dict[Pair, float] = {}
    for one in links:
        if one.target is None or one.target == one.source:
            continue
        pair = (min(one.source, one.target), max(one.source, one.target))
        weights[pair] = max(EDGE_WEIGHTS[one.link.kind], weights.get(pair, 0.0))
    return weights


def detect(weights: Mapping[Pair, float], stop: Event | None = None) -> dict[DocId, int] | None:
    """The number of each document's community, for documents joined in pairs, each with a weight:
    0 is the largest. None when it was stopped."""
    names = sorted({doc_id for pair in weights for doc_id in pair})
    if not names:  # to import NetworkX takes a quarter of a second
        return {}
    numbers = {name: number for number, name in enumerate(names)}
    edges = sorted((numbers[a], numbers[b], weight) for (a, b), weight in weights.items())
    groups = _louvain(edges, stop)
    if groups is None:
        return None
    found = [sorted(group) for group in groups if len(group) > 1]
    found.sort(key=lambda group: (-len(group), group))
    return {names[member]: number for number, group in enumerate(found) for member in group}


def _louvain(
    edges: Iterable[tuple[int, int, float]], stop: Event | None
) -> Iterable[set[int]] | None:
    """Over numbers, because sets of strings have another order in every process."""
    import networkx as nx

    graph: Graph[int] = nx.Graph()
    graph.add_weighted_edges_from(edges)
    found: Iterable[set[int]] = ()
    for level in nx.community.louvain_partitions(graph, resolution=RESOLUTION, seed=SEED):
        if stop is not None and stop.is_set():
            return None
        found = level
    return found
