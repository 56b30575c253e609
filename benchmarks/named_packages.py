"""What the packages that the source documents name would cost in place of what is used here.

CPU time of this process, each pair by turns within one run. Three parts:

- `graph`: the links between documents as a NetworkX `MultiDiGraph` and in dictionaries, with the
  same rules of weight; building it, ten hits' neighbours, one edited document, memory; and what
  importing NetworkX takes by itself.
- `words`: Whoosh with its own analysis, parser and BM25F, as printed there, against FTS5 inside
  the store: nDCG@10 of the list alone, a query, building it, one edited document.
- `code`: the same for blocks of code, with the analyzer printed there.

    python benchmarks/named_packages.py [SET ...] [--parts graph words code]
        [--nodes 10000] [--edges 50000] [--rounds 5]
"""

import argparse
import random
import re
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import networkx as nx
from places import shared_set
from quality import index
from readings import Reading, note
from whoosh.analysis import Filter, LowercaseFilter, RegexTokenizer, StemmingAnalyzer, Token
from whoosh.fields import ID, KEYWORD, TEXT, Schema
from whoosh.index import Index, create_in
from whoosh.qparser import AndGroup, MultifieldParser, OrGroup, QueryParser
from whoosh.scoring import BM25F

from ragdocs.app import App
from ragdocs.config.choices import Stemmer
from ragdocs.config.settings import BoostsConfig, SearchConfig
from ragdocs.evaluation.labelled_set import LabelledSet, read_set
from ragdocs.evaluation.run import Answers, Judge, settings_for
from ragdocs.indices.analysis import code_analyzer, text_analyzer
from ragdocs.indices.code import CodeEngine
from ragdocs.indices.engines import keyword_setup
from ragdocs.indices.fts5 import join_terms
from ragdocs.indices.graph import EDGE_WEIGHTS, Edge, _Links, damping, spread
from ragdocs.indices.keyword import FIELDS, compile_query, field_texts
from ragdocs.models import DocId, LinkKind, QueryField
from ragdocs.search.query_language import parse_query
from ragdocs.store.snapshot import Snapshot

SETS = ("obsidian-help", "anthropic-docs-sections", "codebase-qa")
LIMIT = 100
HITS = 10
WITHIN, GROUP = 0.8, 50
"""The share of links within groups, and the size of a group."""
COLUMNS = [field for field in FIELDS if field is not QueryField.PATH]
"""The fields that are printed there."""


def main() -> None:
    parser = argparse.ArgumentParser(description="The named packages beside what is used here.")
    parser.add_argument("sets", nargs="*", type=Path)
    parser.add_argument("--parts", nargs="+", default=["graph", "words", "code"])
    parser.add_argument("--nodes", type=int, default=10_000)
    parser.add_argument("--edges", type=int, default=50_000)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    if "graph" in given.parts:
        measure_graph(given.nodes, given.edges, given.rounds)
    there = given.sets or [found for name in SETS if (found := shared_set(name))]
    for folder in there:
        for part in ("words", "code"):
            if part in given.parts:
                measure_texts(read_set(folder), part, given.rounds)


class Timed:
    """CPU milliseconds of pairs of things, by what is done and by whom."""

    def __init__(self) -> None:
        self._taken: dict[tuple[str, str], list[float]] = {}

    @contextmanager
    def taking(self, what: str, who: str) -> Iterator[None]:
        began = time.process_time()
        yield
        self._taken.setdefault((what, who), []).append((time.process_time() - began) * 1000)

    def show(self, ours: str, named: str, where: str) -> None:
        print(f"| {where} | {ours} | {named} | {named} / {ours} |\n|---|--:|--:|--:|")
        for what in dict.fromkeys(what for what, _ in self._taken):
            here, there = (
                statistics.median(self._taken[what, who]) if (what, who) in self._taken else 0.0
                for who in (ours, named)
            )
            ratio = f"{there / here:.2f}" if here else ""
            print(f"| {what} | {here:.2f} ms | {there:.2f} ms | {ratio} |")
            reading = {"what": "ratio", "of": f"{named} / {ours}: {what}", "at": "CPU"}
            if here:
                note(Reading(**reading, where=where, value=there / here))
        print()


