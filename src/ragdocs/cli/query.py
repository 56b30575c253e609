"""`query`: its options, the request made from them, and the order in which answers come."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, TypedDict, TypeVar, Unpack, cast

import click

from ragdocs.cli import completing
from ragdocs.cli.failures import NOTHING_FOUND, UNUSABLE
from ragdocs.cli.indexing import OpenedIndex, reading_options
from ragdocs.cli.results import FORMS, documents, form_of, is_terminal, look_of, remarks
from ragdocs.dates import DATE_FORMS, Period, parse_period
from ragdocs.errors import NotThere, QueryError
from ragdocs.limits import MAX_FUZZY_DISTANCE, MAX_TOP_N
from ragdocs.text import escaped, json_text, number_of

if TYPE_CHECKING:
    from ragdocs.app import App
    from ragdocs.config.resolved import Config
    from ragdocs.models import DocId
    from ragdocs.search.requests import QueryRequest
    from ragdocs.search.responses import SearchResponse

# The options of a query, and the request made from them.

_T = TypeVar("_T")


def _period(_: click.Context, parameter: click.Parameter, given: str | None) -> Period | None:
    if given is None:
        return None
    found = parse_period(given)
    if found is None:
        raise click.BadParameter(f"{given!r} is not a date: give {DATE_FORMS}", param=parameter)
    return found


def _typos(_: click.Context, parameter: click.Parameter, given: int | None) -> int | None:
    if given is not None and not 0 <= given <= MAX_FUZZY_DISTANCE:
        raise click.BadParameter(
            f"{given} is not a number from 0 to {MAX_FUZZY_DISTANCE}", param=parameter
        )
    return given


class QueryOptions(TypedDict):
    """The options, by the names that click gives them."""

    top_n: int
    min_score: float | None
    strict: bool
    filter: tuple[str, ...]
    paths: tuple[str, ...]
    trees: tuple[str, ...]
    tags: tuple[str, ...]
    category: str
    author: str
    language: str
    modified_after: Period | None
    modified_before: Period | None
    excluded_files: tuple[str, ...]
    query_type: str | None
    uniqueness: str | None
    similarity_threshold: float | None
    fuzzy: int | None
    no_merge: bool
    cutoff_ratio: float | None
    max_tokens: int | None
    explain: bool
    metadata: bool
    order: str
    offset: int


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
    click.option(
        "--path",
        "paths",
        multiple=True,
        metavar="PATH",
        shell_complete=completing.folders_and_documents,
        help="Only this file or folder.",
    ),
    click.option(
        "--tree",
        "trees",
        multiple=True,
        metavar="NAME",
        shell_complete=completing.trees,
        help="Only in this tree.",
    ),
    click.option(
        "--tag",
        "tags",
        multiple=True,
        metavar="TAG",
        shell_complete=completing.tags,
        help="Only with this tag.",
    ),
    click.option(
        "--filter",
        "-f",
        multiple=True,
        metavar="TEXT",
        help="Only documents that match, such as 'status:active -tag:old priority:>2'.",
    ),
    click.option("--category", default="", metavar="TEXT", help="Only in this category."),
    click.option("--author", default="", metavar="NAME", help="Only by this author."),
    click.option("--language", default="", metavar="NAME", help="Only with code in this language."),
    click.option(
        "--modified-after",
        callback=_period,
        metavar="DATE",
        help="Only files from this day on: 2026-01-31, yesterday, 2w (two weeks ago).",
    ),
    click.option(
        "--modified-before", callback=_period, metavar="DATE", help="Only files up to this day."
    ),
    click.option(
        "--exclude",
        "excluded_files",
        multiple=True,
        metavar="PATH",
        shell_complete=completing.documents,
        help="Leave out this file or folder.",
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
    click.option(
        "--fuzzy",
        type=int,
        callback=_typos,
        metavar=f"0..{MAX_FUZZY_DISTANCE}",
        help="Typos allowed in a word that no document contains; 0 is none.",
    ),
    click.option("--no-merge", is_flag=True, help="Do not merge matching sibling sections."),
    click.option(
        "--cutoff-ratio",
        type=float,
        metavar="0..1",
        help="Stop at a score below this share of the one before; 0 never stops.",
    ),
    click.option("--max-tokens", type=int, metavar="N", help="At most N tokens of text."),
    click.option(
        "--explain", is_flag=True, help="Show what each index found and what each stage kept."
    ),
    click.option("--metadata", is_flag=True, help="With --json: add tags, author, date, links."),
    click.option(
        "--order",
        type=click.Choice(["date", "path"]),
        default="date",
        show_default=True,
        help="Without QUERY: how matching documents are sorted.",
    ),
    click.option(
        "--offset", type=int, default=0, metavar="N", help="Without QUERY: skip N documents."
    ),
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
    from ragdocs.search.requests import Filters, ListOrder, QueryRequest, QueryType, Uniqueness

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
            modified_after=after.first if (after := options["modified_after"]) else None,
            modified_before=before.last if (before := options["modified_before"]) else None,
            where=" ".join(options["filter"]),
        ),
        query_type=QueryType(query_type) if query_type else None,
        uniqueness=Uniqueness(uniqueness) if uniqueness else None,
        similarity_threshold=options["similarity_threshold"],
        fuzzy_distance=options["fuzzy"],
        merge=not options["no_merge"],
        cutoff_ratio=options["cutoff_ratio"],
        max_tokens=options["max_tokens"],
        explain=options["explain"],
        metadata=options["metadata"],
        order=ListOrder(options["order"]),
        offset=options["offset"],
    )


# `query`: the passages that answer a question.

MOMENT_VECTORS = 24
"""So many vectors are computed before the answer, in a second or two; more, after a first answer
from words."""
_WORD = re.compile(r"-[^\W\d_]\w+")
_BARE_OPEN = "--open"


class _QueryCommand(click.Command):
    """`--open` needs no number; a word with a minus that was read as options gets advice."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, _with_open_number(args))
        except click.UsageError as error:
            before = args[: args.index("--")] if "--" in args else args
            word = next(filter(_WORD.fullmatch, before), None)
            if word is None:
                raise
            raise click.UsageError(
                f"{error.format_message()} To leave out results with the word {word[1:]!r}, put "
                f"`--` between the options and the query: `… -- lemon {word}`; or quote the whole "
                f"query: 'lemon {word}'.",
                ctx,
            ) from error


