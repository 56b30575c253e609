"""Stores of a few documents, built by hand or from texts, with the one index under test."""

import re
import sqlite3
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path
from typing import Any

from ragdocs.chunking.chunker import ChunkSizes, chunk_document
from ragdocs.config.choices import Stemmer
from ragdocs.config.settings import BoostsConfig, SearchConfig
from ragdocs.indices.analysis import analysis_fingerprint, code_analyzer, text_analyzer
from ragdocs.indices.code import CodeEngine
from ragdocs.indices.conditions import compile_filter
from ragdocs.indices.embedded import EmbeddedIndex, EmbeddedIndices
from ragdocs.indices.engine_folder import DerivedFolder
from ragdocs.indices.engines import keyword_setup
from ragdocs.indices.fts5 import Fts5Engine, Fts5Index
from ragdocs.indices.graph import detect, pair_weights
from ragdocs.indices.keyword import FIELDS, compile_query
from ragdocs.indices.vocabulary import TABLE, Vocabulary, VocabularyIndex
from ragdocs.models import (
    Chunk,
    ChunkId,
    CodeBlock,
    DateSource,
    DocId,
    Document,
    DocumentWarning,
    FileState,
    FrontMatter,
    Heading,
    IndexedFile,
    Link,
    LinkKind,
    LinkSyntax,
    NodeKind,
    Slug,
    SourceText,
    Span,
    TreeName,
    WarningKind,
)
from ragdocs.parsers.ids import PREAMBLE, SlugCounter, document_id
from ragdocs.search.query_language import parse_query
from ragdocs.search.requests import Filters, to_filter
from ragdocs.store.database import store_path
from ragdocs.store.integrity import seal
from ragdocs.store.reader import Reader
from ragdocs.store.records import StoredDocument
from ragdocs.store.snapshot import Snapshot
from ragdocs.store.tables import CommunityOrigin
from ragdocs.store.writer import StoreWriter
from tests.support.documents import SEED_SIZES, parse
from tests.support.models import WordModel, embed_missing
from tests.support.processes import python_process

FINGERPRINT = "settings-1"
MODEL = "tiny@1 dimension=3"
READ_NS = 1_700_000_100_000_000_000
DATE = datetime(2024, 5, 6, 7, 8, 9, 1000, tzinfo=UTC)


@dataclass(frozen=True)
class Section:
    heading: str
    text: str = "Some words.\n"
    level: int = 1


def source_text(text):
    starts = [0, *(found.end() for found in re.finditer("\n", text))]
    raw = text.encode()
    return SourceText(
        text=text,
        exact=text,
        encoding="utf-8",
        errors="strict",
        line_starts=starts,
        marks=[0],
        mark_bytes=[0],
        size=len(raw),
    )


def wiki(target, anchor="", kind=LinkKind.LINKS_TO):
    return Link(kind, LinkSyntax.WIKI, target, anchor, target, Span(0, 1, 1, 1))


def markdown(target, anchor=""):
    return Link(LinkKind.LINKS_TO, LinkSyntax.MARKDOWN, target, anchor, "text", Span(0, 1, 1, 1))


def related(target):
    return Link(LinkKind.RELATED, LinkSyntax.FRONT_MATTER, target, "", target, Span(0, 1, 1, 1))


DEFAULTS = {"tree": "docs", "title": None, "aliases": (), "code": (), "intro": "Intro.\n"}


