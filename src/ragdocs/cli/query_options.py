"""What may be said on the command line of a question, and the request that it makes."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, TypedDict, TypeVar

import click

if TYPE_CHECKING:
    from ragdocs.search.requests import QueryRequest

_T = TypeVar("_T")
_DATES = ("%Y-%m-%d", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M:%S%z")


class QueryOptions(TypedDict):
    """The options, by the names that click gives them."""

    top_n: int
    min_score: float | None
    strict: bool
    paths: tuple[str, ...]
    trees: tuple[str, ...]
    tags: tuple[str, ...]
    category: str
    author: str
    language: str
    modified_after: datetime | None
    modified_before: datetime | None
    excluded_files: tuple[str, ...]
    query_type: str | None
    uniqueness: str | None
    similarity_threshold: float | None
    max_tokens: int | None
    explain: bool
    metadata: bool


_OPTIONS = (
    click.option(
        "--top-n", "-n", type=int, default=5, show_default=True, help="How many, up to 50."
    ),
    click.option("--min-score", type=float, metavar="0..1", help="Only with this confidence."),
    click.option(
        "--strict", is_flag=True, help="The query language binds: every word, field and bracket."
    ),
    click.option("--path", "paths", multiple=True, metavar="PATH", help="Only below this folder."),
    click.option("--tree", "trees", multiple=True, metavar="NAME", help="Only in this tree."),
    click.option("--tag", "tags", multiple=True, metavar="TAG", help="Only with this tag."),
    click.option("--category", default="", metavar="TEXT", help="Only of this category."),
    click.option("--author", default="", metavar="NAME", help="Only by this author."),
    click.option("--language", default="", metavar="NAME", help="Only with code of this language."),
    click.option(
        "--modified-after", type=click.DateTime(_DATES), metavar="DATE", help="Only newer ones."
    ),
    click.option(
        "--modified-before", type=click.DateTime(_DATES), metavar="DATE", help="Only older ones."
    ),
    click.option(
        "--exclude", "excluded_files", multiple=True, metavar="PATH", help="Not this file."
    ),
    click.option(
        "--query-type",
        type=click.Choice(["factual", "navigational", "exploratory"]),
        help="What kind of answer is wanted, when it should not be guessed.",
    ),
    click.option(
        "--uniqueness",
        type=click.Choice(["off", "document", "content"]),
        help="What may appear only once.",
    ),
    click.option(
        "--similarity-threshold", type=float, metavar="0..1", help="What counts as the same."
    ),
    click.option("--max-tokens", type=int, metavar="N", help="As much text as N tokens hold."),
    click.option("--explain", is_flag=True, help="Show what each index found, each stage left."),
    click.option("--metadata", is_flag=True, help="With --json: add tags, author, date, links."),
)


def query_options(command: Callable[..., _T]) -> Callable[..., _T]:
    """Adds them all, in the order in which the help shows them."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def queries_of(words: tuple[str, ...]) -> tuple[str, ...]:
    """Nobody wants to quote every question; whoever quotes means what is within."""
    if any(len(word.split()) > 1 for word in words):
        return words
    return (" ".join(words),)


def request_of(words: tuple[str, ...], options: QueryOptions) -> "QueryRequest":
    """Raises QueryError for values outside their range."""
    from ragdocs.search.requests import Filters, QueryRequest, QueryType, Uniqueness

    query_type, uniqueness = options["query_type"], options["uniqueness"]
    return QueryRequest(
        queries=queries_of(words),
        top_n=options["top_n"],
        min_score=options["min_score"],
        strict=options["strict"],
        filters=Filters(
            trees=frozenset(options["trees"]),
            paths=options["paths"],
            excluded_files=options["excluded_files"],
            tags=frozenset(options["tags"]),
            category=options["category"],
            author=options["author"],
            language=options["language"],
            modified_after=_with_zone(options["modified_after"]),
            modified_before=_with_zone(options["modified_before"]),
        ),
        query_type=QueryType(query_type) if query_type else None,
        uniqueness=Uniqueness(uniqueness) if uniqueness else None,
        similarity_threshold=options["similarity_threshold"],
        max_tokens=options["max_tokens"],
        explain=options["explain"],
        metadata=options["metadata"],
    )


def _with_zone(moment: datetime | None) -> datetime | None:
    return moment.replace(tzinfo=moment.tzinfo or UTC) if moment else None
