"""What kind of answer a query wants, by its looks, and which index that favours (P3)."""

import re

from ragdocs.search.candidates import Strategy, Weights
from ragdocs.search.requests import QueryType

# Seed 000, P3: the favoured index and by how much.
FAVOURED = {
    QueryType.FACTUAL: (Strategy.KEYWORD, 1.5),
    QueryType.NAVIGATIONAL: (Strategy.GRAPH, 1.5),
    QueryType.EXPLORATORY: (Strategy.SEMANTIC, 1.3),
}

# Plurals of acronyms (APIs, IDs) are words, not names.
_CAMEL_CASE = r"[a-z][A-Z] | [A-Z]{2,}(?!s\b)[a-z]"
_SNAKE_CASE = r"[A-Za-z0-9]_[A-Za-z0-9]"
_BACKTICKS = r"`[^`]+`"
_VERSION = r"\b[vV]?\d+\.\d+(?:\.\d+)?(?:-\w+)?\b"
_NAMES = re.compile("|".join((_CAMEL_CASE, _SNAKE_CASE, _BACKTICKS, _VERSION)), re.VERBOSE)
_QUOTED = re.compile(r'"[^"]+"|“[^”]+”')
_QUESTION = re.compile(r"\?|\b(?:what|how|why|when|where|which|who)\b", re.IGNORECASE)
_TOKEN = re.compile(
    # A capital within a word, marks between its parts, or a digit.
    r"[a-z][A-Z] | \w(?:_|::)\w | [^\W\d_]\.[^\W\d_] | \d | \b[A-Z]{4,}\b",
    re.VERBOSE,
)
_MARKS = "\"'`()[]{}<>,;:!?.*“”‘’„«»"  # noqa: RUF001
MOST_TOKENS, SHORTEST_TOKEN = 8, 3
"""Of a query; each is looked up. A shorter number may count anything."""
_NAVIGATIONAL = re.compile(
    r"\[\[ | \b(?:section|chapter|guide|tutorial|manual|handbook|appendix|readme)s?\b"
    r" | \b(?:docs|documentation)\b",
    re.VERBOSE | re.IGNORECASE,
)


def classify_query(query: str) -> QueryType:
    """The first that fits; a question, and whatever has no sign at all, is exploratory."""
    if _NAMES.search(query) or _is_quotation(query):
        return QueryType.FACTUAL
    if _NAVIGATIONAL.search(query):
        return QueryType.NAVIGATIONAL
    return QueryType.EXPLORATORY


def _is_quotation(query: str) -> bool:
    """Whether at least half of the words are quoted. A question that quotes a few words, or a
    pattern, still asks for what it means.
    """
    quoted = sum(len(match.split()) for match in _QUOTED.findall(query))
    rest = len(_QUOTED.sub(" ", query).split())
    return quoted > 0 and quoted >= rest and not _QUESTION.search(query)


def exact_tokens(query: str) -> list[str]:
    """The names, file names, versions, codes and numbers in a query: nobody types them by chance,
    and a model knows none of them.
    """
    typed = dict.fromkeys(piece.strip(_MARKS) for piece in query.split())
    found = [each for each in typed if len(each) >= SHORTEST_TOKEN and _TOKEN.search(each)]
    return found[:MOST_TOKENS]


def adaptive_weights(weights: Weights, query_type: QueryType) -> dict[Strategy, float]:
    """The weights with the favoured index raised; one that is not there is not added."""
    favoured, factor = FAVOURED[query_type]
    return {
        strategy: weight * factor if strategy is favoured else weight
        for strategy, weight in weights.items()
    }