def file(path, sections=(), links=(), **given):
    """An IndexedFile with a document node, a preamble and one leaf for each section.

    Besides DEFAULTS, `given` may hold `mtime_ns` and any field of the front matter.
    """
    options = {name: given.pop(name, value) for name, value in DEFAULTS.items()}
    mtime_ns = given.pop("mtime_ns", 1_700_000_000_000_000_000)
    tree = TreeName(options["tree"])
    name = path.rpartition("/")[2].rsplit(".", 1)[0]
    title = name if options["title"] is None else options["title"]
    text, headings, spans = _body(options["intro"], sections)
    doc_id = document_id(tree, path)
    document = Document(
        id=doc_id,
        tree=tree,
        path=path,
        title=title,
        front_matter=FrontMatter(title=title, aliases=tuple(options["aliases"]), **given),
        tags=("one", "two"),
        date=DATE,
        date_source=DateSource.MODIFIED,
        source=source_text(text),
        body_start=0,
        headings=headings,
        links=tuple(links),
        code_blocks=tuple(
            CodeBlock("python", block, Span(start, start + 1, 1, 1))
            for start, block in options["code"]
        ),
        blocks=(),
        warnings=(DocumentWarning(WarningKind.FRONT_MATTER, 1, "a warning"),),
    )
    digest = blake2b(text.encode(), digest_size=16).hexdigest()
    state = FileState(len(text.encode()), mtime_ns, digest)
    return IndexedFile(state, document, _chunks(document, text, spans))


def _body(intro, sections):
    slugs = SlugCounter()
    text, byte, line = [intro], len(intro.encode()), 1 + intro.count("\n")
    headings, spans = [], [Span(0, byte, 1, max(1, line - 1))]
    for section in sections:
        part = f"{'#' * section.level} {section.heading}\n{section.text}"
        end, last = byte + len(part.encode()), line + part.count("\n")
        span = Span(byte, end, line, max(line, last - 1))
        headings.append(
            Heading(section.level, section.heading, slugs.unique(section.heading), span)
        )
        spans.append(span)
        text.append(part)
        byte, line = end, last
    return "".join(text), tuple(headings), spans


def _chunks(document, text, spans):
    raw = text.encode()
    whole = Span(0, len(raw), 1, max(1, text.count("\n")))
    root = ChunkId(f"{document.id}")
    parents = {0: root}

    def leaf(number, parent, heading):
        kind, slug, title, depth = NodeKind.PREAMBLE, PREAMBLE, document.title, 0
        if heading:
            kind, slug, title, depth = NodeKind.SECTION, heading.slug, heading.text, heading.level
        own = raw[spans[number].byte_start : spans[number].byte_end].decode()
        trail = (document.title, heading.text) if heading else (document.title,)
        name = ChunkId(f"{document.id}#{slug}")
        return Chunk(
            name, document.id, parent, kind, depth, number + 1, title, slug, trail,
            spans[number], own, "overlap " if number else "",
        )  # fmt: skip

    chunks = [
        Chunk(root, document.id, None, NodeKind.DOCUMENT, 0, 0, document.title, Slug(""), (), whole)
    ]
    chunks.append(leaf(0, root, None))
    for number, heading in enumerate(document.headings, 1):
        parent = parents[max(level for level in parents if level < heading.level)]
        chunks.append(leaf(number, parent, heading))
        parents = {level: node for level, node in parents.items() if level < heading.level}
        parents[heading.level] = chunks[-1].id
    return tuple(chunks)


@contextmanager
def temporary_store() -> Iterator[tuple[StoreWriter, Reader]]:
    """An empty store for one example of a property."""
    with (
        tempfile.TemporaryDirectory() as directory,
        StoreWriter.open(Path(directory), FINGERPRINT) as writer,
        Reader.open(Path(directory)) as reader,
    ):
        yield writer, reader


def store_process(code: str, directory: Path) -> AbstractContextManager["subprocess.Popen[str]"]:
    """Runs code that can use this module and has the index directory in `directory`."""
    prologue = (
        "import sys\n"
        "from pathlib import Path\n"
        "from tests.support.stores import *\n"
        "directory = Path(sys.argv[1])\n"
    )
    return python_process(prologue + code, directory)


def run_sql(directory: Path, *statements: str) -> list[tuple[Any, ...]]:
    """Changes a store behind the program's back; returns the rows of the last statement."""
    rows: list[tuple[Any, ...]] = []
    with closing(sqlite3.connect(store_path(directory), isolation_level=None)) as connection:
        for statement in statements:
            rows = connection.execute(statement).fetchall()
    return rows


