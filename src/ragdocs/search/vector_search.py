"""Search by meaning: the query's vector, the nearest passages, and the best passages of linked
documents.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from math import sqrt
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from ragdocs.embedding.base import Embedder, QueryEmbedding, WindowedEmbedder
from ragdocs.errors import EmbeddingError, IndexStoreError
from ragdocs.indices.conditions import Filter, both, except_documents
from ragdocs.indices.hits import USUAL_SPREAD, Hit, NearTerm, Neighbour
from ragdocs.indices.view import View
from ragdocs.models import DocId
from ragdocs.search.understanding import move_vector
from ragdocs.store.records import ChunkKey

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ragdocs.indices.view import VectorRecall

    Vector = NDArray[np.float32]

# Each document linked with the hits contributes its best passage.

NEIGHBOUR_WEIGHT = 0.5
"""`graph_neighbor_weight`: all seeds let neighbours in at half the score."""


def neighbour_hits(
    view: View,
    neighbours: Sequence[Neighbour],
    vector: "Vector | None" = None,
    weight: float = NEIGHBOUR_WEIGHT,
) -> list[Hit]:
    """One hit for each neighbour that has text, best first.

    Its passage is the one nearest to the query's vector, or the document's first without a vector;
    its score is the document's weight in the graph, whatever the passage.
    """
    passages = view.best_passages([neighbour.doc_id for neighbour in neighbours], vector)
    hits = [
        Hit(passages[neighbour.doc_id], weight * neighbour.weight)
        for neighbour in neighbours
        if neighbour.doc_id in passages
    ]
    return sorted(hits, key=lambda hit: (-hit.score, hit.key))


# How far a search goes: which documents, and how many hits of each index.

HITS_PER_INDEX = 100
"""Enough that a chunk placed well by one index alone is still seen by the other."""
FEWEST_CANDIDATES, MOST_CANDIDATES = 40, 150
CANDIDATES_PER_RESULT = 4
"""Copies are dropped, siblings merged and documents limited, so one result needs several."""
DEEPER = 8
"""If that is not enough, because many copies come first, this many times as many are looked at;
then this many times again.
"""
DEEPEST = DEEPER * DEEPER
MOST_LOOKS = 4
MOST_OF_A_DOCUMENT = 20
"""Of one document in another look: most of them would be dropped again. A document with this many
is excluded from the next look, which then costs as much as the first; looking deeper at the same
documents costs a multiple (specs/0073).
"""
MOST_OF_ALL = 1_200
"""The most candidates, however deep."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """The bounds of one look at the indices."""

    within: Filter = None
    depth: int = 1
    queries: int = 1
    looks: int = 1
    full: frozenset[DocId] = frozenset()
    """The documents of which earlier looks found enough."""

    @property
    def hits(self) -> int:
        return HITS_PER_INDEX * self.depth

    def candidates(self, top_n: int) -> int:
        """How many fused hits of each query are read from the store and go through the stages."""
        usual = min(MOST_CANDIDATES, max(FEWEST_CANDIDATES, CANDIDATES_PER_RESULT * top_n))
        share = max(FEWEST_CANDIDATES, 2 * MOST_CANDIDATES // self.queries)
        known = len(self.full) * most_of_a_document(top_n)
        return min(min(usual, share) * self.depth + known, MOST_OF_ALL // self.queries)

    def of_all(self, top_n: int) -> int:
        """How many candidates of all queries go through the stages."""
        return max(2 * MOST_CANDIDATES, self.candidates(top_n))

    @property
    def can_be_deeper(self) -> bool:
        """Several queries already look at several times as much."""
        return self.queries == 1 and self.looks < MOST_LOOKS and self.depth < DEEPEST

    def deeper(self) -> "Bounds":
        return replace(self, depth=self.depth * DEEPER, looks=self.looks + 1)

    def beyond(self, full: frozenset[DocId]) -> "Bounds":
        """As deep as now, without the documents that are full."""
        new = full - self.full
        within = both(self.within, except_documents(new))
        return replace(self, within=within, full=full, looks=self.looks + 1)


def most_of_a_document(top_n: int) -> int:
    return max(top_n, MOST_OF_A_DOCUMENT)


# Search by meaning runs in its own thread, in parallel with the search by words.
#
# The model, FAISS and SQLite release Python's lock while they work. A query is embedded as soon as
# its text is known; its passages are searched once the index has caught up.

_P = ParamSpec("_P")
_T = TypeVar("_T")
Pending = Future[QueryEmbedding]
"""A vector that is being computed."""

TOO_LONG = "the text is too long to embed: its last {cut:,} characters are searched by words only"


@dataclass(frozen=True, slots=True)
class Nearest:
    """The passages nearest to a vector, best first, and the cosine of the very nearest. `nearness`
    is their similarity in the context of their documents, if that counts; `prominence`: how many
    deviations the first is above the mean of the first hundred.
    """

    vector: "Vector"
    hits: Sequence[Hit]
    best_similarity: float
    nearness: Mapping[ChunkKey, float]
    prominence: float = 0.0
    spread: float = USUAL_SPREAD
    """How much the cosines of arbitrary passages differ."""


class MeaningSearch:
    """Embeds queries and finds the nearest passages; `document_weight` is the share of the whole
    document in a passage's meaning: it distinguishes documents about a topic from those that only
    mention it (specs/0052).
    """

    def __init__(self, embedder: Embedder | None, document_weight: float) -> None:
        self._embedder = embedder
        self._document_weight = document_weight
        # One thread: the query's vector is submitted first, so it is ready for the search.
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="query-embedding")

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)

    def embed(self, text: str, windows: int) -> "Pending | None":
        """Embeds as much of a text as fits into this many windows of the model."""
        if self._embedder is None or not text.strip():
            return None
        return self._submit(embed_within, self._embedder, text, windows)

    def search(
        self, view: View, pending: "Pending | None", added: Sequence[NearTerm], bounds: Bounds
    ) -> "Future[Nearest] | None":
        """Searches with the query's vector, moved towards the added words."""
        if pending is None or not view.has_vectors:
            return None
        recall = view.vector_recall(bounds.hits, bounds.within)
        return self._submit(self._nearest, view, recall, pending, added)

    def _submit(
        self, work: "Callable[_P, _T]", *args: "_P.args", **kwargs: "_P.kwargs"
    ) -> "Future[_T]":
        try:
            return self._pool.submit(work, *args, **kwargs)
        except RuntimeError as error:  # another thread reopened the store with other settings
            raise IndexStoreError(
                "the index was closed while it was searched: ask again"
            ) from error

    def nearness(
        self, view: View, nearest: Nearest | None, keys: Collection[ChunkKey]
    ) -> dict[ChunkKey, float] | None:
        """How near these chunks are in meaning, however they were found; None if that could not be
        searched."""
        if nearest is None or not view.has_vectors:
            return None
        others = [key for key in keys if key not in nearest.nearness]
        return {**nearest.nearness, **self.distances(view, nearest, others)}

    def distances(
        self, view: View, nearest: Nearest, keys: Collection[ChunkKey]
    ) -> dict[ChunkKey, float]:
        """The similarity of those chunks that have a vector."""
        return view.cosines(nearest.vector, keys, self._document_weight)

    def _nearest(
        self, view: View, recall: "VectorRecall", pending: "Pending", added: Sequence[NearTerm]
    ) -> Nearest:
        vector = move_vector(pending.result().vector, added)
        hits = recall(vector)
        best = hits[0].score if hits else 0.0
        spread = view.cosine_spread(vector)
        if self._document_weight <= 0:
            return Nearest(vector, hits, best, {}, prominence(hits), spread)
        near = view.cosines(vector, [hit.key for hit in hits], self._document_weight)
        placed = [Hit(key, near.get(key, score)) for key, score in hits]
        placed.sort(key=lambda hit: (-hit.score, hit.key))
        return Nearest(vector, placed, best, near, prominence(placed), spread)


def prominence(hits: Sequence[Hit]) -> float:
    """0 if all are alike. It always uses the same number of hits, however many were searched."""
    scores = [hit.score for hit in hits[:HITS_PER_INDEX]]
    if not scores:
        return 0.0
    mean = sum(scores) / len(scores)
    deviation = sqrt(sum((score - mean) ** 2 for score in scores) / len(scores))
    return (scores[0] - mean) / deviation if deviation > 0 else 0.0


def embed_within(embedder: Embedder, text: str, windows: int) -> QueryEmbedding:
    """An embedder without windows reads the text at once."""
    if isinstance(embedder, WindowedEmbedder):
        return embedder.embed_beginning(text, windows)
    return QueryEmbedding(embedder.embed_query(text))


def await_vector(pending: "Pending | None") -> "tuple[Vector | None, tuple[str, ...]]":
    """The query's vector, if there is one; and notes on why not, or on text that was cut."""
    if pending is None:
        return None, ()
    try:
        found = pending.result()
    except EmbeddingError as error:
        return None, (f"searched without vectors: {error}",)
    cut = found.cut_characters
    return found.vector, (TOO_LONG.format(cut=cut),) if cut else ()
