"""The cost of the vector index compared with bare FAISS, and of catching up versus a rebuild.

A real store of synthetic documents, ten passages each, with seeded random unit vectors of 384
dimensions in place of a model's. Contenders take turns in one process, so that a busy machine slows
all alike; the figures that count are the ratios. Also: reading all vectors from the store beside
what a checkpoint file would cost (its checksum and FAISS's own reading).

    python benchmarks/vector_index.py [--sizes 10000 100000] [--rounds 30]
"""

import argparse
import hashlib
import platform
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path

import faiss
import numpy as np
from numpy.typing import NDArray
from readings import Reading, note

from ragdocs.chunking.chunker import ChunkSizes, chunk_document
from ragdocs.chunking.splitting import Limits
from ragdocs.indices.vector import VectorIndex
from ragdocs.models import DocId, FileState, IndexedFile, TreeName
from ragdocs.parsers.markdown import Origin, parse_document
from ragdocs.store.reader import Reader
from ragdocs.store.snapshot import Snapshot
from ragdocs.store.writer import StoreWriter

DIMENSION = 384
PASSAGES = 10
LIMIT = 100
DOCUMENTS_PER_COMMIT = 500
READ_NS = 1_700_000_000_000_000_000
SIZES = ChunkSizes(leaf=Limits(1, 1000), small_document=0, overlap=0)

Vectors = NDArray[np.float32]


@dataclass(frozen=True)
class Model:
    """Stands for an embedder: only its name and dimension are asked for."""

    identity: str = "synthetic;seed=1"
    dimension: int = DIMENSION


