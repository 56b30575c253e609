"""Runs a request from beginning to end: understand, retrieve, fuse, hydrate, judge, present. It
owns no ranking rule.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from itertools import chain, repeat
from time import perf_counter

from ragdocs.chunking.splitting import Limits
from ragdocs.config.choices import Fusion
from ragdocs.config.settings import SearchConfig
from ragdocs.filter_language import parse_filter
from ragdocs.indices.analysis import Analyzer
from ragdocs.indices.conditions import Filter, Unit, both, in_tree
from ragdocs.indices.view import SearchableIndex, View
from ragdocs.limits import MAX_FILTER_TEXT_CHARS
from ragdocs.models import CANVAS_NOTE, Chunk, ChunkId, DocId, Span, TreeName
from ragdocs.places import Places
from ragdocs.references import ResolvedFilter, resolve_filter
from ragdocs.search.boosts import BoostRules
from ragdocs.search.budget import (
    BYTES_PER_TOKEN,
    Extent,
    Item,
    Packed,
    pack,
    shorten,
    widen,
)
from ragdocs.search.candidates import Candidate
from ragdocs.search.confidence import USUAL, Measures, Question, rarity, with_evidence
from ragdocs.search.filters import is_condition, where_condition
from ragdocs.search.passages import MatchRange, Passage, match_ranges
from ragdocs.search.query_language import (
    REASONS,
    is_plainly_written,
    typed_properties,
    without_properties,
)
from ragdocs.search.requests import (
    ListOrder,
    QueryRequest,
    refuse_unknown_trees,
    to_filter,
    topics,
)
from ragdocs.search.responses import (
    DocumentList,
    Explanation,
    FoundDocument,
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
    characters_of,
    make_naming,
    names_all,
    narrowest_around,
    widest_that_fits,
    with_sections,
    with_surroundings,
)
from ragdocs.search.snippets import Range, SnippetMaker, SnippetQuery, word_worth
from ragdocs.search.stages import (
    CompressionStats,
    Reranker,
    StageCount,
    StageName,
    StageTools,
    build_stages,
    cut_at_elbow,
    cutoff_ratio,
    needs_vectors,
    places_of_a_document,
    run_stages,
)
from ragdocs.search.understanding import find_wished, put_wished_first, with_wishes
from ragdocs.search.vector_search import Bounds, most_of_a_document
from ragdocs.search.weighing import (
    missing_trees,
    refine,
    weigh,
    weigh_links,
    with_best_of,
    with_every_tree,
    with_rank_sums,
)
from ragdocs.store.records import StoredChunk

# All queries of a request, answered together; kept so that the answer can be explained.

_BY_WORTH = frozenset({StageName.CANDIDATES, StageName.CONFIDENCE, StageName.CUTOFF})


@dataclass(frozen=True, slots=True)
class Attempt:
    """All queries answered together within some bounds, and the candidates that the stages left."""

    queries: tuple[RunningQuery, ...]
    candidates: Sequence[Candidate]
    left: Sequence[Candidate]
    counts: tuple[StageCount, ...]
    retrieval_seconds: float
    judge_notes: tuple[str, ...]
    filter_notes: tuple[str, ...] = ()
    metadata: Mapping[ChunkId, MetadataMaker] = field(default_factory=dict[ChunkId, MetadataMaker])
    """For each candidate that is left, if the request asks for it."""

    def is_worth_going_deeper(self, top_n: int) -> bool:
        """Whether results are missing only because the first candidates were thinned out. What
        follows candidates that were dropped for their low worth is worth even less.
        """
        if sum(not item.is_over_limit for item in self.left) >= top_n or not self.candidates:
            return False
        is_cut = any(c.before > c.after for c in self.counts if c.name in _BY_WORTH)
        return not is_cut and any(each.has_more for each in self.queries)

    @property
    def seconds(self) -> dict[str, float]:
        return {
            "retrieval": self.retrieval_seconds,
            **{count.name: count.seconds for count in self.counts},
        }

    @property
    def notes(self) -> tuple[str, ...]:
        own = [note for each in self.queries for note in each.notes]
        return tuple(dict.fromkeys([*self.filter_notes, *own, *self.judge_notes]))


def merge_queries(found: Sequence[Sequence[Candidate]]) -> list[Candidate]:
    """Merges several queries into one answer: one candidate per chunk, best first, with its best
    score and its strongest grounds."""
    best: dict[int, Candidate] = {}
    for item in (item for each in found for item in each):
        known = best.setdefault(item.stored.key, item)
        if known is item:
            continue
        first = max((known, item), key=lambda one: one.score)
        surest = max((known, item), key=lambda one: one.relevance)
        best[item.stored.key] = first.with_changes(
            relevance=surest.relevance, grounds=surest.grounds
        )
    return sorted(best.values(), key=lambda item: (-item.score, item.stored.key))


STANDING_FILTER = "only documents with `{}` are searched, by the setting search.filter"


@dataclass(frozen=True, slots=True)
class TypedFilters:
    """The properties in the text of a query: those that were read as filters, and as words."""

    bound: tuple[str, ...] = ()
    as_words: tuple[str, ...] = ()


def explain(attempt: Attempt, settings: SearchConfig, typed: TypedFilters) -> Explanation:
    return Explanation(
        confidence_from=curve.words if (curve := settings.rank_sum_curve) else "evidence",
        queries=tuple(_explain_query(each, typed) for each in attempt.queries),
        results=tuple(map(ResultExplanation.from_candidate, attempt.left)),
        stages=attempt.counts,
    )


def did_you_mean(queries: Sequence[RunningQuery]) -> str | None:
    """The first query with words that no document has, with the nearest known words instead."""
    meant = (each.understanding.did_you_mean for each in queries)
    return next((text for text in meant if text is not None), None)


def nearest_terms(queries: Sequence[RunningQuery]) -> tuple[str, ...]:
    """The documents' words that are nearest to words that no document has."""
    terms = (term for each in queries for term in each.understanding.nearest_terms)
    return tuple(dict.fromkeys(terms))


