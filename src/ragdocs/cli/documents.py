"""`get`, `ls`, `related` and `context`: the commands that read documents instead of
searching them.
"""

import os
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, Unpack

import click

from ragdocs.cli import completing
from ragdocs.cli.failures import NOTHING_FOUND
from ragdocs.cli.indexing import OpenedIndex, reading_options
from ragdocs.errors import Ambiguous, QueryError
from ragdocs.limits import (
    DEFAULT_ANSWER_TOKENS,
    DEFAULT_PASSAGES,
    DEFAULT_RELATED,
    MAX_ANSWER_TOKENS,
    MAX_PAGE_ENTRIES,
    MAX_SOURCE_CHARS,
    MAX_SOURCES_CHARS,
)
from ragdocs.text import escaped, escaped_line, json_text, number_of

if TYPE_CHECKING:
    from ragdocs.cli.results import Look
    from ragdocs.config.resolved import Config
    from ragdocs.library.answers import (
        ContextAnswer,
        ContextExplanation,
        DocumentText,
        Listing,
        Related,
        SimilarEntry,
    )
    from ragdocs.library.library import Library
    from ragdocs.library.requests import ContextRequest, DocumentRequest, EditedFile, ListRequest

# `context`: the documentation that matters for source files, or for a change to them.

_STANDARD_INPUT = "-"


class _Asked(TypedDict):
    files: tuple[str, ...]
    diff: bool
    top_n: int
    trees: tuple[str, ...]
    max_tokens: int
    explain: bool
    output: str | None
    full: bool


@click.command("context")
@click.argument("files", nargs=-1, type=click.Path(), metavar="[FILE]...")
@click.option(
    "--diff", is_flag=True, help="Read a unified diff from standard input; so does `-` as a FILE."
)
@click.option(
    "--top-n",
    "-n",
    type=int,
    default=DEFAULT_PASSAGES,
    show_default=True,
    help="How many passages.",
)
@click.option(
    "--tree",
    "trees",
    multiple=True,
    metavar="NAME",
    shell_complete=completing.trees,
    help="Only in this tree.",
)
@click.option(
    "--max-tokens",
    type=int,
    default=DEFAULT_ANSWER_TOKENS,
    show_default=True,
    help="At most this many tokens of text.",
)
@click.option(
    "--output",
    "-o",
    type=click.Choice(["full", "list", "json"]),
    help="Whole passages, a short entry for each, or JSON. By default a list on a terminal, "
    "otherwise whole passages.",
)
@click.option("--full", is_flag=True, help="Whole passages: short for --output full.")
@click.option("--explain", is_flag=True, help="Show the terms and the query made from them.")
@reading_options
@click.pass_context
def context(click_context: click.Context, reading: OpenedIndex, **asked: Unpack[_Asked]) -> None:
    """Find the documentation for source files, or for a diff.

    Exits as `query` does.

    \b
    Examples:
      ragdocs context src/auth.py
      git diff | ragdocs context --diff
    """
    from ragdocs.cli.results import form_of, look_of

    config = reading.place.config()
    request = _request(asked, config)
    with reading.app() as app:
        answer = app.library.context(request)
    form = form_of(asked["output"], is_full=asked["full"], as_json=reading.as_json)
    if form == "json":
        click.echo(json_text(answer))
    else:
        _show_context(answer, form, look_of(config))
    click_context.exit(0 if answer.results or answer.included else NOTHING_FOUND)


def _request(asked: _Asked, config: "Config") -> "ContextRequest":
    from ragdocs.library.requests import ContextRequest

    names = tuple(name for name in asked["files"] if name != _STANDARD_INPUT)
    has_diff = asked["diff"] or len(names) < len(asked["files"])
    if not names and not has_diff:
        raise QueryError("give source files, or pipe in a diff with --diff")
    return ContextRequest(
        files=tuple(_source(name, config) for name in names),
        diff=sys.stdin.buffer.read(MAX_SOURCES_CHARS) if has_diff else b"",
        top_n=asked["top_n"],
        max_tokens=asked["max_tokens"],
        trees=frozenset(asked["trees"]),
        explain=asked["explain"],
    )


