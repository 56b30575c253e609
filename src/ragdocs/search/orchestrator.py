"""A request from beginning to end: classify, retrieve, fuse, hydrate, run the stages.

It owns no ranking rule: the indices find, `weighing` weighs, the stages decide what is left.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from time import perf_counter

from ragdocs.chunking.splitting import Limits
from ragdocs.config.sections import SearchConfig
from ragdocs.indices.hits import Scope
from ragdocs.models import DocId, TreeName
from ragdocs.search.answers import Answered, did_you_mean, explain
from ragdocs.search.boosts import BoostRules
from ragdocs.search.candidates import Candidate, Strategy
from ragdocs.search.classifier import classify_query
from ragdocs.search.evidence import Measures, with_evidence
from ragdocs.search.filters import matches
from ragdocs.search.hyde import Topic, topics
from ragdocs.search.hydration import Hydration
from ragdocs.search.index_state import IndexStates
from ragdocs.search.linked import with_links
from ragdocs.search.merging import names_all
from ragdocs.search.pipeline import StageTools, build_stages
from ragdocs.search.presentation import Presenter
from ragdocs.search.requests import Filters, QueryRequest
from ragdocs.search.reranker import Reranker
from ragdocs.search.responses import SearchResponse
from ragdocs.search.retrieval import Indices, Retrieval
from ragdocs.search.stages import CompressionStats, run_stages
from ragdocs.search.weighing import weigh
from ragdocs.store.reader import Reader
from ragdocs.store.snapshot import Snapshot

FEWEST_CANDIDATES, MOST_CANDIDATES = 40, 150
CANDIDATES_PER_RESULT = 4
"""Copies fall, siblings merge and a document has few places: so many are needed for one result."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What an answer depends on besides the index and the search settings."""

    clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    local_trees: frozenset[TreeName] = frozenset()
    parent_size: Limits | None = None


class QueryOrchestrator:
    """Answers requests over one index; safe to share between threads."""

    def __init__(
        self,
        reader: Reader,
        indices: Indices,
        settings: SearchConfig,
        surroundings: Surroundings | None = None,
    ) -> None:
        self._reader = reader
        self._indices = indices
        self._settings = settings
        self._surroundings = surroundings or Surroundings()
        self._retrieval = Retrieval(indices, settings)
        self._states = IndexStates(indices.vector)

    def close(self) -> None:
        self._retrieval.close()

    def search(self, request: QueryRequest) -> SearchResponse:
        started = perf_counter()
        asked = topics(request, is_enabled=self._settings.advanced.hyde_enabled)
        with self._reader.snapshot() as snapshot:
            self._indices.catch_up(snapshot)
            scope = _scope(snapshot, request.filters)
            answered = [self._answer(snapshot, topic, request, scope) for topic in asked]
            candidates = _merged([item for each in answered for item in each.candidates])
            retrieved = perf_counter()
            judge = self._judge(request)
            tools = self._tools(snapshot, request, judge)
            stages = build_stages(self._settings, request, tools)
            left, counts = run_stages(stages, candidates, explain=request.explain)
            has_vectors = any(each.found.vector is not None for each in answered)
            state = self._states.of(snapshot, has_vectors=has_vectors)
        shown = Presenter(self._indices.analyzer, answered).present(left, request.max_tokens)
        notes = [note for each in answered for note in each.found.notes]
        seconds = {count.name: count.seconds for count in counts}
        seconds["retrieval"] = retrieved - started
        return SearchResponse(
            results=shown.results,
            query_types=tuple(each.query_type for each in answered),
            index=state,
            stats=CompressionStats.from_counts(len(candidates), counts),
            stages=counts,
            seconds={**seconds, "total": perf_counter() - started},
            notes=tuple(dict.fromkeys([*notes, *(judge.notes if judge else ())])),
            did_you_mean=did_you_mean(answered),
            omitted=shown.omitted,
            explanation=explain(answered, left, counts) if request.explain else None,
        )

    def _answer(
        self, snapshot: Snapshot, topic: Topic, request: QueryRequest, scope: Scope
    ) -> Answered:
        query_type = request.query_type or classify_query(topic.words or request.hypothesis)
        found = self._retrieval.find(snapshot, topic, scope, request.filters.language)
        weighed = weigh(found, query_type, self._settings)
        linked = self._retrieval.neighbours(snapshot, found, weighed.fused, scope)
        found = found.with_list(Strategy.GRAPH, linked)
        fused = with_links(weighed.fused, linked, weighed.link_weight)
        fused = fused[: candidates_for(request.top_n)]
        candidates = Hydration(snapshot, self._indices.vector).candidates(fused)
        nearness = self._retrieval.nearness(found, [item.key for item in fused])
        measures = Measures(nearness, found.ideals, found.words, found.has_known_words)
        measured = with_evidence(candidates, measures)
        return Answered(topic, query_type, found, weighed, measured)

    def _judge(self, request: QueryRequest) -> Reranker | None:
        encoder = self._indices.cross_encoder
        if encoder is None or not self._settings.rerank_enabled:
            return None
        return Reranker(encoder, request.queries, request.hypothesis)

    def _tools(
        self, snapshot: Snapshot, request: QueryRequest, judge: Reranker | None
    ) -> StageTools:
        analyzer = self._indices.analyzer
        terms = frozenset(token.term for text in request.queries for token in analyzer.query(text))
        return StageTools(
            nodes_of=cache(snapshot.chunks),
            is_named=names_all(terms, analyzer.terms),
            boosts=self._boosts(),
            judge=judge,
            parent_size=self._surroundings.parent_size,
        )

    def _boosts(self) -> BoostRules:
        settings, advanced = self._settings, self._settings.advanced
        graph = self._indices.graph
        known: Mapping[DocId, int] = {}
        # Communities take seconds to find in a large graph: a query never waits for them.
        if graph is not None and graph.has_current_communities():
            known = graph.communities().numbers
        return BoostRules(
            now=self._surroundings.clock(),
            recency_bias=settings.recency_bias,
            communities=known if advanced.community_detection_enabled else {},
            community_factor=advanced.community_boost_factor,
            local_trees=self._surroundings.local_trees,
            local_factor=settings.local_boost,
        )


def candidates_for(top_n: int) -> int:
    """How many fused hits are read from the store and go through the stages."""
    return min(MOST_CANDIDATES, max(FEWEST_CANDIDATES, CANDIDATES_PER_RESULT * top_n))


def _scope(snapshot: Snapshot, filters: Filters) -> Scope:
    """The documents that the filters leave, or None when there are no filters."""
    if filters == Filters():
        return None
    found: set[DocId] = {doc.id for doc in snapshot.documents() if matches(filters, doc)}
    return frozenset(found)


def _merged(candidates: Sequence[Candidate]) -> list[Candidate]:
    """One entry per chunk with its best score, best first: several queries are one answer."""
    best: dict[int, Candidate] = {}
    for item in candidates:
        known = best.get(item.stored.key)
        if known is None or item.score > known.score:
            best[item.stored.key] = item
    return sorted(best.values(), key=lambda item: (-item.score, item.stored.key))
