"""What is linked to what: a view over the store's resolved links, as a graph in memory.

Documents are nodes; an edge says in which way one refers to the other. A document that neither
links nor is linked to is not in it. Any thread may ask while one catches up: a lock guards the
graph.
"""

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import islice

from ragdocs.indices.hits import Scope
from ragdocs.indices.progress import Progress
from ragdocs.indices.spreading import EDGE_WEIGHTS, Neighbour, damping, spread
from ragdocs.models import DocId, LinkKind
from ragdocs.store.records import ChangeKind, Position, ResolvedLink
from ragdocs.store.snapshot import Snapshot

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
        self._progress = Progress()
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
