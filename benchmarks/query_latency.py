"""The cost of a warm hybrid query compared with the bare calls that it needs.

A real store of synthetic notes in the words of the built-in model's own vocabulary, which are
real English words, the commonest first. They are drawn by Zipf's law, each note with a few words
of its own that it repeats, and each note links to some others. The vectors are seeded random
ones: a model would need hours for 100,000 passages, and FAISS takes as long for any. Keyword and
vector search so agree on nothing, which is the dearest case: a query reads as many chunks as it
can. Questions are embedded by the real model.

For each question, in turn: one embedding; one FAISS search for the best 100; one FTS5 `MATCH
'a OR b OR c'` for the best 100 with the same weights; and a whole `QueryOrchestrator.search` with
default settings. Their wall clock, and the search's CPU time. Then where the time of a search goes.

    python benchmarks/query_latency.py [--chunks 10000 100000] [--rounds 3] [--folder DIR]
"""

import argparse
import functools
import os
import platform
import random
import sqlite3
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from itertools import islice
from pathlib import Path

import faiss
import numpy as np
from numpy.typing import NDArray
from query_breakdown import show_breakdown
from readings import Reading, note

from ragdocs.chunking.chunker import ChunkSizes, chunk_document
from ragdocs.chunking.splitting import Limits
from ragdocs.config.settings import BoostsConfig, ChunkingConfig, SearchConfig
from ragdocs.embedding.builtin import DIMENSION, BuiltinEmbedder
from ragdocs.indices.analysis import code_analyzer, text_analyzer
from ragdocs.indices.code import CodeEngine, CodeIndex
from ragdocs.indices.embedded import EmbeddedIndex, EmbeddedIndices
from ragdocs.indices.engines import keyword_setup
from ragdocs.indices.graph import detect, pair_weights
from ragdocs.indices.keyword import FIELDS
from ragdocs.indices.signatures import SignatureIndex
from ragdocs.indices.term_vectors import TermVectors
from ragdocs.indices.vector import VectorIndex
from ragdocs.indices.vocabulary import Vocabulary, VocabularyIndex
from ragdocs.models import FileState, IndexedFile, TreeName
from ragdocs.parsers.markdown import Origin, parse_document
from ragdocs.search.orchestrator import QueryOrchestrator, Surroundings
from ragdocs.search.requests import QueryRequest
from ragdocs.search.retrieval import QueryTools
from ragdocs.store.database import store_path
from ragdocs.store.reader import Reader
from ragdocs.store.records import PendingText
from ragdocs.store.tables import CommunityOrigin
from ragdocs.store.writer import StoreWriter

PASSAGES, WORDS_PER_PASSAGE = 10, 90
OWN_WORDS, OWN_SHARE = 40, 0.25
LINKS = 4
LIMIT = 100
QUESTIONS = 100
DOCUMENTS_PER_COMMIT = 500
READ_NS = 1_700_000_000_000_000_000
NOW = datetime(2026, 1, 1, tzinfo=UTC)
SETTINGS = SearchConfig()
ANALYZER = text_analyzer(SETTINGS.stemmer)
FORMS = ("how do I {} the {} of a {}", "{} {} and {}", "why is {} not {} with {} {}", "{} {} {} {}")

Vectors = NDArray[np.float32]


class Words:
    """Words by Zipf's law; the model's vocabulary has them in the order of their frequency."""

    def __init__(self, embedder: BuiltinEmbedder, seed: int) -> None:
        pieces = embedder._model().pieces._tokenizer.get_vocab()
        ordered = sorted(pieces, key=lambda piece: pieces[piece])
        self.words = np.array([w for w in ordered if w.isascii() and w.isalpha() and len(w) > 1])
        chances = 1.0 / (np.arange(len(self.words)) + 2.7)
        self._sums = np.cumsum(chances / chances.sum())
        self._generator = np.random.default_rng(seed)

    def draw(self, count: int) -> NDArray[np.str_]:
        places = np.searchsorted(self._sums, self._generator.random(count))
        return self.words[np.minimum(places, len(self.words) - 1)]

    def passage(self, own: NDArray[np.str_]) -> NDArray[np.str_]:
        words = self.draw(WORDS_PER_PASSAGE)
        is_own = self._generator.random(WORDS_PER_PASSAGE) < OWN_SHARE
        return np.where(is_own, self._generator.choice(own, WORDS_PER_PASSAGE), words)


