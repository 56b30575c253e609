"""What a caller gets back: the results, and why they are these."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from ragdocs.models import ChunkId, DocId, Span
from ragdocs.search.candidates import Candidate, Evidence, Strategy
from ragdocs.search.requests import QueryType
from ragdocs.search.stages import CompressionStats, StageCount


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResult:
    """One passage, cited. `score` orders the results, `confidence` is the worth of the evidence."""

    chunk_id: ChunkId
    doc_id: DocId
    path: str
    title: str
    heading_path: tuple[str, ...]
    span: Span
    text: str
    score: float
    confidence: float
    evidence: Mapping[Strategy, Evidence]
    contributions: Mapping[Strategy, float]
    boosts: Mapping[str, float]

    @classmethod
    def from_candidate(cls, candidate: Candidate) -> "SearchResult":
        chunk, document = candidate.stored.chunk, candidate.document
        return cls(
            chunk_id=chunk.id,
            doc_id=document.id,
            path=document.path,
            title=document.title,
            heading_path=chunk.breadcrumb,
            span=candidate.span,
            text=candidate.text,
            score=candidate.score,
            confidence=candidate.confidence,
            evidence=candidate.evidence,
            contributions=candidate.contributions,
            boosts=candidate.boosts,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResponse:
    """The results, best first, with how each query was understood and what every stage left."""

    results: tuple[SearchResult, ...]
    query_types: tuple[QueryType, ...]
    stats: CompressionStats
    stages: tuple[StageCount, ...]
    seconds: Mapping[str, float] = field(compare=False)
    notes: tuple[str, ...] = ()
