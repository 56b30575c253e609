"""`get`: a document, a section or some lines of it, word for word."""

from dataclasses import replace
from typing import TYPE_CHECKING

import click

from ragdocs.cli.opened import Reading, reading_options
from ragdocs.cli.output import shown_lines

if TYPE_CHECKING:
    from ragdocs.search.library.answers import DocumentText
    from ragdocs.search.library.library import Library
    from ragdocs.search.library.requests import DocumentRequest


@click.command("get")
@click.argument("reference")
@click.option("--outline", is_flag=True, help="The headings, with their lines and sizes.")
@click.option("--full", "full_document", is_flag=True, help="All of the document it is in.")
@reading_options
def get(reference: str, reading: Reading, outline: bool, full_document: bool) -> None:
    """Show a document, a section, or some of its lines.

    REFERENCE is an id that a search gave, a path, `path#heading` or `path:10-40`. A file's name
    alone will do where only one file has it.

    \b
    Examples:
      ragdocs get guides/auth.md#sign-in
      ragdocs get auth.md:10-40
    """
    from ragdocs.cli.values import as_json as in_json
    from ragdocs.search.library.requests import MAX_TOKENS, DocumentRequest

    request = DocumentRequest(
        reference=reference, outline=outline, full_document=full_document, max_tokens=MAX_TOKENS
    )
    with reading.app() as app:
        found = whole(app.library, request)
    if reading.as_json:
        click.echo(in_json(found))
    else:
        _show(found, is_outline=outline)


def whole(library: "Library", request: "DocumentRequest") -> "DocumentText":
    """All pages as one: whoever asks at a terminal wants the whole text."""
    from ragdocs.search.library.requests import DocumentRequest

    first = page = library.get(request)
    texts, outline = [page.text], list(page.outline)
    while page.cursor:
        page = library.get(DocumentRequest(cursor=page.cursor, max_tokens=request.max_tokens))
        texts.append(page.text)
        outline += page.outline
    return replace(
        first,
        text="".join(texts),
        outline=tuple(outline),
        tokens=first.total_tokens,
        line_end=page.line_end,
        byte_end=page.byte_end,
        cursor=None,
    )


def _show(found: "DocumentText", *, is_outline: bool) -> None:
    for entry in found.outline if is_outline else ():
        where = f"{entry.line_start}-{entry.line_end}"
        indent = "  " * max(entry.level - 1, 0)
        click.echo(f"{where:>11}  {entry.tokens:>6} tokens  {indent}{shown_lines(entry.text)}")
    if not is_outline:
        click.echo(shown_lines(found.text), nl=not found.text.endswith("\n"))
    for note in found.notes:
        click.echo(f"note: {shown_lines(note)}", err=True)