# The graph


class NetworkLinks:
    """The links in a NetworkX graph, with the rules of `ragdocs.indices.graph`."""

    def __init__(self) -> None:
        self._graph: nx.MultiDiGraph[DocId] = nx.MultiDiGraph()
        self._adjacent: dict[DocId, Mapping[DocId, float]] = {}

    def add(self, edges: Iterable[Edge]) -> None:
        self._adjacent.clear()
        for edge in edges:
            self._graph.add_edge(edge.source, edge.target, key=edge.kind)

    def replace(self, source: DocId, edges: frozenset[Edge]) -> None:
        old = frozenset(
            Edge(source, target, kind)
            for _, target, kind in self._graph.out_edges(source, keys=True)
        )
        self._graph.remove_edges_from([(e.source, e.target, e.kind) for e in old - edges])
        self.add(edges - old)

    def adjacent(self, doc_id: DocId) -> Mapping[DocId, float]:
        if doc_id not in self._adjacent:
            own = damping(self._degree(doc_id))
            self._adjacent[doc_id] = {
                other: weight * own * damping(self._degree(other))
                for other, weight in self._weights(doc_id).items()
            }
        return self._adjacent[doc_id]

    def _weights(self, doc_id: DocId) -> dict[DocId, float]:
        weights: dict[DocId, float] = {}
        for ends in (self._graph.succ[doc_id], self._graph.pred[doc_id]):
            for other, kinds in ends.items():
                strongest = max(EDGE_WEIGHTS[kind] for kind in kinds)
                weights[other] = max(strongest, weights.get(other, 0.0))
        return weights

    def _degree(self, doc_id: DocId) -> int:
        return len(self._graph.succ[doc_id]) + len(self._graph.pred[doc_id])


def measure_graph(nodes: int, edges: int, rounds: int) -> None:
    drawn = random.Random(1)
    linked = list(_drawn_edges(drawn, nodes, edges))
    timed = Timed()
    kinds = {"dictionaries": _Links, "networkx": NetworkLinks}
    for _ in range(rounds):
        hits = {DocId(f"notes:{drawn.randrange(nodes)}.md"): drawn.random() for _ in range(HITS)}
        edited = linked[drawn.randrange(len(linked))]
        kept = frozenset(edge for edge in linked if edge.source == edited.source) - {edited}
        for who, kind in kinds.items():
            links: Any = kind()
            with timed.taking("build", who):
                links.add(linked)
            for depth in (1, 2):
                with timed.taking(f"neighbours of {HITS} hits, depth {depth}, first time", who):
                    spread(hits, links.adjacent, depth)
            with timed.taking(f"neighbours of {HITS} hits, depth 1, again", who):
                spread(hits, links.adjacent, 1)
            with timed.taking("one document edited", who):
                links.replace(edited.source, kept)
    timed.show("dictionaries", "networkx", f"graph of {nodes:,} documents and {edges:,} links")
    sizes = {who: _memory(kind, linked) for who, kind in kinds.items()}
    print("Memory: " + ", ".join(f"{who} {size:.1f} MB" for who, size in sizes.items()))
    note(
        Reading(
            what="ratio",
            of="networkx / dictionaries: memory",
            value=sizes["networkx"] / sizes["dictionaries"],
        )
    )
    taken = [_import_seconds("import networkx") - _import_seconds("pass") for _ in range(rounds)]
    print(f"Importing NetworkX alone: {statistics.median(taken) * 1000:.0f} ms of CPU\n")
    note(Reading(what="time", of="import networkx", at="CPU", value=statistics.median(taken)))