def log_into_store(writer):
    """Checkpoints the log, as a commit does when the log is long."""
    writer._database.run("PRAGMA wal_checkpoint(TRUNCATE)")
    seal(writer._directory, writer.position)


def put(writer, *files, read_ns=READ_NS):
    with writer.transaction() as transaction:
        for found in files:
            transaction.put(found, read_ns)
    return transaction.position


def remove(writer, *files):
    with writer.transaction() as transaction:
        for found in files:
            transaction.remove(found.document.id)
    return transaction.position


def targets(snapshot, found):
    """Where each link of a file leads: (document id, slug)."""
    return [(link.target, link.slug) for link in snapshot.links(found.document.id)]


def store_communities(writer, reader):
    """As the index manager does; returns whether the communities have changed."""
    with reader.snapshot() as snapshot:
        origin = CommunityOrigin(snapshot.position, snapshot.edges_digest())
        numbers = detect(pair_weights(snapshot.all_links())) or {}
    with writer.transaction() as transaction:
        return transaction.put_communities(numbers, origin)


ENGLISH = Stemmer("english")
ANALYZER = text_analyzer(ENGLISH)


def keyword_tables(stemmer: Stemmer = ENGLISH) -> Fts5Index:
    return Fts5Index(text_analyzer(stemmer), analysis_fingerprint(stemmer))


def keyword_engine(**boosts: float) -> Fts5Engine:
    weights = BoostsConfig(**boosts)
    return Fts5Engine({field: getattr(weights, field) for field in FIELDS})


def index_over(reader: Reader, **given) -> EmbeddedIndex:
    """An engine over the test's store, with the given indices."""
    usual = {
        "keyword": keyword_engine(),
        "code": CodeEngine(code_analyzer(), ANALYZER),
        "vocabulary": Vocabulary(ANALYZER),
    }
    return EmbeddedIndex(reader, EmbeddedIndices(**{**usual, **given}))


def is_match(filters: Filters, document: StoredDocument) -> bool:
    """Whether a document satisfies what a request filters by."""
    matches = compile_filter(to_filter(filters))
    return matches is None or matches(document)


def indexed(place: str, text: str, sizes: ChunkSizes = SEED_SIZES) -> IndexedFile:
    """`place` is a path, or `tree:path` for another tree than `docs`."""
    tree, _, path = place.rpartition(":")
    state = FileState(len(text), 0, text)
    document = parse(text, path, tree=tree or "docs")
    return IndexedFile(state, document, chunk_document(document, sizes))


class Corpus:
    """Documents by path, which a test can add, remove and search by keyword."""

    def __init__(self, folder: Path, texts: Mapping[str, str]) -> None:
        self.folder = folder
        self.update(texts)

    @contextmanager
    def writer(self) -> Iterator[StoreWriter]:
        with StoreWriter.open(self.folder, "test", indices=[keyword_tables()]) as writer:
            yield writer

    def update(self, texts: Mapping[str, str], removed: tuple[str, ...] = ()) -> None:
        with self.writer() as writer, writer.transaction() as transaction:
            for path, text in texts.items():
                transaction.put(indexed(path, text), time.time_ns())
            for path in removed:
                transaction.remove(DocId(f"docs:{path}"))

    @contextmanager
    def snapshot(self) -> Iterator[Snapshot]:
        with Reader.open(self.folder) as reader, reader.snapshot() as snapshot:
            yield snapshot

    def ask(self, query: str, scope: frozenset[DocId] | None = None, **boosts: float):
        """Chunk ids with their scores, best first."""
        compiled = compile_query(parse_query(query), ANALYZER)
        with self.snapshot() as snapshot:
            found = keyword_engine(**boosts).search(snapshot, compiled, 50, scope)
            chunks = snapshot.chunks_by_key([hit.key for hit in found.hits])
            return [(chunks[hit.key].chunk.id, hit.score) for hit in found.hits]

    def paths(self, query: str, **boosts: float) -> list[str]:
        """The documents found, best first, each once."""
        ids = [found.partition(":")[2].partition("#")[0] for found, _ in self.ask(query, **boosts)]
        return list(dict.fromkeys(ids))


