"""The interface of an engine: a `View` is one generation of an index, a `Writer` makes the next.

Search and library know nothing else of an index: no table, no file, no set of all documents. The
embedded engine (`indices/embedded.py`) answers from SQLite and memory; another engine may answer
the same questions in its own way.
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
    UnreadCounts,
)
from ragdocs.store.tables import CommunityOrigin

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vector = NDArray[np.float32]
    VectorRecall = Callable[[Vector], list[Hit]]


class Recall(Protocol):
    """Finds passages that could answer: by words, code, meaning and links, each within a filter."""

    def search_words(self, query: KeywordQuery, limit: int, within: Filter = None) -> KeywordHits:
        """Ranks by BM25F, by the query's typed words only: `search_in_tiers` adds guessed ones."""
        ...

    def search_code(
        self, text: str, limit: int, within: Filter = None, *, most_terms: int | None = None
    ) -> CodeHits:
        """Ranks code blocks, in the filter's language if it names one. With more than `most_terms`
        terms, searches for the rarest."""
        ...

    @property
    def has_vectors(self) -> bool:
        """Whether this index is configured to have vectors."""
        ...

    @property
    def vector_count(self) -> int:
        """How many passages have a vector."""
        ...

    def vector_recall(self, limit: int, within: Filter = None) -> "VectorRecall":
        """Ranks by cosine. The filter is evaluated in this thread; the result may be called in
        another one, during other reads of this view. Raises EmbeddingError for a vector that cannot
        be of this model."""
        ...

    def passage_vectors(self, keys: Collection[ChunkKey]) -> "Mapping[ChunkKey, Vector]":
        """The vectors of the chunks that have one."""
        ...

    def cosines(
        self, vector: "Vector", keys: Collection[ChunkKey], document_weight: float
    ) -> dict[ChunkKey, float]:
        """The similarity of the chunks that have a vector: their own cosine, mixed by
        `document_weight` with that of their document's mean vector. For any thread."""
        ...

    def cosine_spread(self, vector: "Vector") -> float:
        """The standard deviation of its cosines with arbitrary passages. For any thread."""
        ...

    @property
    def cosine_scale(self) -> CosineScale:
        """Maps this model's cosines to the common scale."""
        ...

    def neighbours(
        self,
        hits: Mapping[DocId, float],
        *,
        depth: int = 1,
        limit: int = 20,
        within: Filter = None,
    ) -> list[Neighbour]:
        """The documents linked with the hits, in either direction, best first. The filter applies
        to the documents found, not to the ones in between."""
        ...

    def best_passages(
        self, doc_ids: Collection[DocId], vector: "Vector | None"
    ) -> dict[DocId, ChunkKey]:
        """The passage of each document that is nearest to the vector, or its first without one."""
        ...

    def has_documents(self, within: Filter) -> bool:
        """Whether any document satisfies the filter."""
        ...

    def count_matching(self, condition: Condition | None = None) -> int:
        """How many of the passages that are searched by words satisfy a condition."""
        ...

    def matching(
        self, condition: Condition | None, among: Collection[ChunkKey] | None = None
    ) -> Set[ChunkKey]:
        """The passages that satisfy a condition of words, fields or both: of all, or of some.

        Of all, only for a condition that few satisfy (count first), without fields other than the
        query language's."""
        ...


class Words(Protocol):
    """The words of the documents: which are known, how frequent they are, which are similar."""

    def term_frequencies(self, terms: Sequence[str]) -> Mapping[str, int]:
        """How many passages have each term, approximately: enough to tell which is rarer."""
        ...

    def document_frequencies(self, terms: Collection[str]) -> dict[str, int]:
        """How many documents have each of the known terms. In scripts without spaces only the
        first few terms are counted."""
        ...

    def known_terms(self, terms: Collection[str]) -> set[str]:
        """The terms that some document has."""
        ...

    def count_documents_with(self, terms: Collection[str]) -> int:
        """How many documents have the most common word with one of these terms."""
        ...

    def words_in_one_document(self, words: Collection[str]) -> set[str]:
        """The folded words that exactly one document has in this form."""
        ...

    def near_words(self, word: str, term: str, most: int) -> list[NearWord]:
        """Known words within `most` typing errors of a word, one for each term, best first."""
        ...

    def similar_words(self, word: str, count: int, *, by_letters: bool) -> list[str]:
        """Known words that contain this one or begin with the same letters, or, `by_letters`, have
        most of its letters; the most similar first."""
        ...

    def has_term_vectors(self) -> bool:
        """Whether words of the documents have vectors."""
        ...

    def near_terms(self, vector: "Vector", least: float, count: int) -> list[NearTerm]:
        """The words with at least this cosine with the vector, nearest first."""
        ...


