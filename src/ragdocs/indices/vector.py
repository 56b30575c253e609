"""What means the same: a view over the store's vectors, in memory, that never runs a model.

Any thread may search while one catches up. A lock guards the vectors: searches take turns (they are
short), a catch-up reads the store before it takes its own turn, and one that starts over builds the
new vectors beside the old ones, which go on answering until then.
"""

import threading
from collections.abc import Collection
from typing import TYPE_CHECKING, Protocol

from ragdocs.errors import IndexCorrupt
from ragdocs.indices.flat_vectors import USUAL_SPREAD, CosineScale, FlatVectors
from ragdocs.indices.hits import Hit, Scope
from ragdocs.indices.progress import Progress
from ragdocs.models import DocId
from ragdocs.store.records import ChangeKind, ChunkKey, Position
from ragdocs.store.snapshot import Snapshot

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vector = NDArray[np.float32]

_KINDS = frozenset({ChangeKind.UPSERT, ChangeKind.DELETE, ChangeKind.VECTORS})
_NO_MODEL = ""
COUNT_EVERY = 64
"""Counting the store's vectors costs more than catching up with an edit (specs/0018): it is
done now and then, and whenever vectors went without a word in the change log, as by pruning."""


class VectorModel(Protocol):
    """What this index must know of an `Embedder`. Both are asked at each catch-up: what a model is
    can be settled as late as when it is loaded.
    """

    @property
    def identity(self) -> str: ...

    @property
    def dimension(self) -> int: ...


class VectorIndex:
    """The vectors of one model; safe to use from several threads.

    All that it tells of nearness is on the scale of the built-in model's cosines, unless the model
    `is_usual` and none has to be measured.
    """

    def __init__(self, model: VectorModel, *, is_usual: bool = True) -> None:
        self._model = model
        self._is_usual = is_usual
        self._identity = _NO_MODEL
        self._vectors: FlatVectors | None = None
        self._progress = Progress()
        self._uncounted = 0
        self._embeddings = 0
        self._lock = threading.Lock()
        self._catching_up = threading.Lock()

    @property
    def position(self) -> Position | None:
        """The commit that has been applied; None before the first catch-up."""
        return self._progress.position

    def __len__(self) -> int:
        """How many chunks have a vector here."""
        with self._lock:
            return len(self._vectors) if self._vectors is not None else 0

    def catch_up(self, snapshot: Snapshot) -> None:
        """Brings the index to the snapshot, redoing only what was touched, or all if it must.

        Raises IndexCorrupt when the store's vectors are damaged; the index then stays as it was.
        """
        with self._catching_up:
            if self._model.identity != self._identity:
                self._start_over(self._model.identity)
            if not self._progress.is_behind(snapshot):
                return
            touched = self._progress.touched(snapshot, _KINDS)
            if self._vectors is None or touched is None:
                self._rebuild(snapshot)
            else:
                self._redo(self._vectors, snapshot, touched)
                self._compare(self._vectors, snapshot)
            self._progress.reach(snapshot.position)
            self._embeddings = snapshot.ledger.count("embeddings")

    def forget(self) -> None:
        """The next catch-up starts over: commits that were applied are gone from the store."""
        with self._catching_up:
            self._progress.forget()

    def search(self, vector: "Vector", limit: int, scope: Scope = None) -> list[Hit]:
        """The best chunks within the scope, best first, by their cosines.

        Fewer than `limit` when there are not so many, none for a limit of 0. A vector that cannot
        be of this model raises EmbeddingError.
        """
        with self._lock:
            if self._vectors is None:
                return []
            hits = self._vectors.search(vector, limit, scope)
            return (
                [Hit(key, scale.of(score)) for key, score in hits]
                if (scale := self._scale())
                else hits
            )

    def best_of(self, vector: "Vector", doc_ids: Collection[DocId]) -> dict[DocId, Hit]:
        """The best chunk of each of these documents that has vectors."""
        with self._lock:
            if self._vectors is None:
                return {}
            best = self._vectors.best_of(vector, doc_ids)
            if (scale := self._scale()) is None:
                return best
            return {doc_id: Hit(key, scale.of(score)) for doc_id, (key, score) in best.items()}

    def in_context(
        self, vector: "Vector", keys: Collection[ChunkKey], document_weight: float
    ) -> dict[ChunkKey, float]:
        """How near those of the chunks are that have a vector: their own cosine, and by
        `document_weight` that of their documents' mean vectors.
        """
        with self._lock:
            if self._vectors is None:
                return {}
            near = self._vectors.in_context(vector, keys, document_weight)
            if (scale := self._scale()) is None:
                return near
            return {key: scale.of(cosine) for key, cosine in near.items()}

    def spread(self, vector: "Vector") -> float:
        """How much the cosines of any passages with it differ: their standard deviation."""
        with self._lock:
            if self._vectors is None:
                return USUAL_SPREAD
            scale = self._scale() or CosineScale()
            return scale.factor * self._vectors.spread(vector)

    @property
    def scale(self) -> CosineScale:
        """By which cosines with other vectors of this model are to be read."""
        with self._lock:
            return self._scale() or CosineScale()

    def _scale(self) -> CosineScale | None:
        if self._is_usual or self._vectors is None:
            return None
        return self._vectors.scale()

    def vectors_of(self, keys: Collection[ChunkKey]) -> "dict[ChunkKey, Vector]":
        """The vectors of those of the chunks that have one."""
        with self._lock:
            if self._vectors is None:
                return {}
            return self._vectors.vectors_of(keys)

    def _start_over(self, identity: str) -> None:
        """Another model's vectors say nothing to this one's queries, however they are shaped."""
        with self._lock:
            self._vectors, self._identity = None, identity
        self._progress.forget()

    def _rebuild(self, snapshot: Snapshot) -> None:
        expected = _count(snapshot, self._identity)
        vectors = FlatVectors(self._model.dimension, expected)
        for batch in snapshot.vectors(self._identity):
            vectors.add(batch)
        if len(vectors) != expected:
            raise IndexCorrupt(
                f"the store gives {len(vectors)} vectors and counts {expected}: rebuild the index"
            )
        with self._lock:
            self._vectors = vectors
        self._uncounted = 0

    def _redo(self, vectors: FlatVectors, snapshot: Snapshot, touched: frozenset[DocId]) -> None:
        batches = list(snapshot.vectors(self._identity, touched)) if touched else []
        kept = {key for batch in batches for key in batch.keys}
        try:
            with self._lock:
                vectors.keep(touched, kept)
                for batch in batches:
                    vectors.add(batch)
        except BaseException:
            self._progress.forget()
            raise

    def _compare(self, vectors: FlatVectors, snapshot: Snapshot) -> None:
        self._uncounted += 1
        has_lost = snapshot.ledger.count("embeddings") < self._embeddings
        if has_lost or self._uncounted >= COUNT_EVERY:
            self._uncounted = 0
            if len(vectors) != _count(snapshot, self._identity):
                self._rebuild(snapshot)


def _count(snapshot: Snapshot, identity: str) -> int:
    """How many chunks have a vector: all that want one, less those that wait for this model's."""
    return snapshot.count_missing_embeddings(_NO_MODEL) - snapshot.count_missing_embeddings(
        identity
    )
