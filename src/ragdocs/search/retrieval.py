"""One query put to every index: which chunks could answer it, by each one's own opinion."""

from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from ragdocs.config.sections import SearchConfig
from ragdocs.embedding.base import Embedder
from ragdocs.embedding.cross_encoder import CrossEncoder
from ragdocs.errors import EmbeddingError
from ragdocs.indices.analysis import Analyzer
from ragdocs.indices.code import CodeEngine
from ragdocs.indices.graph import GraphIndex
from ragdocs.indices.hits import Hit, Scope
from ragdocs.indices.keyword import KeywordEngine, KeywordQuery, Unit
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
from ragdocs.store.records import ChunkKey
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
    """How a query was understood, and each index's hits for it with the most there was to score
    there (without an ideal it is 1); of the words, how many chunks have each.
    """

    understanding: Understanding
    lists: Mapping[Strategy, Sequence[Hit]] = field(default_factory=dict[Strategy, Sequence[Hit]])
    ideals: Mapping[Strategy, float] = field(default_factory=dict[Strategy, float])
    frequencies: Mapping[Unit, int] = field(default_factory=dict[Unit, int])
    vector: "NDArray[np.float32] | None" = None
    best_similarity: float = 0.0
    """The cosine of the passage nearest in meaning."""
    notes: tuple[str, ...] = ()

    @property
    def words(self) -> int:
        """How many different words were looked for."""
        return len(self.understanding.query.units)

    @property
    def has_known_words(self) -> bool:
        """Whether the documents have any of the typed words."""
        return any(self.frequencies.get(unit, 0) for unit in self.understanding.query.units)

    def with_list(
        self, strategy: Strategy, hits: Sequence[Hit], ideal: float | None = None
    ) -> "Found":
        ideals = self.ideals if ideal is None else {**self.ideals, strategy: ideal}
        return replace(self, lists={**self.lists, strategy: hits}, ideals=ideals)


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
        found = Found(understood)
        if topic.words:
            found = self._by_words(snapshot, found, scope)
            found = self._by_code(snapshot, found, scope, language)
        vector, notes = _embedded(pending)
        found = replace(found, notes=(*understood.notes, *notes))
        if vector is None or self._indices.vector is None:
            return found
        return self._by_meaning(snapshot, replace(found, vector=mixed(vector, near)), scope)

    def _by_words(self, snapshot: Snapshot, found: Found, scope: Scope) -> Found:
        query = found.understanding.query
        hits = search_in_tiers(self._indices.keyword, snapshot, query, HITS_PER_INDEX, scope)
        given = found.with_list(Strategy.KEYWORD, hits.hits, hits.ideal)
        return replace(given, frequencies=hits.frequencies)

    def _by_code(self, snapshot: Snapshot, found: Found, scope: Scope, language: str) -> Found:
        engine = self._indices.code
        if engine is None or not self._settings.code_search_enabled:
            return found
        text = found.understanding.parsed.text
        code = engine.search(snapshot, text, HITS_PER_INDEX, scope, language)
        return found.with_list(Strategy.CODE, code.hits, code.ideal)

    def _by_meaning(self, snapshot: Snapshot, found: Found, scope: Scope) -> Found:
        index, vector = self._indices.vector, found.vector
        if index is None or vector is None:
            return found
        hits = index.search(vector, HITS_PER_INDEX, scope)
        best = hits[0].score if hits else 0.0
        placed = self._in_context(vector, hits)
        kept = self._fulfilling(snapshot, found.understanding.query, placed)
        return replace(found.with_list(Strategy.SEMANTIC, kept), best_similarity=best)

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

    def nearness(self, found: Found, keys: Collection[ChunkKey]) -> dict[ChunkKey, float] | None:
        """How near these chunks are in meaning, whether or not that is how they were found."""
        if found.vector is None or self._indices.vector is None:
            return None
        return self._indices.vector.in_context(found.vector, keys, self._settings.document_weight)

    def _start_embedding(self, text: str) -> "Future[NDArray[np.float32]] | None":
        if self._indices.embedder is None or not text.strip():
            return None
        return self._pool.submit(self._indices.embedder.embed_query, text)

    def _in_context(self, vector: "NDArray[np.float32]", hits: Sequence[Hit]) -> Sequence[Hit]:
        """A passage is also as near as its document: what the whole is about tells apart those
        that only mention a thing (specs/calibration.md).
        """
        index = self._indices.vector
        if index is None or self._settings.document_weight <= 0:
            return hits
        near = index.in_context(vector, [hit.key for hit in hits], self._settings.document_weight)
        placed = [Hit(hit.key, near.get(hit.key, hit.score)) for hit in hits]
        return sorted(placed, key=lambda hit: (-hit.score, hit.key))

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
