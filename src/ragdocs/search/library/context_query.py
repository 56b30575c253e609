"""From terms to a query in the query language: any may match, each with its weight."""

from collections.abc import Sequence

from ragdocs.models import Boost, Or, Phrase, QueryExpression, Term
from ragdocs.search.library.context_answers import ContextTerm
from ragdocs.search.library.context_terms import FoundTerm
from ragdocs.search.library.source_texts import TermPlace
from ragdocs.search.query_language import format_expression
from ragdocs.search.requests import MAX_QUERY_CHARS

MIN_WEIGHT = 0.1


def query_terms(rules: Sequence[str], found: Sequence[FoundTerm]) -> list[ContextTerm]:
    """Those of the rules first, with the most weight; then the files' own, best first."""
    added = list(dict.fromkeys(" ".join(term.split()).casefold() for term in rules))
    most = max((each.emphasis for each in found), default=1.0) or 1.0
    own = [each for each in found if each.word not in added]
    return [
        *(
            ContextTerm(
                word=word,
                origins=(TermPlace.RULE.value,),
                frequency=0,
                documents=0,
                score=0.0,
                weight=1.0,
            )
            for word in added
        ),
        *(
            ContextTerm(
                word=each.word,
                origins=tuple(sorted(map(str, each.places))),
                frequency=each.frequency,
                documents=each.documents,
                score=each.score,
                weight=round(max(MIN_WEIGHT, each.emphasis / most), 2),
            )
            for each in own
        ),
    ]


def query_text(terms: Sequence[ContextTerm]) -> tuple[str, int]:
    """The query, and how many of the terms it has room for; empty without terms."""
    for count in range(len(terms), 0, -1):
        text = format_expression(_expression(terms[:count]))
        if len(text) <= MAX_QUERY_CHARS:
            return text, count
    return "", 0


def _expression(terms: Sequence[ContextTerm]) -> QueryExpression:
    parts = tuple(Boost(_leaf(term.word), term.weight) for term in terms)
    return parts[0] if len(parts) == 1 else Or(parts)


def _leaf(word: str) -> QueryExpression:
    """What is not plainly a word is a phrase, in which nothing is an operator."""
    return Term(word) if word.isalnum() else Phrase(word.replace('"', " "))
