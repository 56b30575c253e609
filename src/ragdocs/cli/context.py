"""`context`: the documentation that matters for source files, or for a change to them."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, Unpack

import click

from ragdocs.cli.exits import NOTHING_FOUND
from ragdocs.cli.opened import Reading, reading_options
from ragdocs.cli.output import shown
from ragdocs.errors import QueryError

if TYPE_CHECKING:
    from ragdocs.config.resolved import Config
    from ragdocs.search.library.context_answers import ContextAnswer, ContextExplanation
    from ragdocs.search.library.requests import ContextRequest, SourceFile

_MAX_BYTES = 4_000_000
"""More than is looked at of a file."""
_STANDARD_INPUT = "-"


class _Asked(TypedDict):
    files: tuple[str, ...]
    diff: bool
    top_n: int
    trees: tuple[str, ...]
    max_tokens: int
    explain: bool


@click.command("context")
@click.argument("files", nargs=-1, type=click.Path(), metavar="[FILE]...")
@click.option(
    "--diff", is_flag=True, help="Read a unified diff from standard input; so does `-` as a FILE."
)
@click.option("--top-n", "-n", type=int, default=10, show_default=True, help="How many passages.")
@click.option("--tree", "trees", multiple=True, metavar="NAME", help="Only in this tree.")
@click.option("--max-tokens", type=int, default=5000, show_default=True, help="How much text.")
@click.option("--explain", is_flag=True, help="Show the terms and the query they make.")
@reading_options
@click.pass_context
def context(click_context: click.Context, reading: Reading, **asked: Unpack[_Asked]) -> None:
    """Find the documentation for source files, or for a diff.

    Exits as `query` does.

    \b
    Examples:
      ragdocs context src/auth.py
      git diff | ragdocs context --diff
    """
    from ragdocs.cli.values import as_json as in_json

    request = _request(asked, reading.place.config())
    with reading.app() as app:
        answer = app.library.context(request)
    if reading.as_json:
        click.echo(in_json(answer))
    else:
        _show(answer)
    click_context.exit(0 if answer.results or answer.included else NOTHING_FOUND)


def _request(asked: _Asked, config: "Config") -> "ContextRequest":
    from ragdocs.search.library.requests import ContextRequest

    names = tuple(name for name in asked["files"] if name != _STANDARD_INPUT)
    has_diff = asked["diff"] or len(names) < len(asked["files"])
    if not names and not has_diff:
        raise QueryError("name source files, or pipe a diff in with --diff")
    return ContextRequest(
        files=tuple(_source(name, config) for name in names),
        diff=sys.stdin.buffer.read(_MAX_BYTES) if has_diff else b"",
        top_n=asked["top_n"],
        max_tokens=asked["max_tokens"],
        trees=frozenset(asked["trees"]),
        explain=asked["explain"],
    )


def _source(name: str, config: "Config") -> "SourceFile":
    from ragdocs.search.library.requests import SourceFile

    try:
        with open(name, "rb") as file:
            return SourceFile(_relative(name, config), file.read(_MAX_BYTES))
    except OSError as error:
        raise QueryError(f"{shown(name)} cannot be read: {error.strerror}") from error


def _relative(name: str, config: "Config") -> str:
    """As the patterns of [[context.rules]] are written: seen from the configuration's folder."""
    path = Path(name).absolute()
    for folder in (*(file.parent for file in config.files), Path.cwd()):
        if path.is_relative_to(folder):
            return path.relative_to(folder).as_posix()
    return name


def _show(answer: "ContextAnswer") -> None:
    from ragdocs.cli.query_results import passages

    for document in answer.included:
        where = f"{shown(document.path)}  {shown(document.title)}"
        click.echo(f"always: {where}  (for {shown(document.because)})")
    for line in passages(answer.results):
        click.echo(line)
    for line in _remarks(answer):
        click.echo(line, err=True)
    if answer.explanation:
        for line in _explained(answer.explanation):
            click.echo(line)


def _remarks(answer: "ContextAnswer") -> Iterator[str]:
    if not answer.results and not answer.included:
        yield "Nothing was found."
    for file in answer.files:
        if file.problem:
            yield f"{shown(file.name)}: {shown(file.problem)}"
    yield from (f"note: {shown(note)}" for note in answer.notes)
    if answer.index and not answer.index.complete:
        yield f"index {answer.index.in_words()}"


def _explained(explanation: "ContextExplanation") -> Iterator[str]:
    yield "terms: where they stand, how often, in how many documents, their weight"
    for term in explanation.terms:
        places = ", ".join(term.origins)
        figures = f"{term.frequency}x, {term.documents} documents, {term.weight:.2f}"
        yield f"  {shown(term.word)}  ({places}; {figures})"
    yield f"query: {shown(explanation.query)}"
