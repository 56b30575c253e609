"""From what is stored to the entries of a list."""

from ragdocs.config.resolved import Tree
from ragdocs.search.budget import BYTES_PER_TOKEN
from ragdocs.search.library.answers import ChunkEntry, DocumentEntry, TreeEntry
from ragdocs.search.library.cards import short, shown_path, shown_tags
from ragdocs.store.holdings import ChunkCounts, TreeCounts
from ragdocs.store.records import StoredChunk, StoredDocument


def tree_entry(tree: Tree, counts: TreeCounts) -> TreeEntry:
    return TreeEntry(
        name=tree.name,
        scope=tree.scope.value,
        root=str(tree.root),
        documents=counts.documents,
        passages=counts.leaves,
        bytes=counts.size,
        failed_files=counts.failures,
    )


def document_entry(document: StoredDocument, counts: ChunkCounts) -> DocumentEntry:
    return DocumentEntry(
        id=document.id,
        tree=document.tree,
        path=shown_path(document),
        title=short(document.title),
        tags=shown_tags(document),
        modified=document.date,
        bytes=document.size,
        tokens=_tokens(document.size),
        lines=document.lines,
        chunks=counts.nodes,
        passages=counts.leaves,
    )


def chunk_entry(stored: StoredChunk) -> ChunkEntry:
    chunk, span = stored.chunk, stored.chunk.span
    size = span.byte_end - span.byte_start
    return ChunkEntry(
        id=chunk.id,
        doc_id=chunk.doc_id,
        parent_id=chunk.parent_id,
        kind=chunk.kind.value,
        depth=chunk.depth,
        heading_path=chunk.breadcrumb,
        line_start=span.line_start,
        line_end=span.line_end,
        bytes=size,
        tokens=_tokens(size),
        is_leaf=chunk.text is not None,
    )


def _tokens(size: int) -> int:
    return -(-size // BYTES_PER_TOKEN)
