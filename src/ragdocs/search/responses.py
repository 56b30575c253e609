"""What a caller gets back: the results, and why they are these."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice

from ragdocs.models import Chunk, ChunkId, DateSource, DocId
from ragdocs.search.budget import Extent, LeftOut
from ragdocs.search.candidates import Candidate, Strategy
from ragdocs.search.explanation import Explanation
from ragdocs.search.index_state import IndexState
from ragdocs.search.match_ranges import MatchRange
from ragdocs.search.requests import QueryType
from ragdocs.search.snippets import Snippet
from ragdocs.search.stages import CompressionStats, StageCount
from ragdocs.store.records import ResolvedLink, StoredDocument

MAX_LINKS = 50
"""Of one passage; `find_related` lists all of a document."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A section or a chunk, and where it stands in the file."""

    id: ChunkId
    heading_path: tuple[str, ...]
    line_start: int
    line_end: int
    byte_start: int
    byte_end: int

    @classmethod
    def of(cls, chunk: Chunk) -> "Place":
        span = chunk.span
        return cls(
            id=chunk.id,
            heading_path=chunk.breadcrumb,
            line_start=span.line_start,
            line_end=span.line_end,
            byte_start=span.byte_start,
            byte_end=span.byte_end,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Metadata:
    """What a result's document says of itself, beside its title. `links` are the documents that the
    cited section links to, each once; of very many the first."""

    description: str
    keywords: tuple[str, ...]
    tags: tuple[str, ...]
    aliases: tuple[str, ...]
    author: str
    category: str
    date: datetime
    date_source: DateSource
    links: tuple[DocId, ...]

    @classmethod
    def of(
        cls, document: StoredDocument, links: Iterable[ResolvedLink], start: int, end: int
    ) -> "Metadata":
        """For the section with these bytes of the file."""
        front_matter = document.front_matter
        targets = (
            one.target
            for one in links
            if one.target is not None and start <= one.link.span.byte_start < end
        )
        return cls(
            description=front_matter.description,
            keywords=front_matter.keywords,
            tags=document.tags,
            aliases=front_matter.aliases,
            author=front_matter.author,
            category=front_matter.category,
            date=document.date,
            date_source=document.date_source,
            links=tuple(islice(dict.fromkeys(targets), MAX_LINKS)),
        )


MetadataMaker = Callable[[int, int], Metadata]
"""For the section with these bytes, of one document."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResult:
    """One passage, cited under the narrowest section that holds its best match: `id`,
    `heading_path`, lines and bytes are that section's. `confidence` is how likely it is right and
    orders the results, `score` those of about the same confidence.

    `text` is the file's text at `text_lines` (first, last) and `text_bytes` [start, end), and
    `answer_lines` (first, last) are the lines that answer. `within` is the wider section that gives
    the text around it, if there is one. `matched` is the chunk that the indices found, the best of
    `parts`; with parent retrieval, `parent_chunk_id` is what was returned in its place.
    """

    id: ChunkId
    doc_id: DocId
    path: str
    title: str
    heading_path: tuple[str, ...]
    line_start: int
    line_end: int
    byte_start: int
    byte_end: int
    within: Place | None = None
    text: str
    text_lines: tuple[int, int]
    text_bytes: tuple[int, int]
    extent: Extent = Extent.WHOLE
    answer_lines: tuple[int, int] | None = None
    snippet: Snippet
    matches: tuple[MatchRange, ...]
    score: float
    confidence: float
    found_by: tuple[Strategy, ...]
    matched: Place
    parent_chunk_id: ChunkId | None = None
    parts: tuple[Place, ...] = ()
    metadata: Metadata | None = None
    """When it was asked for."""

    @classmethod
    def from_candidate(
        cls, candidate: Candidate, section: Chunk, within: Place | None
    ) -> "SearchResult":
        """Cited, with all of its text."""
        document, best, span = candidate.document, candidate.best.chunk, candidate.span
        is_parent = candidate.is_parent
        return cls(
            id=section.id,
            heading_path=section.breadcrumb,
            line_start=section.span.line_start,
            line_end=section.span.line_end,
            byte_start=section.span.byte_start,
            byte_end=section.span.byte_end,
            doc_id=document.id,
            path=document.path,
            title=document.title,
            within=within,
            text=candidate.text,
            text_lines=(span.line_start, span.line_end),
            text_bytes=(span.byte_start, span.byte_end),
            snippet=Snippet("", ""),
            matches=(),
            score=candidate.score,
            confidence=candidate.confidence,
            found_by=tuple(s for s in Strategy if s in candidate.evidence),
            matched=Place.of(best),
            parent_chunk_id=(within.id if within else section.id) if is_parent else None,
            parts=tuple(Place.of(part.chunk) for part in candidate.constituents),
        )


@dataclass(frozen=True, slots=True)
class Presented:
    """The results as they are given, and what of them did not fit."""

    results: tuple[SearchResult, ...]
    left_out: tuple[LeftOut, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResponse:
    """The results, best first, with the state of the index they come from and what every stage
    left; `explanation` is there when it was asked for.
    """

    results: tuple[SearchResult, ...]
    query_types: tuple[QueryType, ...]
    index: IndexState
    stats: CompressionStats
    stages: tuple[StageCount, ...]
    seconds: Mapping[str, float] = field(compare=False)
    notes: tuple[str, ...] = ()
    did_you_mean: str | None = None
    nearest_terms: tuple[str, ...] = ()
    """When no document has any word of a query: words of theirs that are like them."""
    left_out: tuple[LeftOut, ...] = ()
    """What `max_tokens` left no room for, and how to get it."""
    explanation: Explanation | None = None
    within: "Callable[[int | None], Presented] | None" = field(
        default=None, compare=False, repr=False
    )
    """The same results for other `max_tokens`: nothing is searched again."""