def notes(words: Words, count: int) -> Iterator[IndexedFile]:
    chosen = random.Random(3)
    sizes = ChunkingConfig()
    limits = ChunkSizes(
        leaf=Limits(sizes.min_leaf_chars, sizes.max_leaf_chars),
        small_document=sizes.min_document_chars,
        overlap=sizes.overlap_chars,
    )
    for number in range(count):
        own = words.draw(OWN_WORDS)
        parts = [f"# {' '.join(own[:3])}"]
        for _ in range(PASSAGES):
            parts.append(f"## {' '.join(words.draw(3))}")
            parts.append(f"{' '.join(words.passage(own))}.")
        parts.append(" ".join(f"[[{chosen.randrange(count)}]]" for _ in range(LINKS)))
        text = "\n\n".join(parts)
        origin = Origin(TreeName("docs"), f"{number % 50}/{number}.md", READ_NS)
        parsed = parse_document(text.encode(), origin)
        state = FileState(len(text), READ_NS, str(number))
        yield IndexedFile(state, parsed, chunk_document(parsed, limits))


def questions(words: Words) -> list[str]:
    """Words that people ask about: none of the 200 commonest, and some that are rare."""
    chosen = random.Random(4)
    common = set(words.words[:200])
    found: list[str] = []
    while len(found) < QUESTIONS:
        form = FORMS[len(found) % len(FORMS)]
        drawn = [word for word in words.draw(60) if word not in common]
        found.append(form.format(*chosen.sample(drawn, form.count("{}"))))
    return found


