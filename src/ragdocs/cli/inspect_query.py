"""`inspect query QUERY`: how a query is read, before anything is searched."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import click

from ragdocs.cli.opened import Reading, reading_options
from ragdocs.cli.output import shown

if TYPE_CHECKING:
    from ragdocs.app import App
    from ragdocs.search.query_inspection import ExpressionNode, InspectedQuery, LookedFor
    from ragdocs.search.understanding import AddedWord


@click.command("query")
@click.argument("words", nargs=-1, required=True, metavar="QUERY...")
@click.option("--strict", is_flag=True, help="Read it as `query --strict` does.")
@reading_options
def inspect_query(words: tuple[str, ...], reading: Reading, strict: bool) -> None:
    """Show how QUERY is parsed, analysed, completed and classified.

    Nothing is searched. Without an index (and with --no-update) all is shown that does not depend
    on the documents' own words.

    \b
    Example:
      ragdocs inspect query '(rust async) OR title:guide -deprecated'
    """
    from ragdocs.cli.values import as_json

    with reading.app() as app:
        inspected = _inspected(app, " ".join(words), strict)
    if reading.as_json:
        click.echo(as_json(inspected))
        return
    for line in lines(inspected):
        click.echo(line)


def _inspected(app: "App", text: str, strict: bool) -> "InspectedQuery":
    from ragdocs.errors import IndexMissing
    from ragdocs.search.query_inspection import inspect_query as inspected

    settings = app.config.search
    try:
        reader = app.reader
    except IndexMissing:
        return inspected(text, app.reading.indices, settings, None, strict=strict)
    with reader.snapshot() as snapshot:
        return inspected(text, app.reading.indices, settings, snapshot, strict=strict)


def lines(inspected: "InspectedQuery") -> Iterator[str]:
    kind = "strict: every operator binds" if inspected.is_strict else "plain words: any may match"
    yield f"{_name('query')}{shown(inspected.query)}  ({kind})"
    if inspected.is_strict and inspected.parsed is not None:
        yield from _labelled("parsed", _drawn(inspected.parsed))
    yield f"{_name('because')}{inspected.why}"
    yield from _labelled("wished for", (shown(one.in_words()) for one in inspected.wishes))
    if inspected.as_text:
        yield f"{_name('as text')}{shown(' '.join(inspected.as_text))}"
    yield f"{_name('meaning')}{shown(inspected.meaning) or '(nothing)'}"
    words = (
        f"{shown(word.word)} → {shown(word.term)}{'' if word.is_looked_for else '  (left out)'}"
        for word in inspected.analysis
    )
    yield from _labelled("analysis", words)
    yield from _labelled("looked for", map(_unit, inspected.looked_for))
    yield from _labelled("added", map(_added, inspected.added))
    if inspected.did_you_mean:
        yield f"{_name('meant')}{shown(inspected.did_you_mean)}?"
    yield f"{_name('kind')}{inspected.query_type.value}"
    weights = ", ".join(f"{name.value} {weight:g}" for name, weight in inspected.weights.items())
    yield f"{_name('weights')}{weights}"
    for note in inspected.notes:
        yield f"{_name('note')}{shown(note)}"


def _name(text: str) -> str:
    return click.style(f"{text:<12}", bold=True)


def _labelled(name: str, found: "Iterator[str] | Sequence[str]") -> Iterator[str]:
    label = name
    for line in found:
        yield f"{_name(label)}{line}"
        label = ""


def _drawn(root: "ExpressionNode") -> Iterator[str]:
    """The deepest query has brackets in brackets, but a bounded number."""
    pending = [(root, "", "")]
    while pending:
        node, first, rest = pending.pop()
        yield f"{first}{node.kind.upper()}{' ' if node.text else ''}{shown(node.text)}"
        for part in reversed(node.parts):
            last = part is node.parts[-1]
            pending.append(
                (part, rest + ("└─ " if last else "├─ "), rest + ("   " if last else "│  "))
            )


def _unit(unit: "LookedFor") -> str:
    counts = "" if unit.weight == 1 else f"  x{unit.weight:g}"
    fields = ", ".join(f"{field} {weight:g}" for field, weight in unit.weights.items())
    return f"{shown(' '.join(unit.terms))}{counts}  in {fields}"


def _added(word: "AddedWord") -> str:
    said = [word.origin.value, f"x{word.weight:.2g}"]
    said += [f"for {shown(word.stands_for)}"] if word.stands_for else []
    said += [f"{word.distance} away"] if word.distance is not None else []
    said += [f"cosine {word.similarity:.2f}"] if word.similarity is not None else []
    return f"{shown(word.word)} ({', '.join(said)})"