def _drawn_edges(drawn: random.Random, nodes: int, edges: int) -> Iterator[Edge]:
    kinds = [LinkKind.LINKS_TO] * 8 + [LinkKind.EMBEDS, LinkKind.RELATED]
    for _ in range(edges):
        source = drawn.randrange(nodes)
        near = source - source % GROUP + drawn.randrange(GROUP)
        target = near if drawn.random() < WITHIN else drawn.randrange(nodes)
        ends = (DocId(f"notes:{number % nodes}.md") for number in (source, target))
        yield Edge(*ends, drawn.choice(kinds))


def _memory(kind: Callable[[], Any], edges: Sequence[Edge]) -> float:
    """Megabytes."""
    tracemalloc.start()
    links = kind()
    links.add(edges)
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return size / 1e6


def _import_seconds(code: str) -> float:
    program = f"import time\n{code}\nprint(time.process_time())"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    return float(done.stdout)


# Words and code


@dataclass(frozen=True, slots=True)
class Row:
    """What is indexed: by its number, with the document that it leads to."""

    key: int
    document: str
    fields: Mapping[str, str]


def measure_texts(labelled: LabelledSet, part: str, rounds: int) -> None:
    config = settings_for(labelled.folder, None)
    index(config)
    asked = {query.id: " ".join(re.findall(r"\w+", query.text)) for query in labelled.queries}
    timed, judge = Timed(), Judge(labelled)
    with (
        App(config) as app,
        tempfile.TemporaryDirectory() as folder,
        app.reader.snapshot() as snapshot,
    ):
        rows = list(code_rows(snapshot) if part == "code" else prose_rows(snapshot))
        documents = {row.key: row.document for row in rows}
        ours = own_search(snapshot, part)
        build_own(timed, rows, part, Path(folder) / "own.db")
        named = build_whoosh(timed, rows, part, Path(folder))
        groups = {"any word": OrGroup, "all words": AndGroup}
        print(f"{labelled.folder.name}, {part}: {len(rows):,} rows\n")
        searches = {"FTS5": ours} | {
            f"Whoosh, {name}": whoosh_search(named, part, group) for name, group in groups.items()
        }
        for who, search in searches.items():
            ranked = {
                query: list(dict.fromkeys(documents[key] for key in search(text)))
                for query, text in asked.items()
            }
            found = judge.measure(who, Answers(ranked)).metrics["nDCG@10"].mean
            print(f"- {who}: nDCG@10 {found:.3f}")
            where = f"{labelled.folder.name}, {part}"
            note(Reading(what="quality", of=who, where=where, at="nDCG@10", value=found))
        for _ in range(rounds):
            for text in asked.values():
                for who, search in (("FTS5", ours), ("Whoosh", searches["Whoosh, any word"])):
                    with timed.taking("a query", who):
                        search(text)
        named.close()
    print()
    timed.show("FTS5", "Whoosh", f"{labelled.folder.name}, {part}")


def prose_rows(snapshot: Snapshot) -> Iterator[Row]:
    for document in snapshot.documents():
        chunks = snapshot.chunks(document.id)
        for stored in [each for each in chunks if each.chunk.text is not None] or chunks[:1]:
            texts = field_texts(document, stored.chunk)
            yield Row(stored.key, document.path, {field: texts[field] for field in COLUMNS})


def code_rows(snapshot: Snapshot) -> Iterator[Row]:
    select = "SELECT b.key, d.path, b.code FROM code_blocks b JOIN documents d ON d.key = b.doc"
    for key, path, code in snapshot.select(select):
        yield Row(key, path, {"content": code})


def own_search(snapshot: Snapshot, part: str) -> Callable[[str], list[int]]:
    """What is used here; of code, the first block of each chunk that was found."""
    prose = text_analyzer(Stemmer.ENGLISH)
    if part == "code":
        engine = CodeEngine(code_analyzer(), prose)
        select = "SELECT chunk, min(key) FROM code_blocks WHERE chunk NOT NULL GROUP BY chunk"
        first = dict(snapshot.select(select))
        return lambda text: [first[hit.key] for hit in engine.search(snapshot, text, LIMIT).hits]
    words = keyword_setup(SearchConfig(), prose, Path()).engine
    return lambda text: [
        hit.key
        for hit in words.search(snapshot, compile_query(parse_query(text), prose), LIMIT).hits
    ]


