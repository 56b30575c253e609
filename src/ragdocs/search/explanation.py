"""Why the answer is what it is, as data: each query, each result, each stage."""

from collections.abc import Mapping
from dataclasses import dataclass

from ragdocs.models import ChunkId
from ragdocs.search.candidates import Candidate, Evidence, Grounds, Strategy
from ragdocs.search.evidence import Question
from ragdocs.search.requests import QueryType
from ragdocs.search.stages import StageCount
from ragdocs.search.understanding import AddedWord
from ragdocs.search.wishes import Wish


@dataclass(frozen=True, slots=True)
class WishExplanation:
    """A quotation: how many passages have it (None: not known), and how far these come before the
    others, in [0, 1].
    """

    phrase: str
    passages: int | None = None
    strength: float = 0.0

    @classmethod
    def from_wish(cls, wish: Wish) -> "WishExplanation":
        return cls(" ".join(wish.unit.terms), len(wish.keys), wish.strength)

    def in_words(self) -> str:
        if self.passages is None:
            return self.phrase
        counted = f"{self.passages} passage{'' if self.passages == 1 else 's'}"
        return f"{self.phrase} (in {counted}; brought forward by {self.strength:.2f})"


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryExplanation:
    """How one query was understood, how much say each index had, and how many hits each gave."""

    text: str
    hypothesis: str
    is_strict: bool
    why: str
    """Why it is strict, or plain."""
    wishes: tuple[WishExplanation, ...]
    """What a plain question quotes."""
    as_text: tuple[str, ...]
    """Marks of the query language that were read as text."""
    query_type: QueryType
    terms: tuple[str, ...]
    left_out: tuple[str, ...]
    """Terms of the query that were not looked for, because rarer ones were enough."""
    added: tuple[AddedWord, ...]
    notes: tuple[str, ...]
    weights: Mapping[Strategy, float]
    hits: Mapping[Strategy, int]
    candidates: int
    """How many of all these, best first, went into the stages."""
    question: Question
    """What the question itself adds to the evidence of every result."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultExplanation:
    """Which indices found a result, at what rank and score; what each contributed to its fused
    score and what multiplied that; and the evidence that its confidence was made from, with its
    grounds.
    """

    id: ChunkId
    matched_id: ChunkId
    evidence: Mapping[Strategy, Evidence]
    contributions: Mapping[Strategy, float]
    boosts: Mapping[str, float]
    relevance: float
    grounds: Grounds

    @classmethod
    def from_candidate(cls, candidate: Candidate) -> "ResultExplanation":
        return cls(
            id=candidate.id,
            matched_id=candidate.best.chunk.id,
            evidence=candidate.evidence,
            contributions=candidate.contributions,
            boosts=candidate.boosts,
            relevance=candidate.relevance,
            grounds=candidate.grounds,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Everything that led to the answer; `stages` say which chunks fell, and why."""

    confidence_from: str
    """What confidence was made from: the evidence, or the rank sum and what follows from that."""
    queries: tuple[QueryExplanation, ...]
    results: tuple[ResultExplanation, ...]
    stages: tuple[StageCount, ...]
