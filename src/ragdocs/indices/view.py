"""The seam between an engine and whoever asks it: one generation of an index, as a `View`.

Search and library know nothing else of an index: no table, no file, no set of all documents. The
embedded engine answers with what it has in SQLite and in memory (`indices/embedded.py`); another
engine answers the same questions with its own means. Writing goes through `Writer`.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Protocol

from ragdocs.indices.conditions import Condition, Filter
from ragdocs.indices.hits import (
    CodeHits,
    CosineScale,
    Hit,
    KeywordHits,
    NearTerm,
    NearWord,
    Neighbour,
    PassageRecord,
    PassageSignature,
)
from ragdocs.indices.keyword import KeywordQuery
from ragdocs.models import ChunkId, DocId, FileState, Heading, IndexedFile, Span, TreeName
from ragdocs.store.records import (
    Change,
    ChunkCounts,
    ChunkKey,
    ChunkPlace,
    ContentCounts,
    FileFailure,
    ManifestEntry,
    Position,
    ResolvedLink,
    StoredChunk,
    StoredDocument,
    TextHash,
    TokenPlace,
    TreeCounts,
)
from ragdocs.store.tables import CommunityOrigin

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vector = NDArray[np.float32]
    VectorRecall = Callable[[Vector], list[Hit]]


class Recall(Protocol):
    """Which passages could answer: by words, code, meaning and links, each within a filter."""

    def search_words(self, query: KeywordQuery, limit: int, within: Filter = None) -> KeywordHits:
        """Ranks by BM25F; only typed words, `search_in_tiers` adds the guessed ones."""
        ...

    def search_code(
        self, text: str, limit: int, within: Filter = None, *, most_terms: int | None = None
    ) -> CodeHits:
        """Ranks code blocks, of the filter's language if it names one. Of more than `most_terms`
        the rarest are looked for."""
        ...

    @property
    def has_vectors(self) -> bool:
        """Whether meaning can be searched at all."""
        ...

    @property
    def vector_count(self) -> int:
        """How many passages have a vector."""
        ...

    def vector_recall(self, limit: int, within: Filter = None) -> "VectorRecall":
        """Ranks by cosine. Prepares in this thread; the result may be called in another one, beside
        other reads of this view. A vector that cannot be of this model raises EmbeddingError."""
        ...

    def passage_vectors(self, keys: Collection[ChunkKey]) -> "Mapping[ChunkKey, Vector]":
        """The vectors of those of the chunks that have one."""
        ...

    def cosines(
        self, vector: "Vector", keys: Collection[ChunkKey], document_weight: float
    ) -> dict[ChunkKey, float]:
        """How near those of the chunks are that have a vector: their own cosine and, by
        `document_weight`, that of their documents' mean vectors. Any thread may ask."""
        ...

    def cosine_spread(self, vector: "Vector") -> float:
        """The standard deviation of the cosines of any passages with it. Any thread may ask."""
        ...

    @property
    def cosine_scale(self) -> CosineScale:
        """How this model's cosines are to be read."""
        ...

    def neighbours(
        self,
        hits: Mapping[DocId, float],
        *,
        depth: int = 1,
        limit: int = 20,
        within: Filter = None,
    ) -> list[Neighbour]:
        """The documents linked with the hits, in either direction, best first. The filter confines
        what is found, not the way there."""
        ...

    def best_passages(
        self, doc_ids: Collection[DocId], vector: "Vector | None"
    ) -> dict[DocId, ChunkKey]:
        """Of each document the passage nearest to the vector, or without one its first."""
        ...

    def has_documents(self, within: Filter) -> bool:
        """Whether any document satisfies the filter."""
        ...

    def count_searched(self) -> int:
        """How many passages are searched by words."""
        ...

    def count_matching(self, condition: Condition) -> int:
        """How many passages satisfy a condition."""
        ...

    def matching(self, condition: Condition) -> Set[ChunkKey]:
        """The passages that satisfy a condition. For conditions that few satisfy: count first."""
        ...

    def satisfying(self, condition: Condition | None, keys: Collection[ChunkKey]) -> Set[ChunkKey]:
        """Those of the passages that satisfy a condition, of words, fields or both."""
        ...


