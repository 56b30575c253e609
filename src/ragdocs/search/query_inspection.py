"""Inspects a query without searching: how it is parsed, analysed, expanded and classified."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import assert_never

from ragdocs.config.settings import SearchConfig
from ragdocs.errors import EmbeddingError
from ragdocs.indices.analysis import Analyzer
from ragdocs.indices.conditions import Unit
from ragdocs.indices.keyword import FIELDS, compile_query
from ragdocs.indices.view import View
from ragdocs.limits import MAX_WISHES, QUERY_WINDOWS
from ragdocs.models import (
    And,
    Boost,
    Field,
    Not,
    Or,
    ParsedQuery,
    Phrase,
    QueryExpression,
    QueryReading,
    Term,
)
from ragdocs.search.candidates import Strategy
from ragdocs.search.classifier import classify_query
from ragdocs.search.query_language import REASONS, parse_query, read_as_plain
from ragdocs.search.requests import QueryRequest, QueryType, Topic
from ragdocs.search.responses import WishExplanation
from ragdocs.search.retrieval import QueryTools, RunningQuery
from ragdocs.search.spelling import SpellingCheck
from ragdocs.search.understanding import (
    AddedWord,
    Interpreter,
    Understanding,
    is_binding,
    look_up,
    understand,
)
from ragdocs.search.vector_search import embed_within
from ragdocs.search.weighing import weights_for

NO_INDEX = "there is no index: whether the documents have these words is not known"


@dataclass(frozen=True, slots=True)
class ExpressionNode:
    """A node of the parsed query."""

    kind: str
    text: str = ""
    parts: tuple["ExpressionNode", ...] = ()


@dataclass(frozen=True, slots=True)
class AnalysedWord:
    """A word of the query, its term, and whether it is searched for."""

    word: str
    term: str
    is_looked_for: bool


@dataclass(frozen=True, slots=True)
class LookedFor:
    """Terms that must follow one another, their weight, and their weight in each field."""

    terms: tuple[str, ...]
    field: str | None
    weight: float
    weights: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class InspectedQuery:
    """Everything that is known about a query before it is searched."""

    query: str
    is_strict: bool
    why: str
    """Why it is strict, or plain."""
    wishes: tuple[WishExplanation, ...]
    """What a plain question quotes."""
    as_text: tuple[str, ...]
    """Marks of the query language that were read as text."""
    parsed: ExpressionNode | None
    meaning: str
    """What is embedded: the words without operators, exclusions and filters."""
    analysis: tuple[AnalysedWord, ...]
    looked_for: tuple[LookedFor, ...]
    added: tuple[AddedWord, ...]
    did_you_mean: str | None
    query_type: QueryType
    weights: Mapping[Strategy, float]
    notes: tuple[str, ...]


def inspect_query(
    text: str,
    tools: QueryTools,
    settings: SearchConfig,
    view: View | None,
    *,
    strict: bool = False,
) -> InspectedQuery:
    """Without a view, the documents' words are unknown. Raises QueryError as a search does."""
    QueryRequest(queries=(text,))
    parsed = parse_query(text, strict=strict)
    if view is None:
        understood = understand(text, parsed, tools.analyzer, SpellingCheck())
        understood = replace(understood, notes=(*understood.notes, NO_INDEX))
    else:
        understood = _understand(text, parsed, tools, settings, view)
        if parsed.reading is QueryReading.PHRASES and not _binds(understood, text, tools, view):
            parsed = read_as_plain(text)
            understood = _understand(text, parsed, tools, settings, view)
    query_type = classify_query(text)
    return InspectedQuery(
        query=text,
        is_strict=parsed.is_strict,
        why=REASONS[parsed.reading],
        wishes=_wishes(understood, view),
        as_text=parsed.as_text,
        parsed=None if parsed.expression is None else expression_node(parsed.expression),
        meaning=parsed.text,
        analysis=tuple(_analysis(parsed, tools.analyzer, understood.own_terms)),
        looked_for=tuple(_describe_unit(unit, settings) for unit in understood.query.units),
        added=understood.added,
        did_you_mean=understood.did_you_mean,
        query_type=query_type,
        weights=weights_for(RunningQuery(Topic(text), understood, query_type), settings),
        notes=understood.notes,
    )


def _binds(understood: Understanding, text: str, tools: QueryTools, view: View) -> bool:
    condition = understood.query.condition
    satisfying = None if condition is None else view.count_matching(condition)
    quoted = compile_query(read_as_plain(text), tools.analyzer).wishes[:MAX_WISHES]
    return is_binding(understood.parsed, satisfying, look_up(quoted, view))


def _wishes(understood: Understanding, view: View | None) -> tuple[WishExplanation, ...]:
    quoted = understood.query.wishes[:MAX_WISHES]
    if view is None:
        return tuple(WishExplanation(" ".join(wish.unit.terms)) for wish in quoted)
    found = look_up(quoted, view)
    return tuple(map(WishExplanation.from_wish, found))


def _understand(
    text: str, parsed: ParsedQuery, tools: QueryTools, settings: SearchConfig, view: View
) -> Understanding:
    interpreter = Interpreter(tools.analyzer, tools.thesaurus, settings)
    understood = interpreter.read(view, text, parsed)
    if tools.embedder is None or not interpreter.may_expand(view, understood):
        return understood
    try:
        vector = embed_within(tools.embedder, parsed.text, QUERY_WINDOWS).vector
    except EmbeddingError as error:
        return replace(understood, notes=(*understood.notes, f"not expanded: {error}"))
    return interpreter.expand(view, understood, vector)[0]


def expression_node(expression: QueryExpression) -> ExpressionNode:
    match expression:
        case Term(text):
            return ExpressionNode("term", text)
        case Phrase(text):
            return ExpressionNode("phrase", text)
        case Not(inner):
            return ExpressionNode("not", parts=(expression_node(inner),))
        case And(members):
            return ExpressionNode("and", parts=tuple(map(expression_node, members)))
        case Or(members):
            return ExpressionNode("or", parts=tuple(map(expression_node, members)))
        case Field(name, inner):
            return ExpressionNode("field", name.value, (expression_node(inner),))
        case Boost(inner, factor):
            return ExpressionNode("boost", f"{factor:g}", (expression_node(inner),))
    assert_never(expression)


def _analysis(
    parsed: ParsedQuery, analyzer: Analyzer, looked_for: frozenset[str]
) -> Iterator[AnalysedWord]:
    for token in analyzer.tokens(parsed.text):
        word = parsed.text[token.start : token.end]
        yield AnalysedWord(word, token.term, token.term in looked_for)


def _describe_unit(unit: Unit, settings: SearchConfig) -> LookedFor:
    fields = FIELDS if unit.field is None else (unit.field,)
    boosts = settings.boosts
    weights = {field.value: unit.weight * float(getattr(boosts, field.value)) for field in fields}
    return LookedFor(unit.terms, unit.field, unit.weight, weights)
