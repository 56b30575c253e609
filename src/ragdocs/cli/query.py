"""`query`: its options, the request made from them, and how an answer is printed."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, TypedDict, TypeVar, Unpack

import click

from ragdocs.cli.failures import NOTHING_FOUND, UNUSABLE
from ragdocs.cli.indexing import OpenedIndex, reading_options
from ragdocs.limits import LOW_CONFIDENCE, MAX_TOP_N
from ragdocs.text import advised, escaped, escaped_line, json_text

if TYPE_CHECKING:
    from ragdocs.config.resolved import Config
    from ragdocs.search.passages import MatchRange
    from ragdocs.search.requests import QueryRequest
    from ragdocs.search.responses import SearchResponse, SearchResult

# The options of a query, and the request made from them.

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
        "--top-n",
        "-n",
        type=int,
        default=5,
        show_default=True,
        help=f"How many results, up to {MAX_TOP_N}.",
    ),
    click.option("--min-score", type=float, metavar="0..1", help="Only from this confidence up."),
    click.option(
        "--strict", is_flag=True, help="Require every word, field and bracket of the query."
    ),
    click.option("--path", "paths", multiple=True, metavar="PATH", help="Only below this folder."),
    click.option("--tree", "trees", multiple=True, metavar="NAME", help="Only in this tree."),
    click.option("--tag", "tags", multiple=True, metavar="TAG", help="Only with this tag."),
    click.option("--category", default="", metavar="TEXT", help="Only in this category."),
    click.option("--author", default="", metavar="NAME", help="Only by this author."),
    click.option("--language", default="", metavar="NAME", help="Only with code in this language."),
    click.option(
        "--modified-after", type=click.DateTime(_DATES), metavar="DATE", help="Only newer files."
    ),
    click.option(
        "--modified-before", type=click.DateTime(_DATES), metavar="DATE", help="Only older files."
    ),
    click.option(
        "--exclude", "excluded_files", multiple=True, metavar="PATH", help="Leave out this file."
    ),
    click.option(
        "--query-type",
        type=click.Choice(["factual", "navigational", "exploratory"]),
        help="The kind of answer you want; guessed otherwise.",
    ),
    click.option(
        "--uniqueness",
        type=click.Choice(["off", "document", "content"]),
        help="What may appear only once.",
    ),
    click.option(
        "--similarity-threshold",
        type=float,
        metavar="0..1",
        help="From which similarity on two passages count as the same.",
    ),
    click.option("--max-tokens", type=int, metavar="N", help="At most N tokens of text."),
    click.option(
        "--explain", is_flag=True, help="Show what each index found and what each stage kept."
    ),
    click.option("--metadata", is_flag=True, help="With --json: add tags, author, date, links."),
)


def query_options(command: Callable[..., _T]) -> Callable[..., _T]:
    """Adds all query options, in the order in which the help shows them."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def queries_of(words: tuple[str, ...]) -> tuple[str, ...]:
    """Bare words make one question; if any argument is quoted, each is a question of its own."""
    if any(len(word.split()) > 1 for word in words):
        return words
    return (" ".join(words),)


def request_of(words: tuple[str, ...], options: QueryOptions) -> QueryRequest:
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


# An answer on a terminal: whole passages, one line each, or the lines that match.

_INDENT = "   "


def full(response: SearchResponse) -> Iterator[str]:
    return passages(response.results)


def passages(results: Sequence[SearchResult]) -> Iterator[str]:
    """Each with its citation; matches are highlighted."""
    for number, result in enumerate(results, 1):
        yield f"{number}. {_citation(result)}"
        yield from (f"{_INDENT}{click.style(line, dim=True)}" for line in _around(result))
        text = mark_matches(result.text, result.matches)
        yield from (f"{_INDENT}{line}".rstrip() for line in text.strip("\n").split("\n"))
        yield ""


def short(response: SearchResponse) -> Iterator[str]:
    """Two lines for each result: its citation and a snippet."""
    for number, result in enumerate(response.results, 1):
        yield f"{number}. {_citation(result)}"
        yield f"{_INDENT}{_snippet(result)}"


def matches(response: SearchResponse) -> Iterator[str]:
    """Like grep, `path:line: text`; a passage found by meaning shows its first line."""
    for result in response.results:
        lines = result.text.split("\n")
        hits = sorted({match.line_start for match in result.matches})
        first = result.text_lines[0]
        for line in hits or [first]:
            at = line - first
            text = lines[at] if 0 <= at < len(lines) else lines[0]
            path = click.style(escaped_line(result.path), fg="cyan")
            yield f"{path}:{line}: {escaped(text.strip())}"


def remarks(response: SearchResponse) -> Iterator[str]:
    """What the reader must know about the answer besides its results."""
    if response.index.is_there:
        yield from _worth(response)
    if response.did_you_mean:
        yield f"Did you mean: {escaped(response.did_you_mean)}"
    for left_out in response.left_out:
        where = f"{escaped_line(left_out.path)}:{left_out.line_start}-{left_out.line_end}"
        yield f"{left_out.extent.value.replace('_', ' ')}: {where} ({left_out.tokens} tokens)"
    for note in response.notes:
        yield f"note: {escaped(note)}"
    if not response.index.complete:
        yield f"index {response.index.in_words()}"