def _explain_query(query: RunningQuery, typed: TypedFilters) -> QueryExplanation:
    understood = query.understanding
    words = (text for text in typed.as_words if text in query.topic.words)
    return QueryExplanation(
        text=query.topic.words,
        hypothesis=query.topic.meaning or "",
        is_strict=understood.parsed.is_strict,
        why=REASONS[understood.parsed.reading],
        wishes=tuple(map(WishExplanation.from_wish, query.wishes)),
        as_text=tuple(dict.fromkeys((*understood.parsed.as_text, *words))),
        query_type=query.query_type,
        terms=tuple(" ".join(unit.terms) for unit in understood.query.units),
        left_out=understood.left_out,
        added=understood.added,
        notes=query.notes,
        weights={strategy: query.weights.get(strategy, 1.0) for strategy in query.lists},
        hits={strategy: len(hits) for strategy, hits in query.lists.items()},
        candidates=len(query.candidates),
        question=_question(query),
        filters=typed.bound,
    )


# Presentation: cited, with the matches marked, within the budget.

MAX_MARKED_CHARS = 200_000
"""In a longer passage, such as a whole file as one result, matches are not marked."""


WIDENED = 0.5
"""A text that leaves more of its room free is given whole blocks from beside it."""


def rooms_of(settings: SearchConfig) -> tuple[int, ...]:
    """The bytes of text for the first result, and last for each of the others; 0 is no limit."""
    others = settings.result_tokens * BYTES_PER_TOKEN
    first = settings.first_result_tokens * BYTES_PER_TOKEN
    return (first, others) if others and first > others else (others,)


