"""Search by meaning, in a thread of its own: beside it, words are looked for.

The model and FAISS let go of Python's lock while they work, and so does SQLite. A query is embedded
as soon as its text is known; its passages are looked for once the index has caught up.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from math import sqrt
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from ragdocs.embedding.base import Embedder, QueryEmbedding, WindowedEmbedder
from ragdocs.errors import EmbeddingError, IndexStoreError
from ragdocs.indices.flat_vectors import USUAL_SPREAD
from ragdocs.indices.hits import Hit
from ragdocs.indices.term_vectors import NearTerm
from ragdocs.indices.vector import VectorIndex
from ragdocs.search.expansion import mixed
from ragdocs.search.reach import HITS_PER_INDEX, Reach
from ragdocs.store.records import ChunkKey

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vector = NDArray[np.float32]

_P = ParamSpec("_P")
_T = TypeVar("_T")
Pending = Future[QueryEmbedding]
"""A vector that is being made."""

TOO_LONG = "the text is too long for its meaning: the last {cut:,} characters count by words only"


@dataclass(frozen=True, slots=True)
class Nearest:
    """The passages nearest to a vector, best first, and the cosine of the very nearest; `nearness`
    is how near they are in the context of their documents, if that counts; `prominence`, by how
    many deviations the first stands above the mean of the first hundred.
    """

    vector: "Vector"
    hits: Sequence[Hit]
    best_similarity: float
    nearness: Mapping[ChunkKey, float]
    prominence: float = 0.0
    spread: float = USUAL_SPREAD
    """How much the cosines of any passages differ."""


class MeaningSearch:
    """Embeds queries and finds what is near them; `document_weight` is how much of a passage's
    meaning is that of its whole document: what the whole is about tells apart those that only
    mention a thing (specs/0052).
    """

    def __init__(
        self, index: VectorIndex | None, embedder: Embedder | None, document_weight: float
    ) -> None:
        self._index = index
        self._embedder = embedder
        self._document_weight = document_weight
        # One thread: what is submitted first, the query's vector, is there for what follows.
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="query-embedding")

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)

    def embed(self, text: str, windows: int) -> "Pending | None":
        """As much of a text as so many windows of the model hold."""
        if self._embedder is None or not text.strip():
            return None
        return self._submit(embed_within, self._embedder, text, windows)

    def search(
        self, pending: "Pending | None", added: Sequence[NearTerm], reach: Reach
    ) -> "Future[Nearest] | None":
        """For the query's vector, moved towards the words that were added."""
        if pending is None or self._index is None:
            return None
        return self._submit(self._nearest, self._index, pending, added, reach)

    def _submit(
        self, work: "Callable[_P, _T]", *args: "_P.args", **kwargs: "_P.kwargs"
    ) -> "Future[_T]":
        try:
            return self._pool.submit(work, *args, **kwargs)
        except RuntimeError as error:  # another thread began to read the store by other settings
            raise IndexStoreError(
                "the index was closed while it was searched: ask again"
            ) from error

    def nearness(
        self, nearest: Nearest | None, keys: Collection[ChunkKey]
    ) -> dict[ChunkKey, float] | None:
        """How near these chunks are in meaning, whether or not that is how they were found."""
        if nearest is None or self._index is None:
            return None
        others = [key for key in keys if key not in nearest.nearness]
        return {**nearest.nearness, **self.distances(nearest, others)}

    def distances(self, nearest: Nearest, keys: Collection[ChunkKey]) -> dict[ChunkKey, float]:
        """How near those of the chunks are that have a vector."""
        if self._index is None:
            return {}
        return self._index.in_context(nearest.vector, keys, self._document_weight)

    def _nearest(
        self,
        index: VectorIndex,
        pending: "Pending",
        added: Sequence[NearTerm],
        reach: Reach,
    ) -> Nearest:
        vector = mixed(pending.result().vector, added)
        hits = index.search(vector, reach.hits, reach.scope)
        best = hits[0].score if hits else 0.0
        if self._document_weight <= 0:
            return Nearest(vector, hits, best, {}, prominence(hits), index.spread(vector))
        near = index.in_context(vector, [hit.key for hit in hits], self._document_weight)
        placed = [Hit(key, near.get(key, score)) for key, score in hits]
        placed.sort(key=lambda hit: (-hit.score, hit.key))
        return Nearest(vector, placed, best, near, prominence(placed), index.spread(vector))


def prominence(hits: Sequence[Hit]) -> float:
    """0 where all are alike. Always of as many hits, however many were looked for."""
    scores = [hit.score for hit in hits[:HITS_PER_INDEX]]
    if not scores:
        return 0.0
    mean = sum(scores) / len(scores)
    deviation = sqrt(sum((score - mean) ** 2 for score in scores) / len(scores))
    return (scores[0] - mean) / deviation if deviation > 0 else 0.0


def embed_within(embedder: Embedder, text: str, windows: int) -> QueryEmbedding:
    """What an embedder does not divide, it reads in one window."""
    if isinstance(embedder, WindowedEmbedder):
        return embedder.embed_beginning(text, windows)
    return QueryEmbedding(embedder.embed_query(text))


def embedded(pending: "Pending | None") -> "tuple[Vector | None, tuple[str, ...]]":
    """The query's vector, or why there is none; and what it says nothing of."""
    if pending is None:
        return None, ()
    try:
        found = pending.result()
    except EmbeddingError as error:
        return None, (f"searched without vectors: {error}",)
    cut = found.cut_characters
    return found.vector, (TOO_LONG.format(cut=cut),) if cut else ()
