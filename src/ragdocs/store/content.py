"""All rows of one file, made before anything is written, and written or deleted together."""

from dataclasses import dataclass

from ragdocs.models import IndexedFile
from ragdocs.store.chunk_rows import chunk_values, code_values, insert_chunks, insert_code
from ragdocs.store.connection import Database
from ragdocs.store.document_rows import document_values, heading_values, insert_headings
from ragdocs.store.ledger import Ledger
from ragdocs.store.link_rows import insert_links, link_values
from ragdocs.store.rows import Values, joint_hash, row_hash

_KINDS = {
    "headings": "heading",
    "links": "link of",
    "code_blocks": "code block",
    "chunks": "chunk",
}
# Code blocks point at chunks: they are deleted before them, and written after.
_INSERTS = {
    "headings": insert_headings,
    "chunks": insert_chunks,
    "links": insert_links,
    "code_blocks": insert_code,
}


@dataclass(frozen=True, slots=True)
class Content:
    """The rows of one file with their hashes, and the digest that stands for all of them."""

    document: Values
    rows: dict[str, list[Values]]
    hashes: dict[str, list[bytes]]
    digest: bytes


def content_of(file: IndexedFile) -> Content:
    document = file.document
    rows = {
        "headings": list(heading_values(document.id, document.headings)),
        "links": list(link_values(document.id, document.links)),
        "code_blocks": list(code_values(document.id, document.code_blocks, file.chunks)),
        "chunks": [chunk_values(chunk) for chunk in file.chunks],
    }
    hashes = {
        table: [row_hash(_KINDS[table], values) for values in found]
        for table, found in rows.items()
    }
    values = document_values(file)
    parts = (joint_hash(hashes[table]) for table in _KINDS)
    return Content(values, rows, hashes, joint_hash((row_hash("content", values), *parts)))


def insert_rows(database: Database, ledger: Ledger, doc: int, content: Content) -> None:
    for table, insert in _INSERTS.items():
        insert(database, doc, content.rows[table], content.hashes[table])
        ledger.add(table, content.hashes[table])


def delete_rows(database: Database, ledger: Ledger, doc: int) -> None:
    for table in _KINDS:
        rows = database.all(f"SELECT row_hash FROM {table} WHERE doc = ?", (doc,))
        ledger.drop(table, (row[0] for row in rows))
        database.run(f"DELETE FROM {table} WHERE doc = ?", (doc,))
