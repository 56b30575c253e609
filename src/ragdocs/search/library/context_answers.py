"""What `context` answers with: the documentation for some files, and why it is that."""

from collections.abc import Callable
from dataclasses import dataclass, field

from ragdocs.search.budget import LeftOut
from ragdocs.search.explanation import Explanation
from ragdocs.search.index_state import IndexState
from ragdocs.search.responses import Presented, SearchResult


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextFile:
    """A file that was given: the patterns of the rules that apply to it, the document that it is
    itself (which is not among the results), and why it was not read whole, if it was not.
    """

    name: str
    rules: tuple[str, ...] = ()
    doc_id: str | None = None
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class IncludedDocument:
    """A document that a rule always gives; `because` is the pattern that matched."""

    doc_id: str
    path: str
    title: str
    lines: int
    tokens: int
    because: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextTerm:
    """A word of the query: where in the files it stands, how often, in how many documents, what
    that is worth, and the weight it has in the query. A rule's own word has no figures.
    """

    word: str
    origins: tuple[str, ...]
    frequency: int
    documents: int
    score: float
    weight: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextExplanation:
    """The terms, those of rules first, then the best; the query that they make; that of the rules'
    terms alone, and the plain texts whose meaning is looked for, beside it; and how the search
    went.
    """

    terms: tuple[ContextTerm, ...]
    query: str
    rule_query: str
    meanings: tuple[str, ...]
    trees: tuple[str, ...]
    search: Explanation | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextAnswer:
    """Passages, best first, and the documents that rules add; `left_out` is what did not fit.

    `index` is None when nothing could be searched for.
    """

    files: tuple[ContextFile, ...]
    included: tuple[IncludedDocument, ...]
    results: tuple[SearchResult, ...]
    left_out: tuple[LeftOut, ...]
    index: IndexState | None
    explanation: ContextExplanation | None
    notes: tuple[str, ...] = ()
    within: "Callable[[int | None], Presented] | None" = field(
        default=None, compare=False, repr=False
    )
    """The same results for other `max_tokens`: nothing is searched again."""