def _worth(response: SearchResponse) -> Iterator[str]:
    results = response.results
    if results and max(result.confidence for result in results) >= LOW_CONFIDENCE:
        return
    if results:
        listing = f"{advised('ls docs')} lists documents"
        yield f"None of these is a certain answer: try other words. {listing}."
    elif response.index.documents:
        yield "Nothing was found."
    else:
        where = f"{advised('status')} shows which folders it searches"
        yield f"Nothing was found: the index has no documents. {where}."
    if response.nearest_terms:
        terms = ", ".join(map(escaped, response.nearest_terms))
        yield f"No document has these words; the nearest words: {terms}"


def mark_matches(text: str, ranges: Sequence[MatchRange]) -> str:
    parts: list[str] = []
    at = 0
    for found in ranges:
        parts.append(escaped(text[at : found.start]))
        parts.append(_highlight(escaped(text[found.start : found.end])))
        at = found.end
    parts.append(escaped(text[at:]))
    return "".join(parts)


def _highlight(text: str) -> str:
    return click.style(text, fg="yellow", bold=True)


def _citation(result: SearchResult) -> str:
    where = f"{result.path}:{result.line_start}-{result.line_end}"
    headings = " > ".join(result.heading_path) or result.title
    confidence = click.style(f"{result.confidence:.0%}", fg="green")
    place = click.style(escaped_line(where), fg="cyan", bold=True)
    return f"{place}  {escaped_line(headings)}  {confidence}"


def _around(result: SearchResult) -> Iterator[str]:
    """The lines shown, if they are not the whole section, and the section around them."""
    said: list[str] = []
    first, last = result.text_lines
    if (first, last) != (result.line_start, result.line_end):
        said.append(f"lines {first}-{last}")
    if result.within is not None:
        wider = result.within
        headings = " > ".join(wider.heading_path)
        lines = f"{wider.line_start}-{wider.line_end}"
        said.append(f"within {escaped_line(headings)} ({lines})")
    if said:
        yield ", ".join(said)


def _snippet(result: SearchResult) -> str:
    snippet = result.snippet
    parts: list[str] = []
    at = 0
    for start, end in snippet.highlights:
        parts += [
            escaped(snippet.text[at:start]),
            _highlight(escaped(snippet.text[start:end])),
        ]
        at = end
    return "".join([*parts, escaped(snippet.text[at:])])


# `query`: the passages that answer a question.


class _Options(QueryOptions):
    output: str
    debug: bool


@click.command("query")
@click.argument("words", nargs=-1, required=True, metavar="QUERY...")
@click.option(
    "--output",
    "-o",
    type=click.Choice(["full", "list", "matches", "json"]),
    default="full",
    show_default=True,
    help="Whole passages, a short entry for each, only the matching lines, or JSON.",
)
@query_options
@click.option("--debug", is_flag=True, help="Log on stderr what was read and how long it took.")
@reading_options
@click.pass_context
def query(
    context: click.Context,
    words: tuple[str, ...],
    reading: OpenedIndex,
    **options: Unpack[_Options],
) -> None:
    """Find the passages that answer a question.

    Several words make one question; if any argument contains spaces, each argument is a question of
    its own, and the answers are merged. If there is no index yet, it is built first.

    Exits with 0 when something was found, 1 when nothing was, 2 for wrong usage, 3 when the index
    cannot be used.

    \b
    Examples:
      ragdocs query how do I sign in
      ragdocs query "token refresh" "session timeout" --path guides --output list
      ragdocs query --strict '(token OR session) title:authentication'
    """
    if options["debug"]:
        logging.basicConfig(level=logging.WARNING, format="%(name)s: %(message)s")
        logging.getLogger("ragdocs").setLevel(logging.DEBUG)
    context.exit(_run(reading, words, options))


def _run(reading: OpenedIndex, words: tuple[str, ...], options: _Options) -> int:
    request = request_of(words, options)
    with reading.app() as app:
        response = app.search(request)
        notes = app.embedder.notes
        if options["debug"]:
            _debug(app.config, response)
    _show(response, "json" if reading.as_json else options["output"])
    for note in notes:
        click.echo(f"note: {escaped(note)}", err=True)
    if not response.index.is_there:
        return UNUSABLE
    return 0 if response.results else NOTHING_FOUND


def _debug(config: Config, response: SearchResponse) -> None:
    """Prints which files were read, the state of the index, and how long each step took."""
    from ragdocs.app import index_directory

    files = ", ".join(map(str, config.files)) or "none, all defaults"
    trees = ", ".join(f"{tree.name} ({tree.root})" for tree in config.trees)
    state = response.index
    lines = [
        f"settings: {files}",
        f"trees: {trees}",
        f"index: {index_directory(config)}, generation {state.generation}, {state.in_words()}",
        *(f"{name}: {seconds * 1000:.1f} ms" for name, seconds in response.seconds.items()),
    ]
    for line in lines:
        click.echo(f"debug: {escaped(line)}", err=True)


def _show(response: SearchResponse, output: str) -> None:
    if output == "json":
        click.echo(json_text(response))
        return
    show = {
        "full": full,
        "list": short,
        "matches": matches,
    }[output]
    for line in show(response):
        click.echo(line)
    for line in remarks(response):
        click.echo(line, err=True)
    if response.explanation:
        from ragdocs.cli.rich_output import tables

        tables(response.explanation)