NOTES = {
    "apples.md": "# Apples\n\nThe apple is a fruit. Apples grow on trees.\n",
    "pears.md": "# Pears\n\nThe pear is a fruit. Pears grow on trees as apples do.\n",
    "cars.md": "# Cars\n\nA car has an engine. The engine needs fuel.\n",
    "fuel.md": "---\ntags: [energy]\nkeywords: [petrol]\n---\n# Fuel\n\nFuel burns in an engine.\n",
    "deep/http.md": "# HTTP\n\nCall `getUserById` with a timeout. Error handling comes below.\n",
}


class EngineCorpus(Corpus):
    """A corpus asked through the engine that the settings choose."""

    def __init__(self, folder, texts, engine, **settings):
        self.settings = SearchConfig(keyword_engine=engine, **settings)
        self.analyzer = text_analyzer(self.settings.stemmer)
        self.setup = keyword_setup(self.settings, self.analyzer, folder)
        self.engine = self.setup.engine
        super().__init__(folder, texts)

    @contextmanager
    def writer(self):
        with StoreWriter.open(self.folder, "test", indices=self.setup.tables) as writer:
            yield writer

    def search(self, query, limit=50, scope=None):
        if isinstance(query, str):
            query = compile_query(parse_query(query), self.analyzer)
        with self.snapshot() as snapshot:
            self.engine.catch_up(snapshot)
            return self.engine.search(snapshot, query, limit, scope)

    def ask(self, query, scope=None, limit=50):
        found = self.search(query, limit, scope)
        with self.snapshot() as snapshot:
            chunks = snapshot.chunks_by_key([hit.key for hit in found.hits])
            return [(chunks[hit.key].chunk.id, hit.score) for hit in found.hits]

    def matching(self, condition):
        with self.snapshot() as snapshot:
            self.engine.catch_up(snapshot)
            keys = self.engine.matching(snapshot, condition)
            chunks = snapshot.chunks_by_key(keys)
            assert len(chunks) == len(keys)
            return {chunk.chunk.doc_id.partition(":")[2] for chunk in chunks.values()}


class FolderCorpus(EngineCorpus):
    """Knows the engine's folder, and can restart with a new engine object."""

    def __init__(self, folder, texts, engine, **settings):
        super().__init__(folder, texts, engine, **settings)
        self.files = folder / f"keyword-{engine}"

    def restarted(self, **settings):
        chosen = self.settings.model_dump(include={"keyword_engine"}) | settings
        self.settings = SearchConfig(**chosen)
        self.engine = keyword_setup(self.settings, self.analyzer, self.folder).engine
        return self

    def embed(self, count):
        """Commits that change no text."""
        with self.writer() as writer, Reader.open(self.folder) as reader:
            embed_missing(writer, reader, WordModel(), limit=count)

    def current(self):
        state = DerivedFolder(self.files).state()
        return self.files / state.directory

    def content_files(self):
        files = [path for path in self.current().iterdir() if path.is_file()]
        return sorted(path for path in files if not path.name.endswith(("lock", "LOCK")))


@contextmanager
def vocabulary_store(
    folder: Path, texts: Mapping[str, str]
) -> Iterator[tuple[StoreWriter, Reader]]:
    with StoreWriter.open(folder, "test", indices=[VocabularyIndex(ENGLISH)]) as writer:
        put_texts(writer, texts)
        with Reader.open(folder) as reader:
            yield writer, reader


def put_texts(writer: StoreWriter, texts: Mapping[str, str], removed: tuple[str, ...] = ()) -> None:
    with writer.transaction() as transaction:
        for path, text in texts.items():
            transaction.put(indexed(path, text), time.time_ns())
        for path in removed:
            transaction.remove(DocId(f"docs:{path}"))


def entries(reader: Reader) -> dict[str, tuple[str, int]]:
    """Every word with its term and its number of documents."""
    with reader.snapshot() as snapshot:
        rows = snapshot.select(f"SELECT word, term, documents FROM {TABLE}")
    return {word: (term, documents) for word, term, documents in rows}
