"""One query's way to its candidates, kept so that the answer can be explained."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ragdocs.config.search_section import SearchConfig
from ragdocs.models import ChunkId
from ragdocs.search.candidates import Candidate
from ragdocs.search.evidence import Question
from ragdocs.search.explanation import (
    Explanation,
    QueryExplanation,
    ResultExplanation,
    WishExplanation,
)
from ragdocs.search.hyde import Topic
from ragdocs.search.query_language import REASONS
from ragdocs.search.requests import QueryType
from ragdocs.search.responses import MetadataMaker
from ragdocs.search.retrieval import Found
from ragdocs.search.stages import StageCount, StageName
from ragdocs.search.weighing import Weighed

_BY_WORTH = frozenset({StageName.CANDIDATES, StageName.CONFIDENCE, StageName.CUTOFF})


@dataclass(frozen=True, slots=True)
class Answered:
    """What was asked, how it was understood, what each index found, and what that came to;
    `has_more`: the indices may have more than that."""

    topic: Topic
    query_type: QueryType
    found: Found
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


def merged(found: Sequence[Sequence[Candidate]]) -> list[Candidate]:
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
        text=answered.topic.words,
        hypothesis=answered.topic.meaning or "",
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
