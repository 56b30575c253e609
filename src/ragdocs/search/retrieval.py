"""One query put to every index: which chunks could answer it, by each one's own opinion."""

from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ragdocs.config.sections import SearchConfig
from ragdocs.embedding.base import Embedder
from ragdocs.embedding.cross_encoder import CrossEncoder
from ragdocs.errors import EmbeddingError
from ragdocs.indices.analysis import Analyzer
from ragdocs.indices.code import CodeEngine
from ragdocs.indices.graph import GraphIndex
from ragdocs.indices.hits import Hit, Scope
from ragdocs.indices.keyword import KeywordEngine, KeywordQuery
from ragdocs.indices.term_vectors import NearTerm
from ragdocs.indices.tiers import search_in_tiers
from ragdocs.indices.vector import VectorIndex
from ragdocs.models import DocId
from ragdocs.search.candidates import Strategy
from ragdocs.search.expansion import mixed
from ragdocs.search.fusion import Fused
from ragdocs.search.graph_neighbours import QueryVector, neighbour_hits
from ragdocs.search.hyde import Topic
from ragdocs.search.interpretation import Interpreter, WordSources
from ragdocs.search.query_language import parse_query
from ragdocs.search.understanding import Understanding
from ragdocs.store.snapshot import Snapshot

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

HITS_PER_INDEX = 100
"""Enough that a chunk placed well by one index alone is still seen by the other."""
GRAPH_SEEDS = 10
"""The documents whose neighbours are looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Indices:
    """All that can be asked. Without vectors or links, the rest still answers."""

    analyzer: Analyzer
    keyword: KeywordEngine
    code: CodeEngine | None = None
    vector: VectorIndex | None = None
    embedder: Embedder | None = None
    graph: GraphIndex | None = None
    cross_encoder: CrossEncoder | None = None
    words: WordSources = field(default_factory=WordSources)

    def catch_up(self, snapshot: Snapshot) -> None:
        for view in (self.keyword, self.vector, self.graph):
            if view is not None:
                view.catch_up(snapshot)


@dataclass(frozen=True, slots=True)
class Found:
    """Each index's hits for one query, and the most that the query could score there."""

    lists: Mapping[Strategy, Sequence[Hit]]
    ideals: Mapping[Strategy, float]
    vector: "NDArray[np.float32] | None"
    notes: tuple[str, ...]
    understanding: Understanding


class Retrieval:
    """Asks the indices. The query is embedded beside the searches that need no vector."""

    def __init__(self, indices: Indices, settings: SearchConfig) -> None:
        self._indices = indices
        self._settings = settings
        self._interpreter = Interpreter(indices.analyzer, indices.words, settings)
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="query-embedding")

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)

    def find(self, snapshot: Snapshot, topic: Topic, scope: Scope, language: str = "") -> Found:
        parsed = parse_query(topic.words)
        pending = self._start_embedding(topic.meaning or parsed.text)
        understood = self._interpreter.read(snapshot, topic.words, parsed)
        near: Sequence[NearTerm] = ()
        # A hypothesis is long and says what it means: nothing is added to it.
        if topic.meaning is None and self._interpreter.may_expand(snapshot):
            understood, near = self._interpreter.expanded(understood, _embedded(pending)[0])
        lists: dict[Strategy, Sequence[Hit]] = {}
        ideals: dict[Strategy, float] = {}
        query, indices = understood.query, self._indices
        if topic.words:
            words = search_in_tiers(indices.keyword, snapshot, query, HITS_PER_INDEX, scope)
            lists[Strategy.KEYWORD], ideals[Strategy.KEYWORD] = words.hits, words.ideal
        if topic.words and self._settings.code_search_enabled and indices.code is not None:
            code = indices.code.search(snapshot, parsed.text, HITS_PER_INDEX, scope, language)
            lists[Strategy.CODE], ideals[Strategy.CODE] = code.hits, code.ideal
        vector, notes = _embedded(pending)
        if vector is not None and indices.vector is not None:
            vector = mixed(vector, near)
            hits = indices.vector.search(vector, HITS_PER_INDEX, scope)
            lists[Strategy.SEMANTIC] = self._fulfilling(snapshot, query, hits)
        return Found(lists, ideals, vector, (*understood.notes, *notes), understood)

    def neighbours(
        self, snapshot: Snapshot, found: Found, fused: Sequence[Fused], scope: Scope
    ) -> list[Hit]:
        """The best passages of documents linked with those that were found."""
        graph = self._indices.graph
        if graph is None or self._settings.graph_weight <= 0:
            return []
        linked = graph.neighbours(
            _best_documents(snapshot, fused), depth=self._settings.graph_depth, scope=scope
        )
        meaning = None
        if found.vector is not None and self._indices.vector is not None:
            meaning = QueryVector(found.vector, self._indices.vector)
        return neighbour_hits(snapshot, linked, meaning, self._settings.graph_neighbor_weight)

    def _start_embedding(self, text: str) -> "Future[NDArray[np.float32]] | None":
        if self._indices.embedder is None or not text.strip():
            return None
        return self._pool.submit(self._indices.embedder.embed_query, text)

    def _fulfilling(
        self, snapshot: Snapshot, query: KeywordQuery, hits: Sequence[Hit]
    ) -> Sequence[Hit]:
        """A strict query's conditions hold for passages found by meaning too."""
        if query.condition is None:
            return hits
        allowed = self._indices.keyword.matching(snapshot, query.condition)
        return [hit for hit in hits if hit.key in allowed]


def _embedded(
    pending: "Future[NDArray[np.float32]] | None",
) -> "tuple[NDArray[np.float32] | None, tuple[str, ...]]":
    if pending is None:
        return None, ()
    try:
        return pending.result(), ()
    except EmbeddingError as error:
        return None, (f"searched without vectors: {error}",)


def _best_documents(snapshot: Snapshot, fused: Sequence[Fused]) -> dict[DocId, float]:
    """The first documents with their best scores."""
    chunks = snapshot.chunks_by_key([item.key for item in fused[: GRAPH_SEEDS * 3]])
    best: dict[DocId, float] = {}
    for item in fused[: GRAPH_SEEDS * 3]:
        if item.key in chunks and len(best) < GRAPH_SEEDS:
            best.setdefault(chunks[item.key].chunk.doc_id, item.score)
    return best
