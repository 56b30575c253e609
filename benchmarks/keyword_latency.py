"""The cost of a keyword-only query for each keyword engine, and how it grows with the notes.

The notes and questions are those of `query_latency.py`: seeded, in real English words by Zipf's
law. There are no vectors and there is no model, so nothing is embedded. For each question two
things are measured apart, each warm and in CPU time of the whole process: the engine's own part
(the best 100 chunks of a query that is understood already), and a whole answer as `query` gives
it, with spelling, code, links, stages, snippets and match ranges.

    python benchmarks/keyword_latency.py [--chunks 1000 10000 100000] [--rounds 2] [--folder DIR]

With `--json FILE` the figures are written there too, a line for each size and engine.
"""

import argparse
import json
import os
import platform
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from importlib.metadata import version
from itertools import islice
from pathlib import Path

import numpy as np
from query_latency import (
    ANALYZER,
    DOCUMENTS_PER_COMMIT,
    LIMIT,
    NOW,
    PASSAGES,
    READ_NS,
    SETTINGS,
    Words,
    notes,
    questions,
    writer_of,
)

from ragdocs.config.choices import KeywordEngineName
from ragdocs.embedding.builtin import BuiltinEmbedder
from ragdocs.indices.analysis import code_analyzer
from ragdocs.indices.code import CodeEngine
from ragdocs.indices.embedded import EmbeddedIndex, EmbeddedIndices
from ragdocs.indices.engines import KeywordEngine, keyword_setup
from ragdocs.indices.keyword import compile_query, search_in_tiers
from ragdocs.indices.vocabulary import Vocabulary
from ragdocs.search.orchestrator import QueryOrchestrator, Surroundings
from ragdocs.search.query_language import parse_query
from ragdocs.search.requests import QueryRequest
from ragdocs.search.retrieval import QueryTools
from ragdocs.store.database import store_path
from ragdocs.store.reader import Reader

SIZES = (1_000, 3_000, 10_000, 30_000, 100_000)
TARGET_CHUNKS, TARGET_P50, TARGET_P95 = 10_000, 10.0, 25.0
"""Milliseconds of CPU for a whole answer, of FTS5 and of tantivy."""


def build(directory: Path, words: Words, chunks: int) -> None:
    files = notes(words, chunks // PASSAGES)
    with writer_of(directory) as writer:
        while part := list(islice(files, DOCUMENTS_PER_COMMIT)):
            with writer.transaction() as transaction:
                for file in part:
                    transaction.put(file, READ_NS)


def engine_of(directory: Path, choice: KeywordEngineName) -> KeywordEngine:
    settings = SETTINGS.model_copy(update={"keyword_engine": choice})
    return keyword_setup(settings, ANALYZER, directory).engine


@contextmanager
def whole_search(reader: Reader, engine: KeywordEngine) -> Iterator[QueryOrchestrator]:
    indices = EmbeddedIndices(
        keyword=engine,
        code=CodeEngine(code_analyzer(), ANALYZER),
        vocabulary=Vocabulary(ANALYZER),
    )
    index, tools = EmbeddedIndex(reader, indices), QueryTools(analyzer=ANALYZER)
    with index.view():
        pass  # catches up
    search = QueryOrchestrator(index, tools, SETTINGS, Surroundings(clock=lambda: NOW))
    try:
        yield search
    finally:
        search.close()


def engine_call(reader: Reader, engine: KeywordEngine) -> Callable[[str], object]:
    def call(question: str) -> object:
        with reader.snapshot() as snapshot:
            query = compile_query(parse_query(question), ANALYZER)
            return search_in_tiers(partial(engine.search, snapshot), query, LIMIT)

    return call


def measured(work: Callable[[str], object], asked: Sequence[str], rounds: int) -> list[float]:
    """CPU milliseconds; the first round only warms the caches."""
    taken: list[float] = []
    for number in range(rounds + 1):
        for question in asked:
            start = time.process_time()
            work(question)
            if number:
                taken.append((time.process_time() - start) * 1000)
    return taken


def halves(taken: Sequence[float]) -> str:
    return f"{np.quantile(taken, 0.5):8.2f} {np.quantile(taken, 0.95):8.2f}"


def verdict(choice: KeywordEngineName, chunks: int, taken: Sequence[float]) -> str:
    if chunks != TARGET_CHUNKS or choice is KeywordEngineName.WHOOSH:
        return ""
    is_met = np.quantile(taken, 0.5) < TARGET_P50 and np.quantile(taken, 0.95) < TARGET_P95
    word = "met" if is_met else "NOT met"
    return f"  target {TARGET_P50:g} / {TARGET_P95:g} ms: {word}"


def run(
    directory: Path, choice: KeywordEngineName, asked: Sequence[str], options: argparse.Namespace
) -> None:
    chunks = int(directory.name)
    with Reader.open(directory) as reader:
        engine = engine_of(directory, choice)
        start = time.process_time()
        with reader.snapshot() as snapshot:
            engine.catch_up(snapshot)
        made = time.process_time() - start
        own = measured(engine_call(reader, engine), asked, options.rounds)
        with whole_search(reader, engine) as search:
            whole = measured(
                lambda question: search.search(QueryRequest(queries=(question,))),
                asked,
                options.rounds,
            )
    print(
        f"{chunks:>8} {choice.value:8} {halves(own)}   {halves(whole)}   {made:8.1f}"
        f"{verdict(choice, chunks, whole)}",
        flush=True,
    )
    if options.json:
        figures = {"chunks": chunks, "engine": choice.value, "making_seconds": made}
        parts = {"engine_ms": own, "answer_ms": whole}
        quantiles = {
            f"{name}_p{part}": float(np.quantile(taken, part / 100))
            for name, taken in parts.items()
            for part in (50, 95)
        }
        with options.json.open("a", encoding="utf-8") as file:
            file.write(json.dumps(figures | quantiles) + "\n")


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--chunks", type=int, nargs="+", default=list(SIZES))
    arguments.add_argument(
        "--engines", nargs="+", default=[each.value for each in KeywordEngineName]
    )
    arguments.add_argument("--rounds", type=int, default=2)
    arguments.add_argument("--folder", type=Path, help="keep the stores here and use them again")
    arguments.add_argument("--json", type=Path, help="add the figures to this file")
    options = arguments.parse_args()
    embedder = BuiltinEmbedder(threads=1)
    embedder.load()
    asked = questions(Words(embedder, 2))
    print(
        f"Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}, "
        f"tantivy {version('tantivy')}, whoosh {version('whoosh')}, {platform.machine()}, "
        f"{os.cpu_count()} cores, {len(asked)} questions, {options.rounds} rounds"
    )
    print("CPU ms              engine's part       whole answer     making it, s", flush=True)
    print("  chunks engine        p50      p95        p50      p95", flush=True)
    with tempfile.TemporaryDirectory() as temporary:
        for chunks in options.chunks:
            directory = (options.folder or Path(temporary)) / str(chunks)
            directory.mkdir(parents=True, exist_ok=True)
            if not store_path(directory).exists():
                build(directory, Words(embedder, 1), chunks)
            for name in options.engines:
                run(directory, KeywordEngineName(name), asked, options)


if __name__ == "__main__":
    main()
