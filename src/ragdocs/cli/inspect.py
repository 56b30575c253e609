"""`inspect`: shows how a file is parsed into chunks, and how a query is parsed."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ragdocs.cli.indexing import OpenedIndex, reading_options
from ragdocs.cli.main import CommandPlace, place_options
from ragdocs.errors import QueryError, SourceUnreadable
from ragdocs.models import TreeName
from ragdocs.text import escaped, json_text, number_of

if TYPE_CHECKING:
    from ragdocs.app import App
    from ragdocs.config.resolved import Config, Tree
    from ragdocs.models import Chunk, ChunkId, Document, IndexedFile, Span
    from ragdocs.search.query_inspection import ExpressionNode, InspectedQuery, LookedFor
    from ragdocs.search.understanding import AddedWord

# `inspect query QUERY`: shows how a query is parsed, without searching.


@click.command("query")
@click.argument("words", nargs=-1, required=True, metavar="QUERY...")
@click.option("--strict", is_flag=True, help="Parse it as `query --strict` does.")
@reading_options
def inspect_query(words: tuple[str, ...], reading: OpenedIndex, strict: bool) -> None:
    """Show how QUERY is parsed, analysed, expanded and classified.

    Nothing is searched. Without an index (and with --no-update) it shows only what does not depend
    on the words in the documents.

    \b
    Example:
      ragdocs inspect query '(rust async) OR title:guide -deprecated'
    """
    with reading.app() as app:
        inspected = _inspect(app, " ".join(words), strict)
    if reading.as_json:
        click.echo(json_text(inspected))
        return
    for line in lines(inspected):
        click.echo(line)


def _inspect(app: "App", text: str, strict: bool) -> "InspectedQuery":
    from ragdocs.errors import IndexMissing
    from ragdocs.search.query_inspection import inspect_query as inspect_parsed

    settings = app.config.search
    try:
        index = app.index
    except IndexMissing:
        return inspect_parsed(text, app.reading.query_tools, settings, None, strict=strict)
    with index.view() as view:
        return inspect_parsed(text, app.reading.query_tools, settings, view, strict=strict)


def lines(inspected: "InspectedQuery") -> Iterator[str]:
    kind = "strict: every operator binds" if inspected.is_strict else "plain words: any may match"
    yield f"{_name('query')}{escaped(inspected.query)}  ({kind})"
    if inspected.is_strict and inspected.parsed is not None:
        yield from _label_lines("parsed", _drawn(inspected.parsed))
    yield f"{_name('because')}{inspected.why}"
    yield from _label_lines("preferred", (escaped(one.in_words()) for one in inspected.wishes))
    if inspected.as_text:
        yield f"{_name('as text')}{escaped(' '.join(inspected.as_text))}"
    yield f"{_name('meaning')}{escaped(inspected.meaning) or '(nothing)'}"
    words = (
        f"{escaped(word.word)} → {escaped(word.term)}{'' if word.is_looked_for else '  (dropped)'}"
        for word in inspected.analysis
    )
    yield from _label_lines("analysis", words)
    yield from _label_lines("searched", map(_unit, inspected.looked_for))
    yield from _label_lines("added", map(_added_word, inspected.added))
    if inspected.did_you_mean:
        yield f"{_name('meant')}{escaped(inspected.did_you_mean)}?"
    yield f"{_name('kind')}{inspected.query_type.value}"
    weights = ", ".join(f"{name.value} {weight:g}" for name, weight in inspected.weights.items())
    yield f"{_name('weights')}{weights}"
    for note in inspected.notes:
        yield f"{_name('note')}{escaped(note)}"


def _name(text: str) -> str:
    return click.style(f"{text:<12}", bold=True)


def _label_lines(name: str, found: "Iterator[str] | Sequence[str]") -> Iterator[str]:
    label = name
    for line in found:
        yield f"{_name(label)}{line}"
        label = ""


def _drawn(root: "ExpressionNode") -> Iterator[str]:
    """Draws without recursion, though the depth of a query's brackets is bounded."""
    pending = [(root, "", "")]
    while pending:
        node, first, rest = pending.pop()
        yield f"{first}{node.kind.upper()}{' ' if node.text else ''}{escaped(node.text)}"
        for part in reversed(node.parts):
            last = part is node.parts[-1]
            pending.append(
                (part, rest + ("└─ " if last else "├─ "), rest + ("   " if last else "│  "))
            )


