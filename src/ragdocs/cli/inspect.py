"""`inspect`: how a file is read, as a tree of chunks; and how a query is."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ragdocs.cli.inspect_query import inspect_query
from ragdocs.cli.output import counted, shown
from ragdocs.cli.place import Place, place_options
from ragdocs.cli.values import json_text
from ragdocs.errors import SourceUnreadable
from ragdocs.models import TreeName

if TYPE_CHECKING:
    from ragdocs.config.resolved import Config, Tree
    from ragdocs.models import Chunk, ChunkId, Document, IndexedFile, Span

_NOT_INDEXED = (
    "not indexed: it is ignored, hidden, or not among the included files (see docs/trees.md)"
)


@click.group()
def inspect() -> None:
    """Look at how the program sees a document or a query."""


inspect.add_command(inspect_query)


@inspect.command("doc")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--embedded", is_flag=True, help="Show the text that each leaf gives the embedder.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@place_options
def inspect_document(file: Path, place: Place, embedded: bool, as_json: bool) -> None:
    """Draw FILE's chunk tree: ids, lines, sizes, and what will be embedded.

    \b
    Example:
      ragdocs inspect doc guides/auth.md --embedded
    """
    config = place.config()
    stands = _stands(_existing(file), config)
    taken = _take(stands, config)
    if as_json:
        click.echo(json_text(_as_json(taken, stands)))
        return
    for line in (*_summary(taken.document), *_tree(taken.chunks, embedded)):
        click.echo(line)
    if stands.note:
        click.echo(f"\nnote: {stands.note}")


@dataclass(frozen=True, slots=True)
class _Stands:
    """Where a file stands, and what is to be said about whether it is indexed."""

    tree: TreeName
    root: Path
    path: str
    note: str


def _existing(file: Path) -> Path:
    """The file that is meant, links followed: at a terminal it is the user who names it."""
    try:
        found = file.resolve(strict=True)
    except (OSError, RuntimeError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "cannot be found"
        raise SourceUnreadable(f"{shown(str(file))}: {reason}") from error
    if found.is_dir():
        raise SourceUnreadable(f"{shown(str(file))}: is a folder; name a file in it")
    return found


def _stands(file: Path, config: "Config") -> _Stands:
    """The tree a file belongs to; one outside every tree is shown as if it stood in the first."""
    for tree in config.trees:
        if file.is_relative_to(tree.root):
            path = file.relative_to(tree.root).as_posix()
            is_indexed = _is_indexed(tree, path, config)
            return _Stands(tree.name, tree.root, path, "" if is_indexed else _NOT_INDEXED)
    name = config.trees[0].name
    note = f"outside every tree: not indexed, and shown as if it stood in {name}"
    return _Stands(name, file.parent, file.name, note)


def _is_indexed(tree: "Tree", path: str, config: "Config") -> bool:
    from ragdocs.indexing.discovery import Scan, discover

    scan = discover(tree, respect_gitignore=config.indexing.respect_gitignore)
    return isinstance(scan, Scan) and any(found.path == path for found in scan.files)


def _take(stands: _Stands, config: "Config") -> "IndexedFile":
    from ragdocs.chunking.header_chunker import ChunkSizes
    from ragdocs.indexing.ingestion import Ingestion

    sizes = ChunkSizes.from_settings(config.chunking)
    ingestion = Ingestion(stands.tree, stands.root, config.indexing.max_file_bytes, sizes)
    return ingestion.take(stands.path)


def _summary(document: "Document") -> Iterator[str]:
    source = document.source
    yield f"{click.style(shown(document.title), bold=True)}  ({shown(document.id)})"
    yield (
        f"{counted(source.size, 'byte')}, {source.encoding}, "
        f"{counted(len(document.headings), 'heading')}, {counted(len(document.links), 'link')}, "
        f"{counted(len(document.code_blocks), 'code block')}; "
        f"{document.date:%Y-%m-%d} ({document.date_source})"
    )
    if document.tags:
        yield "tags: " + shown(", ".join(document.tags))
    for warning in document.warnings:
        yield f"warning: {shown(warning.text)}"
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
            yield from _embedded(chunk, rest + ("│  " if below else "   "))
        for child in reversed(below):
            last = child is below[-1]
            pending.append(
                (child, rest + ("└─ " if last else "├─ "), rest + ("   " if last else "│  "))
            )


def _line(chunk: "Chunk") -> str:
    name = shown(chunk.id.removeprefix(chunk.doc_id) or chunk.id)
    where = f"lines {chunk.span.line_start}-{chunk.span.line_end}"
    size = "" if chunk.text is None else f", {len(chunk.text)} characters"
    overlap = f" + {len(chunk.overlap)} overlap" if chunk.overlap else ""
    return f"{click.style(name, bold=chunk.text is not None)}  {where}{size}{overlap}"


def _embedded(chunk: "Chunk", indent: str) -> Iterator[str]:
    from ragdocs.chunking.embedding_text import embedding_text

    for line in embedding_text(chunk).split("\n"):
        yield f"{indent}  {click.style(shown(line), dim=True)}".rstrip()


def _as_json(taken: "IndexedFile", stands: _Stands) -> dict[str, object]:
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
        "warnings": [asdict(warning) for warning in document.warnings],
        "note": stands.note,
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
    from ragdocs.chunking.embedding_text import embedding_text

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
