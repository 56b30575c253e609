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
    of the words themselves.
    """

    words: str
    meaning: str | None = None

    @property
    def is_name(self) -> bool:
        """Whether one word is all that is asked for, be it made of several (`getUserById`)."""
        return self.meaning is None and len(self.words.split()) == 1


def topics(request: QueryRequest, *, is_enabled: bool) -> tuple[Topic, ...]:
    """A search for every query; with a hypothesis its meaning stands in for theirs."""
    if not request.hypothesis.strip():
        return tuple(Topic(text) for text in request.queries)
    if not is_enabled:
        raise QueryError(
            "search by a hypothetical answer is switched off: set hyde_enabled = true in "
            "[search.advanced], or ask with a query"
        )
    return tuple(Topic(text, request.hypothesis) for text in request.queries or ("",))
