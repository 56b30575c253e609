"""Reads everything that is in the store. All results of one snapshot belong to one generation."""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import pairwise, starmap
from typing import TypeVar

from ragdocs.errors import REBUILD, IndexCorrupt
from ragdocs.memory import BoundedCache, no_collection
from ragdocs.models import JSON_STRINGS, Chunk, ChunkId, DocId, Heading, NodeKind, Span, TreeName
from ragdocs.parsers.ids import decode_path, document_id
from ragdocs.store import embeddings, generations, tables
from ragdocs.store.database import Database, Row
from ragdocs.store.embeddings import UnusedVector
from ragdocs.store.generations import Ledger, Meta
from ragdocs.store.integrity import StoreState, check_rows, check_structure
from ragdocs.store.links import SELECT_LINKS, read_link
from ragdocs.store.records import (
    Change,
    ChunkCounts,
    ChunkKey,
    ChunkPlace,
    ContentCounts,
    FileFailure,
    ManifestEntry,
    PendingText,
    Position,
    ResolvedLink,
    StoredChunk,
    StoredCodeBlock,
    StoredDocument,
    TextHash,
    TokenPlace,
    TreeCounts,
    UnreadCounts,
    VectorBatch,
)
from ragdocs.store.stored_index import (
    Space,
    StoredIndex,
    find_up_to_date,
    measure,
    texts_of_indices,
)
from ragdocs.store.tables import (
    SELECT_CHUNKS,
    SELECT_CODE,
    SELECT_DOCUMENTS,
    SELECT_FAILURES,
    SELECT_FILES,
    SELECT_HEADINGS,
    CommunityOrigin,
    read_chunk,
    read_code,
    read_document,
    read_failure,
    read_file,
    read_heading,
)

# Rows of one commit that were read and checked, shared by all its snapshots.
#
# Queries read the same chunks and documents again and again. Until the next commit, and while
# nothing else touches the file, a row that was intact stays intact and need not be read again.

MOST_BYTES = 8 << 20
"""For chunks and documents."""
MOST_NUMBERS = 4096
"""For each index; no number takes a kilobyte."""

Numbers = dict[int | str, int]
"""By a chunk's key, or a document's id."""


@dataclass(slots=True)
class RowCache:
    """Filled by every snapshot of the commit, in any thread."""

    position: Position
    chunks: dict[ChunkKey, StoredChunk] = field(default_factory=dict[ChunkKey, StoredChunk])
    documents: dict[DocId, StoredDocument] = field(default_factory=dict[DocId, StoredDocument])
    numbers: dict[str, Numbers] = field(default_factory=dict[str, Numbers])
    """What indices have read from their own tables, by the index's name."""
    bytes: int = 0
    """The approximate size of chunks and documents: two threads may count at the same moment."""

    def serves(self, position: Position) -> bool:
        """Whether it belongs to that commit, and has room."""
        numbers = max(map(len, self.numbers.values()), default=0)
        has_room = self.bytes < MOST_BYTES and numbers < MOST_NUMBERS
        return self.position == position and has_room


# One generation of the store.
#
# Every row is checked against its hash when it is read; a damaged one raises IndexCorrupt. Rows
# that queries read one by one are cached as a whole: a row that equals a checked one, to the last
# byte, needs neither the check nor the parsing again (specs/0029).

VECTORS_PER_BATCH = 4096
VERSION_BYTES = 8
CHUNKS_BYTES, DOCUMENTS_BYTES = 8 << 20, 4 << 20
_known_chunks = BoundedCache(read_chunk, CHUNKS_BYTES, tables.chunk_row_bytes)
_known_documents = BoundedCache(read_document, DOCUMENTS_BYTES, tables.document_row_bytes)
_T = TypeVar("_T")


