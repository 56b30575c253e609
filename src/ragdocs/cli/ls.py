"""`ls`: what the index holds."""

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, TypedDict, Unpack

import click

from ragdocs.cli.exits import NOTHING_FOUND
from ragdocs.cli.opened import Reading, reading_options
from ragdocs.cli.output import counted, shown

if TYPE_CHECKING:
    from ragdocs.search.library.answers import Listing
    from ragdocs.search.library.library import Library
    from ragdocs.search.library.requests import ListRequest

_KINDS = {
    "trees": "trees",
    "docs": "documents",
    "outlines": "outlines",
    "tags": "tags",
    "chunks": "chunks",
}


class _Chosen(TypedDict):
    tree: str
    path: str
    tags: tuple[str, ...]


@click.command("ls")
@click.argument("kind", type=click.Choice(list(_KINDS)), default="docs")
@click.option("--tree", default="", metavar="NAME", help="Only of this tree.")
@click.option("--path", default="", metavar="PATH", help="Only this file, or below this folder.")
@click.option("--tag", "tags", multiple=True, metavar="TAG", help="Only with this tag.")
@reading_options
@click.pass_context
def ls(context: click.Context, kind: str, reading: Reading, **chosen: Unpack[_Chosen]) -> None:
    """List trees, documents, headings, tags or chunks.

    Exits with 0 when there are any, with 1 when there are none.

    \b
    Examples:
      ragdocs ls docs --path guides
      ragdocs ls chunks --path guides/auth.md
    """
    from ragdocs.cli.values import as_json as in_json
    from ragdocs.search.library.requests import MAX_ENTRIES, MAX_TOKENS, ListKind, ListRequest

    request = ListRequest(
        kind=ListKind(_KINDS[kind]),
        **chosen,
        limit=MAX_ENTRIES,
        max_tokens=MAX_TOKENS,
    )
    with reading.app() as app:
        listing = every(app.library, request)
    if reading.as_json:
        click.echo(in_json(listing))
    else:
        for line in lines(listing):
            click.echo(line)
        for note in listing.notes:
            click.echo(f"note: {shown(note)}", err=True)
    context.exit(0 if listing.total else NOTHING_FOUND)


def every(library: "Library", request: "ListRequest") -> "Listing":
    """All pages as one."""
    listing = page = library.list(request)
    while page.cursor:
        page = library.list(replace(request, cursor=page.cursor))
        listing = replace(
            listing,
            trees=listing.trees + page.trees,
            documents=listing.documents + page.documents,
            outlines=listing.outlines + page.outlines,
            tags=listing.tags + page.tags,
            chunks=listing.chunks + page.chunks,
        )
    return replace(listing, cursor=None)


def lines(listing: "Listing") -> Iterator[str]:
    for tree in listing.trees:
        held = f"{counted(tree.documents, 'document')}, {counted(tree.passages, 'passage')}"
        yield f"{shown(tree.name)}  {tree.scope}  {held}  {shown(tree.root)}"
    for document in listing.documents:
        tags = "".join(f" #{tag}" for tag in document.tags)
        size = f"{counted(document.lines, 'line')}, {counted(document.passages, 'passage')}"
        name = shown(f"{document.tree}:{document.path}")
        yield f"{name}  {shown(document.title + tags)}  ({size})"
    for entry in listing.outlines:
        yield f"{shown(entry.doc_id)}:{entry.line_start}  {'#' * entry.level} {shown(entry.text)}"
    for tag in listing.tags:
        yield f"{shown(tag.tag)}  {counted(tag.documents, 'document')}"
    for chunk in listing.chunks:
        where = f"{chunk.line_start}-{chunk.line_end}"
        kind = "passage" if chunk.is_leaf else chunk.kind
        yield f"{'  ' * chunk.depth}{shown(chunk.id)}  {where}  {kind}, {chunk.tokens} tokens"
