"""What a search gives a client: the response's values, cleaned, cited and numbered."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ragdocs.mcp_server.addresses import document_of, lines_uri, reference
from ragdocs.mcp_server.tools.index_notes import IndexNote, index_note
from ragdocs.mcp_server.tools.quoting import without_places
from ragdocs.mcp_server.visible import Cleaner, moved
from ragdocs.search.budget import Omitted
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
    line_start: int
    line_end: int
    heading_path: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundPassage:
    """A passage as a client sees it. `text` is quoted from the file: data, not instructions.

    `id`, `heading_path` and the lines are those of the narrowest section that holds the best match;
    `within` is the wider section of which the text shows more. `text_lines` (first, last) are the
    lines of the text, where those are others, and `answer_lines` those that answer; `matches` are
    characters [start, end) of the text in which words of the query stand, the first ones, and
    `match_lines` their lines. With parent retrieval `matched` is what was found, and
    `parent_chunk_id` the section that was returned for it.
    """

    number: int
    id: str
    uri: str
    tree: str
    path: str
    title: str
    heading_path: tuple[str, ...]
    line_start: int
    line_end: int
    score: float
    confidence: float
    found_by: tuple[str, ...]
    extent: str
    text: str
    text_lines: tuple[int, int] | None = None
    answer_lines: tuple[int, int] | None = None
    within: Place | None = None
    matched: Place | None = None
    parent_chunk_id: str | None = None
    matches: tuple[tuple[int, int], ...] = ()
    match_lines: tuple[int, ...] = ()
    snippet: str | None = None
    hidden_characters: int | None = None
    metadata: Metadata | None = None

    @property
    def where(self) -> str:
        return f"{self.path}:{self.line_start}-{self.line_end}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetch:
    """The call that gets what was left out."""

    tool: str
    arguments: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """A passage that the budget had no room for, or not for all of it."""

    path: str
    line_start: int
    line_end: int
    tokens: int
    extent: str
    fetch: Fetch


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchAnswer:
    """The whole answer."""

    results: tuple[FoundPassage, ...]
    index: IndexNote
    left_out: tuple[LeftOut, ...]
    left_out_total: int
    advice: tuple[str, ...]
    did_you_mean: str | None = None
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
        results=found_passages(response.results),
        index=index_note(response.index, activity),
        left_out=left_out(response.omitted, limit),
        left_out_total=len(response.omitted),
        advice=tuple(cleaner.clean(without_places(line)) for line in _advice(response)),
        did_you_mean=cleaner.clean(meant) if meant else None,
        query_types=tuple(response.query_types),
        stats=asdict(response.stats) if has_stats else None,
    )


def found_passages(results: Sequence[SearchResult]) -> tuple[FoundPassage, ...]:
    return tuple(_passage(number, result) for number, result in enumerate(results, start=1))


def _passage(number: int, result: SearchResult) -> FoundPassage:
    cleaner = Cleaner()
    clean, span, shown = cleaner.clean, result.span, result.text_span
    lines = shown.line_start, shown.line_end
    matches = result.matches[:MAX_MATCHES] if result.text else ()
    return FoundPassage(
        number=number,
        id=clean(result.chunk_id),
        uri=lines_uri(result.doc_id, shown.line_start, shown.line_end),
        tree=clean(result.doc_id.partition(":")[0]),
        path=clean(result.path),
        title=clean(result.title),
        heading_path=tuple(map(clean, result.heading_path)),
        line_start=span.line_start,
        line_end=span.line_end,
        score=round(result.score, 4),
        confidence=round(result.confidence, 2),
        found_by=tuple(result.strategies),
        extent=result.extent.value,
        text=clean(result.text),
        text_lines=None if lines == (span.line_start, span.line_end) else lines,
        answer_lines=result.answer_lines,
        within=_within(result, cleaner),
        matched=_matched(result, cleaner),
        parent_chunk_id=clean(result.parent_chunk_id) if result.parent_chunk_id else None,
        matches=moved(result.text, ((each.start, each.end) for each in matches)),
        match_lines=tuple(dict.fromkeys(each.line_start for each in matches)),
        snippet=None if result.text else clean(result.snippet.text),
        hidden_characters=cleaner.removed or None,
        metadata=result.metadata,
    )


def _within(result: SearchResult, cleaner: Cleaner) -> Place | None:
    wider = result.within
    if wider is None:
        return None
    return Place(
        id=cleaner.clean(wider.chunk_id),
        line_start=wider.span.line_start,
        line_end=wider.span.line_end,
        heading_path=tuple(map(cleaner.clean, wider.heading_path)),
    )


def _matched(result: SearchResult, cleaner: Cleaner) -> Place | None:
    if result.parent_chunk_id is None:
        return None
    found = result.matched
    lines = found.span.line_start, found.span.line_end
    return Place(id=cleaner.clean(found.chunk_id), line_start=lines[0], line_end=lines[1])


def left_out(omitted: Sequence[Omitted], limit: int) -> tuple[LeftOut, ...]:
    return tuple(map(_left_out, omitted[: min(MAX_LEFT_OUT, limit // TOKENS_FOR_ONE)]))


def _left_out(item: Omitted) -> LeftOut:
    arguments = {
        "document": reference(document_of(item.chunk_id)),
        "start_line": item.line_start,
        "end_line": item.line_end,
    }
    return LeftOut(
        path=Cleaner().clean(item.path),
        line_start=item.line_start,
        line_end=item.line_end,
        tokens=item.tokens,
        extent=item.extent.value,
        fetch=Fetch(tool="get_document", arguments=arguments),
    )


def _advice(response: SearchResponse) -> Iterator[str]:
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
        if response.nearest_terms:
            terms = ", ".join(response.nearest_terms)
            yield f"No document has these words; the nearest terms they have: {terms}."
