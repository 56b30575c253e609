"""The link graph in memory: neighbours of documents, and the communities of linked ones."""

import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from heapq import nsmallest
from itertools import islice
from threading import Event
from typing import TYPE_CHECKING

from ragdocs.indices.applied_commit import AppliedCommit
from ragdocs.indices.hits import Neighbour
from ragdocs.indices.scopes import Scope
from ragdocs.models import DocId, LinkKind
from ragdocs.store.records import ChangeKind, Position, ResolvedLink
from ragdocs.store.snapshot import Snapshot

if TYPE_CHECKING:
    from networkx import Graph

# How a hit's score spreads along links to the documents around it.
#
#     weight of a neighbour = hit's score · edge's weight · damping of both ends · decay of depth
#
# Damping is 1 for a page with few links and falls with the square root of their number above that:
# an index page neither pulls in all it lists, nor is it pulled in by everything that links to it.

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


# Which documents belong together, by how they are linked: Louvain's method.
#
# The same links give the same communities, in whatever order they came: documents are numbered in
# the order of their ids, and the seed is fixed.

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


# What is linked to what: a view over the store's resolved links, as a graph in memory.
#
# Documents are nodes; an edge says in which way one refers to the other. A document that neither
# links nor is linked to is not in it. Any thread may ask while one catches up: a lock guards the
# graph.

DEFAULT_DEPTH = 1
MAX_NEIGHBOURS = 20
"""More would only fill the list: a neighbour is a hint, and ten results are usual."""

_Joined = dict[DocId, set[LinkKind]]
"""The other ends, and in which ways they are joined."""
_KINDS = frozenset({ChangeKind.UPSERT, ChangeKind.DELETE, ChangeKind.LINKS})


@dataclass(frozen=True, slots=True)
class Edge:
    """That one document refers to another, and in which way; how often does not count."""

    source: DocId
    target: DocId
    kind: LinkKind


class GraphIndex:
    """The links between documents; safe to use from several threads."""

    def __init__(self) -> None:
        self._links = _Links()
        self._progress = AppliedCommit()
        self._lock = threading.Lock()
        self._catching_up = threading.Lock()

    @property
    def position(self) -> Position | None:
        """The commit that has been applied; None before the first catch-up."""
        return self._progress.position

    def __len__(self) -> int:
        """How many documents are linked."""
        with self._lock:
            return len(self._links)

    def edges(self) -> frozenset[Edge]:
        with self._lock:
            return self._links.edges()

    def catch_up(self, snapshot: Snapshot) -> None:
        """Brings the graph to the snapshot: redoes the outgoing links of touched documents, or all.

        Raises IndexCorrupt when the store's links are damaged; the graph then stays as it was.
        """
        with self._catching_up:
            if not self._progress.is_behind(snapshot):
                return
            touched = self._progress.touched(snapshot, _KINDS)
            if touched is None:
                self._rebuild(snapshot)
            else:
                self._redo(snapshot, touched)
            self._progress.reach(snapshot.position)

    def forget(self) -> None:
        """The next catch-up starts over: commits that were applied are gone from the store."""
        with self._catching_up:
            self._progress.forget()

    def neighbours(
        self,
        hits: Mapping[DocId, float],
        depth: int = DEFAULT_DEPTH,
        limit: int = MAX_NEIGHBOURS,
        scope: Scope = None,
    ) -> list[Neighbour]:
        """The documents linked with the hits, in either direction, best first.

        A hit is a neighbour of other hits, never of itself. The scope confines what is found, not
        the way there.
        """
        with self._lock:
            found = spread(hits, self._links.adjacent, depth)
        allowed = (item for item in found if scope is None or item.doc_id in scope)
        return list(islice(allowed, max(limit, 0)))

    def _rebuild(self, snapshot: Snapshot) -> None:
        links = _Links()
        links.add(_edges(snapshot.all_links()))
        with self._lock:
            self._links = links

    def _redo(self, snapshot: Snapshot, touched: frozenset[DocId]) -> None:
        current = {doc_id: _edges(snapshot.links(doc_id)) for doc_id in sorted(touched)}
        try:
            with self._lock:
                for doc_id, edges in current.items():
                    self._links.replace(doc_id, edges)
        except BaseException:
            self._progress.forget()
            raise


class _Links:
    """The graph itself: one edge for each pair of documents, direction and kind.

    Of plain dicts: to import NetworkX takes longer than the first answer's search.
    """

    def __init__(self) -> None:
        self._from: dict[DocId, _Joined] = {}
        self._to: dict[DocId, _Joined] = {}
        # Worked out when they are first asked for, and forgotten with the next change.
        self._adjacent: dict[DocId, Mapping[DocId, float]] = {}

    def __len__(self) -> int:
        return len(self._from.keys() | self._to.keys())

    def edges(self) -> frozenset[Edge]:
        return frozenset(edge for doc_id in self._from for edge in self._outgoing(doc_id))

    def add(self, edges: Iterable[Edge]) -> None:
        self._adjacent.clear()
        for edge in edges:
            kinds = self._from.setdefault(edge.source, {}).setdefault(edge.target, set())
            kinds.add(edge.kind)
            self._to.setdefault(edge.target, {})[edge.source] = kinds

    def replace(self, source: DocId, edges: frozenset[Edge]) -> None:
        """Gives a document these outgoing edges."""
        old = self._outgoing(source)
        for edge in old - edges:
            self._remove(edge)
        self.add(edges - old)

    def adjacent(self, doc_id: DocId) -> Mapping[DocId, float]:
        """See `spreading.Adjacent`."""
        if doc_id not in self._adjacent:
            self._adjacent[doc_id] = self._adjacent_of(doc_id)
        return self._adjacent[doc_id]

    def _adjacent_of(self, doc_id: DocId) -> dict[DocId, float]:
        own = damping(self._degree(doc_id))
        return {
            other: weight * own * damping(self._degree(other))
            for other, weight in self._weights(doc_id).items()
        }

    def _weights(self, doc_id: DocId) -> dict[DocId, float]:
        """The strongest of the edges that join a document with each other one."""
        weights: dict[DocId, float] = {}
        for ends in (self._from, self._to):
            for other, kinds in ends.get(doc_id, {}).items():
                strongest = max(EDGE_WEIGHTS[kind] for kind in kinds)
                weights[other] = max(strongest, weights.get(other, 0.0))
        return weights

    def _degree(self, doc_id: DocId) -> int:
        """How many documents it links to, and how many link to it."""
        return len(self._from.get(doc_id, ())) + len(self._to.get(doc_id, ()))

    def _outgoing(self, doc_id: DocId) -> frozenset[Edge]:
        return frozenset(
            Edge(doc_id, target, kind)
            for target, kinds in self._from.get(doc_id, {}).items()
            for kind in kinds
        )

    def _remove(self, edge: Edge) -> None:
        """And with it what is linked to nothing any more."""
        kinds = self._from[edge.source][edge.target]
        kinds.discard(edge.kind)
        if kinds:
            return
        for ends, near, far in (
            (self._from, edge.source, edge.target),
            (self._to, edge.target, edge.source),
        ):
            del ends[near][far]
            if not ends[near]:
                del ends[near]


def _edges(links: Iterable[ResolvedLink]) -> frozenset[Edge]:
    """Without links that lead nowhere, and those of a document to itself."""
    return frozenset(
        Edge(link.source, link.target, link.link.kind)
        for link in links
        if link.target is not None and link.target != link.source
    )