def unit_vectors(generator: np.random.Generator, count: int) -> Vectors:
    rows = generator.standard_normal((count, DIMENSION), dtype=np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def document(number: int, version: int = 0) -> IndexedFile:
    text = "".join(
        f"# Part {part}\n\nPassage {part} of note {number}, version {version}.\n\n"
        for part in range(PASSAGES)
    )
    parsed = parse_document(text.encode(), Origin(TreeName("docs"), f"{number}.md", READ_NS))
    state = FileState(len(text), READ_NS, f"{number}-{version}")
    return IndexedFile(state, parsed, chunk_document(parsed, SIZES))


class Corpus:
    """A store that is written to and read."""

    def __init__(self, writer: StoreWriter, reader: Reader) -> None:
        self.writer, self.reader = writer, reader
        self.model = Model()
        self._generator = np.random.default_rng(1)

    def put(self, files: list[IndexedFile]) -> None:
        with self.writer.transaction() as transaction:
            for file in files:
                transaction.put(file, READ_NS)
        doc_ids = [file.document.id for file in files]
        with self.reader.snapshot() as snapshot:
            texts = snapshot.missing_embeddings(self.model.identity, doc_ids)
        rows = unit_vectors(self._generator, len(texts))
        vectors = [(text.text_hash, row.tobytes()) for text, row in zip(texts, rows, strict=True)]
        with self.writer.transaction() as transaction:
            transaction.put_embeddings(self.model.identity, vectors)


@contextmanager
def corpus_of(chunks: int) -> Iterator[Corpus]:
    with tempfile.TemporaryDirectory() as folder:
        directory = Path(folder) / "index"
        with StoreWriter.open(directory, "bench") as writer, Reader.open(directory) as reader:
            corpus = Corpus(writer, reader)
            count = chunks // PASSAGES
            for first in range(0, count, DOCUMENTS_PER_COMMIT):
                last = min(first + DOCUMENTS_PER_COMMIT, count)
                corpus.put([document(number) for number in range(first, last)])
            yield corpus


def timed(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return (time.perf_counter() - start) * 1000


def in_turn(rounds: int, works: dict[str, Callable[[], object]]) -> dict[str, float]:
    """Milliseconds, the median of each."""
    times: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(rounds):
        for name, work in works.items():
            times[name].append(timed(work))
    return {name: statistics.median(found) for name, found in times.items()}


def show(times: dict[str, float], bare: str, size: int) -> None:
    for name, taken in times.items():
        ratio = taken / times[bare]
        print(f"  {name:44} {taken:9.3f} ms   {ratio:6.2f} x")
        note(
            Reading(what="time", of=name, value=taken, unit="ms", at="clock", size=size),
            Reading(what="ratio", of=f"{name} / {bare}", value=ratio, unit="x", size=size),
        )


def bare_index(snapshot: Snapshot, model: Model) -> faiss.IndexIDMap2:
    index = faiss.IndexIDMap2(faiss.IndexFlatIP(DIMENSION))
    for batch in snapshot.vectors(model.identity):
        index.add_with_ids(batch.array(), np.array(batch.keys, dtype=np.int64))
    return index


def built(corpus: Corpus) -> VectorIndex:
    view = VectorIndex(corpus.model)
    with corpus.reader.snapshot() as snapshot:
        view.catch_up(snapshot)
    return view


def searching(corpus: Corpus, rounds: int) -> None:
    view = built(corpus)
    with corpus.reader.snapshot() as snapshot:
        index = bare_index(snapshot, corpus.model)
    query = unit_vectors(np.random.default_rng(2), 1)[0]
    count = len(view) // PASSAGES

    def scoped(documents: int) -> Callable[[], object]:
        scope = frozenset(DocId(f"docs:{number}.md") for number in range(documents))
        return lambda: view.search(query, LIMIT, scope)

    works: dict[str, Callable[[], object]] = {
        "bare faiss": lambda: index.search(query.reshape(1, -1), LIMIT),
        "search": lambda: view.search(query, LIMIT),
        "search within 1 document": scoped(1),
        "search within 100 documents": scoped(100),
        "search within a tenth": scoped(count // 10),
        "search within half": scoped(count // 2),
        "search within all": scoped(count),
        "vectors of 60 chunks": lambda: view.vectors_of(hits),
    }
    hits = [hit.key for hit in view.search(query, 60)]
    show(in_turn(rounds, works), "bare faiss", len(view))


def catching_up(corpus: Corpus, rounds: int) -> None:
    view = built(corpus)
    times: defaultdict[str, list[float]] = defaultdict(list)

    def counted(snapshot: Snapshot) -> None:
        for model in ("", corpus.model.identity):
            snapshot.count_missing_embeddings(model)

    for number in range(rounds):
        corpus.put([document(number, version=1)])
        with corpus.reader.snapshot() as snapshot:
            fresh = VectorIndex(corpus.model)
            times["catch up with one edit"].append(timed(partial(view.catch_up, snapshot)))
            times["start over"].append(timed(partial(fresh.catch_up, snapshot)))
            times["count the store's vectors"].append(timed(partial(counted, snapshot)))
    medians = {name: statistics.median(taken) for name, taken in times.items()}
    show(medians, "start over", len(view))


def starting(corpus: Corpus, rounds: int) -> None:
    """What a checkpoint would save, without what it costs to write and to keep."""
    with corpus.reader.snapshot() as snapshot:
        index = bare_index(snapshot, corpus.model)
        data = faiss.serialize_index(index).tobytes()
        path = Path(tempfile.mkdtemp()) / "checkpoint"
        path.write_bytes(data)

        def load() -> None:
            read = path.read_bytes()
            hashlib.blake2b(read).digest()
            faiss.deserialize_index(np.frombuffer(read, dtype=np.uint8))

        works: dict[str, Callable[[], object]] = {
            "start from the store": lambda: built(corpus),
            "only read its vectors": lambda: sum(
                len(batch.keys) for batch in snapshot.vectors(corpus.model.identity)
            ),
            "read, check and open a checkpoint": load,
            "make and write a checkpoint": lambda: path.write_bytes(
                faiss.serialize_index(index).tobytes()
            ),
        }
        show(in_turn(rounds, works), "start from the store", index.ntotal)
        path.unlink()
        path.parent.rmdir()
        print(f"  a checkpoint has {len(data) / 1e6:.0f} MB")


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--sizes", type=int, nargs="+", default=[10_000, 100_000])
    arguments.add_argument("--rounds", type=int, default=30)
    options = arguments.parse_args()
    faiss.omp_set_num_threads(1)
    print(
        f"Python {platform.python_version()}, faiss-cpu {version('faiss-cpu')}, "
        f"numpy {np.__version__}, {platform.machine()}, {options.rounds} rounds, medians"
    )
    for size in options.sizes:
        with corpus_of(size) as corpus:
            print(f"{size} vectors of {DIMENSION} dimensions, best {LIMIT}")
            searching(corpus, options.rounds)
            catching_up(corpus, max(3, options.rounds // 5))
            starting(corpus, max(3, options.rounds // 10))


if __name__ == "__main__":
    main()
