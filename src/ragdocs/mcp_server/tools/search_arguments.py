"""The parameters of the two searches, and the request they make."""

from datetime import datetime, timedelta
from typing import Annotated, Literal

from pydantic import Field

from ragdocs.mcp_server.tools.arguments import Arguments, BadArguments
from ragdocs.mcp_server.tools.fields import (
    DEFAULT_TOKENS,
    Path,
    Tokens,
    Word,
    listed,
    number,
    path_field,
    share,
    word_field,
)
from ragdocs.parsers.dates import parse_date
from ragdocs.search.requests import (
    MAX_HYPOTHESIS_CHARS,
    MAX_QUERIES,
    MAX_QUERY_CHARS,
    MAX_TOP_N,
    Filters,
    QueryRequest,
    QueryType,
    Uniqueness,
)

Query = Annotated[str, Field(max_length=MAX_QUERY_CHARS)]
Queries = Annotated[list[Query], Field(min_length=1, max_length=MAX_QUERIES)]


class SearchArguments(Arguments):
    """What both searches take."""

    top_n: Annotated[int, number(1, MAX_TOP_N, "How many passages.")] = 5
    min_score: Annotated[float, share("Least confidence; default: as set.")] | None = None
    path: Annotated[str, path_field("Only this folder or file.")] = ""
    tree: Annotated[str, word_field("Only this tree.")] = ""
    tags: Annotated[tuple[Word, ...], listed("Only with all these tags.")] = ()
    category: Annotated[str, word_field("Only this category.")] = ""
    author: Annotated[str, word_field("Only this author.")] = ""
    language: Annotated[str, word_field("Of code in it, e.g. python.")] = ""
    modified_after: Annotated[str, word_field("ISO date, inclusive.")] = ""
    modified_before: Annotated[str, word_field("ISO date, inclusive.")] = ""
    excluded_files: Annotated[tuple[Path, ...], listed("Not these files or folders.")] = ()
    max_tokens: Tokens = DEFAULT_TOKENS
    explain: Annotated[bool, Field(description="Add why.")] = False
    show_stats: Annotated[bool, Field(description="Add stage counts.")] = False
    show_metadata: Annotated[bool, Field(description="Add tags, author, date, links.")] = False

    def filters(self) -> Filters:
        return Filters(
            trees=frozenset({self.tree} if self.tree else ()),
            paths=(self.path,) if self.path else (),
            excluded_files=self.excluded_files,
            tags=frozenset(self.tags),
            category=self.category,
            author=self.author,
            language=self.language,
            modified_after=_moment("modified_after", self.modified_after),
            modified_before=_moment("modified_before", self.modified_before, is_end=True),
        )


class QueryArguments(SearchArguments):
    """`query_documents`"""

    query: Annotated[
        Query | Queries,
        Field(description='Question or keywords; several are merged. "phrase", -not, OR work.'),
    ]
    strict: Annotated[bool, Field(description="All words bind.")] = False
    query_type: Annotated[
        Literal["factual", "navigational", "exploratory"] | None,
        Field(description="Default: recognised."),
    ] = None
    uniqueness: Annotated[
        Literal["off", "document", "content"] | None,
        Field(
            description="off: copies stay; document: one each; content: no near-copies. "
            "Default: as set."
        ),
    ] = None
    similarity_threshold: (
        Annotated[float, share("Cosine of near-copies; default: as set.")] | None
    ) = None

    def to_request(self) -> QueryRequest:
        return QueryRequest(
            queries=(self.query,) if isinstance(self.query, str) else tuple(self.query),
            top_n=self.top_n,
            min_score=self.min_score,
            strict=self.strict,
            filters=self.filters(),
            query_type=QueryType(self.query_type) if self.query_type else None,
            uniqueness=Uniqueness(self.uniqueness) if self.uniqueness else None,
            similarity_threshold=self.similarity_threshold,
            explain=self.explain,
            metadata=self.show_metadata,
        )


class HypothesisArguments(SearchArguments):
    """`search_with_hypothesis`"""

    hypothesis: Annotated[
        str,
        Field(
            min_length=1,
            max_length=MAX_HYPOTHESIS_CHARS,
            description="The answer as the documents might word it.",
        ),
    ]
    query: Annotated[
        str, Field(max_length=MAX_QUERY_CHARS, description="The question, for its words.")
    ] = ""

    def to_request(self) -> QueryRequest:
        return QueryRequest(
            queries=(self.query,) if self.query.strip() else (),
            hypothesis=self.hypothesis,
            top_n=self.top_n,
            min_score=self.min_score,
            filters=self.filters(),
            explain=self.explain,
            metadata=self.show_metadata,
        )


def _moment(name: str, given: str, *, is_end: bool = False) -> datetime | None:
    """A day as an end is the last moment of it."""
    if not given.strip():
        return None
    moment = parse_date(given)
    if moment is None:
        raise BadArguments(f"{name} is no date: write it as 2026-01-31 or 2026-01-31T14:00:00Z")
    is_day = ":" not in given
    return moment + timedelta(days=1, microseconds=-1) if is_end and is_day else moment
