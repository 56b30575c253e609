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


def _query(answered: Answered) -> QueryExplanation:
    lists = answered.found.lists
    return QueryExplanation(
        text=answered.topic.words,
        query_type=answered.query_type,
        weights={strategy: answered.weighed.weights.get(strategy, 1.0) for strategy in lists},
        hits={strategy: len(hits) for strategy, hits in lists.items()},
    )
