"""The embedded engine: a store in SQLite, with indices inside it and in memory.

A view is a snapshot of the store together with these indices, brought up to date with it.
"""

from collections.abc import Collection, Generator, Iterable, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from ragdocs.indices.analysis import is_spaced
from ragdocs.indices.code import CodeEngine
from ragdocs.indices.conditions import (
    Condition,
    Filter,
    has_words,
    is_of_language,
    join,
    language_of,
    parts_of,
)
from ragdocs.indices.engines import KeywordEngine
from ragdocs.indices.graph import GraphIndex
from ragdocs.indices.hits import (
    USUAL_SPREAD,
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
from ragdocs.indices.scopes import Scope, Scopes, chunks_with_language, existing_chunks
from ragdocs.indices.signatures import all_signatures, signatures_of
from ragdocs.indices.term_vectors import TermVectors
from ragdocs.indices.vector import VectorIndex
from ragdocs.indices.vocabulary import Vocabulary
from ragdocs.models import DocId
from ragdocs.store.database import Database
from ragdocs.store.generations import Meta
from ragdocs.store.integrity import StoreState
from ragdocs.store.reader import Reader
from ragdocs.store.records import ChunkKey, Position, StoredDocument
from ragdocs.store.snapshot import RowCache, Snapshot

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ragdocs.indices.view import VectorRecall

    Vector = NDArray[np.float32]

MAX_COUNTED = 64
"""How many terms of scripts without spaces the keyword engine counts, one by one."""


@runtime_checkable
class Follows(Protocol):
    """An index that catches up with the store, once for all requests."""

    @property
    def position(self) -> Position | None: ...

    def forget(self) -> None: ...


@dataclass(frozen=True, kw_only=True)
class EmbeddedIndices:
    """The indices of one configuration, shared by all views; the vector indices are optional."""

    keyword: KeywordEngine
    code: CodeEngine
    vocabulary: Vocabulary
    vector: VectorIndex | None = None
    terms: TermVectors | None = None
    graph: GraphIndex = field(default_factory=GraphIndex)
    scopes: Scopes = field(default_factory=Scopes)

    def catch_up(self, snapshot: Snapshot) -> None:
        for index in (self.keyword, self.vector, self.graph):
            if index is not None:
                index.catch_up(snapshot)

    def newest(self) -> int:
        """The newest generation that one of them has applied."""
        reached = [index.position for index in self._following]
        return max((position.generation for position in reached if position), default=0)

    def start_over(self) -> None:
        for index in self._following:
            index.forget()

    @cached_property
    def _following(self) -> list[Follows]:
        # Needed twice in every query, and isinstance is slow for a protocol.
        indices = (self.keyword, self.vector, self.graph)
        return [index for index in indices if isinstance(index, Follows)]


class EmbeddedIndex:
    """One store and its indices: opens views, for any number of threads."""

    def __init__(self, reader: Reader, indices: EmbeddedIndices) -> None:
        self._reader = reader
        self._indices = indices

    @contextmanager
    def view(self, *, for_search: bool = True) -> "Generator[EmbeddedView]":
        newest = self._indices.newest()
        with self._reader.view(partial(EmbeddedView, self._indices)) as view:
            if for_search:
                if view.position.generation < newest:  # the store was replaced by an older one
                    self._indices.start_over()
                self._indices.catch_up(view)
            yield view


class EmbeddedView(Snapshot):
    """A snapshot of the store that can also be searched. For one thread, except where `Recall`
    says otherwise."""

    def __init__(
        self,
        indices: EmbeddedIndices,
        database: Database,
        meta: Meta,
        rows: RowCache,
        state: StoreState,
    ) -> None:
        super().__init__(database, meta, rows, state)
        self._indices = indices
        self._scopes: dict[Condition, Scope] = {}
        self._matching: dict[Condition, Set[ChunkKey]] = {}

    @property
    def is_overtaken(self) -> bool:
        return self._indices.newest() > self.position.generation

    # Which passages could answer.

    def search_words(self, query: KeywordQuery, limit: int, within: Filter = None) -> KeywordHits:
        allowed = None if query.condition is None else self._match(query.condition)
        return self._indices.keyword.search(self, query, limit, self._scope(within), allowed)

    def search_code(
        self, text: str, limit: int, within: Filter = None, *, most_terms: int | None = None
    ) -> CodeHits:
        scope, language = self._scope(within), language_of(within)
        return self._indices.code.search(self, text, limit, scope, language, most_terms=most_terms)

    @property
    def has_vectors(self) -> bool:
        return self._indices.vector is not None

    @property
    def vector_count(self) -> int:
        return 0 if self._indices.vector is None else len(self._indices.vector)

    def vector_recall(self, limit: int, within: Filter = None) -> "VectorRecall":
        index, scope = self._indices.vector, self._scope(within)

        def recall(vector: "Vector") -> list[Hit]:
            return [] if index is None else index.search(vector, limit, scope)

        return recall

    def passage_vectors(self, keys: Collection[ChunkKey]) -> "Mapping[ChunkKey, Vector]":
        index = self._indices.vector
        return {} if index is None else index.vectors_of(keys)

    def cosines(
        self, vector: "Vector", keys: Collection[ChunkKey], document_weight: float
    ) -> dict[ChunkKey, float]:
        index = self._indices.vector
        return {} if index is None else index.in_context(vector, keys, document_weight)

    def cosine_spread(self, vector: "Vector") -> float:
        index = self._indices.vector
        return USUAL_SPREAD if index is None else index.spread(vector)

    @property
    def cosine_scale(self) -> CosineScale:
        index = self._indices.vector
        return CosineScale() if index is None else index.scale

    def neighbours(
        self,
        hits: Mapping[DocId, float],
        *,
        depth: int = 1,
        limit: int = 20,
        within: Filter = None,
    ) -> list[Neighbour]:
        return self._indices.graph.neighbours(hits, depth, limit, self._scope(within))

    def best_passages(
        self, doc_ids: Collection[DocId], vector: "Vector | None"
    ) -> dict[DocId, ChunkKey]:
        index = self._indices.vector
        found: dict[DocId, ChunkKey] = {}
        if index is not None and vector is not None:
            nearest = index.best_of(vector, doc_ids)
            found = {doc_id: hit.key for doc_id, hit in nearest.items()}
        unknown = [doc_id for doc_id in doc_ids if doc_id not in found]
        return found | self.first_passages(unknown) if unknown else found

    def has_documents(self, within: Filter) -> bool:
        scope = self._scope(within)
        return self.count_documents() > 0 if scope is None else bool(scope)

    def count_matching(self, condition: Condition | None = None) -> int:
        if condition is None:
            return self._indices.keyword.count(self)
        return len(self._match(condition))

    def matching(
        self, condition: Condition | None, among: Collection[ChunkKey] | None = None
    ) -> Set[ChunkKey]:
        if among is None and condition is not None:
            return self._match(condition)
        left: Set[ChunkKey] = frozenset(existing_chunks(self) if among is None else among)
        if condition is not None and condition in self._matching:
            return left & self._matching[condition]
        parts = parts_of(condition)
        of_passages = [part for part in parts if has_words(part) or is_of_language(part)]
        if (passages := join(of_passages)) is not None:
            left = left & self._match(passages)
        scope = self._scope(join(part for part in parts if part not in of_passages))
        if scope is None or not left:
            return left
        return {key for key, doc_id in self.documents_of(left).items() if doc_id in scope}

    def _match(self, condition: Condition) -> Set[ChunkKey]:
        if condition in self._matching:
            return self._matching[condition]
        language = language_of(condition)
        rest = join(part for part in parts_of(condition) if not is_of_language(part))
        if not language:
            found = frozenset(map(ChunkKey, self._indices.keyword.matching(self, condition)))
        else:
            found = chunks_with_language(self, language)
            if rest is not None:
                found &= self._match(rest)
        self._matching[condition] = found
        return found

    # The words of the documents.

    def term_frequencies(self, terms: Sequence[str]) -> Mapping[str, int]:
        return self._indices.keyword.frequencies(self, terms)

    def document_frequencies(self, terms: Collection[str]) -> dict[str, int]:
        """From the vocabulary, which has no terms of scripts without spaces: for these the keyword
        engine counts passages, which is close enough."""
        known = self._indices.vocabulary.document_frequencies(self, terms)
        unspaced = [term for term in terms if term not in known and not is_spaced(term)]
        if not unspaced:
            return known
        counted = self.term_frequencies(unspaced[:MAX_COUNTED])
        most = self.count_documents()
        return known | {term: min(count, most) for term, count in counted.items() if count}

    def known_terms(self, terms: Collection[str]) -> set[str]:
        return self._indices.vocabulary.known_terms(self, terms)

    def count_documents_with(self, terms: Collection[str]) -> int:
        return self._indices.vocabulary.count_documents_with(self, terms)

    def words_in_one_document(self, words: Collection[str]) -> set[str]:
        return self._indices.vocabulary.words_in_one_document(self, words)

    def near_words(self, word: str, term: str, most: int) -> list[NearWord]:
        return self._indices.vocabulary.near_words(self, word, term, most)

    def similar_words(self, word: str, count: int, *, by_letters: bool) -> list[str]:
        return self._indices.vocabulary.similar_words(self, word, count, by_letters=by_letters)

    def has_term_vectors(self) -> bool:
        terms = self._indices.terms
        if terms is None:
            return False
        terms.catch_up(self)
        return len(terms) > 0

    def near_terms(self, vector: "Vector", least: float, count: int) -> list[NearTerm]:
        terms = self._indices.terms
        return [] if terms is None else terms.nearest(vector, least, count)

    # Passages and documents, beyond what the store reads.

    def passages(
        self, keys: Collection[ChunkKey], *, with_vectors: bool
    ) -> dict[ChunkKey, PassageRecord]:
        chunks = self.chunks_by_key(keys)
        owners = self.documents_by_id({stored.chunk.doc_id for stored in chunks.values()})
        vectors = self.passage_vectors(keys if with_vectors else ())
        signatures = signatures_of(self, keys)
        return {
            key: PassageRecord(stored, owner, vectors.get(key), signatures.get(key, 0))
            for key, stored in chunks.items()
            if (owner := owners.get(stored.chunk.doc_id)) is not None
        }

    def signatures(self) -> Iterable[PassageSignature]:
        return all_signatures(self)

    def filtered_documents(self, within: Filter) -> Iterable[StoredDocument]:
        return self._indices.scopes.documents(self, within)

    def community(self, doc_id: DocId) -> tuple[DocId, ...] | None:
        is_computed = self.communities_origin is not None or len(self._indices.graph) == 0
        return self.members_with(doc_id) if is_computed else None

    def _scope(self, within: Filter) -> Scope:
        if within is None:
            return None
        if within not in self._scopes:
            self._scopes[within] = self._indices.scopes.of(self, within)
        return self._scopes[within]