class Words(Protocol):
    """The words of the documents: which are known, how frequent, near to one another."""

    def term_frequencies(self, terms: Sequence[str]) -> Mapping[str, int]:
        """How many passages have each term, nearly: enough to tell which is rarer."""
        ...

    def document_frequencies(self, terms: Collection[str]) -> dict[str, int]:
        """Those of the terms that some document has, with the number of documents. Of terms
        without spaces between words only the first few are counted."""
        ...

    def known_terms(self, terms: Collection[str]) -> set[str]:
        """Those of the terms that some document has."""
        ...

    def count_documents_with(self, terms: Collection[str]) -> int:
        """How many documents have the commonest word of these terms."""
        ...

    def words_in_one_document(self, words: Collection[str]) -> set[str]:
        """Those of the words, folded, that one document alone has in this form."""
        ...

    def near_words(self, word: str, term: str, most: int) -> list[NearWord]:
        """Known words within `most` errors of a word, one for each term, best first."""
        ...

    def similar_words(self, word: str, count: int, *, by_letters: bool) -> list[str]:
        """Known words that begin as this one does or contain it, or, `by_letters`, have most of its
        letters; the most similar first."""
        ...

    def has_term_vectors(self) -> bool:
        """Whether words of the documents have vectors."""
        ...

    def near_terms(self, vector: "Vector", least: float, count: int) -> list[NearTerm]:
        """The words with at least this cosine, nearest first."""
        ...


class Passages(Protocol):
    """Passages by key, and the parts of their documents around them."""

    def passages(
        self, keys: Collection[ChunkKey], *, with_vectors: bool
    ) -> dict[ChunkKey, PassageRecord]:
        """The chunks that are still there with all that a stage needs, in one trip."""
        ...

    def chunks_by_key(self, keys: Iterable[ChunkKey]) -> dict[ChunkKey, StoredChunk]:
        """Those of the chunks that are still there."""
        ...

    def documents_of(self, keys: Collection[ChunkKey]) -> dict[ChunkKey, DocId]:
        """The document of each of the chunks that are still there."""
        ...

    def texts_with(self, text: str, keys: Collection[ChunkKey]) -> dict[ChunkKey, str]:
        """The texts of those of the chunks that have this one, in any case of ASCII letters."""
        ...

    def signatures(self) -> Iterable[PassageSignature]:
        """The n-gram signatures of all passages, in no order."""
        ...

    def token_places(self, token: str, keys: Collection[ChunkKey]) -> list[TokenPlace]:
        """Looks for the token in text, headings, title and path of these chunks."""
        ...

    def chunks_near(
        self, doc_id: DocId, found: Collection[ChunkKey], *, inside: int = 0, beside: int = 0
    ) -> tuple[StoredChunk, ...]:
        """A part of a document's tree around some chunks; see `Snapshot.chunks_near`."""
        ...

    def sections_in(self, stretches: Iterable[tuple[ChunkKey, Span]]) -> tuple[StoredChunk, ...]:
        """The documents, preambles and sections that have any of these bytes."""
        ...


