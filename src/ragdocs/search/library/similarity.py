"""Passages of other documents that are like some passages: by meaning, and by words.

No model runs: meaning is compared by the vectors that are stored. Of each document the best passage
counts, so that a long one does not fill the list.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from ragdocs.indices.hits import Hit, Scope, scope_of
from ragdocs.indices.keyword import KeywordQuery, Unit, field_texts
from ragdocs.indices.term_frequencies import TermFrequencies
from ragdocs.indices.vector import VectorIndex
from ragdocs.models import DocId
from ragdocs.search.library.cards import short, shown_path
from ragdocs.search.library.relations import SimilarEntry
from ragdocs.search.library.telling_terms import TellingTerm, TermCounter, telling_terms
from ragdocs.search.retrieval import Indices
from ragdocs.store.holdings import document_ids
from ragdocs.store.records import ChunkKey, StoredChunk, StoredDocument
from ragdocs.store.snapshot import Snapshot

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MAX_TERMS = 25
"""As many as Lucene's MoreLikeThis takes: more add only common words."""
MAX_CHARS = 30_000
"""Of a text whose words are counted: a longer one has told what it is about by then."""
SNIPPET_CHARS = 200
MAX_PASSED_OVER = 100
_PASSAGES_PER_RESULT = 3
_GROWTH = 4

Find = Callable[[int], Sequence[Hit]]


class Similarity:
    """Looks within one snapshot, in all documents but one, which has so many passages."""

    def __init__(self, snapshot: Snapshot, indices: Indices, doc_id: DocId, passages: int) -> None:
        self._snapshot = snapshot
        self._indices = indices
        self._doc_id = doc_id
        # To pass over a few is faster than to look among all others: ten times, by words.
        self._passed_over = passages if passages <= MAX_PASSED_OVER else 0
        self._scope: Scope = None
        if passages > MAX_PASSED_OVER:
            left_out = frozenset({doc_id})
            self._scope = scope_of(frozenset(document_ids(snapshot)) - left_out, left_out)

    def by_meaning(
        self, index: VectorIndex, leaves: Sequence[ChunkKey], limit: int
    ) -> tuple[SimilarEntry, ...] | None:
        """By the mean of the passages' vectors; None when none of them has one yet."""
        vector = _mean(list(index.vectors_of(leaves).values()))
        if vector is None:
            return None
        found = self._best(lambda count: index.search(vector, count, self._scope), limit)
        return tuple(_entry(stored, document, score) for stored, document, score in found)

    def by_words(self, texts: Iterable[str], limit: int) -> tuple[SimilarEntry, ...]:
        """By the words that tell most."""
        terms = self._telling(texts)
        units = tuple(Unit((each.term,), None, each.emphasis) for each in terms)
        if not units:
            return ()
        ideal = 0.0

        def find(count: int) -> Sequence[Hit]:
            nonlocal ideal
            hits = self._indices.keyword.search(
                self._snapshot, KeywordQuery(units), count, self._scope
            )
            ideal = hits.ideal
            return hits.hits

        found = self._best(find, limit)
        return tuple(
            _entry(
                stored,
                document,
                score / ideal if ideal else 0.0,
                self._shared(terms, stored, document),
            )
            for stored, document, score in found
        )

    def _telling(self, texts: Iterable[str]) -> list[TellingTerm]:
        counter = TermCounter(self._indices.analyzer)
        room = MAX_CHARS
        for text in texts:
            counter.add(text[:room])
            room -= len(text[:room])
            if not room:
                break
        counter.analyse()
        frequencies = TermFrequencies(self._snapshot, self._indices.keyword)
        known = frequencies.of(counter.ranked(counter.frequencies))
        return telling_terms(counter, known, frequencies, MAX_TERMS)

    def _best(self, find: Find, limit: int) -> list[tuple[StoredChunk, StoredDocument, float]]:
        """Of each document the best hit, until there are enough documents or no more hits."""
        asked = limit * _PASSAGES_PER_RESULT + self._passed_over
        while True:
            hits = find(asked)
            chunks = self._snapshot.chunks_by_key([hit.key for hit in hits])
            best: dict[DocId, tuple[StoredChunk, float]] = {}
            for key, score in hits:
                if key in chunks and score > 0 and chunks[key].chunk.doc_id != self._doc_id:
                    best.setdefault(chunks[key].chunk.doc_id, (chunks[key], score))
            if len(best) >= limit or len(hits) < asked:
                break
            asked *= _GROWTH
        owners = self._snapshot.documents_by_id(best)
        found = [
            (stored, owners[doc_id], score)
            for doc_id, (stored, score) in best.items()
            if doc_id in owners
        ]
        return found[:limit]

    def _shared(
        self, terms: Sequence[TellingTerm], stored: StoredChunk, document: StoredDocument
    ) -> tuple[str, ...]:
        texts = field_texts(document, stored.chunk).values()
        own = {term for text in texts for term in self._indices.analyzer.terms(text)}
        return tuple(each.word for each in terms if each.term in own)


def _mean(vectors: "Sequence[NDArray[np.float32]]") -> "NDArray[np.float32] | None":
    import numpy as np

    if not vectors:
        return None
    mean = np.mean(np.stack(vectors), axis=0)
    length = float(np.linalg.norm(mean))
    return mean / length if length > 0 else None


def _entry(
    stored: StoredChunk, document: StoredDocument, score: float, terms: tuple[str, ...] = ()
) -> SimilarEntry:
    chunk = stored.chunk
    return SimilarEntry(
        id=chunk.id,
        doc_id=document.id,
        path=shown_path(document),
        title=short(document.title),
        heading_path=chunk.breadcrumb,
        line_start=chunk.span.line_start,
        line_end=chunk.span.line_end,
        score=min(max(score, 0.0), 1.0),
        snippet=_opening(chunk.text or ""),
        terms=terms,
    )


def _opening(text: str) -> str:
    words = " ".join(text[: SNIPPET_CHARS * 4].split())
    return words if len(words) <= SNIPPET_CHARS else f"{words[: SNIPPET_CHARS - 1]}…"
