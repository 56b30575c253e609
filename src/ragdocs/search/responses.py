"""What a caller gets back: the results, and why they are these."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ragdocs.models import ChunkId, DocId, Span
from ragdocs.search.budget import Omitted
from ragdocs.search.candidates import Candidate, Strategy
from ragdocs.search.explanation import Explanation
from ragdocs.search.index_state import IndexState
from ragdocs.search.match_ranges import MatchRange
from ragdocs.search.requests import QueryType
from ragdocs.search.snippets import Snippet
from ragdocs.search.stages import CompressionStats, StageCount


@dataclass(frozen=True, slots=True)
class Part:
    """A chunk that was found within a larger result."""

    chunk_id: ChunkId
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResult:
    """One passage, cited. `score` orders the results, `confidence` is how likely it is right."""

    chunk_id: ChunkId
    doc_id: DocId
    path: str
    title: str
    heading_path: tuple[str, ...]
    span: Span
    text: str
    snippet: Snippet
    matches: tuple[MatchRange, ...]
    score: float
    confidence: float
    strategies: tuple[Strategy, ...]
    parts: tuple[Part, ...] = ()

    @classmethod
    def from_candidate(
        cls, candidate: Candidate, snippet: Snippet, matches: tuple[MatchRange, ...]
    ) -> "SearchResult":
        chunk, document = candidate.stored.chunk, candidate.document
        return cls(
            chunk_id=chunk.id,
            doc_id=document.id,
            path=document.path,
            title=document.title,
            heading_path=chunk.breadcrumb,
            span=candidate.span,
            text=candidate.text,
            snippet=snippet,
            matches=matches,
            score=candidate.score,
            confidence=candidate.confidence,
            strategies=tuple(s for s in Strategy if s in candidate.evidence),
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
