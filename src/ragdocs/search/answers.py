"""One query's way to its candidates, kept so that the answer can be explained."""

from collections.abc import Sequence
from dataclasses import dataclass

from ragdocs.search.candidates import Candidate
from ragdocs.search.explanation import Explanation, QueryExplanation, ResultExplanation
from ragdocs.search.hyde import Topic
from ragdocs.search.requests import QueryType
from ragdocs.search.retrieval import Found
from ragdocs.search.stages import StageCount
from ragdocs.search.weighing import Weighed


@dataclass(frozen=True, slots=True)
class Answered:
    """What was asked, how it was understood, what each index found, and what that came to."""

    topic: Topic
    query_type: QueryType
    found: Found
    weighed: Weighed
    candidates: Sequence[Candidate]


def explain(
    answered: Sequence[Answered], left: Sequence[Candidate], counts: tuple[StageCount, ...]
) -> Explanation:
    return Explanation(
        queries=tuple(map(_query, answered)),
        results=tuple(map(ResultExplanation.from_candidate, left)),
        stages=counts,
    )


def did_you_mean(answered: Sequence[Answered]) -> str | None:
    """The first query that has words the documents do not, with the nearest ones they have."""
    meant = (each.found.understanding.did_you_mean for each in answered)
    return next((text for text in meant if text is not None), None)


def _query(answered: Answered) -> QueryExplanation:
    lists, understood = answered.found.lists, answered.found.understanding
    return QueryExplanation(
        text=answered.topic.words,
        hypothesis=answered.topic.meaning or "",
        is_strict=understood.parsed.is_strict,
        query_type=answered.query_type,
        terms=tuple(" ".join(unit.terms) for unit in understood.query.units),
        added=understood.added,
        weights={strategy: answered.weighed.weights.get(strategy, 1.0) for strategy in lists},
        hits={strategy: len(hits) for strategy, hits in lists.items()},
    )