class Presenter:
    """Presents one answer: marks the matches of all its queries and cites their place. It shows at
    most as many bytes of each result as `rooms` says, of the last ones as the last room; or the
    whole passage if that is 0.
    """

    def __init__(
        self,
        analyzer: Analyzer,
        queries: Sequence[RunningQuery],
        rooms: Sequence[int] = (0,),
        metadata: Mapping[ChunkId, MetadataMaker] | None = None,
    ) -> None:
        self._analyzer = analyzer
        self._metadata = metadata or {}
        self._asked = [_to_snippet_query(each) for each in queries]
        self._units = tuple(dict.fromkeys(unit for asked in self._asked for unit in asked.units))
        self._snippets = SnippetMaker(analyzer)
        self._rooms = rooms
        worths = [word_worth(asked) for asked in self._asked]
        self._citer = Citer(
            make_naming((asked.text for asked in self._asked), analyzer),
            lambda unit: max((worth(unit) for worth in worths), default=0),
            lambda text, within: self._snippets.best_sentence(text, self._asked, within),
        )

    def draft(self, candidates: Sequence[Candidate]) -> "Drafts":
        rooms = chain(self._rooms, repeat(self._rooms[-1]))
        return Drafts(list(map(self._draft, candidates, rooms)))

    def _draft(self, candidate: Candidate, room: int) -> "tuple[SearchResult, Item]":
        found = _Found.of(candidate)
        passage, focus = found.passage, found.focus
        is_marked = len(passage.text) <= MAX_MARKED_CHARS
        matches = self._matches(passage) if is_marked else ()
        sections = [stored.chunk for stored in candidate.sections]
        cited = self._citer.cite(passage, sections, matches, focus) if is_marked else None
        snippet_focus = cited.own if cited else focus
        shown = passage.text[:MAX_MARKED_CHARS]
        start, end = snippet_focus
        own = [match for match in matches if start <= match.start and match.end <= end]
        snippet = self._snippets.of(shown, own or matches, self._asked, snippet_focus)
        text, extent, at = passage, Extent.WHOLE, 0
        # Parent retrieval returns the whole parent.
        if cited is not None and room and not candidate.is_parent:
            kept = _choose_stretch(found, cited, sections, matches, room)
            part = found.around.part(*kept)
            if part is not None and kept != found.place:
                text, at = part, kept[0] - found.at
                first, last = found.place
                extent = Extent.WHOLE if kept[0] <= first and last <= kept[1] else Extent.EXCERPT
                matches = self._matches(text)
        result = _result(candidate, passage, text, cited, sections)
        about = self._metadata.get(candidate.id)
        result = replace(
            result,
            text=text.text,
            **_shown_at(text.span),
            extent=extent,
            snippet=snippet,
            matches=matches,
            metadata=about(result.byte_start, result.byte_end) if about else None,
        )
        item = Item(
            chunk_id=result.id,
            doc_id=result.doc_id,
            tree=result.tree,
            path=result.path,
            heading_path=result.heading_path,
            passage=text,
            matches=matches,
            snippet=snippet.text,
            answer=_inside(passage.text, cited.answer, at, len(text.text)) if cited else None,
        )
        return result, item

    def _matches(self, passage: Passage) -> tuple[MatchRange, ...]:
        return match_ranges(passage, self._units, self._analyzer)


class Drafts:
    """All results with what the budget must know of each; they can be packed into any budget."""

    def __init__(self, drafts: Sequence[tuple[SearchResult, Item]]) -> None:
        self._results = tuple(result for result, _ in drafts)
        self._items = [item for _, item in drafts]

    def within(self, max_tokens: int | None, text_from: float = 0.0) -> Presented:
        if max_tokens is None:
            return Presented(self._results)
        # The first may be slightly less sure than another: near ties are ordered by score.
        others = enumerate(self._results[1:], start=1)
        doubtful = (at for at, one in others if one.shown_confidence < text_from)
        packed = pack(self._items, max_tokens, frozenset(doubtful), once=text_from > 0)
        results = [self._pack(self._results[each.place], each) for each in packed.results]
        return Presented(tuple(results), packed.left_out)

    def _pack(self, result: SearchResult, packed: Packed) -> SearchResult:
        return replace(
            result,
            text=packed.text,
            **_shown_at(packed.span),
            matches=packed.matches,
            extent=result.extent if packed.extent is Extent.WHOLE else packed.extent,
        )


