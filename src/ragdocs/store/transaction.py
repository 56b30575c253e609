"""One write transaction: all its changes become one generation, or none do."""

import sqlite3
from collections.abc import Collection, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from ragdocs.errors import SourceError
from ragdocs.models import DocId, FileState, Heading, IndexedFile
from ragdocs.parsers.ids import document_id
from ragdocs.parsers.link_targets import Names
from ragdocs.store import embeddings, generations, links, stored_index, tables
from ragdocs.store.database import Database
from ragdocs.store.generations import Ledger, Meta, write_meta
from ragdocs.store.links import insert_links, link_values
from ragdocs.store.records import ChangeKind, FileFailure, ManifestEntry, TextHash, UnreadCounts
from ragdocs.store.schema import Values, joint_hash, row_hash, storable, to_json
from ragdocs.store.stored_index import StoredIndex
from ragdocs.store.tables import (
    SELECT_DOCUMENTS,
    SELECT_HEADINGS,
    CommunityOrigin,
    chunk_values,
    code_values,
    document_values,
    heading_values,
    insert_chunks,
    insert_code,
    insert_document,
    insert_headings,
    read_document,
    read_heading,
)

# All rows of one file, computed before anything is written, and written or deleted together.

_KINDS = {
    "headings": "heading",
    "links": "link of",
    "code_blocks": "code block",
    "chunks": "chunk",
}
# Code blocks refer to chunks, so they are deleted before them and written after them.
_INSERTS = {
    "headings": insert_headings,
    "chunks": insert_chunks,
    "links": insert_links,
    "code_blocks": insert_code,
}


@dataclass(frozen=True, slots=True)
class Content:
    """The rows of one file with their hashes, and the digest of all of them."""

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


# One write transaction.


@dataclass(frozen=True, slots=True)
class _Known:
    """A stored document: its names, its outline and its digest."""

    names: Names
    outline: tuple[tuple[str, str], ...]
    digest: bytes
    row_hash: bytes