class Documents(Protocol):
    """What is in the index, word for word."""

    def document(self, doc_id: DocId) -> StoredDocument | None: ...

    def documents_by_id(self, doc_ids: Iterable[DocId]) -> dict[DocId, StoredDocument]:
        """Those of the documents that are still there."""
        ...

    def documents_called(self, match_key: str) -> tuple[StoredDocument, ...]:
        """Those with a file name, title or alias of this key, ordered by id."""
        ...

    def filtered_documents(self, within: Filter) -> Iterable[StoredDocument]:
        """Those that satisfy a filter, in no order."""
        ...

    def document_ids(self) -> list[DocId]:
        """Of all documents, ordered."""
        ...

    def some_paths(self, limit: int) -> list[str]:
        """The paths of at most so many documents."""
        ...

    def trees(self) -> list[TreeName]:
        """Those that have a document, ordered."""
        ...

    def headings(self, doc_id: DocId) -> tuple[Heading, ...]: ...

    def chunk(self, chunk_id: ChunkId) -> StoredChunk | None: ...

    def chunks(self, doc_id: DocId) -> tuple[StoredChunk, ...]:
        """The whole tree of a document, in document order."""
        ...

    def outline_of_chunks(self, doc_id: DocId) -> list[ChunkPlace]:
        """The whole tree of a document, in document order, without its texts."""
        ...

    def links(self, doc_id: DocId) -> tuple[ResolvedLink, ...]:
        """The links of a document, in order."""
        ...

    def all_links(self) -> Iterable[ResolvedLink]:
        """The links of all documents; those of one document together and in order."""
        ...

    def backlinks(self, doc_id: DocId) -> tuple[ResolvedLink, ...]:
        """The links to a document, its own included."""
        ...

    @property
    def has_communities(self) -> bool:
        """Whether communities are computed, or there are no links to compute them from."""
        ...

    def communities_of(self, doc_ids: Collection[DocId]) -> dict[DocId, int]:
        """The community's number of each of the documents that are in one."""
        ...

    def members_with(self, doc_id: DocId) -> tuple[DocId, ...]:
        """All documents of the document's community, itself included, ordered by id."""
        ...

    def file(self, doc_id: DocId) -> ManifestEntry | None:
        """The file as it was when it was read."""
        ...

    def failure(self, doc_id: DocId) -> FileFailure | None:
        """Why a file is not in the index, if it is known and could not be indexed."""
        ...

    def failures(self) -> Iterable[FileFailure]:
        """The files that could not be indexed, ordered by id."""
        ...

    def version(self, doc_id: DocId) -> str:
        """Changes as soon as the file's bytes, or anything stored of them, changes."""
        ...

    def chunk_counts(self, doc_ids: Iterable[DocId]) -> dict[DocId, ChunkCounts]: ...

    def content_counts(self, doc_ids: Iterable[DocId]) -> ContentCounts: ...

    def tree_counts(self) -> dict[TreeName, TreeCounts]: ...

    def count_documents(self) -> int: ...

    def count_chunks(self) -> int:
        """The nodes of all documents."""
        ...

    def count_passages(self) -> int:
        """The chunks that have a text to embed."""
        ...

    def count_failures(self) -> int:
        """The files that could not be indexed."""
        ...


class View(Recall, Words, Passages, Documents, Protocol):
    """One generation of an index, valid within `SearchableIndex.view`."""

    @property
    def position(self) -> Position: ...

    @property
    def waiting(self) -> int | None:
        """How many files are known to differ from the index; None: not all were compared yet."""
        ...

    @property
    def is_overtaken(self) -> bool:
        """Whether a part of the engine has gone on to a later generation, so that answers may be of
        two."""
        ...

    def changes_since(self, seen: Position) -> tuple[Change, ...] | None:
        """The documents touched after that commit; None: its history is not known any more."""
        ...


class SearchableIndex(Protocol):
    """What search and library are given."""

    def view(self, *, for_search: bool = True) -> AbstractContextManager[View]:
        """The newest generation. Without `for_search` only documents and passages are read, and
        nothing in memory has to catch up first."""
        ...


class Writer(Protocol):
    """One generation in the making: all that is written takes effect together, or not at all."""

    @property
    def position(self) -> Position:
        """The generation that readers see: the one before, and after the commit this one."""
        ...

    @property
    def waiting(self) -> int | None:
        """See `expect`."""
        ...

    def put(self, file: IndexedFile, read_ns: int) -> None:
        """Stores a file in place of what was known of it; `read_ns`: when its reading began.

        A file whose rows contradict each other raises SourceError and leaves no trace."""
        ...

    def touch(self, doc_id: DocId, state: FileState, read_ns: int) -> bool:
        """Notes a new state of a file whose content has not changed; False when it is not
        indexed."""
        ...

    def remove(self, doc_id: DocId) -> bool:
        """Forgets a file, indexed or failed; False when it was not known."""
        ...

    def fail(self, failure: FileFailure) -> None:
        """Notes that a file cannot be indexed, and removes its former content."""
        ...

    def expect(self, waiting: int) -> None:
        """Notes how many files differ from the index and are not written yet."""
        ...

    def put_embeddings(self, model: str, vectors: Sequence[tuple[TextHash, bytes]]) -> int:
        """Stores vectors (little-endian float32) of texts; returns how many are new."""
        ...

    def prune_embeddings(self, models: Collection[str]) -> int:
        """Forgets vectors of other models than these, and of texts that nothing holds."""
        ...

    def drop_unused(self, keys: Collection[int], models: Collection[str]) -> int:
        """Forgets those of the vectors that are of other models, or that no chunk holds."""
        ...

    def put_communities(self, numbers: Mapping[DocId, int], origin: CommunityOrigin) -> bool:
        """Replaces the community of every document; False when that changes nothing."""
        ...
