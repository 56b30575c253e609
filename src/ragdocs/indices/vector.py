"""The vector index: exact search with FAISS in memory; it follows the change log."""

import threading
from array import array
from collections.abc import Callable, Collection, Iterable, Set
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Protocol

from ragdocs.errors import REBUILD, EmbeddingError, IndexCorrupt
from ragdocs.indices.applied_commit import AppliedCommit
from ragdocs.indices.hits import USUAL_SPREAD, CosineScale, Hit
from ragdocs.indices.scopes import Scope
from ragdocs.models import DocId
from ragdocs.store.records import ChangeKind, ChunkKey, Position, VectorBatch
from ragdocs.store.snapshot import Snapshot

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vector = NDArray[np.float32]
    Keys = NDArray[np.int64]
    Find = Callable[[int], tuple[Vector, Keys]]

# Unit vectors in memory, searched exactly by FAISS. Not thread-safe: `VectorIndex` guards it.
#
# Equal scores are ordered by chunk number, at the end of the list too, so that answers do not
# depend on the order in which vectors were added.

EXACT_LIMIT = 1000
"""Up to this number, fetching a scope's vectors is faster than skipping all others (specs/0019)."""
BITMAP_LIMIT = 1 << 26
"""Chunk numbers grow with every edit; above this a set of them is smaller than a bitmap."""
TIES_GROWTH = 4
HEADROOM = 1.1
MOST_DEAD = 0.05
"""The share of dead vectors at which they are removed."""
SAMPLED = 1024
"""The number of passages from which the spread of a query's cosines is estimated."""
HIGH_MEAN = 0.35
"""Up to this mean a model's cosines are usual: with the built-in model no corpus had more."""
LEAST_DEVIATION = 0.01
FEWEST_PAIRS, COMPARED = 20, 512
USUAL_COUNT = 50
"""A prior for few vectors: as if there were this many more with the usual spread."""
_FLOAT_BYTES = 4
_SCATTER = 2_654_435_761
"""Knuth's multiplier: it scatters neighbouring numbers."""
KEY_CODE = "q"
"""64-bit integers, as FAISS has them."""


class _Numbers(Protocol):
    """A `std::vector` of chunk numbers."""

    def data(self) -> object: ...


class _Index(Protocol):
    """The part of `faiss.IndexIDMap2` that we use; it has no type stubs."""

    ntotal: int
    id_map: "_Numbers"

    def add_with_ids(self, x: "Vector", ids: "Keys", /) -> None: ...
    def remove_ids(self, x: "Keys", /) -> int: ...
    def reconstruct_batch(self, key: "Keys", /) -> "Vector": ...
    def search(self, x: "Vector", k: int, /, *, params: object = None) -> "tuple[Vector, Keys]": ...


def faiss_library() -> ModuleType:
    """FAISS with one thread: more would cost CPU and gain nothing for one query.

    OpenMP has this number for each thread, so it is set before each use of FAISS.
    """
    library = import_module("faiss")
    library.omp_set_num_threads(1)
    return library


