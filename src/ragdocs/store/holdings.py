"""What the store holds, told without reading the documents themselves: names, versions, counts."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import blake2b

from ragdocs.models import DocId, TreeName
from ragdocs.parsers.identity import decode_path
from ragdocs.store.file_rows import SELECT_FAILURES, SELECT_FILES, read_failure, read_file
from ragdocs.store.records import FileFailure, ManifestEntry, StoredDocument
from ragdocs.store.snapshot import Snapshot

VERSION_BYTES = 8


@dataclass(frozen=True, slots=True)
class ChunkCounts:
    """The nodes of a document's chunk tree, and those of them that have text."""

    nodes: int
    leaves: int


@dataclass(frozen=True, slots=True)
class ContentCounts:
    """What some documents have together."""

    headings: int
    chunks: int


@dataclass(frozen=True, slots=True)
class TreeCounts:
    """How much one tree holds."""

    documents: int
    size: int
    leaves: int
    failures: int


def file_of(snapshot: Snapshot, doc_id: DocId) -> ManifestEntry | None:
    """The file as it was when it was read."""
    rows = snapshot.select(f"{SELECT_FILES} WHERE doc_id = ?", (doc_id,))
    return read_file(rows[0]) if rows else None


def failure_of(snapshot: Snapshot, doc_id: DocId) -> FileFailure | None:
    """Why a file is not in the index, if it is known and could not be indexed."""
    rows = snapshot.select(f"{SELECT_FAILURES} WHERE f.doc_id = ?", (doc_id,))
    return read_failure(rows[0]) if rows else None


def version_of(snapshot: Snapshot, doc_id: DocId) -> str:
    """Another one as soon as the file's bytes, or anything stored of them, is another."""
    rows = snapshot.select(
        """SELECT d.digest, f.content_hash FROM documents d
        LEFT JOIN files f ON f.doc_id = d.id WHERE d.id = ?""",
        (doc_id,),
    )
    digest, content = rows[0] if rows else (b"", None)
    told = blake2b(digest, digest_size=VERSION_BYTES, key=b"version")
    told.update((content or "").encode())
    return told.hexdigest()


def documents_called(snapshot: Snapshot, match_key: str) -> tuple[StoredDocument, ...]:
    """Those with a file name, title or alias of this key (see `link_resolution.match_key`)."""
    rows = snapshot.select(
        "SELECT d.id FROM names n JOIN documents d ON d.key = n.doc WHERE n.match_key = ?",
        (match_key,),
    )
    found = snapshot.documents_by_id(DocId(doc_id) for (doc_id,) in rows)
    return tuple(found[doc_id] for doc_id in sorted(found))


def document_ids(snapshot: Snapshot) -> list[DocId]:
    """In order."""
    return [DocId(doc_id) for (doc_id,) in snapshot.select("SELECT id FROM documents ORDER BY id")]


def some_paths(snapshot: Snapshot, limit: int) -> list[str]:
    """The paths of at most so many documents."""
    rows = snapshot.select("SELECT DISTINCT path FROM documents ORDER BY id LIMIT ?", (limit,))
    return [decode_path(path) for (path,) in rows]


def chunk_counts(snapshot: Snapshot, doc_ids: Iterable[DocId]) -> dict[DocId, ChunkCounts]:
    rows = snapshot.select(
        """SELECT d.id, count(*), count(c.text) FROM documents d JOIN chunks c ON c.doc = d.key
        WHERE d.id IN (SELECT value FROM json_each(?)) GROUP BY d.key""",
        (json.dumps(list(doc_ids)),),
    )
    return {DocId(doc_id): ChunkCounts(nodes, leaves) for doc_id, nodes, leaves in rows}


def content_counts(snapshot: Snapshot, doc_ids: Iterable[DocId]) -> ContentCounts:
    rows = snapshot.select(
        """SELECT total(headings), total(chunks) FROM documents
        WHERE id IN (SELECT value FROM json_each(?))""",
        (json.dumps(list(doc_ids)),),
    )
    return ContentCounts(*map(int, rows[0]))


def tree_counts(snapshot: Snapshot) -> dict[TreeName, TreeCounts]:
    """Of the trees that have any document or failed file."""
    documents = snapshot.select("SELECT tree, count(*), sum(size) FROM documents GROUP BY tree")
    leaves = dict(
        snapshot.select(
            """SELECT d.tree, count(*) FROM chunks c JOIN documents d ON d.key = c.doc
            WHERE c.text IS NOT NULL GROUP BY d.tree"""
        )
    )
    failures = dict(
        snapshot.select(
            """SELECT f.tree, count(*) FROM failures e JOIN files f ON f.key = e.file
            GROUP BY f.tree"""
        )
    )
    sizes = {tree: (count, size) for tree, count, size in documents}
    return {
        TreeName(tree): TreeCounts(
            *sizes.get(tree, (0, 0)), leaves.get(tree, 0), failures.get(tree, 0)
        )
        for tree in sorted({*sizes, *failures})
    }
