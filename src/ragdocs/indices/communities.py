"""Which documents belong together, by how they are linked: Louvain's method.

The same links give the same communities, in whatever order they came: documents are numbered in
the order of their ids, and the seed is fixed.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ragdocs.models import DocId

if TYPE_CHECKING:
    from networkx import Graph

SEED = 42
RESOLUTION = 1.0
"""Louvain's usual value; more gives more and smaller communities."""

Pair = tuple[DocId, DocId]


@dataclass(frozen=True, slots=True)
class Communities:
    """Groups of two documents or more, the largest first; who is linked to none is in none."""

    groups: tuple[tuple[DocId, ...], ...] = ()
    numbers: Mapping[DocId, int] = field(default_factory=dict[DocId, int])

    def of(self, doc_id: DocId) -> int | None:
        """The number of the document's group."""
        return self.numbers.get(doc_id)


def detect(weights: Mapping[Pair, float]) -> Communities:
    """The communities of documents joined in pairs, each with a weight."""
    names = sorted({doc_id for pair in weights for doc_id in pair})
    numbers = {name: number for number, name in enumerate(names)}
    edges = sorted((numbers[a], numbers[b], weight) for (a, b), weight in weights.items())
    found = [sorted(group) for group in _louvain(edges) if len(group) > 1]
    found.sort(key=lambda group: (-len(group), group))
    groups = tuple(tuple(names[number] for number in group) for group in found)
    return Communities(groups, {name: at for at, group in enumerate(groups) for name in group})


def _louvain(edges: Iterable[tuple[int, int, float]]) -> Iterable[set[int]]:
    """Over numbers, because sets of strings have another order in every process."""
    import networkx as nx

    graph: Graph[int] = nx.Graph()
    graph.add_weighted_edges_from(edges)
    return nx.community.louvain_communities(graph, resolution=RESOLUTION, seed=SEED)