def _source(name: str, config: "Config") -> "EditedFile":
    from ragdocs.library.requests import EditedFile

    try:
        with open(name, "rb") as file:
            return EditedFile(_relative(name, config), file.read(MAX_SOURCES_CHARS))
    except OSError as error:
        raise QueryError(f"{escaped(name)} cannot be read: {error.strerror}") from error


def _relative(name: str, config: "Config") -> str:
    """The path relative to the configuration's folder, like the patterns of [[context.rules]]."""
    path = Path(name).absolute()
    for folder in (*(file.parent for file in config.files), Path.cwd()):
        if path.is_relative_to(folder):
            return path.relative_to(folder).as_posix()
    return name


def _show_context(answer: "ContextAnswer", form: str, look: "Look") -> None:
    from ragdocs.cli.results import FORMS

    for document in answer.included:
        where = f"{escaped_line(document.path)}  {escaped_line(document.title)}"
        click.echo(f"always: {where}  (for {escaped_line(document.because)})")
    for line in FORMS[form](answer.results, look):
        click.echo(line)
    for line in _remarks(answer):
        click.echo(line, err=True)
    if answer.explanation:
        for line in _explanation_lines(answer.explanation):
            click.echo(line)


def _remarks(answer: "ContextAnswer") -> Iterator[str]:
    if not answer.results and not answer.included:
        yield "Nothing was found."
    for file in answer.files:
        if file.problem:
            yield f"{escaped_line(file.name)}: {escaped(file.problem)}"
    yield from (f"note: {escaped(note)}" for note in answer.notes)
    if answer.index and not answer.index.complete:
        yield f"index {answer.index.in_words()}"


def _explanation_lines(explanation: "ContextExplanation") -> Iterator[str]:
    yield "terms: where they occur, how often, in how many documents, their weight"
    for term in explanation.terms:
        places = ", ".join(term.origins)
        figures = f"{term.frequency}x, {number_of(term.documents, 'document')}, {term.weight:.2f}"
        yield f"  {escaped(term.word)}  ({places}; {figures})"
    yield f"query: {escaped(explanation.query)}"


# `get`: the exact text of a document, a section or a range of lines.


@click.command("get")
@click.argument("reference", shell_complete=completing.documents)
@click.option("--outline", is_flag=True, help="Show the headings, with their lines and sizes.")
@click.option("--full", "full_document", is_flag=True, help="Show the whole document.")
@reading_options
def get(reference: str, reading: OpenedIndex, outline: bool, full_document: bool) -> None:
    """Show a document, a section, or a range of lines.

    REFERENCE is a path (from here, or in its tree), an id from a search result, a `[[wikilink]]`,
    or one of these with a part: `path#heading`, `path#^block`, `path:10-40`. A file name without
    its folder is enough if no other file has it.

    \b
    Examples:
      ragdocs get guides/auth.md#sign-in
      ragdocs get auth.md:10-40
    """
    from ragdocs.library.requests import DocumentRequest

    request = DocumentRequest(
        reference=reference,
        outline=outline,
        full_document=full_document,
        max_tokens=MAX_ANSWER_TOKENS,
    )
    with reading.app(vectors=False) as app:
        found = read_all(app.library, request)
    if reading.as_json:
        click.echo(json_text(found))
    else:
        _show_document(found, is_outline=outline)


def read_all(library: "Library", request: "DocumentRequest") -> "DocumentText":
    """All pages as one: at a terminal the user wants the whole text."""
    from ragdocs.library.requests import DocumentRequest

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