class FlatVectors:
    """Vectors of one dimension by chunk, and which chunks each document has."""

    def __init__(self, dimension: int, expected: int = 0) -> None:
        """`expected`: about how many vectors there will be; allocates a little more."""
        faiss = faiss_library()
        self.dimension = dimension
        flat = faiss.IndexFlatIP(dimension)
        # Otherwise the capacity doubles each time, and half of it stays empty.
        flat.codes.resize(int(expected * HEADROOM) * dimension * _FLOAT_BYTES)
        flat.codes.resize(0)
        self._flat = flat
        self._index: _Index = faiss.IndexIDMap2(flat)
        self._dead: set[int] = set()
        self._keys: dict[DocId, array[int]] = {}
        self._owners: dict[ChunkKey, DocId] = {}
        self._themes: dict[DocId, Vector] = {}
        self._sample: tuple[Keys, Vector] | None = None
        self._scale: CosineScale | None = None

    def __len__(self) -> int:
        return self._index.ntotal - len(self._dead)

    def add(self, batch: VectorBatch) -> None:
        """Skips chunks that are present: a chunk number is never used for another text."""
        import numpy as np

        if batch.dimension != self.dimension:
            raise IndexCorrupt(
                f"stored vectors have {batch.dimension} dimensions, the model's have "
                f"{self.dimension}",
                REBUILD,
            )
        rows = np.ascontiguousarray(batch.array(), dtype=np.float32)
        keys = np.array(batch.keys, dtype=np.int64)
        new = [at for at, key in enumerate(batch.keys) if key not in self._owners]
        if len(new) < len(keys):
            rows, keys = rows[new], keys[new]
        if not new:
            return
        if not self._dead.isdisjoint(keys.tolist()):
            self._clear()
        faiss_library()
        self._index.add_with_ids(rows, keys)
        self._sample = self._scale = None
        for at in new:
            key, doc_id = batch.keys[at], batch.doc_ids[at]
            self._keys.setdefault(doc_id, array(KEY_CODE)).append(key)
            self._owners[key] = doc_id
            self._themes.pop(doc_id, None)

    def keep(self, doc_ids: Collection[DocId], kept: Set[ChunkKey] = frozenset()) -> None:
        """Removes all other chunks of these documents."""
        gone = array(KEY_CODE)
        for doc_id in doc_ids:
            known = self._keys.pop(doc_id, array(KEY_CODE))
            left = array(KEY_CODE, (key for key in known if key in kept))
            gone.extend(key for key in known if key not in kept)
            if left:
                self._keys[doc_id] = left
            self._themes.pop(doc_id, None)
        for key in gone:
            del self._owners[ChunkKey(key)]
        if gone:
            self._sample = self._scale = None
            self._bury(_join_keys([gone]))

    def search(self, vector: "Vector", limit: int, scope: Scope) -> list[Hit]:
        """Best first, by inner product."""
        query = self._query(vector)
        if scope is None or self._keys.keys() <= scope:
            return _best(self._finder(query), len(self), limit)
        keys = _join_keys(self._keys[doc_id] for doc_id in scope if doc_id in self._keys)
        if len(keys) <= EXACT_LIMIT:
            return _best(self._finder_among(query, keys), len(keys), limit)
        return _best(self._finder(query, _restrict_to(keys)), len(keys), limit)

    def spread(self, vector: "Vector") -> float:
        """The standard deviation of the vector's cosines with arbitrary passages."""
        _, sample = self._take_sample()
        cosines = sample @ vector
        own = float(((cosines - cosines.mean()) ** 2).sum()) if len(sample) else 0.0
        count = len(sample) + USUAL_COUNT
        return ((own + USUAL_COUNT * USUAL_SPREAD**2) / count) ** 0.5

    def scale(self) -> CosineScale | None:
        """None if there are too few vectors, or their cosines are usual."""
        import numpy as np

        if self._scale is None:
            keys, sample = self._take_sample()
            owners = np.array([hash(self._owners[ChunkKey(key)]) for key in keys[:COMPARED]])
            is_other = owners[:, None] != owners[None, :]
            cosines = (sample[:COMPARED] @ sample[:COMPARED].T)[is_other]
            self._scale = CosineScale()
            if len(cosines) >= FEWEST_PAIRS and (mean := float(cosines.mean())) > HIGH_MEAN:
                deviation = max(LEAST_DEVIATION, float(cosines.std()))
                self._scale = CosineScale(mean, deviation)
        return None if self._scale == CosineScale() else self._scale

    def _take_sample(self) -> "tuple[Keys, Vector]":
        """The same sample for the same vectors, in whatever order they were added."""
        import numpy as np

        if self._sample is None:
            keys = np.fromiter(self._owners, dtype=np.int64, count=len(self._owners))
            scattered = keys * _SCATTER % (1 << 32)
            first = keys[np.argsort(scattered, kind="stable")[:SAMPLED]]
            faiss_library()
            self._sample = first, self._index.reconstruct_batch(first)
        return self._sample

    def best_of(self, vector: "Vector", doc_ids: Collection[DocId]) -> dict[DocId, Hit]:
        """The best chunk of each document that has vectors."""
        query = self._query(vector)
        owners = {key: doc_id for doc_id in doc_ids for key in self._keys.get(doc_id, ())}
        keys = _join_keys(self._keys[doc_id] for doc_id in dict.fromkeys(owners.values()))
        found: dict[DocId, Hit] = {}
        # One call for all: calling FAISS takes longer than comparing one document's vectors.
        for key, score in _rank(self._finder_among(query, keys), len(keys), len(keys)):
            doc_id = owners[ChunkKey(key)]
            if doc_id not in found:
                found[doc_id] = Hit(ChunkKey(key), score)
        return found

    def vectors_of(self, keys: Collection[ChunkKey]) -> "dict[ChunkKey, Vector]":
        """The vectors of the chunks that have one."""
        import numpy as np

        known = [key for key in keys if key in self._owners]
        if not known:
            return {}
        faiss_library()
        rows = self._index.reconstruct_batch(np.array(known, dtype=np.int64))
        return dict(zip(known, rows, strict=True))

    def in_context(
        self, vector: "Vector", keys: Collection[ChunkKey], document_weight: float
    ) -> dict[ChunkKey, float]:
        """The similarity of chunks, each mixed with that of its whole document."""
        import numpy as np

        query = self._query(vector)[0]
        owners = {key: self._owners[key] for key in keys if key in self._owners}
        if not owners:
            return {}
        faiss_library()
        own = _products(self._index.reconstruct_batch(np.array([*owners], dtype=np.int64)), query)
        if document_weight <= 0:
            return dict(zip(owners, own, strict=True))
        documents = list(dict.fromkeys(owners.values()))
        # Three times as fast as np.stack.
        joined = np.concatenate([self._theme(doc_id) for doc_id in documents])
        means = _products(joined.reshape(len(documents), -1), query)
        themes = dict(zip(documents, means, strict=True))
        part = 1.0 - document_weight
        return {
            key: part * product + document_weight * themes[doc_id]
            for (key, doc_id), product in zip(owners.items(), own, strict=True)
        }

    def _bury(self, keys: "Keys") -> None:
        """Removing a vector moves every later one, so it is first overwritten with NaN: a product
        with NaN is never among the best.
        """
        import numpy as np

        self._dead.update(keys.tolist())
        if len(self._dead) > MOST_DEAD * self._index.ntotal:
            self._clear()
            return
        faiss, total = faiss_library(), self._index.ntotal
        numbers = faiss.rev_swig_ptr(self._index.id_map.data(), total)
        rows = faiss.rev_swig_ptr(self._flat.get_xb(), total * self.dimension)
        rows.reshape(total, self.dimension)[np.isin(numbers, keys)] = np.nan

    def _clear(self) -> None:
        faiss_library()
        self._index.remove_ids(_join_keys([array(KEY_CODE, self._dead)]))
        self._dead.clear()

    def _theme(self, doc_id: DocId) -> "Vector":
        """The normalised mean of a document's vectors; cached until the document changes."""
        import numpy as np

        known = self._themes.get(doc_id)
        if known is not None:
            return known
        keys = np.frombuffer(self._keys[doc_id], dtype=np.int64)
        faiss_library()
        mean = self._index.reconstruct_batch(keys).mean(axis=0)
        length = float(np.linalg.norm(mean))
        theme = mean / length if length > 0 else mean
        self._themes[doc_id] = theme
        return theme

    def _query(self, vector: "Vector") -> "Vector":
        import numpy as np

        if vector.shape != (self.dimension,):
            raise EmbeddingError(
                f"the query's vector has the shape {vector.shape}, but the index needs "
                f"({self.dimension},): they are from different models"
            )
        if not np.isfinite(vector).all():
            raise EmbeddingError("the query's vector has values that are not numbers")
        return np.ascontiguousarray(vector, dtype=np.float32).reshape(1, -1)

    def _finder(self, query: "Vector", params: object = None) -> "Find":
        def find(count: int) -> "tuple[Vector, Keys]":
            faiss_library()
            scores, keys = self._index.search(query, count, params=params)
            return scores[0], keys[0]

        return find

    def _finder_among(self, query: "Vector", keys: "Keys") -> "Find":
        """Uses the same arithmetic as the whole index, so that scores are identical."""
        import numpy as np

        def find(count: int) -> "tuple[Vector, Keys]":
            faiss = faiss_library()
            vectors = self._index.reconstruct_batch(keys)
            scores, rows = faiss.knn(query, vectors, count, metric=faiss.METRIC_INNER_PRODUCT)
            return scores[0], np.where(rows[0] < 0, rows[0], keys[rows[0]])

        return find


