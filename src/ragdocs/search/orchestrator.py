"""A request from beginning to end: classify, retrieve, fuse, hydrate, run the stages.

It owns no ranking rule: the indices find, `fusion` weighs, the stages decide what is left.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache
from time import perf_counter

from ragdocs.config.choices import Fusion
from ragdocs.config.sections import SearchConfig
from ragdocs.indices.hits import Scope
from ragdocs.models import DocId, TreeName
from ragdocs.search.boosts import BoostRules
from ragdocs.search.candidates import Candidate, Strategy
from ragdocs.search.classifier import adaptive_weights, classify_query
from ragdocs.search.filters import matches
from ragdocs.search.fusion import Fused, by_ideal, by_range, fuse_by_rank, fuse_by_score
from ragdocs.search.merging import names_all
from ragdocs.search.pipeline import StageTools, build_stages
from ragdocs.search.requests import Filters, QueryRequest, QueryType
from ragdocs.search.responses import SearchResponse, SearchResult
from ragdocs.search.retrieval import Found, Indices, Retrieval
from ragdocs.search.stages import CompressionStats, run_stages
from ragdocs.search.variance import score_aware_weights
from ragdocs.store.reader import Reader
from ragdocs.store.snapshot import Snapshot

CANDIDATES = 100
"""How many fused hits are read from the store and go through the stages."""


@dataclass(frozen=True, slots=True)
class _Answered:
    """One query's candidates, and how it was understood."""

    candidates: Sequence[Candidate]
    query_type: QueryType
    notes: tuple[str, ...]


class QueryOrchestrator:
    """Answers requests over one index; safe to share between threads."""

    def __init__(
        self,
        reader: Reader,
        indices: Indices,
        settings: SearchConfig,
        clock: Callable[[], datetime],
        local_trees: frozenset[TreeName] = frozenset(),
    ) -> None:
        self._reader = reader
        self._indices = indices
        self._settings = settings
        self._clock = clock
        self._local_trees = local_trees
        self._retrieval = Retrieval(indices, settings)

    def close(self) -> None:
        self._retrieval.close()

    def search(self, request: QueryRequest) -> SearchResponse:
        started = perf_counter()
        with self._reader.snapshot() as snapshot:
            self._indices.catch_up(snapshot)
            scope = _scope(snapshot, request.filters)
            answered = [self._answer(snapshot, text, request, scope) for text in request.queries]
            candidates = _merged([item for each in answered for item in each.candidates])
            retrieved = perf_counter()
            stages = build_stages(self._settings, request, self._tools(snapshot, request))
            left, counts = run_stages(stages, candidates)
        return SearchResponse(
            results=tuple(SearchResult.from_candidate(item) for item in left),
            query_types=tuple(each.query_type for each in answered),
            stats=CompressionStats.from_counts(len(candidates), counts),
            stages=counts,
            seconds={"retrieval": retrieved - started, "stages": perf_counter() - retrieved},
            notes=tuple(dict.fromkeys(note for each in answered for note in each.notes)),
        )

    def _answer(
        self, snapshot: Snapshot, text: str, request: QueryRequest, scope: Scope
    ) -> _Answered:
        query_type = request.query_type or classify_query(text)
        found = self._retrieval.find(snapshot, text, scope, request.filters.language)
        fused = self._fuse(found, query_type)
        linked = self._retrieval.neighbours(snapshot, found, fused, scope)
        if linked:
            found = replace(found, lists={**found.lists, Strategy.GRAPH: linked})
            fused = self._fuse(found, query_type)
        candidates = self._hydrate(snapshot, fused[:CANDIDATES])
        return _Answered(candidates, query_type, found.notes)

    def _fuse(self, found: Found, query_type: QueryType) -> list[Fused]:
        settings = self._settings
        weights: Mapping[Strategy, float] = {
            Strategy.SEMANTIC: settings.semantic_weight,
            Strategy.KEYWORD: settings.keyword_weight,
            Strategy.CODE: settings.code_search_weight,
            Strategy.GRAPH: settings.graph_weight,
        }
        if settings.adaptive_weights_enabled:
            weights = adaptive_weights(weights, query_type)
        advanced = settings.advanced
        if advanced.dynamic_weights_enabled:
            scaled = {s: by_range(s, [h.score for h in hits]) for s, hits in found.lists.items()}
            weights = score_aware_weights(
                weights, scaled, advanced.variance_threshold, advanced.min_weight_factor
            )
        if settings.fusion is Fusion.SCORE:
            return fuse_by_score(found.lists, weights, by_ideal(found.ideals))
        # Ranks know nothing of scores, in which a neighbour's lower weight would otherwise show.
        lowered = weights[Strategy.GRAPH] * settings.graph_neighbor_weight
        ranked = {**weights, Strategy.GRAPH: lowered}
        return fuse_by_rank(found.lists, ranked, settings.rrf_k_constant)

    def _hydrate(self, snapshot: Snapshot, fused: Sequence[Fused]) -> list[Candidate]:
        """Everything any stage may need, read once."""
        keys = [item.key for item in fused]
        chunks = snapshot.chunks_by_key(keys)
        document = cache(snapshot.document)
        vectors = self._indices.vector.vectors_of(keys) if self._indices.vector else {}
        candidates: list[Candidate] = []
        for item in fused:
            stored = chunks.get(item.key)
            owner = document(stored.chunk.doc_id) if stored else None
            if stored is not None and owner is not None:
                candidates.append(
                    Candidate(
                        stored=stored,
                        document=owner,
                        score=item.score,
                        relevance=item.score,
                        evidence=item.evidence,
                        contributions=item.contributions,
                        vector=vectors.get(item.key),
                    )
                )
        return candidates

    def _tools(self, snapshot: Snapshot, request: QueryRequest) -> StageTools:
        analyzer = self._indices.analyzer
        terms = frozenset(token.term for text in request.queries for token in analyzer.query(text))
        return StageTools(
            nodes_of=cache(snapshot.chunks),
            is_named=names_all(terms, analyzer.terms),
            boosts=self._boosts(),
        )

    def _boosts(self) -> BoostRules:
        settings, advanced = self._settings, self._settings.advanced
        graph = self._indices.graph
        # Communities take seconds to find in a large graph: a query never waits for them.
        is_known = graph is not None and graph.has_current_communities()
        known: Mapping[DocId, int] = {}
        if graph is not None and is_known:
            known = graph.communities().numbers
        return BoostRules(
            now=self._clock(),
            recency_bias=settings.recency_bias,
            communities=known if advanced.community_detection_enabled else {},
            community_factor=advanced.community_boost_factor,
            local_trees=self._local_trees,
            local_factor=settings.local_boost,
        )


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
