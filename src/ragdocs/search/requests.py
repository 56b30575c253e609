"""Requests, checked: queries, filters, and search by a hypothetical answer (HyDE)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from ragdocs.errors import QueryError
from ragdocs.filter_language import FilterKey, parse_filter
from ragdocs.indices.conditions import (
    Comparison,
    Condition,
    Filter,
    FilterField,
    Operator,
    Some,
    Without,
    both,
    in_language,
    join,
)
from ragdocs.limits import (
    MAX_ANSWER_TOKENS,
    MAX_FUZZY_DISTANCE,
    MAX_HYPOTHESIS_CHARS,
    MAX_OFFSET,
    MAX_QUERIES,
    MAX_QUERIES_CHARS,
    MAX_QUERY_CHARS,
    MAX_TOP_N,
)
from ragdocs.search.filters import where_condition


class QueryType(StrEnum):
    """What kind of answer a query wants (P3)."""

    FACTUAL = "factual"
    NAVIGATIONAL = "navigational"
    EXPLORATORY = "exploratory"


class ListOrder(StrEnum):
    """The order of documents that only a filter finds."""

    DATE = "date"
    """The newest first."""
    PATH = "path"


class Uniqueness(StrEnum):
    """What may appear only once among the results."""

    OFF = "off"
    DOCUMENT = "document"
    CONTENT = "content"


def _check_kind(name: str, value: object, kind: type, must_be: str) -> None:
    if not isinstance(value, kind):
        raise QueryError(f"{name} is {value!r}: it must be {must_be}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """Which documents may answer. Empty means all; every given filter must hold.

    `paths` are prefixes by whole components (`api` is `api/x.md`, never `apis.md`), `tags` are
    matched without regard to case, and a tag stands for those nested below it.
    """

    trees: frozenset[str] = frozenset()
    paths: tuple[str, ...] = ()
    excluded_files: tuple[str, ...] = ()
    tags: frozenset[str] = frozenset()
    category: str = ""
    author: str = ""
    language: str = ""
    modified_after: datetime | None = None
    modified_before: datetime | None = None
    where: str = ""
    """Conditions in the filter language: `status:active -tag:old priority:>2`. Raises QueryError
    for a property, or a value, that no document has."""
    configured: str = ""
    """Like `where`, from a configuration: what no document has lets none through."""

    def __post_init__(self) -> None:
        # A string in place of a tuple would be read letter by letter and exclude everything.
        _check_kind("filters.trees", self.trees, frozenset, "a frozenset of texts")
        _check_kind("filters.tags", self.tags, frozenset, "a frozenset of texts")
        _check_kind("filters.paths", self.paths, tuple, "a tuple of texts")
        _check_kind("filters.excluded_files", self.excluded_files, tuple, "a tuple of texts")
        _check_kind("filters.where", self.where, str, "a text")
        terms = parse_filter(self.where)
        if self.language.strip() and any(term.key == FilterKey.LANGUAGE for term in terms):
            raise QueryError("the filter names `language` a second time: name it once")

    @property
    def named_trees(self) -> frozenset[str]:
        """Every tree that is named, to let it in or to leave it out."""
        terms = parse_filter(self.where)
        return self.trees.union(*(term.values for term in terms if term.key == FilterKey.TREE))


def refuse_unknown_trees(wanted: frozenset[str], known: Sequence[str]) -> None:
    """Raises QueryError: an empty answer about a tree that does not exist would mislead."""
    if unknown := sorted(wanted.difference(known)):
        names = ", ".join(f"`{name}`" for name in known)
        raise QueryError(f"there is no tree `{unknown[0][:100]}`; there is {names}")


def to_filter(filters: Filters, now: datetime | None = None) -> Filter:
    """The filters as one condition, which each engine carries out."""
    by_field = join((*_by_place(filters), *_by_content(filters)))
    return both(by_field, where_condition(filters.where, now))


def _by_place(filters: Filters) -> Iterator[Condition]:
    if filters.trees:
        yield Comparison(FilterField.TREE, Operator.ONE_OF, filters.trees)
    if filters.paths:
        under = [Comparison(FilterField.PATH, Operator.UNDER, path) for path in filters.paths]
        yield under[0] if len(under) == 1 else Some(tuple(under))
    if filters.excluded_files:
        yield Without(Comparison(FilterField.FILE, Operator.ONE_OF, filters.excluded_files))


def _by_content(filters: Filters) -> Iterator[Condition]:
    for tag in sorted(filters.tags):
        yield Comparison(FilterField.TAG, Operator.IS, tag)
    if filters.category:
        yield Comparison(FilterField.CATEGORY, Operator.IS, filters.category)
    if filters.author:
        yield Comparison(FilterField.AUTHOR, Operator.IS, filters.author)
    if filters.modified_after is not None:
        yield Comparison(FilterField.MODIFIED, Operator.AT_LEAST, filters.modified_after)
    if filters.modified_before is not None:
        yield Comparison(FilterField.MODIFIED, Operator.AT_MOST, filters.modified_before)
    if (language := in_language(filters.language)) is not None:
        yield language


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryRequest:
    """One question, or several whose answers are merged; or a hypothetical answer, with or without
    the question; or only filters, and then the documents are listed. Raises QueryError if it cannot
    be answered.
    """

    queries: tuple[str, ...] = ()
    hypothesis: str = ""
    top_n: int = 5
    min_score: float | None = None
    strict: bool | tuple[bool, ...] = False
    """Whether the queries, or each of them, are written in the query language; all of it binds."""
    filters: Filters = Filters()
    query_type: QueryType | None = None
    uniqueness: Uniqueness | None = None
    similarity_threshold: float | None = None
    fuzzy_distance: int | None = None
    """Typos allowed in a word that no document contains; None is as configured."""
    merge: bool = True
    """Whether sibling sections that match may be merged, as configured."""
    cutoff_ratio: float | None = None
    """Results stop at a score below this share of the one before; None is as configured."""
    max_tokens: int | None = None
    explain: bool = False
    metadata: bool = False
    """Whether each result has its document's metadata."""
    order: ListOrder = ListOrder.DATE
    offset: int = 0
    """How many of the listed documents to skip; only for a request without a question."""

    def __post_init__(self) -> None:
        _check_strict(self.strict, len(self.queries))
        _check_kind("filters", self.filters, Filters, "a Filters of ragdocs.search.requests")
        _check_texts(self.queries, self.hypothesis)
        if not self.has_question and not self.is_listing:
            raise QueryError("the query is empty")
        _check_whole("offset", self.offset)
        _check_range("offset", self.offset, 0, MAX_OFFSET)
        if self.offset and self.has_question:
            raise QueryError("offset is for lists of documents: give a filter and no query")
        _check_whole("top_n", self.top_n)
        _check_whole("max_tokens", self.max_tokens)
        _check_range("top_n", self.top_n, 1, MAX_TOP_N)
        _check_range("min_score", self.min_score, 0, 1)
        _check_range("similarity_threshold", self.similarity_threshold, 0, 1)
        _check_whole("fuzzy_distance", self.fuzzy_distance)
        _check_range("fuzzy_distance", self.fuzzy_distance, 0, MAX_FUZZY_DISTANCE)
        _check_range("cutoff_ratio", self.cutoff_ratio, 0, 1)
        _check_kind("merge", self.merge, bool, "true or false")
        _check_range("max_tokens", self.max_tokens, 1, MAX_ANSWER_TOKENS)

    @property
    def has_question(self) -> bool:
        return bool(self.hypothesis.strip()) or any(query.strip() for query in self.queries)

    @property
    def is_listing(self) -> bool:
        """Whether documents are only filtered."""
        return not self.has_question and self.filters != Filters()


