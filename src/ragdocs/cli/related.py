"""`related`: what goes with a document or a section of it."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from ragdocs.cli.exits import NOTHING_FOUND
from ragdocs.cli.opened import Reading, reading_options
from ragdocs.cli.output import shown

if TYPE_CHECKING:
    from ragdocs.search.library.relations import Related, SimilarEntry

_NOTHING = "nothing is linked with it, and nothing is like it"


@click.command("related")
@click.argument("reference")
@click.option("--limit", type=int, default=10, show_default=True, help="At most so many of a kind.")
@reading_options
@click.pass_context
def related(context: click.Context, reference: str, reading: Reading, limit: int) -> None:
    """Show what a document or section is linked with, and what is like it.

    REFERENCE is what `get` takes. Links, backlinks, the documents of its community, and what is
    similar by meaning and by words are listed apart. Exits with 1 when nothing is.

    \b
    Example:
      ragdocs related guides/auth.md#sign-in
    """
    from ragdocs.cli.values import as_json as in_json
    from ragdocs.search.library.requests import RelatedRequest

    request = RelatedRequest(reference=reference, limit=limit)
    with reading.app() as app:
        found = app.library.related(request)
    told = list(lines(found))
    if reading.as_json:
        click.echo(in_json(found))
    else:
        for line in told:
            click.echo(line)
        for note in (*found.notes, *(() if told else (_NOTHING,))):
            click.echo(f"note: {shown(note)}", err=True)
    context.exit(0 if told else NOTHING_FOUND)


def lines(found: "Related") -> Iterator[str]:
    links = [f"{_end(one.path, one.slug, one.target)}  line {one.line}" for one in found.links]
    yield from _block("links to", links)
    backlinks = [f"{shown(one.path)}:{one.line}  {shown(one.text)}" for one in found.backlinks]
    yield from _block("linked from", backlinks)
    yield from _block("same community", [shown(one.path) for one in found.community])
    yield from _block("similar by meaning", list(map(_similar, found.similar_by_meaning)))
    yield from _block("similar by words", list(map(_similar, found.similar_by_words)))


def _block(title: str, entries: list[str]) -> Iterator[str]:
    if entries:
        yield click.style(title, bold=True)
        yield from (f"  {entry}" for entry in entries)


def _end(path: str, slug: str | None, target: str) -> str:
    if not path:
        return f"{shown(target)} (leads nowhere)"
    return shown(f"{path}#{slug}" if slug else path)


def _similar(entry: "SimilarEntry") -> str:
    where = f"{entry.path}:{entry.line_start}-{entry.line_end}"
    headings = " > ".join(entry.heading_path)
    shared = f"  ({', '.join(entry.terms)})" if entry.terms else ""
    return f"{shown(where)}  {shown(headings)}  {entry.score:.2f}{shown(shared)}"
