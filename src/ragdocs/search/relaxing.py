"""A query with an operator is still a question: no passage need have all its other words.

What an operator asks for binds in any case. The plain words beside it bind too, as long as some
passage has them all; otherwise they only rank, and a note tells it. Where the request is strict,
all of them bind. Phrases and words without an operator are plain words if no passage has them all,
or if a phrase beside words is no name in these documents (specs/0075).
"""

from collections.abc import Callable, Sequence, Set
from dataclasses import replace

from ragdocs.indices.analysis import Analyzer
from ragdocs.indices.keyword import Condition, compile_query
from ragdocs.models import And, Not, Or, ParsedQuery, QueryExpression, QueryReading, Term
from ragdocs.search.understanding import Understanding
from ragdocs.search.wishes import Wish

RELAXED = (
    "no passage has all words of this query: those without an operator were only ranked, "
    "and what is quoted, excluded or in a field was required"
)

NOTHING = "no passage fulfils every part of this query: its operators make all of it binding"
NONE_HAS_ALL = "no passage has every word of this query, and strict makes each of them binding"
NOWHERE = (
    "no passage has all of this query: it was read as plain words, and what is quoted as a wish"
)

Matching = Callable[[Condition], Set[int]]
"""The chunks that fulfil a condition."""


def satisfiable(
    understood: Understanding, analyzer: Analyzer, matching: Matching
) -> tuple[Understanding, Set[int] | None]:
    """The query in a form that some passage fulfils, if there is one, and those passages; None
    when nothing binds.
    """
    condition = understood.query.condition
    if condition is None:
        return understood, None
    fulfilling = matching(condition)
    if fulfilling or understood.parsed.reading is not QueryReading.OPERATORS:
        return understood, fulfilling
    looser = _relaxed(understood, analyzer)
    if looser is None or looser.query.condition is None:
        return understood, fulfilling
    instead = matching(looser.query.condition)
    return (looser, instead) if instead else (understood, fulfilling)


def binds(parsed: ParsedQuery, fulfilling: Set[int] | None, wishes: Sequence[Wish]) -> bool:
    """Whether a query of phrases, and perhaps a few words, is one of the language in these
    documents; `wishes` are its phrases."""
    expression = parsed.expression
    has_words = isinstance(expression, And) and any(
        isinstance(member, Term) for member in expression.expressions
    )
    return bool(fulfilling) and (not has_words or all(wish.is_name for wish in wishes))


def _relaxed(understood: Understanding, analyzer: Analyzer) -> Understanding | None:
    parsed = understood.parsed
    if not isinstance(parsed.expression, And):
        return None
    members = parsed.expression.expressions
    plain = [member for member in members if isinstance(member, Term)]
    binding: list[QueryExpression] = [member for member in members if not isinstance(member, Term)]
    if not plain or not binding:
        return None
    if all(isinstance(member, Not) for member in binding):
        # Something must be looked for.
        binding.append(Or(tuple(plain)) if len(plain) > 1 else plain[0])
    expression = And(tuple(binding)) if len(binding) > 1 else binding[0]
    looser = replace(parsed, expression=expression)
    query = replace(understood.query, condition=compile_query(looser, analyzer).condition)
    return replace(understood, query=query, notes=(*understood.notes, RELAXED))
