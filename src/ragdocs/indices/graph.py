"""The link graph in memory: neighbours of documents, and communities of linked documents."""

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

# How a hit's score spreads along links to neighbouring documents.
#
#     weight of a neighbour = hit's score · edge's weight · damping of both ends · decay of depth
#
# Damping is 1 for a page with few links and falls with the square root of their number above that,
# so that an index page neither brings in every page it lists, nor is brought in by all of them.

EDGE_WEIGHTS: Mapping[LinkKind, float] = {
    # A mention: with the setting's 0.5 it enters at half the hit's score.
    LinkKind.LINKS_TO: 1.0,
    # The author lists the other document as related.
    LinkKind.RELATED: 1.25,
    # The other document's text is shown as part of this one.
    LinkKind.EMBEDS: 1.5,
}
MAX_GAIN = max(EDGE_WEIGHTS.values())
"""Several hits add up, but to no more than the best of them could give alone: with the setting's
0.5 a neighbour stays below the hits that it comes from."""
FREE_LINKS = 10
"""Pages with up to this many links are not damped (specs/0021)."""
DEPTH_DECAY = 0.5
"""Each further link halves the weight, as `graph_neighbor_weight` does for the first one."""
MAX_FRONTIER = 50
"""The number of documents from which the walk continues at each depth, to bound its cost."""

Adjacent = Callable[[DocId], Mapping[DocId, float]]
"""The documents linked with one, in either direction, with the edge's damped weight."""


def damping(links: int) -> float:
    return min(1.0, (FREE_LINKS / max(links, 1)) ** 0.5)


def spread(hits: Mapping[DocId, float], adjacent: Adjacent, depth: int) -> list[Neighbour]:
    """All documents within `depth` links of a hit, best first; a hit only if near another hit."""
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
    """The share of a hit's score that each neighbour gets, along the shortest paths."""
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


# Communities of linked documents, by Louvain's method.
#
# The same links give the same communities, in whatever order they were added: documents are
# numbered in the order of their ids, and the seed is fixed.

# Raise the store's SCHEMA_VERSION when changing these: other values give other communities.
SEED = 42
RESOLUTION = 1.0
"""The usual value; a higher one gives more and smaller communities."""

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
    """The number of each document's community, from weighted pairs of documents; 0 is the largest
    community. None if it was stopped."""
    names = sorted({doc_id for pair in weights for doc_id in pair})
    if not names:  # importing NetworkX takes a quarter of a second
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
    """Uses numbers, because sets of strings have a different order in every process."""
    import networkx as nx

    graph: Graph[int] = nx.Graph()
    graph.add_weighted_edges_from(edges)
    found: Iterable[set[int]] = ()
    for level in nx.community.louvain_partitions(graph, resolution=RESOLUTION, seed=SEED):
        if stop is not None and stop.is_set():
            return None
        found = level
    return found


# The store's resolved links as a graph in memory.
#
# Documents are nodes; an edge has the kind of the link. A document without links to or from it is
# not in the graph. Any thread may read while one catches up: a lock guards the graph.

DEFAULT_DEPTH = 1
MAX_NEIGHBOURS = 20
"""More would only fill the list: ten results are usual."""

_Joined = dict[DocId, set[LinkKind]]
"""The documents at the other ends, with the kinds of the links."""
_KINDS = frozenset({ChangeKind.UPSERT, ChangeKind.DELETE, ChangeKind.LINKS})


@dataclass(frozen=True, slots=True)
class Edge:
    """One document links to another in one way, however often."""

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
        """Brings the graph up to date with the snapshot: reads the links of changed documents, or
        all.

        Raises IndexCorrupt if the store's links are damaged; the graph then stays as it was.
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
        """Makes the next catch-up start over: the store has lost commits that were applied."""
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

        A hit is a neighbour of other hits, never of itself. The scope applies to the documents
        found, not to the ones in between.
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

    Plain dicts, because importing NetworkX takes longer than a search.
    """

    def __init__(self) -> None:
        self._from: dict[DocId, _Joined] = {}
        self._to: dict[DocId, _Joined] = {}
        # Computed on demand, and dropped at the next change.
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
        """See `Adjacent`."""
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
        """The strongest edge between a document and each other one."""
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
        """Removes an edge, and documents that are no longer linked."""
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
    """Leaves out broken links and links of a document to itself."""
    return frozenset(
        Edge(link.source, link.target, link.link.kind)
        for link in links
        if link.target is not None and link.target != link.source
    )
