"""`query`: the passages that answer a question."""

import logging
from typing import TYPE_CHECKING, Unpack

import click

from ragdocs.cli.exits import NOTHING_FOUND, UNUSABLE
from ragdocs.cli.opened import Reading, reading_options
from ragdocs.cli.output import shown
from ragdocs.cli.query_options import QueryOptions, query_options, request_of

if TYPE_CHECKING:
    from ragdocs.config.resolved import Config
    from ragdocs.search.responses import SearchResponse


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
    help="Whole passages, a line for each, only the lines that match, or JSON.",
)
@query_options
@click.option("--debug", is_flag=True, help="Say on stderr what was read and how long it took.")
@reading_options
@click.pass_context
def query(
    context: click.Context, words: tuple[str, ...], reading: Reading, **options: Unpack[_Options]
) -> None:
    """Find the passages that answer a question.

    Several words are one question; arguments that hold blanks are questions of their own, whose
    answers are merged. Where there is no index yet, it is built first.

    Exits with 0 when something was found, 1 when nothing was, 2 for wrong use, 3 when the index
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


def _run(reading: Reading, words: tuple[str, ...], options: _Options) -> int:
    request = request_of(words, options)
    with reading.app() as app:
        response = app.search(request)
        notes = app.embedder.notes
        if options["debug"]:
            _debug(app.config, response)
    _show(response, "json" if reading.as_json else options["output"])
    for note in notes:
        click.echo(f"note: {shown(note)}", err=True)
    if not response.index.is_there:
        return UNUSABLE
    return 0 if response.results else NOTHING_FOUND


def _debug(config: "Config", response: "SearchResponse") -> None:
    """Where things came from, how the index is, and where the time went."""
    from ragdocs.assembly import index_directory

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
        click.echo(f"debug: {shown(line)}", err=True)


def _show(response: "SearchResponse", output: str) -> None:
    from ragdocs.cli import query_results
    from ragdocs.cli.values import as_json

    if output == "json":
        click.echo(as_json(response))
        return
    show = {
        "full": query_results.full,
        "list": query_results.short,
        "matches": query_results.matches,
    }[output]
    for line in show(response):
        click.echo(line)
    for line in query_results.remarks(response):
        click.echo(line, err=True)
    if response.explanation:
        from ragdocs.cli.query_explained import tables

        tables(response.explanation)