def unit_vectors(generator: np.random.Generator, count: int) -> Vectors:
    rows = generator.standard_normal((count, DIMENSION), dtype=np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def writer_of(directory: Path) -> StoreWriter:
    keyword = keyword_setup(SETTINGS, ANALYZER, directory)
    code, vocabulary = CodeIndex(code_analyzer()), VocabularyIndex(SETTINGS.stemmer)
    tables = [*keyword.tables, code, SignatureIndex(), vocabulary]
    return StoreWriter.open(directory, "bench", indices=tables)


def build(writer: StoreWriter, reader: Reader, embedder: BuiltinEmbedder, chunks: int) -> None:
    generator = np.random.default_rng(1)
    files = notes(Words(embedder, 1), chunks // PASSAGES)
    while part := list(islice(files, DOCUMENTS_PER_COMMIT)):
        with writer.transaction() as transaction:
            for file in part:
                transaction.put(file, READ_NS)
        with reader.snapshot() as snapshot:
            doc_ids = [file.document.id for file in part]
            texts = snapshot.missing_embeddings(embedder.identity, doc_ids)
        store_vectors(writer, embedder, texts, unit_vectors(generator, len(texts)))
    with reader.snapshot() as snapshot:
        origin = CommunityOrigin(snapshot.position, snapshot.edges_digest())
        numbers = detect(pair_weights(snapshot.all_links())) or {}
    with writer.transaction() as transaction:
        transaction.put_communities(numbers, origin)


def embed_terms(writer: StoreWriter, reader: Reader, embedder: BuiltinEmbedder) -> None:
    """For query expansion, and by the real model: what it adds depends on it."""
    most = SETTINGS.query_expansion_max_terms
    with reader.snapshot() as snapshot:
        terms = TermVectors(embedder, Vocabulary(ANALYZER), limit=most)
        texts = terms.missing(snapshot, limit=most)
    if texts:
        store_vectors(
            writer, embedder, texts, embedder.embed_documents([text.text for text in texts])
        )


def store_vectors(
    writer: StoreWriter, embedder: BuiltinEmbedder, texts: Sequence[PendingText], rows: Vectors
) -> None:
    vectors = [(text.text_hash, row.tobytes()) for text, row in zip(texts, rows, strict=True)]
    with writer.transaction() as transaction:
        transaction.put_embeddings(embedder.identity, vectors)


class Bare:
    """The three calls, by the libraries themselves."""

    def __init__(self, reader: Reader, directory: Path, embedder: BuiltinEmbedder) -> None:
        self._embedder = embedder
        self._index = faiss.IndexIDMap2(faiss.IndexFlatIP(DIMENSION))
        with reader.snapshot() as snapshot:
            for batch in snapshot.vectors(embedder.identity):
                self._index.add_with_ids(batch.array(), np.array(batch.keys, dtype=np.int64))
        self._connection = sqlite3.connect(f"file:{store_path(directory)}?mode=ro", uri=True)
        self._connection.execute("PRAGMA cache_size = -32768")
        weights = ", ".join(str(getattr(BoostsConfig(), field)) for field in FIELDS)
        # Sorted by an expression: SQLite then keeps the best 100 only. By the table's own hidden
        # column `rank`, FTS5 sorts all rows first, and that takes longer.
        self._select = (
            f"SELECT rowid, bm25(keyword, {weights}) AS rank FROM keyword "
            f"WHERE keyword MATCH ? ORDER BY rank LIMIT {LIMIT}"
        )

    def __len__(self) -> int:
        return self._index.ntotal

    def embed(self, question: str) -> Vectors:
        return self._embedder.embed_query(question)

    def vector(self, vector: Vectors) -> None:
        faiss.omp_set_num_threads(1)
        self._index.search(vector.reshape(1, -1), LIMIT)

    def keyword(self, question: str) -> None:
        terms = dict.fromkeys(token.term for token in ANALYZER.query(question))
        expression = " OR ".join(f'"{term}"' for term in terms)
        self._connection.execute(self._select, (expression,)).fetchall()


def engine(directory: Path, reader: Reader, embedder: BuiltinEmbedder) -> QueryOrchestrator:
    vocabulary = Vocabulary(ANALYZER)
    terms = TermVectors(embedder, vocabulary, limit=SETTINGS.query_expansion_max_terms)
    indices = EmbeddedIndices(
        keyword=keyword_setup(SETTINGS, ANALYZER, directory).engine,
        code=CodeEngine(code_analyzer(), ANALYZER),
        vocabulary=vocabulary,
        vector=VectorIndex(embedder),
        terms=terms,
    )
    index = EmbeddedIndex(reader, indices)
    with index.view():
        pass  # catches up
    tools = QueryTools(analyzer=ANALYZER, embedder=embedder)
    return QueryOrchestrator(index, tools, SETTINGS, Surroundings(clock=lambda: NOW))


@dataclass
class Samples:
    """Milliseconds by what took them."""

    taken: defaultdict[str, list[float]]

    def measure(self, name: str, work: Callable[[], object]) -> object:
        start = time.perf_counter()
        result = work()
        self.taken[name].append((time.perf_counter() - start) * 1000)
        return result

    def quantile(self, name: str, part: float) -> float:
        return float(np.quantile(self.taken[name], part))


def compare(bare: Bare, search: QueryOrchestrator, asked: Sequence[str], rounds: int) -> Samples:
    samples = Samples(defaultdict(list))
    for number in range(rounds + 1):
        if number == 1:
            samples.taken.clear()  # the first round only warmed the caches
        for question in asked:
            start = time.process_time()
            vector = samples.measure("embed", functools.partial(bare.embed, question))
            samples.measure("faiss", functools.partial(bare.vector, vector))
            samples.measure("fts5", functools.partial(bare.keyword, question))
            parts = [samples.taken[name][-1] for name in ("embed", "faiss", "fts5")]
            samples.taken["sum"].append(sum(parts))
            samples.taken["sum, CPU"].append((time.process_time() - start) * 1000)
            start = time.process_time()
            request = QueryRequest(queries=(question,))
            samples.measure("search", functools.partial(search.search, request))
            samples.taken["search, CPU"].append((time.process_time() - start) * 1000)
    return samples


def show(samples: Samples, chunks: int) -> None:
    for name in ("embed", "faiss", "fts5", "sum", "search", "sum, CPU", "search, CPU"):
        halves = f"{samples.quantile(name, 0.5):9.3f} {samples.quantile(name, 0.95):9.3f}"
        print(f"    {name:28} {halves}")
        note_latency(samples, name, chunks)
    for part, target in ((0.5, 1.5), (0.95, 3.0)):
        ratio = samples.quantile("search", part) / samples.quantile("sum", part)
        cpu = samples.quantile("search, CPU", part) / samples.quantile("sum, CPU", part)
        at = f"p{part * 100:.0f}"
        print(f"  search / sum at {at}: {ratio:.2f} (at most {target}); CPU {cpu:.2f}")
        note_ratio("search / sum", at, ratio, chunks)
        note_ratio("search / sum", f"{at}, CPU", cpu, chunks)
    ratio = samples.quantile("search", 0.5) / samples.quantile("embed", 0.5)
    print(f"  search / embed at p50: {ratio:.2f} (at most 2 at 10,000 chunks)")
    note_ratio("search / embed", "p50", ratio, chunks)


def note_latency(samples: Samples, name: str, chunks: int) -> None:
    for at, part in (("p50", 0.5), ("p95", 0.95)):
        value = samples.quantile(name, part)
        note(Reading(what="latency", of=name, value=value, unit="ms", at=at, size=chunks))


def note_ratio(of: str, at: str, value: float, chunks: int) -> None:
    note(Reading(what="ratio", of=of, value=value, unit="x", at=at, size=chunks))


def run(directory: Path, embedder: BuiltinEmbedder, chunks: int, rounds: int) -> None:
    start = time.perf_counter()
    is_new = not store_path(directory).exists()
    with writer_of(directory) as writer, Reader.open(directory) as reader:
        if is_new:
            build(writer, reader, embedder, chunks)
        if SETTINGS.query_expansion_enabled:
            embed_terms(writer, reader, embedder)
    built = time.perf_counter() - start
    asked = questions(Words(embedder, 2))
    with Reader.open(directory) as reader:
        bare, search = Bare(reader, directory, embedder), engine(directory, reader, embedder)
        print(f"{len(bare)} chunks with vectors, made in {built:.0f} s")
        print(f"  milliseconds                       p50       p95   ({len(asked)} questions)")
        show(compare(bare, search, asked, rounds), chunks)
        show_breakdown(search, asked)
        search.close()


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--chunks", type=int, nargs="+", default=[10_000, 100_000])
    arguments.add_argument("--rounds", type=int, default=3)
    arguments.add_argument("--folder", type=Path, help="keep the stores here and use them again")
    options = arguments.parse_args()
    embedder = BuiltinEmbedder(threads=1)
    embedder.load()
    print(
        f"Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}, "
        f"faiss-cpu {version('faiss-cpu')}, onnxruntime {version('onnxruntime')}, "
        f"numpy {np.__version__}, {platform.machine()}, {os.cpu_count()} cores, "
        f"model {embedder.precision}, {options.rounds} rounds"
    )
    with tempfile.TemporaryDirectory() as temporary:
        for chunks in options.chunks:
            folder = (options.folder or Path(temporary)) / str(chunks)
            folder.mkdir(parents=True, exist_ok=True)
            run(folder, embedder, chunks, options.rounds)


if __name__ == "__main__":
    main()