def _show_document(found: "DocumentText", *, is_outline: bool) -> None:
    for entry in found.outline if is_outline else ():
        where = f"{entry.line_start}-{entry.line_end}"
        indent = "  " * max(entry.level - 1, 0)
        click.echo(f"{where:>11}  {entry.tokens:>6} tokens  {indent}{escaped_line(entry.text)}")
    if not is_outline:
        click.echo(escaped(found.text), nl=not found.text.endswith("\n"))
    for note in found.notes:
        click.echo(f"note: {escaped(note)}", err=True)


# `ls`: lists what is in the index.

_KINDS = {
    "trees": "trees",
    "docs": "documents",
    "outlines": "outlines",
    "tags": "tags",
    "properties": "properties",
    "chunks": "chunks",
}


class _Chosen(TypedDict):
    tree: str
    path: str
    tags: tuple[str, ...]
    filter: tuple[str, ...]


@click.command("ls")
@click.argument("kind", type=click.Choice(list(_KINDS)), default="docs")
@click.option(
    "--tree",
    default="",
    metavar="NAME",
    shell_complete=completing.trees,
    help="Only in this tree.",
)
@click.option(
    "--path",
    default="",
    metavar="PATH",
    shell_complete=completing.folders_and_documents,
    help="Only this file, or below this folder.",
)
@click.option(
    "--tag",
    "tags",
    multiple=True,
    metavar="TAG",
    shell_complete=completing.tags,
    help="Only with this tag.",
)
@click.option(
    "--filter",
    "-f",
    multiple=True,
    metavar="TEXT",
    help="Only documents that match, such as 'status:active -tag:old'.",
)
@reading_options
@click.pass_context
def ls(context: click.Context, kind: str, reading: OpenedIndex, **chosen: Unpack[_Chosen]) -> None:
    """List trees, documents, headings, tags, properties or chunks.

    Exits with 0 when there are any, 1 when there are none.

    \b
    Examples:
      ragdocs ls docs --path guides
      ragdocs ls chunks --path guides/auth.md
      ragdocs ls properties
    """
    from ragdocs.library.requests import ListKind, ListRequest

    request = ListRequest(
        kind=ListKind(_KINDS[kind]),
        tree=chosen["tree"],
        path=chosen["path"],
        tags=chosen["tags"],
        where=" ".join(chosen["filter"]),
        limit=MAX_PAGE_ENTRIES,
        max_tokens=MAX_ANSWER_TOKENS,
    )
    with reading.app(vectors=False) as app:
        listing = list_all(app.library, request)
    if reading.as_json:
        click.echo(json_text(listing))
    else:
        for line in listing_lines(listing):
            click.echo(line)
        for note in listing.notes:
            click.echo(f"note: {escaped(note)}", err=True)
    context.exit(0 if listing.total else NOTHING_FOUND)


def list_all(library: "Library", request: "ListRequest") -> "Listing":
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
            properties=listing.properties + page.properties,
            chunks=listing.chunks + page.chunks,
        )
    return replace(listing, cursor=None)


def listing_lines(listing: "Listing") -> Iterator[str]:
    for tree in listing.trees:
        held = f"{number_of(tree.documents, 'document')}, {number_of(tree.passages, 'passage')}"
        yield f"{escaped_line(tree.name)}  {tree.scope}  {held}  {escaped_line(tree.root)}"
    for document in listing.documents:
        tags = "".join(f" #{tag}" for tag in document.tags)
        size = f"{number_of(document.lines, 'line')}, {number_of(document.passages, 'passage')}"
        name = escaped_line(f"{document.tree}:{document.path}")
        yield f"{name}  {escaped_line(document.title + tags)}  ({size})"
    for entry in listing.outlines:
        where = f"{escaped_line(entry.doc_id)}:{entry.line_start}"
        yield f"{where}  {'#' * entry.level} {escaped_line(entry.text)}"
    for tag in listing.tags:
        yield f"{escaped_line(tag.tag)}  {number_of(tag.documents, 'document')}"
    for entry in listing.properties:
        counts = entry.values.items()
        values = ", ".join(f"{value} ({count:,})" for value, count in counts)
        more = entry.distinct_values - len(counts)
        rest = f", and {more:,} more" if more else ""
        about = f"{'/'.join(entry.kinds)}, {number_of(entry.documents, 'document')}"
        yield f"{escaped_line(entry.key)}  ({about})  {escaped_line(values)}{rest}"
    for chunk in listing.chunks:
        where = f"{chunk.line_start}-{chunk.line_end}"
        kind = "passage" if chunk.is_leaf else chunk.kind
        name = "  " * chunk.depth + escaped_line(chunk.id)
        yield f"{name}  {where}  {kind}, {chunk.tokens} tokens"


