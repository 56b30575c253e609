"""A request from beginning to end: understand, retrieve, fuse, hydrate, run the stages, present.

It owns no ranking rule.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from time import perf_counter

from ragdocs.chunking.splitting import Limits
from ragdocs.config.settings import SearchConfig
from ragdocs.indices.analysis import Analyzer
from ragdocs.indices.conditions import Filter, Unit, both, in_tree
from ragdocs.indices.view import SearchableIndex, View
from ragdocs.models import Chunk, ChunkId, DocId, Span, TreeName
from ragdocs.search.boosts import BoostRules
from ragdocs.search.budget import (
    BYTES_PER_TOKEN,
    Extent,
    Item,
    Packed,
    matches_within,
    pack,
    shorten,
)
from ragdocs.search.candidates import Candidate, Strategy
from ragdocs.search.classifier import classify_query
from ragdocs.search.confidence import USUAL, Measures, Question, rarity, with_evidence
from ragdocs.search.filters import cut_at_elbow, to_filter
from ragdocs.search.fusion import Fused
from ragdocs.search.passages import MatchRange, Passage, match_ranges
from ragdocs.search.query_language import REASONS
from ragdocs.search.refining import Refiner
from ragdocs.search.requests import QueryRequest, QueryType, topics
from ragdocs.search.responses import (
    Explanation,
    IndexState,
    IndexStates,
    Metadata,
    MetadataMaker,
    Place,
    Presented,
    QueryExplanation,
    ResultExplanation,
    SearchResponse,
    SearchResult,
    WishExplanation,
)
from ragdocs.search.retrieval import (
    GRAPH_SEED_CHUNKS,
    QueryTools,
    Retrieval,
    RunningQuery,
    Started,
    few_of_each,
    hydrate,
)
from ragdocs.search.sections import (
    Citation,
    Citer,
    Naming,
    asks_for,
    names_all,
    narrowest_around,
    offset_of_line,
    with_sections,
)
from ragdocs.search.snippets import Range, SnippetMaker, SnippetQuery, word_worth
from ragdocs.search.stages import (
    CompressionStats,
    Reranker,
    StageCount,
    StageName,
    StageTools,
    build_stages,
    compares_meaning,
    places_of_a_document,
    run_stages,
)
from ragdocs.search.understanding import find_wished, wished_first, with_wishes
from ragdocs.search.vector_search import Bounds, most_of_a_document
from ragdocs.search.weighing import (
    Weighed,
    missing_trees,
    weigh,
    weigh_links,
    with_best_of,
    with_every_tree,
)
from ragdocs.store.records import ChunkKey

# One query's way to its candidates, kept so that the answer can be explained.

_BY_WORTH = frozenset({StageName.CANDIDATES, StageName.CONFIDENCE, StageName.CUTOFF})


@dataclass(frozen=True, slots=True)
class Answered:
    """What is known of one query, and what that came to; `has_more`: the indices may have more
    than that."""

    query_type: QueryType
    found: RunningQuery
    weighed: Weighed
    candidates: Sequence[Candidate]
    question: Question
    has_more: bool


@dataclass(frozen=True, slots=True)
class Attempt:
    """All queries answered together, as far as it was looked, and what the stages left of it."""

    answered: tuple[Answered, ...]
    candidates: Sequence[Candidate]
    left: Sequence[Candidate]
    counts: tuple[StageCount, ...]
    retrieval_seconds: float
    judge_notes: tuple[str, ...]
    metadata: Mapping[ChunkId, MetadataMaker] = field(default_factory=dict[ChunkId, MetadataMaker])
    """Of each that is left, when it was asked for."""

    def is_worth_going_deeper(self, top_n: int) -> bool:
        """Whether results are wanting only because what came first was thinned out. What follows
        those that were not worth it is worth less.
        """
        if sum(not item.is_over_limit for item in self.left) >= top_n or not self.candidates:
            return False
        is_cut = any(c.before > c.after for c in self.counts if c.name in _BY_WORTH)
        return not is_cut and any(each.has_more for each in self.answered)

    @property
    def seconds(self) -> dict[str, float]:
        return {
            "retrieval": self.retrieval_seconds,
            **{count.name: count.seconds for count in self.counts},
        }

    @property
    def notes(self) -> tuple[str, ...]:
        own = [note for each in self.answered for note in each.found.notes]
        return tuple(dict.fromkeys([*own, *self.judge_notes]))


def merge_queries(found: Sequence[Sequence[Candidate]]) -> list[Candidate]:
    """One entry per chunk with its best score and what speaks most for it, best first: several
    queries are one answer."""
    best: dict[int, Candidate] = {}
    for item in (item for each in found for item in each):
        known = best.setdefault(item.stored.key, item)
        if known is item:
            continue
        first, told = (
            max((known, item), key=lambda one: one.score),
            max((known, item), key=lambda one: one.relevance),
        )
        best[item.stored.key] = first.changed(relevance=told.relevance, grounds=told.grounds)
    return sorted(best.values(), key=lambda item: (-item.score, item.stored.key))


def explain(attempt: Attempt, settings: SearchConfig) -> Explanation:
    return Explanation(
        confidence_from=curve.words if (curve := settings.rank_sum_curve) else "evidence",
        queries=tuple(map(_query, attempt.answered)),
        results=tuple(map(ResultExplanation.from_candidate, attempt.left)),
        stages=attempt.counts,
    )


def did_you_mean(answered: Sequence[Answered]) -> str | None:
    """The first query that has words the documents do not, with the nearest ones they have."""
    meant = (each.found.understanding.did_you_mean for each in answered)
    return next((text for text in meant if text is not None), None)


def nearest_terms(answered: Sequence[Answered]) -> tuple[str, ...]:
    """What the documents have instead of the words that none of them has."""
    terms = (term for each in answered for term in each.found.understanding.nearest_terms)
    return tuple(dict.fromkeys(terms))


def _query(answered: Answered) -> QueryExplanation:
    lists, understood = answered.found.lists, answered.found.understanding
    weights = answered.weighed.weights
    return QueryExplanation(
        text=answered.found.topic.words,
        hypothesis=answered.found.topic.meaning or "",
        is_strict=understood.parsed.is_strict,
        why=REASONS[understood.parsed.reading],
        wishes=tuple(map(WishExplanation.from_wish, answered.found.wishes)),
        as_text=understood.parsed.as_text,
        query_type=answered.query_type,
        terms=tuple(" ".join(unit.terms) for unit in understood.query.units),
        left_out=understood.left_out,
        added=understood.added,
        notes=answered.found.notes,
        weights={strategy: weights.get(strategy, 1.0) for strategy in lists},
        hits={strategy: len(hits) for strategy, hits in lists.items()},
        candidates=len(answered.candidates),
        question=answered.question,
    )


# From the last candidates to what a reader gets: cited, with the matches marked, within budget.

MAX_MARKED_CHARS = 200_000
"""In a longer passage, such as a whole file as one result, matches are not looked for."""


@dataclass(frozen=True, slots=True)
class _Draft:
    """A result before the budget."""

    result: SearchResult
    passage: Passage
    matches: tuple[MatchRange, ...]


class Presenter:
    """Presents one answer: marks what any of its queries looked for, and cites where it stands.
    Of a passage about `result_tokens` are given, or all of it for 0.
    """

    def __init__(
        self,
        analyzer: Analyzer,
        answered: Sequence[Answered],
        result_tokens: int = 0,
        metadata: Mapping[ChunkId, MetadataMaker] | None = None,
    ) -> None:
        self._analyzer = analyzer
        self._metadata = metadata or {}
        self._asked = [_to_snippet_query(each) for each in answered]
        self._units = tuple(dict.fromkeys(unit for asked in self._asked for unit in asked.units))
        self._snippets = SnippetMaker(analyzer)
        self._limit = result_tokens * BYTES_PER_TOKEN
        worths = [word_worth(asked) for asked in self._asked]
        self._citer = Citer(
            asks_for((asked.text for asked in self._asked), analyzer),
            lambda unit: max((worth(unit) for worth in worths), default=0),
            lambda text, within: self._snippets.best_sentence(text, self._asked, within),
        )

    def draft(self, candidates: Sequence[Candidate]) -> "Drafts":
        return Drafts([self._draft(item) for item in candidates])

    def _draft(self, candidate: Candidate) -> _Draft:
        passage, focus = _passage(candidate)
        is_marked = len(passage.text) <= MAX_MARKED_CHARS
        matches = match_ranges(passage, self._units, self._analyzer) if is_marked else ()
        sections = [stored.chunk for stored in candidate.sections]
        cited = self._citer.cite(passage, sections, matches, focus) if is_marked else None
        snippet_focus = cited.own if cited else focus
        shown = passage.text[:MAX_MARKED_CHARS]
        own = matches_in(matches, snippet_focus)
        snippet = self._snippets.of(shown, own or matches, self._asked, snippet_focus)
        result = _result(candidate, passage, cited, sections)
        about = self._metadata.get(candidate.id)
        # With parent retrieval the whole parent is what was asked for.
        limit = 0 if candidate.is_parent else self._limit
        kept = _choose_stretch(passage, cited, matches, limit) if cited else None
        part = passage.part(*kept) if kept else None
        if kept is not None and part is not None:
            passage, matches = part, matches_within(matches, kept)
            result = replace(result, extent=Extent.EXCERPT)
        result = replace(
            result,
            text=passage.text,
            **_shown_at(passage.span),
            snippet=snippet,
            matches=matches,
            metadata=about(result.byte_start, result.byte_end) if about else None,
        )
        return _Draft(result, passage, matches)


class Drafts:
    """All results, which can be given within any budget."""

    def __init__(self, drafts: Sequence[_Draft]) -> None:
        self._drafts = drafts

    def within(self, max_tokens: int | None) -> Presented:
        if max_tokens is None:
            return Presented(tuple(draft.result for draft in self._drafts))
        packed = pack([_item(draft) for draft in self._drafts], max_tokens)
        results = [
            replace(
                self._drafts[each.place].result,
                text=each.text,
                **_shown_at(each.span),
                matches=each.matches,
                extent=self._extent(each),
            )
            for each in packed.results
        ]
        return Presented(tuple(results), packed.left_out)

    def _extent(self, packed: Packed) -> Extent:
        is_all = packed.extent is Extent.WHOLE
        return self._drafts[packed.place].result.extent if is_all else packed.extent


def matches_in(matches: Sequence[MatchRange], place: Range) -> tuple[MatchRange, ...]:
    return tuple(match for match in matches if place[0] <= match.start and match.end <= place[1])


def _to_snippet_query(answered: Answered) -> SnippetQuery:
    query = answered.found.understanding.query
    units: tuple[Unit, ...] = (*query.units, *query.weaker)
    topic = answered.found.topic
    text = topic.words or topic.meaning or ""
    return SnippetQuery(text, units, answered.found.frequencies)


def _passage(candidate: Candidate) -> tuple[Passage, Range]:
    """What may be shown of a candidate, and which characters of it were found.

    The first and the last leaf of a section may have more than is the section's.
    """
    leaves = candidate.leaves
    if candidate.before is not None:
        leaves = (candidate.before, *leaves)
    pieces = [(leaf.chunk.text or "", leaf.chunk.span) for leaf in leaves]
    passage = Passage.of(pieces, candidate.document.encoding)
    first, last = 0, len(passage.text)
    if candidate.before is not None:
        first = len(pieces[0][0]) - candidate.lead
    elif candidate.passage:
        first, last = _own(passage, candidate.stored.chunk.span)
    part = passage.part(first, last) if (first, last) != (0, len(passage.text)) else None
    if part is None:
        first, last, part = 0, len(passage.text), passage
    at = 0
    for leaf in leaves:
        end = at + len(leaf.chunk.text or "")
        if leaf.key == candidate.best.key:
            return part, (max(0, at - first), min(last, end) - first)
        at = end
    return part, (0, len(part.text))


def _own(passage: Passage, span: Span) -> Range:
    """The characters of a section, which begins and ends with a line."""
    first, last = 0, len(passage.text)
    if span.byte_start > passage.span.byte_start:
        first = offset_of_line(passage, span.line_start)
    if span.byte_end < passage.span.byte_end:
        last = offset_of_line(passage, span.line_end + 1)
    return (first, last) if first < last else (0, len(passage.text))


def _result(
    candidate: Candidate, passage: Passage, cited: Citation | None, sections: Sequence[Chunk]
) -> SearchResult:
    """Cited under the section of the best match; a document without sections by its parts."""
    section = candidate.best.chunk
    if cited is not None and cited.section.parent_id is not None:
        section = cited.section
    own = passage.span
    if candidate.before is not None:
        # What a parent begins with, of the passage before it, is not its own.
        first = candidate.leaves[0].chunk.span
        own = replace(own, byte_start=first.byte_start, line_start=first.line_start)
    around = narrowest_around(sections, own)
    within = None
    if around is not None and around.id != section.id:
        within = Place.of(around)
    result = SearchResult.from_candidate(candidate, section, within)
    if cited is None:
        return result
    places = passage.places((cited.answer[0], max(cited.answer[0], cited.answer[1] - 1)))
    lines = [places[at].line for at in sorted(places)]
    return replace(result, answer_lines=(lines[0], lines[-1]))


def _choose_stretch(
    passage: Passage, cited: Citation, matches: Sequence[MatchRange], limit: int
) -> Range | None:
    """What is given of a passage that has too much: all of the section that is cited, with what
    stands around it, or as much of that section as there is room for.
    """
    if not limit or _size(passage.text) <= limit:
        return None
    start, end = cited.own
    anchors = [cited.own, cited.answer, *((match.start, match.end) for match in matches[:1])]
    if _size(passage.text[start:end]) <= limit:
        return shorten(passage, limit, anchors)
    own = passage.part(start, end)
    if own is None:
        return shorten(passage, limit, anchors[1:])
    inside = [(max(0, first - start), last - start) for first, last in anchors[1:]]
    kept = shorten(own, limit, inside)
    return None if kept is None else (kept[0] + start, kept[1] + start)


def _shown_at(span: Span) -> dict[str, tuple[int, int]]:
    """Of what is given as a result's text."""
    return {
        "text_lines": (span.line_start, span.line_end),
        "text_bytes": (span.byte_start, span.byte_end),
    }