def _unit(unit: "LookedFor") -> str:
    counts = "" if unit.weight == 1 else f"  x{unit.weight:g}"
    fields = ", ".join(f"{field} {weight:g}" for field, weight in unit.weights.items())
    return f"{escaped(' '.join(unit.terms))}{counts}  in {fields}"


def _added_word(word: "AddedWord") -> str:
    said = [word.origin.value, f"x{word.weight:.2g}"]
    said += [f"for {escaped(word.stands_for)}"] if word.stands_for else []
    said += [f"{word.distance} away"] if word.distance is not None else []
    said += [f"cosine {word.similarity:.2f}"] if word.similarity is not None else []
    return f"{escaped(word.word)} ({', '.join(said)})"


# `inspect doc`: shows how a file is parsed, as a tree of chunks.

_NOT_INDEXED = (
    "not indexed: it is ignored, hidden, or not among the included files (see docs/trees.md)"
)


@click.group()
def inspect() -> None:
    """Show how a document or a query is parsed."""


inspect.add_command(inspect_query)


@inspect.command("doc")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--embedded", is_flag=True, help="Show the text that is embedded for each leaf.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@place_options
def inspect_document(file: Path, place: CommandPlace, embedded: bool, as_json: bool) -> None:
    """Draw FILE's chunk tree: ids, lines, sizes, and what will be embedded.

    \b
    Example:
      ragdocs inspect doc guides/auth.md --embedded
    """
    config = place.config()
    place_in_tree = _find_place(_existing(_file_named(file, config)), config)
    taken = _take(place_in_tree, config)
    if as_json:
        click.echo(json_text(_as_json(taken, place_in_tree)))
        return
    for line in (*_summary(taken.document), *_tree(taken.chunks, embedded)):
        click.echo(line)
    if place_in_tree.note:
        click.echo(f"\nnote: {place_in_tree.note}")


@dataclass(frozen=True, slots=True)
class _TreePlace:
    """A file's place in a tree, and a note if it is not indexed."""

    tree: TreeName
    root: Path
    path: str
    note: str


def _file_named(typed: Path, config: "Config") -> Path:
    """The file on disk; or the one that the text names as an answer does, such as `tree:path`."""
    from ragdocs.places import Places, working_directory

    if os.path.lexists(typed):
        return typed
    places = Places.of(config.trees, working_directory())
    try:
        readings = chain.from_iterable(places.readings(str(typed)))
    except QueryError:
        return typed
    files = (
        root / reading.path
        for reading in readings
        for tree, root in places.roots.items()
        if reading.tree in (None, tree)
    )
    return next((file for file in files if os.path.lexists(file)), typed)