# `related`: links and similar text for a document or a section.

_NOTHING = "no links and no similar documents"


@click.command("related")
@click.argument("reference", shell_complete=completing.documents)
@click.option(
    "--limit",
    type=int,
    default=DEFAULT_RELATED,
    show_default=True,
    help="At most this many of each kind.",
)
@reading_options
@click.pass_context
def related(context: click.Context, reference: str, reading: OpenedIndex, limit: int) -> None:
    """Show links to and from a document or section, and similar text.

    REFERENCE is the same as for `get`. Links, backlinks, documents in the same cluster of linked
    notes, and text that is similar by meaning and by words are listed separately. Any other file is
    compared by its text. Exits with 1 when there are none.

    \b
    Example:
      ragdocs related guides/auth.md#sign-in
      ragdocs related src/auth.py
    """
    with reading.app() as app:
        found = _related(app.library, reference, limit)
    lines = list(related_lines(found))
    if reading.as_json:
        click.echo(json_text(found))
    else:
        for line in lines:
            click.echo(line)
        for note in (*found.notes, *(() if lines else (_NOTHING,))):
            click.echo(f"note: {escaped(note)}", err=True)
    context.exit(0 if lines else NOTHING_FOUND)


def _related(library: "Library", reference: str, limit: int) -> "Related":
    """To a document, otherwise to the text of the file with that name."""
    from ragdocs.library.requests import RelatedRequest

    request = RelatedRequest(reference=reference, limit=limit)
    try:
        return library.related(request)
    except Ambiguous:
        raise  # the user must choose
    except QueryError:
        if not os.path.isfile(reference):
            raise
    try:
        with open(reference, "rb") as file:
            content = file.read(MAX_SOURCE_CHARS)
    except OSError as error:
        raise QueryError(f"{escaped(reference)} cannot be read: {error.strerror}") from error
    return library.related(replace(request, content=content))


def related_lines(found: "Related") -> Iterator[str]:
    links = [f"{_end(one.path, one.slug, one.target)}  line {one.line}" for one in found.links]
    yield from _block("links to", links)
    backlinks = [
        f"{escaped_line(one.path)}:{one.line}  {escaped_line(one.text)}" for one in found.backlinks
    ]
    yield from _block("linked from", backlinks)
    cluster = [escaped_line(one.path) for one in found.community]
    yield from _block("in the same cluster of linked notes", cluster)
    yield from _block("similar by meaning", list(map(_similar, found.similar_by_meaning)))
    yield from _block("similar by words", list(map(_similar, found.similar_by_words)))


def _block(title: str, entries: list[str]) -> Iterator[str]:
    if entries:
        yield click.style(title, bold=True)
        yield from (f"  {entry}" for entry in entries)


def _end(path: str, slug: str | None, target: str) -> str:
    if not path:
        return f"{escaped_line(target)} (broken link)"
    return escaped_line(f"{path}#{slug}" if slug else path)


def _similar(entry: "SimilarEntry") -> str:
    where = f"{entry.path}:{entry.line_start}-{entry.line_end}"
    headings = " > ".join(entry.heading_path)
    shared = f"  ({', '.join(entry.terms)})" if entry.terms else ""
    return (
        f"{escaped_line(where)}  {escaped_line(headings)}  {entry.score:.2f}{escaped_line(shared)}"
    )
