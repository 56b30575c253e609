"""A request from beginning to end: classify, retrieve, fuse, hydrate, run the stages.

It owns no ranking rule: the indices find, `weighing` weighs, the stages decide what is left.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from time import perf_counter

from ragdocs.chunking.splitting import Limits
from ragdocs.config.search_section import SearchConfig
from ragdocs.models import ChunkId, DocId, TreeName
from ragdocs.search.answers import (
    Answered,
    Attempt,
    did_you_mean,
    explain,
    merged,
    nearest_terms,
)
from ragdocs.search.boosts import BoostRules
from ragdocs.search.candidates import Candidate, Strategy
from ragdocs.search.classifier import classify_query
from ragdocs.search.evidence import USUAL, Measures, Question, rarity, with_evidence
from ragdocs.search.filters import cut_at_elbow
from ragdocs.search.fusion import Fused
from ragdocs.search.hyde import topics
from ragdocs.search.hydration import Hydration, documents_of, few_of_each
from ragdocs.search.index_state import IndexState, IndexStates
from ragdocs.search.merging import names_all
from ragdocs.search.pipeline import (
    StageTools,
    build_stages,
    compares_meaning,
    places_of_a_document,
)
from ragdocs.search.presentation import Presenter
from ragdocs.search.reach import Reach, most_of_a_document
from ragdocs.search.refining import Refiner
from ragdocs.search.requests import Filters, QueryRequest
from ragdocs.search.reranker import Reranker
from ragdocs.search.responses import Metadata, MetadataMaker, SearchResponse
from ragdocs.search.retrieval import GRAPH_SEED_CHUNKS, Found, Indices, Read, Retrieval, Started
from ragdocs.search.scopes import Scopes
from ragdocs.search.sections import Naming, asks_for, with_sections
from ragdocs.search.stages import CompressionStats, run_stages
from ragdocs.search.tree_shares import missing_trees, with_best_of, with_every_tree
from ragdocs.search.weighing import Weighed, weigh, weigh_links
from ragdocs.search.wishes import wished_first, with_wishes
from ragdocs.store.reader import Reader
from ragdocs.store.records import ChunkKey
from ragdocs.store.snapshot import Snapshot

TRIES = 3
"""How often a request begins again because the index went on under it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What an answer depends on besides the index and the search settings."""

    clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    local_trees: frozenset[TreeName] = frozenset()
    parent_size: Limits | None = None
    parent_overlap: int = 0


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
        self._refiner = Refiner(indices.analyzer, indices.vector, settings)
        self._states = IndexStates(indices.vector)
        self._scopes = Scopes()

    def close(self) -> None:
        self._retrieval.close()

    def state(self) -> IndexState:
        """What could be answered for now."""
        with self._reader.snapshot() as snapshot:
            self._indices.catch_up(snapshot)
            return self._states.of(snapshot, has_vectors=self._retrieval.has_model())

    def search(self, request: QueryRequest) -> SearchResponse:
        started = perf_counter()
        asked = topics(request, is_enabled=self._settings.advanced.hyde_enabled)
        begun = self._retrieval.start(asked)
        attempt, state = self._of_one_commit(begun, request)
        presenter = Presenter(
            self._indices.analyzer,
            attempt.answered,
            self._settings.result_tokens,
            attempt.metadata,
        )
        presented = presenter.draft(attempt.left)
        shown = presented.within(request.max_tokens)
        return SearchResponse(
            results=shown.results,
            query_types=tuple(each.query_type for each in attempt.answered),
            index=state,
            stats=CompressionStats.from_counts(len(attempt.candidates), attempt.counts),
            stages=attempt.counts,
            seconds={**attempt.seconds, "total": perf_counter() - started},
            notes=attempt.notes,
            did_you_mean=did_you_mean(attempt.answered),
            nearest_terms=nearest_terms(attempt.answered),
            left_out=shown.left_out,
            within=presented.within,
            explanation=explain(attempt, self._settings) if request.explain else None,
        )

    def _of_one_commit(
        self, begun: Sequence[Started], request: QueryRequest
    ) -> tuple[Attempt, IndexState]:
        """Another request may have led an index on to a later commit meanwhile: it does not know
        any more what was edited in between, so this one begins again."""
        for _ in range(TRIES - 1):
            attempt, state, is_mixed = self._once(begun, request)
            if not is_mixed:
                return attempt, state
        attempt, state, is_mixed = self._once(begun, request)
        if is_mixed:
            state = state.unsure("the index changed while it was searched: ask again")
        return attempt, state

    def _once(
        self, begun: Sequence[Started], request: QueryRequest
    ) -> tuple[Attempt, IndexState, bool]:
        newest = self._indices.newest()
        with self._reader.snapshot() as snapshot:
            if snapshot.position.generation < newest:  # the store was put back since
                self._indices.start_over()
            self._indices.catch_up(snapshot)
            attempt = self._as_deep_as_needed(snapshot, begun, request)
            left = with_sections(attempt.left, snapshot.sections_in)
            attempt = replace(attempt, left=left)
            if request.metadata:
                attempt = replace(attempt, metadata=_metadata(snapshot, attempt.left))
            is_degraded = any(each.found.is_degraded for each in attempt.answered)
            state = self._states.of(snapshot, has_vectors=not is_degraded)
            return attempt, state, self._indices.is_ahead_of(snapshot)

    def _as_deep_as_needed(
        self, snapshot: Snapshot, begun: Sequence[Started], request: QueryRequest
    ) -> Attempt:
        scope = self._scopes.of(snapshot, request.filters)
        language = request.filters.language
        read = [self._retrieval.read(snapshot, each, language) for each in begun]
        reach = Reach(scope, language, queries=len(read))
        attempt = self._try(snapshot, read, request, reach)
        while attempt.is_worth_going_deeper(request.top_n) and reach.can_be_deeper:
            (answered,) = attempt.answered
            owners = documents_of(snapshot, [item.key for item in answered.weighed.fused])
            hits = reach.hits
            reach = self._next(snapshot, request, reach, owners.values())
            if reach.scope is not None and not reach.scope:
                break  # every document has its share
            known = {ChunkKey(key) for key, doc_id in owners.items() if doc_id in reach.full}
            attempt = self._try(snapshot, read, request, reach, answered.found.of(known, hits))
        return attempt

    def _next(
        self, snapshot: Snapshot, request: QueryRequest, reach: Reach, owners: Iterable[DocId]
    ) -> Reach:
        """Where to look after a look that found too little in the documents of these hits: beyond
        those that have their share of them, or deeper if there are none.
        """
        if places_of_a_document(self._settings, request):
            share = most_of_a_document(request.top_n)
            full = reach.full | {one for one, count in Counter(owners).items() if count >= share}
            if full != reach.full:
                return reach.beyond(full, self._scopes.without(snapshot, reach.scope, full))
        return reach.deeper()

    def _try(
        self,
        snapshot: Snapshot,
        read: Sequence[Read],
        request: QueryRequest,
        reach: Reach,
        earlier: Found | None = None,
    ) -> Attempt:
        started = perf_counter()
        answered = [self._answer(snapshot, each, request, reach, earlier) for each in read]
        candidates = merged([self._worth_while(each.candidates, read) for each in answered])
        candidates = candidates[: reach.of_all(request.top_n)]
        retrieval = perf_counter() - started
        judge = self._judge(request, read)
        boosts = self._boosts(snapshot, candidates)
        floored = frozenset(each.weighed.floored for each in answered if each.weighed.floored)
        tools = replace(self._tools(snapshot, request, judge, boosts), floored=floored)
        stages = build_stages(self._settings, request, tools)
        left, counts = run_stages(stages, candidates, explain=request.explain)
        notes = judge.notes if judge else ()
        return Attempt(tuple(answered), candidates, left, counts, retrieval, notes)

    def _worth_while(
        self, candidates: Sequence[Candidate], read: Sequence[Read]
    ) -> Sequence[Candidate]:
        """Of several topics each has its own elbow: one that scores lower is not cut off whole."""
        if len(read) < 2 or self._settings.cutoff_ratio <= 0:
            return candidates
        return cut_at_elbow(candidates, self._settings.cutoff_ratio)

    def _answer(
        self,
        snapshot: Snapshot,
        read: Read,
        request: QueryRequest,
        reach: Reach,
        earlier: Found | None,
    ) -> Answered:
        topic = read.topic
        query_type = request.query_type or classify_query(topic.words or request.hypothesis)
        found = self._retrieval.find(snapshot, read, reach)
        is_full = found.is_full(reach.hits)
        if earlier is not None:
            found = found.with_earlier(earlier)
        is_by_tree = self._settings.tree_normalisation > 0 and is_full
        first = None if is_by_tree else GRAPH_SEED_CHUNKS
        weighed = weigh(found, query_type, self._settings, first)
        if is_by_tree:
            found = self._with_missing_trees(snapshot, read, reach, (found, weighed))
            weighed = weigh(found, query_type, self._settings)
        linked = self._retrieval.neighbours(snapshot, found, weighed.fused, reach.scope)
        found = self._retrieval.completed(found, linked)
        weighed = weigh(found, query_type, self._settings)
        found = found.with_list(Strategy.GRAPH, linked)
        weighed = weigh_links(weighed, found, self._settings)
        every = wished_first(weighed.fused, found.wishes)
        if reach.looks > 1 and places_of_a_document(self._settings, request):
            # What came first was thinned out: more of the same documents would be, too.
            every = few_of_each(snapshot, every, most_of_a_document(request.top_n))
        fused = self._first(snapshot, every, request.top_n, reach)
        is_compared = compares_meaning(self._settings, request)
        vector = self._indices.vector if is_compared else None
        candidates = Hydration(snapshot, vector).candidates(fused)
        keys = [item.stored.key for item in candidates]
        # Who gives meaning no say does not want to be told by it how sure a result is.
        has_say = self._settings.semantic_weight > 0
        nearness = self._retrieval.nearness(found, keys) if has_say else None
        naming = asks_for((topic.words,), self._indices.analyzer)
        measures = _measures(found, nearness, naming)
        measured = with_evidence(candidates, measures)
        if self._settings.rank_sum_curve is not None:
            measured = weighed.with_rank_sums(measured)
        measured = with_wishes(self._refiner.refined(measured, found, weighed), found.wishes)
        has_more = len(every) > len(fused) or is_full
        return Answered(topic, query_type, found, weighed, measured, measures.question, has_more)

    def _with_missing_trees(
        self, snapshot: Snapshot, read: Read, reach: Reach, first: tuple[Found, Weighed]
    ) -> Found:
        """A tree that others have crowded out of what the indices give is searched by itself."""
        found, weighed = first
        for tree in missing_trees(snapshot, weighed.fused):
            own = self._scopes.of(snapshot, Filters(trees=frozenset({tree}))) or frozenset[DocId]()
            scope = own if reach.scope is None else own & reach.scope
            if scope:
                alone = self._retrieval.find(snapshot, read, replace(reach, scope=scope))
                found = with_best_of(found, alone)
        return found

    def _first(
        self, snapshot: Snapshot, fused: list[Fused], top_n: int, reach: Reach
    ) -> list[Fused]:
        count = reach.candidates(top_n)
        if self._settings.tree_normalisation > 0:
            return with_every_tree(snapshot, fused, count)
        return fused[:count]

    def _judge(self, request: QueryRequest, read: Sequence[Read]) -> Reranker | None:
        encoder = self._indices.cross_encoder
        if encoder is None or not self._settings.rerank_enabled:
            return None
        texts = [each.understanding.parsed.text for each in read if each.topic.words]
        return Reranker(encoder, texts, request.hypothesis)

    def _tools(
        self,
        snapshot: Snapshot,
        request: QueryRequest,
        judge: Reranker | None,
        boosts: BoostRules,
    ) -> StageTools:
        analyzer = self._indices.analyzer
        terms = frozenset(token.term for text in request.queries for token in analyzer.query(text))
        return StageTools(
            nodes_of=snapshot.chunks_near,
            is_named=names_all(terms, analyzer.terms),
            naming=asks_for(request.queries, analyzer),
            boosts=boosts,
            judge=judge,
            parent_size=self._surroundings.parent_size,
            parent_overlap=self._surroundings.parent_overlap,
        )

    def _boosts(self, snapshot: Snapshot, candidates: Sequence[Candidate]) -> BoostRules:
        settings, advanced = self._settings, self._settings.advanced
        documents = {item.document.id for item in candidates}
        is_boosting = advanced.community_detection_enabled and advanced.community_boost_factor > 1
        return BoostRules(
            now=self._surroundings.clock(),
            recency_bias=settings.recency_bias,
            communities=snapshot.communities_of(documents) if is_boosting else {},
            community_factor=advanced.community_boost_factor,
            local_trees=self._surroundings.local_trees,
            local_factor=settings.local_boost,
        )


def _measures(found: Found, nearness: Mapping[ChunkKey, float] | None, naming: Naming) -> Measures:
    frequencies = [found.frequencies.get(unit, 0) for unit in found.understanding.query.units]
    question = Question(
        words=len(frequencies) or USUAL.words,
        rarity=rarity(found.passages, frequencies),
        spread=USUAL.spread if found.nearest is None else found.nearest.spread,
        passages=found.passages or USUAL.passages,
    )
    return Measures(
        nearness=nearness,
        ideals=found.ideals,
        has_known_words=found.has_known_words,
        question=question,
        tokens=found.exact,
        wishes=[(wish.keys, wish.strength) for wish in found.wishes],
        naming=naming,
    )


def _metadata(snapshot: Snapshot, left: Sequence[Candidate]) -> dict[ChunkId, MetadataMaker]:
    """What makes it for the section that each is cited under, of the links in its passage."""
    links = {doc_id: snapshot.links(doc_id) for doc_id in {item.document.id for item in left}}
    makers: dict[ChunkId, MetadataMaker] = {}
    for item in left:
        inside = range(item.span.byte_start, item.span.byte_end)
        shown = [one for one in links[item.document.id] if one.link.span.byte_start in inside]
        makers[item.stored.chunk.id] = partial(Metadata.of, item.document, shown)
    return makers