class Transaction:
    """Changes to the store that take effect together, when `StoreWriter.transaction` ends."""

    def __init__(self, database: Database, meta: Meta, indices: Sequence[StoredIndex] = ()) -> None:
        self._database = database
        self._meta = meta
        self._indices = indices
        self._ledger = meta.ledger.copy()
        self._changes: dict[DocId, set[ChangeKind]] = {}
        self._match_keys: set[str] = set()
        self._sources: set[DocId] = set()
        self._dirty = False
        self._waiting = meta.waiting
        self._communities = meta.communities
        self._unread = meta.unread
        self._next = generations.next_position(meta.position)
        self.position = meta.position
        """The commit that readers see: the previous one, and once committed, this one."""

    def put(self, file: IndexedFile, read_ns: int) -> None:
        """Stores a file, replacing its former content; `read_ns` is when reading it began.

        A file whose rows contradict each other raises SourceError and changes nothing.
        """
        document = file.document
        entry = ManifestEntry(document.id, document.tree, document.path, file.state, read_ns)
        content = content_of(file)
        with self._all_or_nothing(document.id):
            known = self._find_known(document.id)
            if known is None or known.digest != content.digest:
                self._replace(file, known, content)
            self._dirty |= tables.put_file(self._database, self._ledger, entry)

    def touch(self, doc_id: DocId, state: FileState, read_ns: int) -> bool:
        """Records a new state of a file whose content is unchanged; False if it has no content,
        because it is unknown or has failed. If the document takes its date from the file's mtime,
        put it again instead."""
        row = self._database.one(f"{tables.SELECT_FILES} WHERE doc_id = ?", (doc_id,))
        failed = self._database.one(
            "SELECT 1 FROM failures JOIN files ON key = file WHERE doc_id = ?", (doc_id,)
        )
        if row is None or failed:
            return False
        old = tables.read_file(row)
        entry = ManifestEntry(doc_id, old.tree, old.path, state, read_ns)
        self._dirty |= tables.put_file(self._database, self._ledger, entry)
        return True

    def remove(self, doc_id: DocId) -> bool:
        """Removes a file, indexed or failed; False if it was unknown."""
        removed = self._remove_document(doc_id)
        removed |= tables.remove_file(self._database, self._ledger, doc_id)
        self._dirty |= removed
        return removed

    def fail(self, failure: FileFailure) -> None:
        """Records that a file cannot be indexed, and removes its former content, which is out of
        date."""
        if tables.has_failure(self._database, failure):
            return
        self._remove_document(document_id(failure.tree, failure.path))
        tables.put_failure(self._database, self._ledger, failure)
        self._dirty = True

    def put_embeddings(self, model: str, vectors: Sequence[tuple[TextHash, bytes]]) -> int:
        """Stores vectors (little-endian float32) of texts; returns how many are new.

        The change log of this generation lists the documents with these texts.
        """
        new = embeddings.put_vectors(self._database, self._ledger, model, vectors)
        for doc_id in embeddings.documents_with(self._database, new):
            self._note(doc_id, ChangeKind.VECTORS)
        self._dirty |= bool(new)
        return len(new)

    def prune_embeddings(self, models: Collection[str]) -> int:
        """Deletes vectors of models other than these, and of texts that are in no chunk and no
        index inside the store."""
        texts = stored_index.texts_of_indices(self._database, self._indices)
        count = embeddings.prune(self._database, self._ledger, models, texts)
        self._dirty |= count > 0
        return count

    def drop_unused(self, keys: Collection[int], models: Collection[str]) -> int:
        """Deletes those of these vectors that belong to other models or that no chunk uses."""
        count = embeddings.drop_unused(self._database, self._ledger, keys, models)
        self._dirty |= count > 0
        return count

    def put_communities(self, numbers: Mapping[DocId, int], origin: CommunityOrigin) -> bool:
        """Stores each document's community, replacing the former ones. False if nothing changes,
        newer ones are stored, or they were computed from a commit of another history."""
        stored = CommunityOrigin.decode(self._communities)
        made = origin.position
        if stored is not None and stored.position.generation >= made.generation:
            return False
        if not generations.follows(self._database, self.position, made):
            return False
        has_others = tables.replace_communities(self._database, self._ledger, numbers)
        if stored is None or stored.edges != origin.edges or has_others:
            self._communities = origin.encode()
            self._dirty = True
        return self._communities == origin.encode()

    def rebuild_indices(self, names: Collection[str]) -> None:
        """Rebuilds some indices inside the store from its rows, even if they are up to date.

        No document changes, but the rebuild is a commit.
        """
        wanted = [index for index in self._indices if index.name in names]
        stored_index.rebuild(self._database, wanted, self._next)
        self._dirty = True

    @property
    def waiting(self) -> int | None:
        """How many files are not stored yet, as last recorded; see `expect`."""
        return self._waiting

    def expect(self, waiting: int) -> None:
        """Records how many changed files are not stored yet, so that every process knows that the
        index is incomplete; 0 means that all files were scanned and stored."""
        self._dirty |= waiting != self._waiting
        self._waiting = waiting

    def note_unread(self, counts: UnreadCounts) -> None:
        """Records how many files of each tree have a format that is not read."""
        encoded = to_json(
            {tree: dict(sorted(each.items())) for tree, each in sorted(counts.items())}
        )
        self._dirty |= encoded != self._unread
        self._unread = encoded

    def finish(self) -> bool:
        """Updates links, change log and description; False if there is nothing to commit."""
        if not self._dirty:
            return False
        rows = self._database.all_in("SELECT key FROM documents WHERE id IN (*)", self._sources)
        keys = [key for (key,) in rows]
        match_keys = storable(sorted(self._match_keys))
        for doc_id in links.refresh(self._database, self._ledger, map(str, match_keys), keys):
            self._note(doc_id, ChangeKind.LINKS)
        generations.append(self._database, self._next, self._changes)
        write_meta(
            self._database,
            replace(
                self._meta,
                position=self._next,
                ledger=self._ledger,
                waiting=self._waiting,
                communities=self._communities,
                unread=self._unread,
            ),
        )
        stored_index.record_applied(self._database, self._indices, self._next)
        return True

    def mark_committed(self) -> None:
        self.position = self._next

    @contextmanager
    def _all_or_nothing(self, doc_id: DocId) -> Generator[None]:
        ledger, changes = self._ledger.copy(), dict(self._changes)
        self._database.run("SAVEPOINT file")
        try:
            yield
        except (sqlite3.IntegrityError, sqlite3.DataError, LookupError) as error:
            self._database.run("ROLLBACK TO file")
            self._database.run("RELEASE file")
            self._ledger, self._changes = ledger, changes
            raise SourceError(f"{doc_id} cannot be stored: {error}") from error
        self._database.run("RELEASE file")

    def _find_known(self, doc_id: DocId) -> _Known | None:
        select = SELECT_DOCUMENTS.replace("SELECT", "SELECT key,")
        row = self._database.one(f"{select} WHERE id = ?", (doc_id,))
        if row is None:
            return None
        key, *values = row
        found = read_document(tuple(values))
        aliases = found.front_matter.aliases
        names = Names(key, doc_id, found.tree, found.path, found.title, aliases)
        headings = self._database.all(
            f"{SELECT_HEADINGS} WHERE h.doc = ? ORDER BY h.position", (key,)
        )
        return _Known(names, _outline(map(read_heading, headings)), values[-1], values[0])

    def _replace(self, file: IndexedFile, known: _Known | None, content: Content) -> None:
        document = file.document
        if known:
            self._delete_rows(known)
        hashed = insert_document(
            self._database, known.names.key if known else None, content.document, content.digest
        )
        self._ledger.add("documents", [hashed])
        (key,) = self._database.one("SELECT key FROM documents WHERE id = ?", (document.id,)) or (
            0,
        )
        aliases = document.front_matter.aliases
        names = Names(key, document.id, document.tree, document.path, document.title, aliases)
        insert_rows(self._database, self._ledger, key, content)
        for index in self._indices:
            index.put(self._database, key)
        self._database.many(
            "INSERT OR IGNORE INTO names (match_key, doc) VALUES (?, ?)",
            ((match_key, key) for match_key in storable(sorted(names.match_keys()))),
        )
        outline = _outline(document.headings)
        if known is None or (known.names, known.outline) != (names, outline):
            self._match_keys |= names.match_keys()
            self._match_keys |= known.names.match_keys() if known else set()
        self._sources.add(document.id)
        self._changes[document.id] = {ChangeKind.UPSERT}
        self._dirty = True

    def _remove_document(self, doc_id: DocId) -> bool:
        known = self._find_known(doc_id)
        if known is None:
            return False
        for source in links.detach(self._database, self._ledger, known.names.key):
            self._note(source, ChangeKind.LINKS)
        self._delete_rows(known)
        tables.remove_community(self._database, self._ledger, known.names.key)
        self._database.run("DELETE FROM documents WHERE key = ?", (known.names.key,))
        self._match_keys |= known.names.match_keys()
        self._sources.discard(doc_id)
        self._changes[doc_id] = {ChangeKind.DELETE}
        self._dirty = True
        return True

    def _delete_rows(self, known: _Known) -> None:
        """Deletes all rows of a document except its own, which the caller rewrites or deletes."""
        for index in self._indices:
            index.remove(self._database, known.names.key)
        delete_rows(self._database, self._ledger, known.names.key)
        self._database.run("DELETE FROM names WHERE doc = ?", (known.names.key,))
        self._ledger.drop("documents", [known.row_hash])

    def _note(self, doc_id: DocId, kind: ChangeKind) -> None:
        """Records a change; an upsert or a delete already covers all others."""
        kinds = self._changes.setdefault(doc_id, set())
        if not kinds & {ChangeKind.UPSERT, ChangeKind.DELETE}:
            kinds.add(kind)


def _outline(headings: Sequence[Heading] | Iterator[Heading]) -> tuple[tuple[str, str], ...]:
    return tuple((heading.text, heading.slug) for heading in headings)