class Snapshot:
    """A consistent view of the store, valid within `Reader.snapshot`."""

    def __init__(self, database: Database, meta: Meta, rows: RowCache, state: StoreState) -> None:
        self._database = database
        self.meta = meta
        self._rows = rows
        self.state = state
        """Whether the store was as the last commit left it when this began."""
        self._headings: dict[DocId, tuple[Heading, ...]] = {}

    @property
    def position(self) -> Position:
        return self.meta.position

    @property
    def fingerprint(self) -> str:
        return self.meta.fingerprint

    @property
    def settings(self) -> str:
        """What the fingerprint was computed from."""
        return self.meta.settings

    @property
    def ledger(self) -> Ledger:
        """Equal for stores with the same contents, whatever their history."""
        return self.meta.ledger

    @property
    def waiting(self) -> int | None:
        """How many changed files are not stored yet; None until all files have been compared."""
        return self.meta.waiting

    @property
    def unread(self) -> UnreadCounts:
        """The files whose format is not read, as of the last scan of all trees."""
        return json.loads(self.meta.unread)

    def select(self, sql: str, values: Sequence[object] = ()) -> list[Row]:
        """Rows of an index's own table inside the store; only that index knows their meaning."""
        return self._database.all(sql, values)

    def numbers(self, view: str) -> Numbers:
        """A cache for what an index reads of this commit: the index fills it."""
        return self._rows.numbers.setdefault(view, {})

    def changes_since(self, seen: Position) -> tuple[Change, ...] | None:
        """The documents changed after that commit; None: start over from the store itself."""
        return generations.since(self._database, seen, self.position)

    def document(self, doc_id: DocId) -> StoredDocument | None:
        row = self._database.one(f"{SELECT_DOCUMENTS} WHERE id = ?", (doc_id,))
        return _known_documents[row] if row else None

    def documents_by_id(self, doc_ids: Iterable[DocId]) -> dict[DocId, StoredDocument]:
        """Leaves out documents that are gone; four times as fast as reading one by one."""
        wanted = list(doc_ids)
        read = self._rows.documents
        unread = [doc_id for doc_id in wanted if doc_id not in read]
        for row in self._database.all_in(f"{SELECT_DOCUMENTS} WHERE id IN (*)", unread):
            document = _known_documents[row]
            read[document.id] = document
            self._rows.bytes += tables.document_row_bytes(row)
        return {doc_id: read[doc_id] for doc_id in wanted if doc_id in read}

    def documents(self, tree: TreeName | None = None) -> Iterator[StoredDocument]:
        """Ordered by id."""
        rows = self._database.each(
            f"{SELECT_DOCUMENTS} WHERE ? IS NULL OR tree = ? ORDER BY id", (tree, tree)
        )
        return map(read_document, rows)

    def headings(self, doc_id: DocId) -> tuple[Heading, ...]:
        if doc_id not in self._headings:  # one request reads them twice
            rows = self._database.all(
                f"{SELECT_HEADINGS} WHERE d.id = ? ORDER BY h.position", (doc_id,)
            )
            found = self._check_complete("headings", doc_id, tuple(map(read_heading, rows)))
            self._headings = {doc_id: found}
        return self._headings[doc_id]

    def chunk(self, chunk_id: ChunkId) -> StoredChunk | None:
        row = self._database.one(f"{SELECT_CHUNKS} WHERE c.id = ?", (chunk_id,))
        return _known_chunks[row] if row else None

    def chunks(self, doc_id: DocId) -> tuple[StoredChunk, ...]:
        """The whole tree of a document, in document order."""
        found = self._chunks("d.id = ? ORDER BY c.position, c.key", doc_id)
        return self._check_complete("chunks", doc_id, found)

    def chunks_by_key(self, keys: Iterable[ChunkKey]) -> dict[ChunkKey, StoredChunk]:
        """Leaves out chunks that are gone."""
        wanted = list(keys)
        read = self._rows.chunks
        unread = [key for key in wanted if key not in read]
        for row in self._database.all_in(f"{SELECT_CHUNKS} WHERE c.key IN (*)", unread):
            chunk = _known_chunks[row]
            read[chunk.key] = chunk
            self._rows.bytes += tables.chunk_row_bytes(row)
        return {key: read[key] for key in wanted if key in read}

    def chunks_near(
        self, doc_id: DocId, found: Collection[ChunkKey], *, inside: int = 0, beside: int = 0
    ) -> tuple[StoredChunk, ...]:
        """A part of a document's tree, in document order, with the parents of all its nodes: the
        chunks found, all chunks in the largest section around each that has at most `inside` bytes,
        and all within `beside` bytes of that section.

        A query reads this and never the whole tree, which may have a hundred thousand nodes.
        """
        above = self.chunks_by_key(self._with_parents(found))
        keys = set(above)
        for start, end in _merge(_stretches(above, found, inside, beside)):
            keys.update(leaf.key for leaf in self._leaves_between(doc_id, start, end))
        part = self.chunks_by_key(self._with_parents(keys))
        return tuple(sorted(part.values(), key=lambda stored: stored.chunk.position))

    def outline_of_chunks(self, doc_id: DocId) -> list[ChunkPlace]:
        """The whole tree of a document, in document order, without texts and therefore unchecked:
        read the chunks that are used by their keys."""
        rows = self._database.all(
            """SELECT c.key, c.parent, c.text IS NOT NULL, c.line_start, c.line_end
            FROM chunks c JOIN documents d ON d.key = c.doc
            WHERE d.id = ? ORDER BY c.position, c.key""",
            (doc_id,),
        )
        return list(self._check_complete("chunks", doc_id, tuple(starmap(ChunkPlace, rows))))

    def sections_in(self, stretches: Iterable[tuple[ChunkKey, Span]]) -> tuple[StoredChunk, ...]:
        """The documents, preambles and sections that overlap these stretches, each given as a leaf
        of the document and a span in it. Each is returned once, in reading order.
        """
        asked = [(key, span.byte_start, span.byte_end) for key, span in stretches]
        rows = self._database.all(
            """WITH RECURSIVE asked (key, doc, parent, first, past) AS MATERIALIZED (
            SELECT c.key, c.doc, c.parent, json_extract(j.value, '$[1]'),
            json_extract(j.value, '$[2]')
            FROM json_each(?) j JOIN chunks c ON c.key = json_extract(j.value, '$[0]')),
            found (key, parent) AS (SELECT key, parent FROM asked
            UNION SELECT c.key, c.parent FROM asked a JOIN chunks c ON c.doc = a.doc
            AND c.text IS NULL AND c.byte_start >= a.first AND c.byte_start < a.past
            UNION SELECT c.key, c.parent FROM asked a JOIN chunks c ON c.key = (SELECT s.key
            FROM chunks s WHERE s.doc = a.doc AND s.text IS NULL AND s.byte_start <= a.first
            ORDER BY s.byte_start DESC, s.position DESC LIMIT 1)
            UNION SELECT c.key, c.parent FROM found JOIN chunks c ON c.key = found.parent)
            SELECT key FROM found""",
            (json.dumps(asked),),
        )
        found = self.chunks_by_key([ChunkKey(key) for (key,) in rows]).values()
        sections = (stored for stored in found if stored.chunk.kind is not NodeKind.PART)
        return tuple(sorted(sections, key=lambda stored: stored.chunk.position))

    def leaves(self, doc_id: DocId | None = None) -> Iterator[StoredChunk]:
        """The leaves of a document in order, or those of all documents, by key."""
        if doc_id is not None:
            return iter(self._chunks("c.text IS NOT NULL AND d.id = ? ORDER BY c.position", doc_id))
        rows = self._database.each(f"{SELECT_CHUNKS} WHERE c.text IS NOT NULL ORDER BY c.key")
        return map(read_chunk, rows)

    def children(self, chunk_id: ChunkId) -> tuple[StoredChunk, ...]:
        return self._chunks("p.id = ? ORDER BY c.position, c.key", chunk_id)

    def ancestors(self, chunk_id: ChunkId) -> tuple[StoredChunk, ...]:
        """From the parent up to the document."""
        found: list[StoredChunk] = []
        node = self.chunk(chunk_id)
        while node and (parent := node.chunk.parent_id):
            node = self.chunk(parent)
            found += [node] if node else []
        return tuple(found)

    def links(self, doc_id: DocId) -> tuple[ResolvedLink, ...]:
        """The links in the document, in order."""
        found = self._links("d.id = ? ORDER BY l.position", doc_id)
        return self._check_complete("links", doc_id, found)

    def all_links(self) -> Iterator[ResolvedLink]:
        rows = self._database.each(f"{SELECT_LINKS} ORDER BY l.doc, l.position")
        return map(read_link, rows)

    def backlinks(self, doc_id: DocId) -> tuple[ResolvedLink, ...]:
        """The links to the document, including its own."""
        return self._links("t.id = ? ORDER BY d.id, l.position", doc_id)

    def unresolved_links(self) -> tuple[ResolvedLink, ...]:
        return self._links("l.target_doc IS NULL ORDER BY d.id, l.position")

    @property
    def communities_origin(self) -> CommunityOrigin | None:
        """Which links the stored communities were computed from; None when none were stored."""
        return CommunityOrigin.decode(self.meta.communities)

    def communities_of(self, doc_ids: Collection[DocId]) -> dict[DocId, int]:
        """The community number of each document that is in one."""
        return tables.communities_of(self._database, doc_ids)

    def members_with(self, doc_id: DocId) -> tuple[DocId, ...]:
        """All documents of the document's community, including itself, in id order."""
        return tables.members_with(self._database, doc_id)

    def count_communities(self) -> int:
        return tables.count_communities(self._database)

    def edges_digest(self) -> str:
        """Identifies which documents are linked, and how; see `communities_origin`. Empty without
        links."""
        return tables.edges_digest(self._database)

    def has_current_communities(self) -> bool:
        """Whether the stored communities belong to the current links; reads every link, about 50 ms
        for 50,000."""
        origin = self.communities_origin
        return self.edges_digest() == (origin.edges if origin else tables.NO_EDGES)

    def code_blocks(self, doc_id: DocId | None = None) -> Iterator[StoredCodeBlock]:
        """The code blocks of a document in order, or of all."""
        if doc_id is None:
            return map(read_code, self._database.each(f"{SELECT_CODE} ORDER BY b.key"))
        rows = self._database.all(f"{SELECT_CODE} WHERE d.id = ? ORDER BY b.position", (doc_id,))
        return iter(self._check_complete("code_blocks", doc_id, tuple(map(read_code, rows))))

    def manifest(self) -> dict[DocId, ManifestEntry]:
        """Every known file, including failed ones."""
        with no_collection():
            entries = map(read_file, self._database.each(SELECT_FILES))
            return {entry.doc_id: entry for entry in entries}

    def failures(self, limit: int = -1) -> tuple[FileFailure, ...]:
        """Ordered by id; -1 means all."""
        rows = self._database.all(f"{SELECT_FAILURES} ORDER BY f.doc_id LIMIT ?", (limit,))
        return tuple(map(read_failure, rows))

    def documents_with_warnings(self) -> Iterator[StoredDocument]:
        """The documents whose files have warnings, in id order."""
        where = "WHERE warnings <> '[]' ORDER BY id"
        return map(read_document, self._database.each(f"{SELECT_DOCUMENTS} {where}"))

    def count_documents(self) -> int:
        return self.ledger.count("documents")

    def count_chunks(self) -> int:
        """The number of nodes of all documents."""
        return self.ledger.count("chunks")

    def count_failures(self) -> int:
        """The number of files that could not be indexed."""
        return self.ledger.count("failures")

    def count_passages(self) -> int:
        """The number of chunks that have a text to embed."""
        return self._number("SELECT count(text_hash) FROM chunks")

    def count_unresolved_links(self) -> int:
        return self._number("SELECT count(*) FROM links WHERE target_doc IS NULL")

    def models(self) -> dict[str, int]:
        """The models that have vectors here, with their dimensions."""
        return dict(self._database.all("SELECT identity, dimension FROM models ORDER BY identity"))

    def vectors(
        self, model: str, doc_ids: Collection[DocId] | None = None, size: int = VECTORS_PER_BATCH
    ) -> Iterator[VectorBatch]:
        """The vectors of all chunks that have one, or of some documents' chunks."""
        return embeddings.vectors(self._database, model, doc_ids, size)

    def vectors_of(
        self, model: str, texts: Collection[TextHash]
    ) -> Iterator[tuple[TextHash, bytes]]:
        """The vectors (little-endian float32) of texts that need not be a chunk's."""
        return embeddings.vectors_of(self._database, model, texts)

    def unused_vectors(
        self, models: Collection[str], indices: Sequence[StoredIndex]
    ) -> list[UnusedVector]:
        """Vectors of other models, or of texts that are in no chunk and in none of the indices."""
        texts = texts_of_indices(self._database, indices)
        return embeddings.find_unused(self._database, models, texts)

    @property
    def unused_checked_at(self) -> int | None:
        """When unused vectors were last looked for, in seconds."""
        return embeddings.unused_checked_at(self._database)

    @property
    def unused_vector_bytes(self) -> int:
        """The size of the vectors that were unused at that time."""
        return embeddings.unused_bytes(self._database)

    def missing_embeddings(
        self, model: str, doc_ids: Collection[DocId] | None = None, limit: int = 1000
    ) -> tuple[PendingText, ...]:
        """Texts that have no vector of this model yet, the last written first.

        Of some documents; or of all, which reads every chunk and returns at most `limit` texts.
        """
        return tuple(embeddings.missing(self._database, model, doc_ids, limit))

    def count_used_embeddings(self, model: str) -> int:
        """The number of vectors of this model whose text is in some chunk."""
        rows = self._database.all(
            """SELECT count(*) FROM embeddings e JOIN models m ON m.key = e.model
            WHERE m.identity = ? AND e.text_hash IN
            (SELECT text_hash FROM chunks WHERE text_hash IS NOT NULL)""",
            (model,),
        )
        return rows[0][0]

    def count_missing_texts(self, model: str) -> int:
        """How many different texts still need a vector of this model."""
        return embeddings.count_missing_texts(self._database, model)

    def count_missing_embeddings(self, model: str) -> int:
        return embeddings.count_missing(self._database, model)

    @property
    def space(self) -> Space:
        """The size of the store's file, and how much of it is free."""
        return measure(self._database)

    def verify(self, *, deep: bool = False) -> None:
        """Raises IndexCorrupt if the store is damaged; `deep` checks every row."""
        check_structure(self._database)
        if deep:
            check_rows(self._database)

    def document_keys(self) -> list[int]:
        """The internal keys that the indices inside the store use."""
        return [key for (key,) in self._database.all("SELECT key FROM documents ORDER BY key")]

    def file(self, doc_id: DocId) -> ManifestEntry | None:
        """The file as it was when it was read."""
        row = self._database.one(f"{SELECT_FILES} WHERE doc_id = ?", (doc_id,))
        return read_file(row) if row else None

    def failure(self, doc_id: DocId) -> FileFailure | None:
        """Why a file is not in the index, if it is known and could not be indexed."""
        row = self._database.one(f"{SELECT_FAILURES} WHERE f.doc_id = ?", (doc_id,))
        return read_failure(row) if row else None

    def version(self, doc_id: DocId) -> str:
        """Changes whenever the file's bytes, or anything stored from them, change."""
        row = self._database.one(
            """SELECT d.digest, f.content_hash FROM documents d
            LEFT JOIN files f ON f.doc_id = d.id WHERE d.id = ?""",
            (doc_id,),
        )
        digest, content = row or (b"", None)
        hashed = blake2b(digest, digest_size=VERSION_BYTES, key=b"version")
        hashed.update((content or "").encode())
        return hashed.hexdigest()

    def documents_called(self, match_key: str) -> tuple[StoredDocument, ...]:
        """The documents with this match key for their file name, title or alias, ordered by id."""
        rows = self._database.all(
            "SELECT d.id FROM names n JOIN documents d ON d.key = n.doc WHERE n.match_key = ?",
            (match_key,),
        )
        found = self.documents_by_id(DocId(doc_id) for (doc_id,) in rows)
        return tuple(found[doc_id] for doc_id in sorted(found))

    def document_ids(self) -> list[DocId]:
        """Ordered."""
        return [
            DocId(doc_id)
            for (doc_id,) in self._database.all("SELECT id FROM documents ORDER BY id")
        ]

    def has_path(self, tree: TreeName, path: str) -> bool:
        """Whether a document is at this path or below it, compared letter by letter."""
        at = document_id(tree, path)
        # Ids are ordered, and `0` is the character after `/`, `;` the one after `:`.
        below, beyond = (f"{at}/", f"{at}0") if path else (at, f"{tree};")
        row = self._database.one(
            "SELECT 1 FROM documents WHERE id = ? OR (id >= ? AND id < ?) LIMIT 1",
            (at, below, beyond),
        )
        return row is not None

    def languages(self) -> list[str]:
        """The languages of code blocks, ordered."""
        rows = self._database.all("SELECT DISTINCT language FROM code_blocks ORDER BY language")
        return [language for (language,) in rows if language]

    def some_paths(self, limit: int) -> list[str]:
        """The paths of at most `limit` documents."""
        rows = self._database.all(
            "SELECT DISTINCT path FROM documents ORDER BY id LIMIT ?", (limit,)
        )
        return [decode_path(path) for (path,) in rows]

    def tags(self) -> list[str]:
        """Every tag of any document, as it is written there, ordered."""
        rows = self._database.all(
            "SELECT DISTINCT tag.value FROM documents d, json_each(d.tags) tag ORDER BY 1"
        )
        return [str(tag) for (tag,) in rows]

    def trees(self) -> list[TreeName]:
        """The trees that have documents, ordered."""
        rows = self._database.all("SELECT DISTINCT tree FROM documents ORDER BY tree")
        return [TreeName(tree) for (tree,) in rows]

    def documents_of(self, keys: Collection[ChunkKey]) -> dict[ChunkKey, DocId]:
        """The document of each chunk; leaves out chunks that are gone."""
        rows = self._database.all(
            """SELECT c.key, d.id FROM chunks c JOIN documents d ON d.key = c.doc
            WHERE c.key IN (SELECT value FROM json_each(?))""",
            (json.dumps(list(keys)),),
        )
        return {ChunkKey(key): DocId(doc_id) for key, doc_id in rows}

    def first_passages(self, doc_ids: Collection[DocId]) -> dict[DocId, ChunkKey]:
        """The first leaf of each document that has one. Only keys, in one query: reading the chunks
        took a fifth of the time of a keyword search. Those that become candidates are read and
        checked later."""
        read = self.numbers("first passages")
        unread = [doc_id for doc_id in doc_ids if doc_id not in read]
        rows = self._database.all(
            """SELECT d.id, (SELECT c.key FROM chunks c WHERE c.doc = d.key AND c.text IS NOT NULL
                ORDER BY c.byte_start, c.position LIMIT 1)
            FROM documents d WHERE d.id IN (SELECT value FROM json_each(?))""",
            (json.dumps(unread),),
        )
        read.update((doc_id, key) for doc_id, key in rows if key is not None)
        return {doc_id: ChunkKey(read[doc_id]) for doc_id in doc_ids if doc_id in read}

    def texts_with(self, text: str, keys: Collection[ChunkKey]) -> dict[ChunkKey, str]:
        """The texts of the chunks that contain this text, ignoring the case of ASCII letters."""
        rows = self._database.all(
            "SELECT key, text FROM chunks WHERE key IN (SELECT value FROM json_each(?)) "
            "AND instr(lower(text), ?)",
            (json.dumps(list(keys)), text),
        )
        return {ChunkKey(key): text for key, text in rows}

    def token_places(self, token: str, keys: Collection[ChunkKey]) -> list[TokenPlace]:
        """Looks for the token in text, headings, title and path of these chunks."""
        rows = self._database.all(
            "SELECT key, id, text_hash, instr(lower(said), lower(?)) > 0, instr(said, ?) > 0 FROM ("
            "SELECT chunks.key, documents.id, chunks.text_hash, coalesce(chunks.text, '') "
            "|| char(10) || chunks.breadcrumb || char(10) || chunks.headings || char(10) "
            "|| documents.title || char(10) || documents.path AS said "
            "FROM chunks JOIN documents ON documents.key = chunks.doc "
            "WHERE chunks.key IN (SELECT value FROM json_each(?)))",
            (token, token, json.dumps(list(keys))),
        )
        return [
            TokenPlace(ChunkKey(key), DocId(document), text_hash, bool(is_written), bool(is_same))
            for key, document, text_hash, is_written, is_same in rows
        ]

    def chunk_counts(self, doc_ids: Iterable[DocId]) -> dict[DocId, ChunkCounts]:
        rows = self._database.all(
            """SELECT d.id, count(*), count(c.text) FROM documents d JOIN chunks c ON c.doc = d.key
            WHERE d.id IN (SELECT value FROM json_each(?)) GROUP BY d.key""",
            (json.dumps(list(doc_ids)),),
        )
        return {DocId(doc_id): ChunkCounts(nodes, leaves) for doc_id, nodes, leaves in rows}

    def content_counts(self, doc_ids: Iterable[DocId]) -> ContentCounts:
        rows = self._database.all(
            """SELECT total(headings), total(chunks) FROM documents
            WHERE id IN (SELECT value FROM json_each(?))""",
            (json.dumps(list(doc_ids)),),
        )
        return ContentCounts(*map(int, rows[0]))

    def tree_sizes(self) -> dict[TreeName, tuple[int, int]]:
        """The numbers of documents and chunks of each tree. With one tree, the usual case, nothing
        needs counting: every id begins with its name."""
        ends = self._database.all(
            """SELECT DISTINCT tree FROM documents WHERE id IN
            ((SELECT min(id) FROM documents), (SELECT max(id) FROM documents))"""
        )
        if len(ends) == 1:
            return {TreeName(ends[0][0]): (self.count_documents(), self.count_chunks())}
        rows = self._database.all("SELECT tree, count(*), sum(chunks) FROM documents GROUP BY tree")
        return {TreeName(tree): (documents, chunks) for tree, documents, chunks in rows}

    def tree_counts(self) -> dict[TreeName, TreeCounts]:
        """For each tree that has a document or a failed file."""
        documents = self._database.all(
            "SELECT tree, count(*), sum(size) FROM documents GROUP BY tree"
        )
        leaves = dict(
            self._database.all(
                """SELECT d.tree, count(*) FROM chunks c JOIN documents d ON d.key = c.doc
                WHERE c.text IS NOT NULL GROUP BY d.tree"""
            )
        )
        failures = dict(
            self._database.all(
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

    def up_to_date_indices(self, indices: Sequence[StoredIndex]) -> list[StoredIndex]:
        """The indices that have the current version and have applied this commit."""
        return find_up_to_date(self._database, indices, self.position)

    def holds(self, index: StoredIndex, documents: Iterable[int]) -> bool:
        """Whether an index inside the store contains exactly what these documents put there; they
        must be all documents."""
        return index.holds(self._database, documents)

    def _with_parents(self, keys: Iterable[ChunkKey]) -> list[ChunkKey]:
        rows = self._database.all(
            """WITH RECURSIVE above (key, parent) AS (
            SELECT key, parent FROM chunks WHERE key IN (SELECT value FROM json_each(?))
            UNION SELECT c.key, c.parent FROM above JOIN chunks c ON c.key = above.parent)
            SELECT key FROM above""",
            (json.dumps(list(keys)),),
        )
        return [ChunkKey(key) for (key,) in rows]

    def _leaves_between(self, doc_id: DocId, start: int, end: int) -> list[StoredChunk]:
        """The leaves that overlap these bytes; IndexCorrupt if a damaged SQL index hides one."""
        rows = self._database.all(
            """WITH d (doc) AS (SELECT key FROM documents WHERE id = ?)
            SELECT c.key FROM d JOIN chunks c ON c.doc = d.doc AND c.text IS NOT NULL
            AND c.byte_start < ? AND c.byte_start >= coalesce((SELECT max(byte_start) FROM chunks
            WHERE doc = d.doc AND text IS NOT NULL AND byte_start <= ?), 0)
            ORDER BY c.byte_start""",
            (doc_id, end, start),
        )
        found = [*self.chunks_by_key([ChunkKey(key) for (key,) in rows]).values()]
        for one, following in pairwise(found):
            if not self._is_next(one.chunk, following.chunk):
                raise IndexCorrupt(f"{doc_id!r} has lost some of its chunks", REBUILD)
        return found

    def _is_next(self, one: Chunk, following: Chunk) -> bool:
        """Whether no leaf is missing between two. Between the cards of a canvas is JSON; their
        positions tell: the first part of a card comes after the card itself."""
        if one.span.byte_end == following.span.byte_start:
            return True
        row = self._database.one("SELECT encoding FROM documents WHERE id = ?", (one.doc_id,))
        step = 1 if following.kind is NodeKind.SECTION else 2
        is_other_card = one.slug != following.slug
        is_canvas = row is not None and row[0] == JSON_STRINGS
        return is_canvas and is_other_card and following.position - one.position == step

    def _chunks(self, where: str, *values: object) -> tuple[StoredChunk, ...]:
        rows = self._database.all(f"{SELECT_CHUNKS} WHERE {where}", values)
        return tuple(map(_known_chunks.__getitem__, rows))

    def _links(self, where: str, *values: object) -> tuple[ResolvedLink, ...]:
        return tuple(map(read_link, self._database.all(f"{SELECT_LINKS} WHERE {where}", values)))

    def _check_complete(self, table: str, doc_id: DocId, found: tuple[_T, ...]) -> tuple[_T, ...]:
        """A damaged SQL index can hide intact rows, but the document's row has their number."""
        (expected,) = self._database.one(
            f"SELECT {table} FROM documents WHERE id = ?", (doc_id,)
        ) or (0,)
        if len(found) != expected:
            raise IndexCorrupt(f"{doc_id!r} has lost some of its {table}", REBUILD)
        return found

    def _number(self, sql: str) -> int:
        ((number,),) = self._database.all(sql)
        return number


def _stretches(
    above: Mapping[ChunkKey, StoredChunk], found: Iterable[ChunkKey], inside: int, beside: int
) -> Iterator[tuple[int, int]]:
    """The bytes around each chunk found, in any order."""
    by_id = {stored.chunk.id: stored.chunk for stored in above.values()}
    for key in found:
        if key not in above:
            continue
        chunk = above[key].chunk
        span = chunk.span
        while chunk.parent_id is not None:
            chunk = by_id[chunk.parent_id]
            if chunk.span.byte_end - chunk.span.byte_start > inside:
                break
            span = chunk.span
        yield span.byte_start - beside, span.byte_end + beside


def _merge(stretches: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """In order; stretches that touch become one."""
    merged: list[tuple[int, int]] = []
    for start, end in sorted(stretches):
        if merged and start <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        else:
            merged.append((start, end))
    return merged