def _products(rows: "Vector", query: "Vector") -> list[float]:
    """Each row's inner product with the query, computed separately: `rows @ query` wakes BLAS's
    threads, which then spin, and a row's last bit would depend on the other rows.
    """
    import numpy as np

    return np.matmul(rows[:, np.newaxis, :], query[:, np.newaxis])[:, 0, 0].tolist()


def _join_keys(keys: "Iterable[array[int]]") -> "Keys":
    import numpy as np

    return np.frombuffer(b"".join(keys), dtype=np.int64)


def _restrict_to(keys: "Keys") -> object:
    """A bitmap of chunk numbers is tested twice as fast as a set."""
    import numpy as np

    faiss = faiss_library()
    size = int(keys.max()) + 1
    if size > BITMAP_LIMIT:
        return faiss.SearchParameters(sel=faiss.IDSelectorBatch(keys))
    wanted = np.zeros(size, dtype=np.bool_)
    wanted[keys] = True
    bitmap = np.packbits(wanted, bitorder="little")
    return faiss.SearchParameters(sel=faiss.IDSelectorBitmap(bitmap))


def _best(find: "Find", available: int, limit: int) -> list[Hit]:
    return [Hit(ChunkKey(key), score) for key, score in _rank(find, available, limit)]


def _rank(find: "Find", available: int, limit: int) -> list[tuple[int, float]]:
    """The best vectors; asks for more while there is a tie at the last place.

    FAISS returns the number -1 if it has no more, as when a stored vector is NaN.
    """
    import numpy as np

    wanted = min(limit, available)
    if wanted <= 0:
        return []
    asked = min(wanted + 1, available)
    scores, keys = find(asked)
    while asked < available and scores[asked - 1] == scores[wanted - 1]:
        asked = min(asked * TIES_GROWTH, available)
        scores, keys = find(asked)
    order = np.lexsort((keys, -scores))[:wanted]
    ranked = zip(keys[order].tolist(), scores[order].tolist(), strict=True)
    return [(key, score) for key, score in ranked if key >= 0]