def _existing(file: Path) -> Path:
    """Follows symlinks: at a terminal the user chose the file."""
    try:
        found = file.resolve(strict=True)
    except (OSError, RuntimeError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "cannot be found"
        raise SourceUnreadable(f"{escaped(str(file))}: {reason}") from error
    if found.is_dir():
        raise SourceUnreadable(f"{escaped(str(file))}: is a folder; name a file in it")
    return found


def _find_place(file: Path, config: "Config") -> _TreePlace:
    """The tree a file belongs to; a file outside every tree is shown as if it were in the first."""
    for tree in config.trees:
        if file.is_relative_to(tree.root):
            path = file.relative_to(tree.root).as_posix()
            is_indexed = _is_indexed(tree, path, config)
            return _TreePlace(tree.name, tree.root, path, "" if is_indexed else _NOT_INDEXED)
    name = config.trees[0].name
    note = f"outside every tree: not indexed, shown as if it were in {name}"
    return _TreePlace(name, file.parent, file.name, note)


def _is_indexed(tree: "Tree", path: str, config: "Config") -> bool:
    from ragdocs.indexing.discovery import Scan, discover

    scan = discover(tree, respect_gitignore=config.indexing.respect_gitignore)
    return isinstance(scan, Scan) and any(found.path == path for found in scan.files)


def _take(place: _TreePlace, config: "Config") -> "IndexedFile":
    from ragdocs.chunking.chunker import ChunkSizes
    from ragdocs.indexing.reading import Ingestion

    sizes = ChunkSizes.from_settings(config.chunking)
    ingestion = Ingestion(place.tree, place.root, config.indexing.max_file_bytes, sizes)
    return ingestion.take(place.path)


def _summary(document: "Document") -> Iterator[str]:
    source = document.source
    yield f"{click.style(escaped(document.title), bold=True)}  ({escaped(document.id)})"
    yield (
        f"{number_of(source.size, 'byte')}, {source.encoding}, "
        f"{number_of(len(document.headings), 'heading')}, "
        f"{number_of(len(document.links), 'link')}, "
        f"{number_of(len(document.code_blocks), 'code block')}; "
        f"{document.date:%Y-%m-%d} ({document.date_source})"
    )
    if document.tags:
        yield "tags: " + escaped(", ".join(document.tags))
    for warning in document.warnings:
        yield f"warning: {escaped(warning.text)}"
    yield ""


def _tree(chunks: "tuple[Chunk, ...]", embedded: bool) -> Iterator[str]:
    children: dict[ChunkId | None, list[Chunk]] = {}
    for chunk in chunks:
        children.setdefault(chunk.parent_id, []).append(chunk)
    pending = [(chunks[0], "", "")]
    while pending:
        chunk, first, rest = pending.pop()
        yield first + _line(chunk)
        below = children.get(chunk.id, [])
        if embedded and chunk.text is not None:
            yield from _embedded_lines(chunk, rest + ("│  " if below else "   "))
        for child in reversed(below):
            last = child is below[-1]
            pending.append(
                (child, rest + ("└─ " if last else "├─ "), rest + ("   " if last else "│  "))
            )


def _line(chunk: "Chunk") -> str:
    name = escaped(chunk.id.removeprefix(chunk.doc_id) or chunk.id)
    where = f"lines {chunk.span.line_start}-{chunk.span.line_end}"
    size = "" if chunk.text is None else f", {len(chunk.text)} characters"
    overlap = f" + {len(chunk.overlap)} overlap" if chunk.overlap else ""
    return f"{click.style(name, bold=chunk.text is not None)}  {where}{size}{overlap}"


def _embedded_lines(chunk: "Chunk", indent: str) -> Iterator[str]:
    from ragdocs.chunking.splitting import embedding_text

    for line in embedding_text(chunk).split("\n"):
        yield f"{indent}  {click.style(escaped(line), dim=True)}".rstrip()


def _as_json(taken: "IndexedFile", place: _TreePlace) -> dict[str, object]:
    document = taken.document
    metadata = document.front_matter
    return {
        "id": document.id,
        "title": document.title,
        "encoding": document.source.encoding,
        "size": document.source.size,
        "date": document.date.isoformat(),
        "date_source": document.date_source,
        "tags": document.tags,
        "description": metadata.description,
        "keywords": metadata.keywords,
        "aliases": metadata.aliases,
        "author": metadata.author,
        "category": metadata.category,
        "warnings": document.warnings,
        "note": place.note,
        "headings": [
            {"level": found.level, "text": found.text, "slug": found.slug, **_where(found.span)}
            for found in document.headings
        ],
        "links": [
            {
                "kind": found.kind,
                "target": found.target,
                "anchor": found.anchor,
                "text": found.text,
                **_where(found.span),
            }
            for found in document.links
        ],
        "code_blocks": [
            {"language": found.language, **_where(found.span)} for found in document.code_blocks
        ],
        "chunks": [_chunk_as_json(chunk) for chunk in taken.chunks],
    }


def _chunk_as_json(chunk: "Chunk") -> dict[str, object]:
    from ragdocs.chunking.splitting import embedding_text

    return {
        "id": chunk.id,
        "parent_id": chunk.parent_id,
        "kind": chunk.kind,
        "depth": chunk.depth,
        "title": chunk.title,
        "breadcrumb": chunk.breadcrumb,
        **_where(chunk.span),
        "characters": None if chunk.text is None else len(chunk.text),
        "embedded": embedding_text(chunk),
    }


def _where(span: "Span") -> dict[str, object]:
    return {
        "lines": [span.line_start, span.line_end],
        "bytes": [span.byte_start, span.byte_end],
    }
