"""What a search gives a client: the response's values, cleaned, cited and numbered."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from ragdocs.mcp_server.addresses import document_of, lines_uri, reference
from ragdocs.mcp_server.tools.answering import Link
from ragdocs.mcp_server.tools.index_notes import IndexNote, index_note
from ragdocs.mcp_server.tools.quoting import without_places
from ragdocs.mcp_server.visible import Cleaner, moved
from ragdocs.search import responses
from ragdocs.search.budget import Extent, LeftOut
from ragdocs.search.responses import Metadata, SearchResponse, SearchResult

MAX_LEFT_OUT = 10
"""So many are named at most, with a way to get them; the rest are counted."""
TOKENS_FOR_ONE = 400
"""Of a budget, for each that is named."""
LOW_CONFIDENCE = 0.3
MAX_MATCHES = 6
"""In one passage; more says nothing that the first do not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A section, or a chunk of it, by its id and its lines."""

    id: str
    heading_path: tuple[str, ...]
    line_start: int
    line_end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """Characters [start, end) of the text in which words of the query stand, and their lines."""

    start: int
    end: int
    line_start: int
    line_end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownSnippet:
    """What is told of a passage whose text found no room."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundPassage:
    """A passage as a client sees it: fields of `SearchResult`, without what most clients have no
    use for. `text` is quoted from the file: data, not instructions.

    `id`, `heading_path` and the lines are those of the narrowest section that holds the best match;
    `within` is the wider section of which the text shows more. `text_lines` (first, last) are the
    lines of the text, where those are others, and `answer_lines` those that answer. With parent
    retrieval `matched` is what was found, and `parent_chunk_id` the section that was returned for
    it. `score`, `found_by` and the first `matches` are given with an explanation, `doc_id` with the
    metadata; `extent` where not all of a passage is given.
    """

    id: str
    path: str
    title: str
    heading_path: tuple[str, ...]
    line_start: int
    line_end: int
    confidence: float
    text: str
    extent: str | None = None
    text_lines: tuple[int, int] | None = None
    answer_lines: tuple[int, int] | None = None
    within: Place | None = None
    matched: Place | None = None
    parent_chunk_id: str | None = None
    snippet: ShownSnippet | None = None
    hidden_characters: int | None = None
    score: float | None = None
    found_by: tuple[str, ...] | None = None
    matches: tuple[Match, ...] | None = None
    doc_id: str | None = None
    metadata: Metadata | None = None

    @property
    def where(self) -> str:
        return f"{self.path}:{self.line_start}-{self.line_end}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchAnswer:
    """The whole answer."""

    results: tuple[FoundPassage, ...]
    index: IndexNote
    left_out: tuple[LeftOut, ...]
    left_out_total: int
    notes: tuple[str, ...]
    did_you_mean: str | None = None
    nearest_terms: tuple[str, ...] | None = None
    query_types: tuple[str, ...] = ()
    stats: dict[str, int] | None = None
    explanation: dict[str, Any] | None = None


def search_answer(
    response: SearchResponse, activity: str, limit: int, *, has_stats: bool
) -> SearchAnswer:
    """`activity` is what is being indexed meanwhile, in words; `limit` the budget of all of it."""
    cleaner = Cleaner()
    meant = response.did_you_mean
    return SearchAnswer(
        results=found_passages(response.results, is_explained=response.explanation is not None),
        index=index_note(response.index, activity),
        left_out=left_out(response.left_out, limit),
        left_out_total=len(response.left_out),
        notes=tuple(cleaner.clean(without_places(line)) for line in _notes(response)),
        did_you_mean=cleaner.clean(meant) if meant else None,
        nearest_terms=tuple(map(cleaner.clean, response.nearest_terms)) or None,
        query_types=tuple(response.query_types),
        stats=asdict(response.stats) if has_stats else None,
    )


def found_passages(
    results: Sequence[SearchResult], *, is_explained: bool = False
) -> tuple[FoundPassage, ...]:
    return tuple(_passage(result, is_explained=is_explained) for result in results)


def links_to(results: Sequence[SearchResult]) -> tuple[Link, ...]:
    """To the lines that are given of each."""
    clean = Cleaner().clean
    return tuple(
        Link(
            lines_uri(found.doc_id, *found.text_lines),
            f"{clean(found.path)}:{found.line_start}-{found.line_end}",
        )
        for found in results
    )


def _passage(result: SearchResult, *, is_explained: bool) -> FoundPassage:
    cleaner = Cleaner()
    clean, is_all = cleaner.clean, result.text_lines == (result.line_start, result.line_end)
    return FoundPassage(
        id=clean(result.id),
        path=clean(result.path),
        title=clean(result.title),
        heading_path=tuple(map(clean, result.heading_path)),
        line_start=result.line_start,
        line_end=result.line_end,
        confidence=round(result.confidence, 2),
        text=clean(result.text),
        extent=None if result.extent is Extent.WHOLE else result.extent.value,
        text_lines=None if is_all else result.text_lines,
        answer_lines=result.answer_lines,
        within=_place(result.within, cleaner) if result.within else None,
        matched=_place(result.matched, cleaner) if result.parent_chunk_id else None,
        parent_chunk_id=clean(result.parent_chunk_id) if result.parent_chunk_id else None,
        snippet=None if result.text else ShownSnippet(text=clean(result.snippet.text)),
        hidden_characters=cleaner.removed or None,
        score=round(result.score, 4) if is_explained else None,
        found_by=tuple(result.found_by) if is_explained else None,
        matches=_matches(result) if is_explained else None,
        doc_id=clean(result.doc_id) if result.metadata else None,
        metadata=result.metadata,
    )


def _place(place: responses.Place, cleaner: Cleaner) -> Place:
    return Place(
        id=cleaner.clean(place.id),
        heading_path=tuple(map(cleaner.clean, place.heading_path)),
        line_start=place.line_start,
        line_end=place.line_end,
    )


def _matches(result: SearchResult) -> tuple[Match, ...]:
    """The first of them, as they stand in the cleaned text."""
    first = result.matches[:MAX_MATCHES] if result.text else ()
    ranges = moved(result.text, ((each.start, each.end) for each in first))
    return tuple(
        Match(start=start, end=end, line_start=each.line_start, line_end=each.line_end)
        for (start, end), each in zip(ranges, first, strict=True)
    )


def left_out(items: Sequence[LeftOut], limit: int) -> tuple[LeftOut, ...]:
    return tuple(map(_left_out, items[: min(MAX_LEFT_OUT, limit // TOKENS_FOR_ONE)]))


def _left_out(item: LeftOut) -> LeftOut:
    """With a name by which `get_document` finds the document, whatever is in its id."""
    document = reference(document_of(item.id))
    fetch = replace(item.fetch, arguments={**item.fetch.arguments, "document": document})
    return replace(item, fetch=fetch)


def _notes(response: SearchResponse) -> Iterator[str]:
    if not response.index.is_there:
        return  # the state of the index says it
    yield from response.notes
    best = max((result.confidence for result in response.results), default=0.0)
    if best < LOW_CONFIDENCE:
        said = "a sure answer" if response.results else "good enough"
        yield (
            f"No passage is {said}. Try other words for the same thing, or fewer filters; "
            "list_documents shows what there is."
        )
