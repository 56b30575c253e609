"""Search by a hypothetical answer (HyDE): its meaning is looked for, the question's words beside.

An answer is nearer to an answer than a question is (Gao et al. 2022). The caller writes it, so no
model is needed beyond the one that embeds queries.
"""

from dataclasses import dataclass

from ragdocs.errors import QueryError
from ragdocs.search.requests import QueryRequest


@dataclass(frozen=True, slots=True)
class Topic:
    """One search: `words` for the indices of words, and whose meaning is looked for; None is that
    of the words themselves. `is_strict`: the words are written in the query language.
    """

    words: str
    meaning: str | None = None
    is_strict: bool = False

    @property
    def is_name(self) -> bool:
        """Whether one word is all that is asked for, be it made of several (`getUserById`)."""
        return self.meaning is None and len(self.words.split()) == 1


def topics(request: QueryRequest, *, is_enabled: bool) -> tuple[Topic, ...]:
    """A search for every query; with a hypothesis its meaning stands in for theirs."""
    strict = request.strict
    by_query = strict if isinstance(strict, tuple) else (strict,) * len(request.queries)
    asked = list(zip(request.queries, by_query, strict=True)) or [("", False)]
    if not request.hypothesis.strip():
        return tuple(Topic(text, None, is_strict) for text, is_strict in asked)
    if not is_enabled:
        raise QueryError(
            "search by a hypothetical answer is switched off: set hyde_enabled = true in "
            "[search.advanced], or ask with a query"
        )
    return tuple(Topic(text, request.hypothesis, is_strict) for text, is_strict in asked)
