"""`inspect doc FILE`: how a file is read, as a tree of chunks."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from ragdocs.config.resolved import Config, Tree
    from ragdocs.models import Chunk, ChunkId, Document, IndexedFile


@click.group()
def inspect() -> None:
    """Look at how the program sees a document."""


@inspect.command("doc")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--embedded", is_flag=True, help="Show the text that each leaf gives the embedder.")
@click.option("--config", "config_file", type=click.Path(path_type=Path), help="Read this file.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def inspect_document(file: Path, embedded: bool, config_file: Path | None, as_json: bool) -> None:
    """Draw FILE's chunk tree: ids, lines, sizes, and what will be embedded."""
    from ragdocs.config.loading import load_config

    taken = _take(file, load_config(config_file))
    if as_json:
        click.echo(json.dumps(_as_json(taken), ensure_ascii=False, indent=2))
        return
    for line in (*_summary(taken.document), *_tree(taken.chunks, embedded)):
        click.echo(line)


def _take(file: Path, config: "Config") -> "IndexedFile":
    from ragdocs.chunking.header_chunker import ChunkSizes
    from ragdocs.indexing.ingestion import Ingestion

    tree, root, path = _place(file.absolute(), config)
    sizes = ChunkSizes.from_settings(config.chunking)
    return Ingestion(tree.name, root, config.indexing.max_file_bytes, sizes).take(path)


def _place(file: Path, config: "Config") -> "tuple[Tree, Path, str]":
    """The tree a file belongs to; one outside every tree is shown as if it stood in the first."""
    resolved = file.parent.resolve() / file.name
    for tree in config.trees:
        if resolved.is_relative_to(tree.root):
            return tree, tree.root, resolved.relative_to(tree.root).as_posix()
    return config.trees[0], resolved.parent, resolved.name


def _summary(document: "Document") -> Iterator[str]:
    source = document.source
    yield f"{click.style(document.title, bold=True)}  ({document.id})"
    yield (
        f"{source.size} bytes, {source.encoding}, {len(document.headings)} headings, "
        f"{len(document.links)} links, {len(document.code_blocks)} code blocks; "
        f"{document.date:%Y-%m-%d} ({document.date_source})"
    )
    if document.tags:
        yield "tags: " + ", ".join(document.tags)
    for warning in document.warnings:
        yield f"warning: {warning}"
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
    name = chunk.id.removeprefix(chunk.doc_id) or chunk.id
    where = f"lines {chunk.span.line_start}-{chunk.span.line_end}"
    size = "" if chunk.text is None else f", {len(chunk.text)} characters"
    overlap = f" + {len(chunk.overlap)} overlap" if chunk.overlap else ""
    return f"{click.style(name, bold=chunk.text is not None)}  {where}{size}{overlap}"


def _embedded(chunk: "Chunk", indent: str) -> Iterator[str]:
    from ragdocs.chunking.embedding_text import embedding_text

    for line in embedding_text(chunk).split("\n"):
        yield f"{indent}  {click.style(line, dim=True)}".rstrip()


def _as_json(taken: "IndexedFile") -> dict[str, object]:
    from ragdocs.chunking.embedding_text import embedding_text

    document = taken.document
    return {
        "id": document.id,
        "title": document.title,
        "encoding": document.source.encoding,
        "size": document.source.size,
        "date": document.date.isoformat(),
        "date_source": document.date_source,
        "tags": document.tags,
        "warnings": document.warnings,
        "chunks": [
            {
                "id": chunk.id,
                "parent_id": chunk.parent_id,
                "kind": chunk.kind,
                "depth": chunk.depth,
                "title": chunk.title,
                "lines": [chunk.span.line_start, chunk.span.line_end],
                "bytes": [chunk.span.byte_start, chunk.span.byte_end],
                "characters": None if chunk.text is None else len(chunk.text),
                "embedded": embedding_text(chunk),
            }
            for chunk in taken.chunks
        ],
    }