def _with_open_number(args: list[str]) -> list[str]:
    """`--open` as `--open=1`, unless a number follows."""
    end = args.index("--") if "--" in args else len(args)
    found: list[str] = []
    for at, arg in enumerate(args):
        has_number = args[at + 1 : at + 2] and args[at + 1].isdecimal()
        found.append(f"{arg}=1" if arg == _BARE_OPEN and at < end and not has_number else arg)
    return found


_FILTERS = (
    *("filter", "paths", "trees", "tags", "category", "author", "language"),
    *("modified_after", "modified_before", "excluded_files"),
)
"""The options that are enough without a query."""


class _Options(QueryOptions):
    output: str | None
    full: bool
    open_result: int | None
    no_wait: bool
    debug: bool


@click.command("query", cls=_QueryCommand)
@click.argument("words", nargs=-1, metavar="[QUERY...]")
@click.option(
    "--output",
    "-o",
    type=click.Choice(["full", "list", "matches", "json"]),
    help="Whole passages, a short entry for each, only the matching lines, or JSON. By default a "
    "list on a terminal, otherwise whole passages.",
)
@click.option("--full", is_flag=True, help="Whole passages: short for --output full.")
@click.option(
    "--open",
    "open_result",
    type=click.IntRange(min=1),
    metavar="[N]",
    help="Then open result N, or the first, in your editor ($VISUAL or $EDITOR).",
)
@click.option(
    "--no-wait",
    is_flag=True,
    help="Answer from words at once, without computing missing vectors.",
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
    its own, and the answers are merged. If there is no index yet, it is built first. While vectors
    are missing, the first answer is from words; the full answer follows when they are computed.

    Without a query, the documents that match --filter (or --path, --tag, ...) are listed.

    Exits with 0 when something was found, 1 when nothing was, 2 for wrong usage, 3 when the index
    cannot be used, 130 when it was stopped.

    \b
    Query syntax; everything else is plain words:
      "error handling"       these words side by side
      -draft                 not this word; after `--`, or in a quoted query
      rust OR golang         either
      (rust async) OR go     groups
      title:guide            in a field: title, headers, tags, keywords, author…
      tree:work path:api/    only in this tree, below this folder
      rust^2                 counts twice
      status:active          a property that documents have; the same with --filter

    With --strict, every part of the query must hold.

    \b
    Examples:
      ragdocs query how do I sign in
      ragdocs query "token refresh" "session timeout" --path guides --output list
      ragdocs query --strict '(token OR session) title:authentication'
      ragdocs query sign in --open
      ragdocs query sync errors -f 'status:active -tag:old'
      ragdocs query -f 'due:<today priority:>=2' --order path
    """
    if not words and not any(_is_given(options.get(name)) for name in _FILTERS):
        missing = "--filter is blank" if options["filter"] else "Missing argument 'QUERY...'"
        raise click.UsageError(f"{missing}: ask for something, or give a --filter")
    if options["debug"]:
        logging.basicConfig(level=logging.WARNING, format="%(name)s: %(message)s")
        logging.getLogger("ragdocs").setLevel(logging.DEBUG)
    context.exit(_run(reading, words, options))


def _is_given(value: object) -> bool:
    if isinstance(value, tuple):
        return any(str(one).strip() for one in cast("tuple[object, ...]", value))
    return bool(value)


def _run(reading: OpenedIndex, words: tuple[str, ...], options: _Options) -> int:
    request = request_of(words, options)
    output = _output(reading, options)
    may_answer_twice = is_terminal() and output != "json" and not options["no_wait"]
    with reading.app(
        vectors=not (options["no_wait"] or request.is_listing),
        most_vectors=MOMENT_VECTORS if may_answer_twice else None,
        check=partial(_check, request),
    ) as app:
        answer = _answer(app, request, options)
        is_first = may_answer_twice and not reading.no_update and _is_from_words(app, answer)
    if is_first:
        _show(answer, output, is_final=False)
        with reading.app() as app:
            answer = _answer(app, request, options)
        click.echo("\nThe full answer:", err=True)
    _show(answer, output)
    response = answer.response
    if options["open_result"] is not None and response.index.is_there:
        _open(answer, options["open_result"])
    if not response.index.is_there:
        return UNUSABLE
    is_found = response.listing.total if response.listing else len(response.results)
    return 0 if is_found else NOTHING_FOUND


def _check(request: QueryRequest, app: App) -> None:
    from ragdocs.places import working_directory

    app.places = app.places.based_on(working_directory())
    app.check(request)


def _output(reading: OpenedIndex, options: _Options) -> str:
    form = form_of(options["output"], is_full=options["full"], as_json=reading.as_json)
    if form == "json" and options["open_result"] is not None:
        raise QueryError("--open and JSON exclude each other: give one of them")
    return form


@dataclass(frozen=True, slots=True)
class _Answer:
    """A response, and what is needed to show it."""

    response: SearchResponse
    config: Config
    notes: tuple[str, ...]


def _answer(app: App, request: QueryRequest, options: _Options) -> _Answer:
    response = app.search(request)
    if options["debug"]:
        _debug(app.config, response)
    return _Answer(response, app.config, app.embedder.notes)


def _is_from_words(app: App, answer: _Answer) -> bool:
    """Whether many vectors are missing that only this command would compute."""
    from ragdocs.search.responses import Readiness
    from ragdocs.store.lock import is_looked_after

    index = answer.response.index
    is_missing = index.state is Readiness.BUILDING and index.files_waiting == 0
    is_much = is_missing and index.vectors_pending > MOMENT_VECTORS
    is_asked = answer.response.listing is None
    return is_asked and is_much and not is_looked_after(app.directory)


def _open(answer: _Answer, number: int) -> None:
    from ragdocs.cli.opening import open_document

    places = list(_places(answer.response))
    if number > len(places):
        raise NotThere(f"there is no result {number} to open: {number_of(len(places), 'result')}")
    doc_id, line = places[number - 1]
    open_document(answer.config, doc_id, line)


def _places(response: SearchResponse) -> Iterator[tuple[DocId, int]]:
    """The document and line to open for each result, or for each document of a list."""
    for result in response.results:
        yield result.doc_id, result.answer_lines[0] if result.answer_lines else result.line_start
    for document in response.listing.documents if response.listing else ():
        yield document.id, 1


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


def _show(answer: _Answer, output: str, *, is_final: bool = True) -> None:
    response = answer.response
    if output == "json":
        click.echo(json_text(response))
        _print_notes(answer.notes)
        return
    if response.listing is not None:
        shown = documents(response.listing)
    else:
        shown = FORMS[output](response.results, look_of(answer.config))
    for line in shown:
        click.echo(line)
    if not is_final:
        _print_first_remarks(response)
        return
    for line in remarks(response):
        click.echo(line, err=True)
    if response.explanation:
        from ragdocs.cli.rich_output import tables

        tables(response.explanation)
    _print_notes(answer.notes)


def _print_first_remarks(response: SearchResponse) -> None:
    index = response.index
    have = index.passages - index.vectors_pending
    found = "The answer so far, " if response.results else "Nothing was found yet "
    click.echo(
        f"{found}from words only: {have:,} of {number_of(index.passages, 'passage')} have vectors. "
        "Computing the others; the full answer follows. Ctrl-C keeps what is done.",
        err=True,
    )


def _print_notes(notes: Sequence[str]) -> None:
    for note in notes:
        click.echo(f"note: {escaped(note)}", err=True)