def _size(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


def _item(draft: _Draft) -> Item:
    result = draft.result
    return Item(
        chunk_id=result.id,
        doc_id=result.doc_id,
        path=result.path,
        heading_path=result.heading_path,
        passage=draft.passage,
        matches=draft.matches,
        snippet=result.snippet.text,
    )


# A request from beginning to end: classify, retrieve, fuse, hydrate, run the stages.
#
# It owns no ranking rule: the indices find, `weighing` weighs, the stages decide what is left.

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
        index: SearchableIndex,
        tools: QueryTools,
        settings: SearchConfig,
        surroundings: Surroundings | None = None,
    ) -> None:
        self._index = index
        self._analyzer = tools.analyzer
        self._cross_encoder = tools.cross_encoder
        self._settings = settings
        self._surroundings = surroundings or Surroundings()
        self._retrieval = Retrieval(tools, settings)
        self._refiner = Refiner(tools.analyzer, settings)
        self._states = IndexStates()

    def close(self) -> None:
        self._retrieval.close()

    def state(self) -> IndexState:
        """What could be answered for now."""
        with self._index.view() as view:
            has_vectors = view.has_vectors and self._retrieval.has_model()
            return self._states.of(view, has_vectors=has_vectors)

    def search(self, request: QueryRequest) -> SearchResponse:
        started = perf_counter()
        asked = topics(request, is_enabled=self._settings.advanced.hyde_enabled)
        begun = self._retrieval.start(asked)
        attempt, state = self._search_one_commit(begun, request)
        presenter = Presenter(
            self._analyzer,
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
            pack=presented.within,
            explanation=explain(attempt, self._settings) if request.explain else None,
        )

    def _search_one_commit(
        self, begun: Sequence[Started], request: QueryRequest
    ) -> tuple[Attempt, IndexState]:
        """Another request may have led an index on to a later commit meanwhile: it does not know
        any more what was edited in between, so this one begins again."""
        for _ in range(TRIES - 1):
            attempt, state, is_mixed = self._search_once(begun, request)
            if not is_mixed:
                return attempt, state
        attempt, state, is_mixed = self._search_once(begun, request)
        if is_mixed:
            state = state.unsure("the index changed while it was searched: ask again")
        return attempt, state

    def _search_once(
        self, begun: Sequence[Started], request: QueryRequest
    ) -> tuple[Attempt, IndexState, bool]:
        with self._index.view() as view:
            attempt = self._search_deep_enough(view, begun, request)
            left = with_sections(attempt.left, view.sections_in)
            attempt = replace(attempt, left=left)
            if request.metadata:
                attempt = replace(attempt, metadata=_metadata(view, attempt.left))
            is_degraded = any(each.found.is_degraded for each in attempt.answered)
            state = self._states.of(view, has_vectors=not is_degraded)
            return attempt, state, view.is_overtaken

    def _search_deep_enough(
        self, view: View, begun: Sequence[Started], request: QueryRequest
    ) -> Attempt:
        read = [self._retrieval.read(view, each, request.filters.language) for each in begun]
        bounds = Bounds(to_filter(request.filters), queries=len(read))
        attempt = self._try(view, read, request, bounds)
        while attempt.is_worth_going_deeper(request.top_n) and bounds.can_be_deeper:
            (answered,) = attempt.answered
            owners = view.documents_of([item.key for item in answered.weighed.fused])
            hits = bounds.hits
            bounds = self._next(request, bounds, owners.values())
            if not view.has_documents(bounds.within):
                break  # every document has its share
            known = {key for key, doc_id in owners.items() if doc_id in bounds.full}
            attempt = self._try(view, read, request, bounds, answered.found.of(known, hits))
        return attempt

    def _next(self, request: QueryRequest, bounds: Bounds, owners: Iterable[DocId]) -> Bounds:
        """Where to look after a look that found too little in the documents of these hits: beyond
        those that have their share of them, or deeper if there are none.
        """
        if places_of_a_document(self._settings, request):
            share = most_of_a_document(request.top_n)
            full = bounds.full | {one for one, count in Counter(owners).items() if count >= share}
            if full != bounds.full:
                return bounds.beyond(full)
        return bounds.deeper()

    def _try(
        self,
        view: View,
        read: Sequence[RunningQuery],
        request: QueryRequest,
        bounds: Bounds,
        earlier: RunningQuery | None = None,
    ) -> Attempt:
        started = perf_counter()
        answered = [self._answer(view, each, request, bounds, earlier) for each in read]
        candidates = merge_queries([self._worth_while(each.candidates, read) for each in answered])
        candidates = candidates[: bounds.of_all(request.top_n)]
        retrieval = perf_counter() - started
        judge = self._judge(request, read)
        boosts = self._boosts(view, candidates)
        floored = frozenset(each.weighed.floored for each in answered if each.weighed.floored)
        tools = replace(self._tools(view, request, judge, boosts), floored=floored)
        stages = build_stages(self._settings, request, tools)
        left, counts = run_stages(stages, candidates, explain=request.explain)
        notes = judge.notes if judge else ()
        return Attempt(tuple(answered), candidates, left, counts, retrieval, notes)

    def _worth_while(
        self, candidates: Sequence[Candidate], read: Sequence[RunningQuery]
    ) -> Sequence[Candidate]:
        """Of several topics each has its own elbow: one that scores lower is not cut off whole."""
        if len(read) < 2 or self._settings.cutoff_ratio <= 0:
            return candidates
        return cut_at_elbow(candidates, self._settings.cutoff_ratio)

    def _answer(
        self,
        view: View,
        query: RunningQuery,
        request: QueryRequest,
        bounds: Bounds,
        earlier: RunningQuery | None,
    ) -> Answered:
        """One query: retrieve, fuse, hydrate, judge."""
        found = self._retrieval.find(view, query, bounds)
        is_full = found.is_full(bounds.hits)
        if earlier is not None:
            found = found.with_earlier(earlier)
        query_type = request.query_type or classify_query(query.topic.words or request.hypothesis)
        if self._settings.tree_normalisation > 0 and is_full:
            found = self._with_missing_trees(view, query, found, query_type, bounds)
        found, weighed = self._fuse(view, found, query_type, bounds.within)
        every = wished_first(weighed.fused, found.wishes)
        if bounds.looks > 1 and places_of_a_document(self._settings, request):
            # What came first was thinned out: more of the same documents would be, too.
            every = few_of_each(view, every, most_of_a_document(request.top_n))
        fused = self._first(view, every, request.top_n, bounds)
        with_vectors = compares_meaning(self._settings, request)
        candidates = hydrate(view, fused, with_vectors=with_vectors)
        judged, question = self._weigh_evidence(view, found, weighed, candidates)
        has_more = len(every) > len(fused) or is_full
        return Answered(query_type, found, weighed, judged, question, has_more)

    def _with_missing_trees(
        self,
        view: View,
        query: RunningQuery,
        found: RunningQuery,
        query_type: QueryType,
        bounds: Bounds,
    ) -> RunningQuery:
        """A tree that others have crowded out of what the indices give is searched by itself."""
        fused = weigh(found, query_type, self._settings).fused
        for tree in missing_trees(view, fused):
            within = both(bounds.within, in_tree(tree))
            if view.has_documents(within):
                alone = self._retrieval.find(view, query, replace(bounds, within=within))
                found = with_best_of(found, alone)
        return found

    def _fuse(
        self, view: View, found: RunningQuery, query_type: QueryType, within: Filter
    ) -> tuple[RunningQuery, Weighed]:
        """The first hits tell which documents' neighbours to add; then all are weighed together."""
        first = weigh(found, query_type, self._settings, GRAPH_SEED_CHUNKS)
        linked = self._retrieval.neighbours(view, found, first.fused, within)
        found = self._retrieval.completed(found, linked)
        weighed = weigh(found, query_type, self._settings)
        found = found.with_list(Strategy.GRAPH, linked)
        weighed = weigh_links(weighed, found, self._settings)
        wishes = find_wished(found.wishes, view, [item.key for item in weighed.fused])
        return replace(found, wishes=wishes), weighed

    def _weigh_evidence(
        self, view: View, found: RunningQuery, weighed: Weighed, candidates: Sequence[Candidate]
    ) -> tuple[Sequence[Candidate], Question]:
        """Each candidate with what speaks for it; and what the question itself shows."""
        keys = [item.stored.key for item in candidates]
        # Who gives meaning no say does not want to be told by it how sure a result is.
        has_say = self._settings.semantic_weight > 0
        nearness = self._retrieval.nearness(view, found, keys) if has_say else None
        naming = asks_for((found.topic.words,), self._analyzer)
        measures = _measures(found, nearness, naming)
        measured = with_evidence(candidates, measures)
        if self._settings.rank_sum_curve is not None:
            measured = weighed.with_rank_sums(measured)
        refined = self._refiner.refine(view, measured, found, weighed)
        return with_wishes(refined, found.wishes), measures.question

    def _first(self, view: View, fused: list[Fused], top_n: int, bounds: Bounds) -> list[Fused]:
        count = bounds.candidates(top_n)
        if self._settings.tree_normalisation > 0:
            return with_every_tree(view, fused, count)
        return fused[:count]

    def _judge(self, request: QueryRequest, read: Sequence[RunningQuery]) -> Reranker | None:
        encoder = self._cross_encoder
        if encoder is None or not self._settings.rerank_enabled:
            return None
        texts = [each.understanding.parsed.text for each in read if each.topic.words]
        return Reranker(encoder, texts, request.hypothesis)

    def _tools(
        self,
        view: View,
        request: QueryRequest,
        judge: Reranker | None,
        boosts: BoostRules,
    ) -> StageTools:
        analyzer = self._analyzer
        terms = frozenset(token.term for text in request.queries for token in analyzer.query(text))
        return StageTools(
            nodes_of=view.chunks_near,
            is_named=names_all(terms, analyzer.terms),
            naming=asks_for(request.queries, analyzer),
            boosts=boosts,
            judge=judge,
            parent_size=self._surroundings.parent_size,
            parent_overlap=self._surroundings.parent_overlap,
        )

    def _boosts(self, view: View, candidates: Sequence[Candidate]) -> BoostRules:
        settings, advanced = self._settings, self._settings.advanced
        documents = {item.document.id for item in candidates}
        is_boosting = advanced.community_detection_enabled and advanced.community_boost_factor > 1
        return BoostRules(
            now=self._surroundings.clock(),
            recency_bias=settings.recency_bias,
            communities=view.communities_of(documents) if is_boosting else {},
            community_factor=advanced.community_boost_factor,
            local_trees=self._surroundings.local_trees,
            local_factor=settings.local_boost,
        )


def _measures(
    found: RunningQuery, nearness: Mapping[ChunkKey, float] | None, naming: Naming
) -> Measures:
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
        has_known_words=found.has_known_words and not found.is_idle,
        question=question,
        tokens=found.exact,
        wishes=[(wish.keys, wish.strength) for wish in found.wishes],
        naming=naming,
    )


def _metadata(view: View, left: Sequence[Candidate]) -> dict[ChunkId, MetadataMaker]:
    """What makes it for the section that each is cited under, of the links in its passage."""
    links = {doc_id: view.links(doc_id) for doc_id in {item.document.id for item in left}}
    makers: dict[ChunkId, MetadataMaker] = {}
    for item in left:
        inside = range(item.span.byte_start, item.span.byte_end)
        shown = [one for one in links[item.document.id] if one.link.span.byte_start in inside]
        makers[item.stored.chunk.id] = partial(Metadata.of, item.document, shown)
    return makers