def build_own(timed: Timed, rows: Sequence[Row], part: str, file: Path) -> None:
    """The table by itself, outside the store: analysed, written and committed."""
    analyzer = code_analyzer() if part == "code" else text_analyzer(Stemmer.ENGLISH)
    names = list(rows[0].fields) if rows else ["content"]
    columns, marks = ", ".join(names), ", ".join("?" * (len(names) + 1))
    database = sqlite3.connect(file)
    database.execute("PRAGMA journal_mode = WAL")
    tokenizer = "ascii tokenchars '_.+#-:''/@&$'"
    database.execute(f'CREATE VIRTUAL TABLE terms USING fts5({columns}, tokenize = "{tokenizer}")')

    def put(some: Sequence[Row]) -> None:
        with database:
            database.executemany("DELETE FROM terms WHERE rowid = ?", [(r.key,) for r in some])
            database.executemany(
                f"INSERT INTO terms (rowid, {columns}) VALUES ({marks})",
                (
                    (r.key, *(join_terms(analyzer.streams(r.fields[n])) for n in names))
                    for r in some
                ),
            )

    with timed.taking("build", "FTS5"):
        put(rows)
    for some in _edited(rows):
        with timed.taking("one document edited", "FTS5"):
            put(some)
    database.close()


def build_whoosh(timed: Timed, rows: Sequence[Row], part: str, folder: Path) -> Index:
    schema = code_schema() if part == "code" else prose_schema()
    with timed.taking("build", "Whoosh"):
        made = create_in(folder, schema)
        writer = made.writer(limitmb=256)
        for row in rows:
            writer.add_document(id=str(row.key), doc_id=row.document, **row.fields)
        writer.commit()
    for some in _edited(rows):
        with timed.taking("one document edited", "Whoosh"):
            writer = made.writer()
            writer.delete_by_term("doc_id", some[0].document)
            for row in some:
                writer.add_document(id=str(row.key), doc_id=row.document, **row.fields)
            writer.commit()
    return made


def _edited(rows: Sequence[Row], count: int = 15) -> Iterator[list[Row]]:
    """The rows of some documents."""
    documents = sorted({row.document for row in rows})
    for document in random.Random(2).sample(documents, min(count, len(documents))):
        yield [row for row in rows if row.document == document]


def whoosh_search(made: Index, part: str, group: type[object]) -> Callable[[str], list[int]]:
    searcher = made.searcher(weighting=BM25F())
    names = ["content"] if part == "code" else [str(column) for column in COLUMNS]
    parser = (
        QueryParser("content", made.schema, group=group)
        if part == "code"
        else MultifieldParser(names, made.schema, group=group)
    )
    return lambda text: [int(hit["id"]) for hit in searcher.search(parser.parse(text), limit=LIMIT)]


def prose_schema() -> Schema:
    boosts, stemming = BoostsConfig(), StemmingAnalyzer(minsize=2)
    fields = {
        str(column): TEXT(analyzer=stemming, field_boost=getattr(boosts, column))
        for column in COLUMNS
    }
    return Schema(id=ID(stored=True, unique=True), doc_id=ID(stored=True), **fields)


def code_schema() -> Schema:
    analyzer = RegexTokenizer(r"[a-zA-Z_][a-zA-Z0-9_]*|[0-9]+") | Parts() | LowercaseFilter()
    return Schema(
        id=ID(stored=True, unique=True),
        doc_id=ID(stored=True),
        content=TEXT(analyzer=analyzer),
        language=KEYWORD(stored=True),
    )


class Parts(Filter):
    """A name, and its parts by case and by underscores."""

    def __call__(self, tokens: Iterable[Token]) -> Iterator[Token]:
        pattern = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?=[A-Z][a-z]|\d|\W|_|$)|\d+")
        for token in tokens:
            text = token.text
            yield token
            parts = pattern.findall(text)
            if len(parts) > 1:
                for part in parts:
                    token.text = part
                    yield token


if __name__ == "__main__":
    main()
