"""`list_documents`: what there is: trees, documents, headings, tags."""

import json
from collections.abc import Iterator
from dataclasses import dataclass

from ragdocs.mcp_server.addresses import document_uri
from ragdocs.mcp_server.backend import Backend
from ragdocs.mcp_server.tools.answering import Given, fitted, plain
from ragdocs.mcp_server.tools.document_tool import outline_line
from ragdocs.mcp_server.tools.index_notes import IndexNote, index_note
from ragdocs.mcp_server.tools.library_arguments import ListArguments
from ragdocs.mcp_server.tools.quoting import one_line
from ragdocs.mcp_server.visible import Cleaner
from ragdocs.search.library.answers import DocumentEntry, Listing, TagEntry, TreeEntry
from ragdocs.wording import number_of


@dataclass(frozen=True, slots=True, kw_only=True)
class ListAnswer(Listing):
    """The library's answer, and how complete the index is that it lists."""

    index: IndexNote


def list_documents(backend: Backend, arguments: ListArguments) -> Given:
    index = index_note(backend.index_state(), backend.activity())
    return fitted(
        arguments.max_tokens,
        lambda room: _given(backend.library.list(arguments.to_request(room)), index),
    )


def _given(listing: Listing, index: IndexNote) -> Given:
    structured = plain(listing)
    for kind in ("trees", "documents", "outlines", "tags", "chunks"):
        if kind != listing.kind:
            del structured[kind]
    for entry, found in zip(structured.get("documents", ()), listing.documents, strict=False):
        if entry["id"] != found.id:  # something in it is not shown: here it is, exactly
            entry["uri"] = document_uri(found.id)
    structured["index"] = plain(index)
    return Given(structured, Cleaner().clean("\n".join(_lines(listing, index))))


def _lines(listing: Listing, index: IndexNote) -> Iterator[str]:
    yield index.line()
    entries = (*_trees(listing.trees), *_documents(listing.documents), *_tags(listing.tags))
    entries += tuple(map(outline_line, listing.outlines))
    yield f"{listing.kind}: {len(entries):,} of {listing.total:,}"
    yield from map(one_line, listing.notes)
    yield from entries
    if listing.cursor:
        yield f"More follow: list_documents {json.dumps({'cursor': listing.cursor})}"


def _trees(trees: tuple[TreeEntry, ...]) -> Iterator[str]:
    for tree in trees:
        failed = f", {tree.failed_files:,} failed" if tree.failed_files else ""
        documents, passages = tree.documents, tree.passages
        holds = f"{number_of(documents, 'document')}, {number_of(passages, 'passage')}{failed}"
        yield f"- {one_line(tree.name)} ({one_line(tree.root)}): {holds}"


def _documents(documents: tuple[DocumentEntry, ...]) -> Iterator[str]:
    for entry in documents:
        tags = "".join(f" #{one_line(tag)}" for tag in entry.tags)
        size = f"{entry.lines:,} lines, {entry.tokens:,} tokens, {entry.modified:%Y-%m-%d}"
        yield f"- {one_line(entry.id)} · {one_line(entry.title)} · {size}{tags}"


def _tags(tags: tuple[TagEntry, ...]) -> Iterator[str]:
    for entry in tags:
        yield f"- #{one_line(entry.tag)}: {number_of(entry.documents, 'document')}"
