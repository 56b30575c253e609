"""A folder of Markdown in memory, stored and indexed for real."""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from ragdocs.chunking.chunker import ChunkSizes, chunk_document
from ragdocs.config.choices import Stemmer
from ragdocs.config.settings import BoostsConfig
from ragdocs.indices.analysis import analysis_fingerprint, text_analyzer
from ragdocs.indices.fts5 import Fts5Engine, Fts5Index
from ragdocs.indices.keyword import FIELDS, compile_query
from ragdocs.models import DocId, FileState, IndexedFile
from ragdocs.search.query_language import parse_query
from ragdocs.store.reader import Reader
from ragdocs.store.snapshot import Snapshot
from ragdocs.store.writer import Writer
from tests.parsing import SEED_SIZES, parse

ENGLISH = Stemmer("english")
ANALYZER = text_analyzer(ENGLISH)


def keyword_tables(stemmer: Stemmer = ENGLISH) -> Fts5Index:
    return Fts5Index(text_analyzer(stemmer), analysis_fingerprint(stemmer))


def keyword_engine(**boosts: float) -> Fts5Engine:
    weights = BoostsConfig(**boosts)
    return Fts5Engine({field: getattr(weights, field) for field in FIELDS})


def indexed(place: str, text: str, sizes: ChunkSizes = SEED_SIZES) -> IndexedFile:
    """`place` is a path, or `tree:path` for another tree than `docs`."""
    tree, _, path = place.rpartition(":")
    state = FileState(len(text), 0, text)
    document = parse(text, path, tree=tree or "docs")
    return IndexedFile(state, document, chunk_document(document, sizes))


class Corpus:
    """Documents by path, put and removed at will, and asked by keyword."""

    def __init__(self, folder: Path, texts: Mapping[str, str]) -> None:
        self.folder = folder
        self.update(texts)

    @contextmanager
    def writer(self) -> Iterator[Writer]:
        with Writer.open(self.folder, "test", indices=[keyword_tables()]) as writer:
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