def _to_snippet_query(found: RunningQuery) -> SnippetQuery:
    query = found.understanding.query
    units: tuple[Unit, ...] = (*query.units, *query.weaker)
    text = found.topic.words or found.topic.meaning or ""
    return SnippetQuery(text, units, found.frequencies)


@dataclass(frozen=True, slots=True)
class _Found:
    """The passage of a candidate, the characters of it that were found, and the wider text that it
    may be shown with, in which it begins at `at`.
    """

    passage: Passage
    focus: Range
    around: Passage
    at: int

    @classmethod
    def of(cls, candidate: Candidate) -> "_Found":
        """The first and the last leaf of a section may extend beyond it."""
        leaves = candidate.leaves
        if candidate.before is not None:
            leaves = (candidate.before, *leaves)
        whole = _join(leaves, candidate)
        first, last = 0, len(whole.text)
        if candidate.before is not None:
            first = len(leaves[0].chunk.text or "") - candidate.lead
        elif candidate.passage:
            first, last = characters_of(whole, candidate.stored.chunk.span)
        passage = whole.part(first, last) if (first, last) != (0, len(whole.text)) else None
        if passage is None:
            first, last, passage = 0, len(whole.text), whole
        focus = 0, len(passage.text)
        for leaf, at in zip(leaves, whole.starts, strict=True):
            end = at + len(leaf.chunk.text or "")
            if leaf.key == candidate.best.key:
                focus = max(0, at - first), min(last, end) - first
        if not candidate.around:
            return cls(passage, focus, passage, 0)
        around = _join(candidate.around, candidate)
        places = zip(candidate.around, around.starts, strict=True)
        begin = next((at for leaf, at in places if leaf.key == leaves[0].key), len(around.text))
        return cls(passage, focus, around, begin + first)

    @property
    def place(self) -> Range:
        """The passage's characters in the text around it."""
        return self.at, self.at + len(self.passage.text)

    def in_around(self, part: Range) -> Range:
        return part[0] + self.at, part[1] + self.at


def _join(leaves: Sequence[StoredChunk], candidate: Candidate) -> Passage:
    pieces = [(leaf.chunk.text or "", leaf.chunk.span) for leaf in leaves]
    return Passage.of(pieces, candidate.document.encoding)


def _result(
    candidate: Candidate,
    passage: Passage,
    shown: Passage,
    cited: Citation | None,
    sections: Sequence[Chunk],
) -> SearchResult:
    """Cites the section of the best match, or the chunk in a document without sections."""
    section = candidate.best.chunk
    if cited is not None and cited.section.parent_id is not None:
        section = cited.section
    own = _union(passage.span, shown.span)
    if candidate.before is not None:
        # The lead of a parent belongs to the passage before it.
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
    found: _Found,
    cited: Citation,
    sections: Sequence[Chunk],
    matches: Sequence[MatchRange],
    room: int,
) -> Range:
    """The characters to show of the text around a passage: the widest section around the match that
    fits, else as much of the cited one around the answer as fits; and the whole blocks beside it.
    """
    around = found.around
    if found.passage is around and _size(around.text) <= room:
        return found.place
    kept = widest_that_fits(around, sections, cited.section, room)
    if kept is None:
        start, end = characters_of(around, cited.section.span)
        section = around.part(start, end)
        anchors = [cited.own, cited.answer, *((each.start, each.end) for each in matches[:1])]
        placed = [found.in_around(anchor) for anchor in anchors]
        if section is None:
            kept = shorten(around, room, placed, may_cut_fences=True)
        else:
            inside = [(max(0, first - start), last - start) for first, last in placed]
            kept = shorten(section, room, inside, may_cut_fences=True)
            kept = kept and (kept[0] + start, kept[1] + start)
    if kept is None:
        return found.place
    return widen(around, kept, int(WIDENED * room))