def _check_strict(strict: bool | tuple[bool, ...], queries: int) -> None:
    for each in strict if isinstance(strict, tuple) else (strict,):
        _check_kind("strict", each, bool, "true or false")
    if isinstance(strict, tuple) and len(strict) != queries:
        raise QueryError(f"strict has {len(strict)} values, but there are {queries} queries")


def _check_texts(queries: tuple[str, ...], hypothesis: str) -> None:
    for text in (*queries, hypothesis):
        _check_kind("a query", text, str, "a text")
    if len(queries) > MAX_QUERIES:
        raise QueryError(f"a request can have at most {MAX_QUERIES} queries, not {len(queries)}")
    longest = max((len(query) for query in queries), default=0)
    _check_range("the query's length", longest, 0, MAX_QUERY_CHARS)
    _check_range("the length of all queries", sum(map(len, queries)), 0, MAX_QUERIES_CHARS)
    _check_range("the hypothesis's length", len(hypothesis), 0, MAX_HYPOTHESIS_CHARS)


def _check_whole(name: str, value: object) -> None:
    if value is not None and (not isinstance(value, int) or isinstance(value, bool)):
        raise QueryError(f"{name} is {value!r}: it must be a whole number")


def _check_range(name: str, value: object, least: float, most: float) -> None:
    if value is None:
        return
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise QueryError(f"{name} is {value!r}: it must be a number")
    # Written so that NaN, which is neither less nor more, does not pass either.
    if not least <= value <= most:
        raise QueryError(f"{name} is {value:g}: it must be from {least:g} to {most:g}")


# Search by a hypothetical answer (HyDE): by its meaning and by the question's words.
#
# An answer is nearer to another answer than a question is (Gao et al. 2022). The caller writes it,
# so no model is needed but the one that embeds queries.


@dataclass(frozen=True, slots=True)
class Topic:
    """One search: `words` for the indices of words, and the text whose `meaning` is searched; None
    is the words themselves. `is_strict`: the words are written in the query language.
    """

    words: str
    meaning: str | None = None
    is_strict: bool = False

    @property
    def is_name(self) -> bool:
        """Whether the query is a single word, even one made of several (`getUserById`)."""
        return self.meaning is None and len(self.words.split()) == 1


def topics(request: QueryRequest, *, is_enabled: bool) -> tuple[Topic, ...]:
    """A search for every query; a hypothesis replaces their meaning."""
    strict = request.strict
    by_query = strict if isinstance(strict, tuple) else (strict,) * len(request.queries)
    asked = list(zip(request.queries, by_query, strict=True)) or [("", False)]
    if not request.hypothesis.strip():
        return tuple(Topic(text, None, is_strict) for text, is_strict in asked)
    if not is_enabled:
        raise QueryError(
            "search by a hypothetical answer is off: set hyde_enabled = true in "
            "[search.advanced], or use a query"
        )
    return tuple(Topic(text, request.hypothesis, is_strict) for text, is_strict in asked)