# The store's vectors in memory. Never runs a model.
#
# Any thread may search while one catches up. A lock guards the vectors: searches are short and take
# turns; a catch-up reads the store before it takes the lock; one that starts over builds the new
# vectors beside the old ones, which go on answering until then.

_KINDS = frozenset({ChangeKind.UPSERT, ChangeKind.DELETE, ChangeKind.VECTORS})
_NO_MODEL = ""
COUNT_EVERY = 64
"""Counting the store's vectors costs more than catching up with an edit (specs/0018): it is done
once in so many catch-ups, and whenever vectors were removed without an entry in the change log, as
by pruning."""


class VectorModel(Protocol):
    """The part of an `Embedder` that this index needs. Read at each catch-up, because a model's
    identity may be decided only when it is loaded.
    """

    @property
    def identity(self) -> str: ...

    @property
    def dimension(self) -> int: ...


class VectorIndex:
    """The vectors of one model; safe to use from several threads.

    All similarities are mapped to the scale of the built-in model's cosines, unless the model
    `is_usual` and needs no mapping.
    """

    def __init__(self, model: VectorModel, *, is_usual: bool = True) -> None:
        self._model = model
        self._is_usual = is_usual
        self._identity = _NO_MODEL
        self._vectors: FlatVectors | None = None
        self._progress = AppliedCommit()
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
        """Brings the index up to date with the snapshot: reads changed documents, or all.

        Raises IndexCorrupt if the store's vectors are damaged; the index then stays as it was.
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
        """Makes the next catch-up start over: the store has lost commits that were applied."""
        with self._catching_up:
            self._progress.forget()

    def search(self, vector: "Vector", limit: int, scope: Scope = None) -> list[Hit]:
        """At most `limit` chunks within the scope, best first, by their cosines.

        Raises EmbeddingError for a vector that cannot be of this model.
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
        """The similarity of the chunks that have a vector: their own cosine, mixed by
        `document_weight` with that of their document's mean vector.
        """
        with self._lock:
            if self._vectors is None:
                return {}
            near = self._vectors.in_context(vector, keys, document_weight)
            if (scale := self._scale()) is None:
                return near
            return {key: scale.of(cosine) for key, cosine in near.items()}

    def spread(self, vector: "Vector") -> float:
        """The standard deviation of the vector's cosines with arbitrary passages."""
        with self._lock:
            if self._vectors is None:
                return USUAL_SPREAD
            scale = self._scale() or CosineScale()
            return scale.factor * self._vectors.spread(vector)

    @property
    def scale(self) -> CosineScale:
        """Maps this model's cosines to the common scale."""
        with self._lock:
            return self._scale() or CosineScale()

    def _scale(self) -> CosineScale | None:
        if self._is_usual or self._vectors is None:
            return None
        return self._vectors.scale()

    def vectors_of(self, keys: Collection[ChunkKey]) -> "dict[ChunkKey, Vector]":
        """The vectors of the chunks that have one."""
        with self._lock:
            if self._vectors is None:
                return {}
            return self._vectors.vectors_of(keys)

    def _start_over(self, identity: str) -> None:
        """Another model's vectors cannot be compared, even with the same dimension."""
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
                f"the store gives {len(vectors)} vectors and counts {expected}", REBUILD
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
    """How many chunks have a vector: all that need one, minus those without one of this model."""
    return snapshot.count_missing_embeddings(_NO_MODEL) - snapshot.count_missing_embeddings(
        identity
    )
