"""What a caller gets back: the results, and why they are these."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice

from ragdocs.models import Chunk, ChunkId, DateSource, DocId, Span
from ragdocs.search.budget import Extent, Omitted
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


@dataclass(frozen=True, slots=True)
class Part:
    """A chunk that was found within a larger result."""

    chunk_id: ChunkId
    span: Span


@dataclass(frozen=True, slots=True)
class Within:
    """The wider section of which the passage is a part."""

    chunk_id: ChunkId
    heading_path: tuple[str, ...]
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Metadata:
    """What a result's document says of itself. `links` are the documents that the passage links to,
    each once; of very many the first."""

    doc_id: DocId
    title: str
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
    def of(cls, document: StoredDocument, links: Iterable[ResolvedLink], span: Span) -> "Metadata":
        front_matter = document.front_matter
        targets = (
            one.target
            for one in links
            if one.target is not None
            and span.byte_start <= one.link.span.byte_start < span.byte_end
        )
        return cls(
            doc_id=document.id,
            title=document.title,
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


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResult:
    """One passage, cited under the narrowest section that holds its best match: `chunk_id`,
    `heading_path` and `span` are that section's. `score` orders the results, `confidence` is how
    likely it is right.

    `text` is the file's text at `text_span`, and `answer_lines` (first, last) are the lines that
    answer. `within` is the wider section that gives the text around it, if there is one. `matched`
    is the chunk that the indices found, the best of `parts`; with parent retrieval,
    `parent_chunk_id` is what was returned in its place.
    """

    chunk_id: ChunkId
    doc_id: DocId
    path: str
    title: str
    heading_path: tuple[str, ...]
    span: Span
    within: Within | None = None
    text: str
    text_span: Span
    extent: Extent = Extent.WHOLE
    answer_lines: tuple[int, int] | None = None
    snippet: Snippet
    matches: tuple[MatchRange, ...]
    score: float
    confidence: float
    strategies: tuple[Strategy, ...]
    matched: Part
    parent_chunk_id: ChunkId | None = None
    parts: tuple[Part, ...] = ()
    metadata: Metadata | None = None
    """When it was asked for."""

    @classmethod
    def from_candidate(
        cls, candidate: Candidate, section: Chunk, within: Within | None
    ) -> "SearchResult":
        """Cited, with all of its text."""
        document, best = candidate.document, candidate.best.chunk
        is_parent = candidate.is_parent
        return cls(
            chunk_id=section.id,
            doc_id=document.id,
            path=document.path,
            title=document.title,
            heading_path=section.breadcrumb,
            span=section.span,
            within=within,
            text=candidate.text,
            text_span=candidate.span,
            snippet=Snippet("", ""),
            matches=(),
            score=candidate.score,
            confidence=candidate.confidence,
            strategies=tuple(s for s in Strategy if s in candidate.evidence),
            matched=Part(best.id, best.span),
            parent_chunk_id=(within.chunk_id if within else section.id) if is_parent else None,
            parts=tuple(Part(part.chunk.id, part.chunk.span) for part in candidate.constituents),
        )


@dataclass(frozen=True, slots=True)
class Presented:
    """The results as they are given, and what of them did not fit."""

    results: tuple[SearchResult, ...]
    omitted: tuple[Omitted, ...] = ()


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
    omitted: tuple[Omitted, ...] = ()
    """What `max_tokens` left no room for, and how to get it."""
    explanation: Explanation | None = None
    within: "Callable[[int | None], Presented] | None" = field(
        default=None, compare=False, repr=False
    )
    """The same results for other `max_tokens`: nothing is searched again."""