def _inside(passage: str, answer: Range, at: int, length: int) -> Range | None:
    """The answer's characters in a text of this length that begins at `at` in the passage; None if
    some are outside."""
    start, end = answer[0] - at, len(passage[: answer[1]].rstrip()) - at
    return (start, max(start, end)) if start >= 0 and end <= length else None


def _union(one: Span, other: Span) -> Span:
    return Span(
        min(one.byte_start, other.byte_start),
        max(one.byte_end, other.byte_end),
        min(one.line_start, other.line_start),
        max(one.line_end, other.line_end),
    )


def _shown_at(span: Span) -> dict[str, tuple[int, int]]:
    """The place of a result's text."""
    return {
        "text_lines": (span.line_start, span.line_end),
        "text_bytes": (span.byte_start, span.byte_end),
    }


def _size(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


# The orchestrator: the indices find, `weighing` weighs, the stages decide what is left.

TRIES = 3
"""How often a request is tried while the index changes under it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What an answer depends on besides the index and the search settings."""

    clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    local_trees: frozenset[TreeName] = frozenset()
    parent_size: Limits | None = None
    parent_overlap: int = 0
    places: Callable[[], Places] = Places


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
        self._states = IndexStates()

    def close(self) -> None:
        self._retrieval.close()

    def state(self) -> IndexState:
        """The state of the index now."""
        with self._index.view() as view:
            has_vectors = view.has_vectors and self._retrieval.has_model()
            return self._states.of(view, has_vectors=has_vectors)

    def search(self, request: QueryRequest) -> SearchResponse:
        request, typed = self._bind_properties(request)
        if request.is_listing:
            return self._list(request)
        began = perf_counter()
        asked = topics(request, is_enabled=self._settings.advanced.hyde_enabled)
        started = self._retrieval.start(asked, request.fuzzy_distance)
        attempt, state, is_mixed = self._search_once(started, request)
        for _ in range(TRIES - 1):
            # Meanwhile another request may have updated an index to a later commit; the index then
            # no longer knows the commit that this one reads.
            if is_mixed:
                attempt, state, is_mixed = self._search_once(started, request)
        if is_mixed:
            state = state.unsure("the index changed while it was searched: ask again")
        rooms = rooms_of(self._settings)
        presenter = Presenter(self._analyzer, attempt.queries, rooms, attempt.metadata)
        drafts = presenter.draft(attempt.left)
        shown = drafts.within(request.max_tokens)
        canvas_notes = (CANVAS_NOTE,) if any(one.is_card for one in shown.results) else ()
        return SearchResponse(
            results=shown.results,
            query_types=tuple(each.query_type for each in attempt.queries),
            index=state,
            stats=CompressionStats.from_counts(len(attempt.candidates), attempt.counts),
            stages=attempt.counts,
            seconds={**attempt.seconds, "total": perf_counter() - began},
            notes=(*attempt.notes, *canvas_notes, *self._filter_notes),
            did_you_mean=did_you_mean(attempt.queries),
            nearest_terms=nearest_terms(attempt.queries),
            left_out=shown.left_out,
            pack=drafts.within,
            explanation=explain(attempt, self._settings, typed) if request.explain else None,
        )

    def check(self, request: QueryRequest) -> None:
        """Raises QueryError for a filter that `search` would refuse; needs no vectors."""
        request, _ = self._bind_properties(request)
        with self._index.view(for_search=False) as view:
            self._within(view, request)

    def _bind_properties(self, request: QueryRequest) -> tuple[QueryRequest, TypedFilters]:
        """Moves the properties that documents have, and the places that the index does not have as
        typed, from the text of a query that is written in the language to the filter."""
        typed = [typed_properties(query) for query in request.queries]
        if not any(typed):
            return request, TypedFilters()
        every = tuple(each.text for found in typed for each in found if not each.is_place)
        as_words = TypedFilters(as_words=every)
        if len(request.queries) != 1 or request.hypothesis.strip():
            return request, as_words
        strict = request.strict in (True, (True,))
        trees = list(self._surroundings.places().roots)
        with self._index.view(for_search=False) as view:
            known = [each for each in typed[0] if is_condition(view, each.text, trees, self._now())]
        rest = without_properties(request.queries[0], known)
        if not known or not (strict or is_plainly_written(rest, len(known))):
            return request, as_words
        bound = tuple(each.text for each in known)
        where = " ".join((request.filters.where, *bound))
        if len(where) > MAX_FILTER_TEXT_CHARS:
            return request, as_words
        filters = replace(request.filters, where=where)
        if trees:
            refuse_unknown_trees(filters.named_trees, trees)
        words = tuple(text for text in every if text not in bound)
        return replace(request, queries=(rest,), filters=filters), TypedFilters(bound, words)

    def _now(self) -> datetime:
        return self._surroundings.clock()

    def _within(self, view: View, request: QueryRequest) -> ResolvedFilter:
        """The request's filters, which some document must pass, and those of the configuration."""
        asked = to_filter(request.filters, self._now())
        filtered = resolve_filter(view, asked, self._surroundings.places())
        condition = filtered.condition
        for text in (request.filters.configured, self._settings.filter):
            condition = both(condition, where_condition(text, self._now()))
        return replace(filtered, condition=condition)

    @property
    def _filter_notes(self) -> tuple[str, ...]:
        standing = self._settings.filter.strip()
        return (STANDING_FILTER.format(standing),) if standing else ()

    def _list(self, request: QueryRequest) -> SearchResponse:
        """The documents that satisfy the filters, one page."""
        began = perf_counter()
        with self._index.view() as view:  # the state counts the vectors that were read
            filtered = self._within(view, request)
            found = list(view.filtered_documents(filtered.condition))
            state = self._states.of(view, has_vectors=view.has_vectors)
        found.sort(key=lambda document: (document.path, document.tree))
        if request.order is ListOrder.DATE:
            found.sort(key=lambda document: document.date, reverse=True)
        end = request.offset + request.top_n
        keys = {term.key for term in parse_filter(request.filters.where)}
        page = found[request.offset : end]
        listing = DocumentList(
            total=len(found),
            offset=request.offset,
            next_offset=end if end < len(found) else None,
            documents=tuple(FoundDocument.of(document, keys) for document in page),
        )
        return SearchResponse(
            results=(),
            query_types=(),
            index=state,
            stats=CompressionStats.from_counts(0, ()),
            stages=(),
            seconds={"total": perf_counter() - began},
            notes=(*filtered.notes, *self._filter_notes),
            listing=listing,
        )

    def _search_once(
        self, started: Sequence[Started], request: QueryRequest
    ) -> tuple[Attempt, IndexState, bool]:
        """Looks until there are enough results. The last value: whether an index has changed."""
        with self._index.view() as view:
            filtered = self._within(view, request)
            within = filtered.condition
            read = [self._retrieval.read(view, each, request, within) for each in started]
            bounds = Bounds(within, queries=len(read))
            attempt = self._look(view, read, request, bounds, filtered)
            while attempt.is_worth_going_deeper(request.top_n) and bounds.can_be_deeper:
                (query,) = attempt.queries
                owners = view.documents_of([item.key for item in query.fused])
                hits = bounds.hits
                bounds = self._next(request, bounds, owners.values())
                if not view.has_documents(bounds.within):
                    break  # every document already has its share
                known = {key for key, doc_id in owners.items() if doc_id in bounds.full}
                attempt = self._look(
                    view, read, request, bounds, filtered, query.keep_only(known, hits)
                )
            left = with_sections(attempt.left, view.sections_in)
            left = with_surroundings(left, view.chunks_near, rooms_of(self._settings)[:-1])
            metadata = _metadata(view, left) if request.metadata else {}
            attempt = replace(attempt, left=left, metadata=metadata)
            is_degraded = any(each.is_degraded for each in attempt.queries)
            state = self._states.of(view, has_vectors=not is_degraded)
            return attempt, state, view.is_overtaken

    def _next(self, request: QueryRequest, bounds: Bounds, owners: Iterable[DocId]) -> Bounds:
        """The bounds after a look that found too little; `owners` are the documents of its hits.
        Excludes the documents that have their share of the hits, or goes deeper if there are none.
        """
        if places_of_a_document(self._settings, request):
            share = most_of_a_document(request.top_n)
            full = bounds.full | {one for one, count in Counter(owners).items() if count >= share}
            if full != bounds.full:
                return bounds.beyond(full)
        return bounds.deeper()

    def _look(
        self,
        view: View,
        read: Sequence[RunningQuery],
        request: QueryRequest,
        bounds: Bounds,
        filtered: ResolvedFilter,
        earlier: RunningQuery | None = None,
    ) -> Attempt:
        began = perf_counter()
        queries = [self._answer(view, each, request, bounds, earlier) for each in read]
        found = [each.candidates for each in queries]
        ratio = cutoff_ratio(self._settings, request)
        if len(queries) > 1 and ratio > 0:
            # Each topic has its own elbow: one that scores lower is not cut off as a whole.
            found = [cut_at_elbow(each, ratio) for each in found]
        candidates = merge_queries(found)[: bounds.of_all(request.top_n)]
        retrieval_seconds = perf_counter() - began
        judge = self._reranker(request, read)
        floored = frozenset(each.floored for each in queries if each.floored)
        tools = self._tools(view, request, candidates, judge, floored, filtered.condition)
        stages = build_stages(self._settings, request, tools)
        left, counts = run_stages(stages, candidates, explain=request.explain)
        notes = judge.notes if judge else ()
        return Attempt(
            tuple(queries), candidates, left, counts, retrieval_seconds, notes, filtered.notes
        )

    def _answer(
        self,
        view: View,
        query: RunningQuery,
        request: QueryRequest,
        bounds: Bounds,
        earlier: RunningQuery | None,
    ) -> RunningQuery:
        """One query: retrieve, fuse, hydrate, judge."""
        settings = self._settings
        found = self._retrieval.find(view, query, bounds)
        is_full = found.is_full(bounds.hits)
        if earlier is not None:
            found = found.with_earlier(earlier)
        if settings.tree_normalisation > 0 and is_full:
            found = self._with_missing_trees(view, query, found, bounds)
        found = self._fuse(view, found, bounds.within)
        every = put_wished_first(found.fused, found.wishes)
        if bounds.looks > 1 and places_of_a_document(settings, request):
            # What came first was thinned out: more of the same documents would be, too.
            every = few_of_each(view, every, most_of_a_document(request.top_n))
        count = bounds.candidates(request.top_n)
        is_levelled = settings.tree_normalisation > 0
        first = with_every_tree(view, every, count) if is_levelled else every[:count]
        candidates = hydrate(view, first, with_vectors=needs_vectors(settings, request))
        measured = self._measure(view, found, candidates)
        refined = refine(view, measured, found, self._analyzer, settings)
        judged = with_wishes(refined, found.wishes)
        return replace(found, candidates=judged, has_more=len(every) > len(first) or is_full)

    def _with_missing_trees(
        self,
        view: View,
        query: RunningQuery,
        found: RunningQuery,
        bounds: Bounds,
    ) -> RunningQuery:
        """Searches each tree by itself that others have crowded out of the indices' hits."""
        fused = weigh(found, self._settings).fused
        for tree in missing_trees(view, fused):
            within = both(bounds.within, in_tree(tree))
            if view.has_documents(within):
                alone = self._retrieval.find(view, query, replace(bounds, within=within))
                found = with_best_of(found, alone)
        return found

    def _fuse(self, view: View, found: RunningQuery, within: Filter) -> RunningQuery:
        """The documents of the first hits have neighbours; all are then weighed together."""
        settings = self._settings
        first = weigh(found, settings, GRAPH_SEED_CHUNKS).fused
        linked = self._retrieval.neighbours(view, found, first, within)
        if settings.fusion is Fusion.SCORE:  # rank fusion has no use for missing scores
            found = found.with_missing_scores([hit.key for hit in linked])
        found = weigh_links(weigh(found, settings), linked, settings)
        wishes = find_wished(found.wishes, view, [item.key for item in found.fused])
        return replace(found, wishes=wishes)

    def _measure(
        self, view: View, found: RunningQuery, candidates: Sequence[Candidate]
    ) -> list[Candidate]:
        """Each candidate with its evidence."""
        # If meaning has no weight in the ranking, it has none in the confidence either.
        nearness = None
        if self._settings.semantic_weight > 0:
            keys = [item.stored.key for item in candidates]
            nearness = self._retrieval.meaning.nearness(view, found.nearest, keys)
        measures = Measures(
            nearness=nearness,
            ideals=found.ideals,
            has_known_words=found.has_known_words and not found.is_idle,
            question=_question(found),
            tokens=found.exact,
            wishes=[(wish.keys, wish.strength) for wish in found.wishes],
            naming=make_naming((found.topic.words,), self._analyzer),
        )
        measured = with_evidence(candidates, measures)
        has_rank_sums = self._settings.rank_sum_curve is not None
        return with_rank_sums(measured, found) if has_rank_sums else measured

    def _reranker(self, request: QueryRequest, read: Sequence[RunningQuery]) -> Reranker | None:
        encoder = self._cross_encoder
        if encoder is None or not self._settings.rerank_enabled:
            return None
        texts = [each.understanding.parsed.text for each in read if each.topic.words]
        return Reranker(encoder, texts, request.hypothesis)

    def _tools(
        self,
        view: View,
        request: QueryRequest,
        candidates: Sequence[Candidate],
        judge: Reranker | None,
        floored: frozenset[DocId],
        within: Filter,
    ) -> StageTools:
        analyzer, advanced = self._analyzer, self._settings.advanced
        terms = frozenset(token.term for text in request.queries for token in analyzer.query(text))
        is_boosting = advanced.community_detection_enabled and advanced.community_boost_factor > 1
        documents = {item.document.id for item in candidates}
        boosts = BoostRules(
            now=self._surroundings.clock(),
            recency_bias=self._settings.recency_bias,
            communities=view.communities_of(documents) if is_boosting else {},
            community_factor=advanced.community_boost_factor,
            local_trees=self._surroundings.local_trees,
            local_factor=self._settings.local_boost,
        )
        return StageTools(
            nodes_of=view.chunks_near,
            is_named=names_all(terms, analyzer.terms),
            naming=make_naming(request.queries, analyzer),
            floored=floored,
            boosts=boosts,
            judge=judge,
            parent_size=self._surroundings.parent_size,
            parent_overlap=self._surroundings.parent_overlap,
            within=within,
        )


def _question(found: RunningQuery) -> Question:
    frequencies = [found.frequencies.get(unit, 0) for unit in found.understanding.query.units]
    return Question(
        words=len(frequencies) or USUAL.words,
        rarity=rarity(found.passages, frequencies),
        spread=USUAL.spread if found.nearest is None else found.nearest.spread,
        passages=found.passages or USUAL.passages,
    )


def _metadata(view: View, left: Sequence[Candidate]) -> dict[ChunkId, MetadataMaker]:
    """For each candidate, the maker of its metadata, with the links in its passage."""
    links = {doc_id: view.links(doc_id) for doc_id in {item.document.id for item in left}}
    makers: dict[ChunkId, MetadataMaker] = {}
    for item in left:
        inside = range(item.span.byte_start, item.span.byte_end)
        shown = [one for one in links[item.document.id] if one.link.span.byte_start in inside]
        makers[item.stored.chunk.id] = partial(Metadata.of, item.document, shown)
    return makers