class Passages(Protocol):
    """Passages by key, and the parts of their documents around them."""

    def passages(
        self, keys: Collection[ChunkKey], *, with_vectors: bool
    ) -> dict[ChunkKey, PassageRecord]:
        """The chunks that exist, with everything that a stage needs, in one trip."""
        ...

    def chunks_by_key(self, keys: Iterable[ChunkKey]) -> dict[ChunkKey, StoredChunk]:
        """The chunks that exist."""
        ...

    def documents_of(self, keys: Collection[ChunkKey]) -> dict[ChunkKey, DocId]:
        """The document of each chunk that exists."""
        ...

    def texts_with(self, text: str, keys: Collection[ChunkKey]) -> dict[ChunkKey, str]:
        """The texts of the chunks that contain a lower-case text, ignoring the case of ASCII."""
        ...

    def signatures(self) -> Iterable[PassageSignature]:
        """The n-gram signatures of all passages, in no order."""
        ...

    def token_places(self, token: str, keys: Collection[ChunkKey]) -> list[TokenPlace]:
        """Whether text, headings, title or path of each chunk contain the token."""
        ...

    def chunks_near(
        self, doc_id: DocId, found: Collection[ChunkKey], *, inside: int = 0, beside: int = 0
    ) -> tuple[StoredChunk, ...]:
        """The part of a document's tree around some chunks; see `Snapshot.chunks_near`."""
        ...

    def sections_in(self, stretches: Iterable[tuple[ChunkKey, Span]]) -> tuple[StoredChunk, ...]:
        """The documents, preambles and sections that contain any of these bytes, each range in the
        document of its chunk."""
        ...


class Documents(Protocol):
    """What is in the index, word for word."""

    def document(self, doc_id: DocId) -> StoredDocument | None: ...

    def documents_by_id(self, doc_ids: Iterable[DocId]) -> dict[DocId, StoredDocument]:
        """The documents that exist."""
        ...

    def documents_called(self, match_key: str) -> tuple[StoredDocument, ...]:
        """The documents whose file name, title or alias has this key, ordered by id."""
        ...

    def filtered_documents(self, within: Filter) -> Iterable[StoredDocument]:
        """The documents that satisfy a filter, in any order."""
        ...

    def document_ids(self) -> list[DocId]:
        """The ids of all documents, ordered."""
        ...

    def has_path(self, tree: TreeName, path: str) -> bool:
        """Whether a document is at this path or below it, compared letter by letter. Much faster
        than a filter, because many spellings of a path may have to be tried."""
        ...

    def languages(self) -> list[str]:
        """The languages of code blocks, ordered."""
        ...

    def some_paths(self, limit: int) -> list[str]:
        """The paths of at most `limit` documents."""
        ...

    def trees(self) -> list[TreeName]:
        """The trees that have a document, ordered."""
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
        """The links to a document, including its own."""
        ...

    def communities_of(self, doc_ids: Collection[DocId]) -> dict[DocId, int]:
        """The number of each document's community, for documents that are in one."""
        ...

    def community(self, doc_id: DocId) -> tuple[DocId, ...] | None:
        """All documents of the document's community, including itself, ordered by id; None while
        communities have not been computed."""
        ...

    def file(self, doc_id: DocId) -> ManifestEntry | None:
        """The state of the file when it was read."""
        ...

    def failure(self, doc_id: DocId) -> FileFailure | None:
        """Why a known file could not be indexed."""
        ...

    def failures(self) -> Iterable[FileFailure]:
        """The files that could not be indexed, ordered by id."""
        ...

    def version(self, doc_id: DocId) -> str:
        """A text that changes whenever the file's bytes, or anything stored about it, change."""
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
        """How many files are known to differ from the index; None while some are not compared."""
        ...

    @property
    def is_overtaken(self) -> bool:
        """Whether a part of the engine has moved on to a later generation, so that answers may mix
        two."""
        ...

    def changes_since(self, seen: Position) -> tuple[Change, ...] | None:
        """The documents touched after that commit; None if its history is no longer known."""
        ...


class SearchableIndex(Protocol):
    """An index as search and library get it."""

    def view(self, *, for_search: bool = True) -> AbstractContextManager[View]:
        """The newest generation. Without `for_search`, for reading documents and passages only:
        indices in memory need not catch up first."""
        ...


class Writer(Protocol):
    """The next generation: all changes take effect together, or not at all."""

    @property
    def position(self) -> Position:
        """The generation that readers see: the previous one, and after the commit this one."""
        ...

    @property
    def waiting(self) -> int | None:
        """See `expect`."""
        ...

    def put(self, file: IndexedFile, read_ns: int) -> None:
        """Stores a file in place of its previous content; `read_ns`: when reading it began.

        Raises SourceError, and stores nothing, if the file's rows contradict each other."""
        ...

    def touch(self, doc_id: DocId, state: FileState, read_ns: int) -> bool:
        """Stores a new state of a file with unchanged content; False if it is not indexed."""
        ...

    def remove(self, doc_id: DocId) -> bool:
        """Removes a file, indexed or failed; False if it was not known."""
        ...

    def fail(self, failure: FileFailure) -> None:
        """Stores why a file cannot be indexed, and removes its previous content."""
        ...

    def expect(self, waiting: int) -> None:
        """Stores how many files differ from the index and are not written yet."""
        ...

    def note_unread(self, counts: UnreadCounts) -> None:
        """Stores how many files have a format that is not read."""
        ...

    def put_embeddings(self, model: str, vectors: Sequence[tuple[TextHash, bytes]]) -> int:
        """Stores vectors (little-endian float32) of texts; returns how many are new."""
        ...

    def prune_embeddings(self, models: Collection[str]) -> int:
        """Removes vectors of all other models, and of texts that no chunk has."""
        ...

    def drop_unused(self, keys: Collection[int], models: Collection[str]) -> int:
        """Removes those of the vectors that are of other models, or of texts that no chunk has."""
        ...

    def put_communities(self, numbers: Mapping[DocId, int], origin: CommunityOrigin) -> bool:
        """Replaces the community of every document; False if nothing changes."""
        ...
