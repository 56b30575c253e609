"""A whole search engine over a few Markdown texts: every part real, the model tiny."""

import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from ragdocs.config.sections import SearchConfig
from ragdocs.indices.analysis import code_analyzer
from ragdocs.indices.code import CodeEngine, CodeIndex
from ragdocs.indices.graph import GraphIndex
from ragdocs.indices.vector import VectorIndex
from ragdocs.models import DocId
from ragdocs.search.orchestrator import QueryOrchestrator
from ragdocs.search.requests import QueryRequest
from ragdocs.search.retrieval import Indices
from ragdocs.store.reader import Reader
from ragdocs.store.writer import Writer
from tests.corpus import ANALYZER, indexed, keyword_engine, keyword_tables
from tests.word_vectors import WordModel, embed_missing

NOW = datetime(2026, 1, 1, tzinfo=UTC)


class WordEmbedder(WordModel):
    """WordModel behind the seam that the engine knows."""

    def embed_query(self, text):
        return self.embed(text)

    def embed_documents(self, texts):
        return np.stack([self.embed(text) for text in texts])


class Engine:
    """Put and remove texts, then ask; closed at the end of a `with`."""

    def __init__(self, folder: Path, texts: Mapping[str, str], embedder=None, **settings) -> None:
        tables = [keyword_tables(), CodeIndex(code_analyzer())]
        self.embedder = embedder or WordEmbedder()
        self.writer = Writer.open(folder, "test", indices=tables)
        self.reader = Reader.open(folder)
        self.update(texts)
        self.orchestrator = self.configured(**settings)

    def configured(self, **settings) -> QueryOrchestrator:
        indices = Indices(
            analyzer=ANALYZER,
            keyword=keyword_engine(),
            code=CodeEngine(code_analyzer(), ANALYZER),
            vector=VectorIndex(self.embedder),
            embedder=self.embedder,
            graph=GraphIndex(),
        )
        chosen = SearchConfig(**{"min_confidence": 0.0, "fusion": "score", **settings})
        return QueryOrchestrator(self.reader, indices, chosen, lambda: NOW)

    def update(self, texts: Mapping[str, str], removed: tuple[str, ...] = ()) -> None:
        with self.writer.transaction() as transaction:
            for path, text in texts.items():
                transaction.put(indexed(path, text), time.time_ns())
            for path in removed:
                transaction.remove(DocId(f"docs:{path}"))
        embed_missing(self.writer, self.reader, self.embedder)

    def ask(self, *queries: str, **request):
        return self.orchestrator.search(QueryRequest(queries=queries, **request))

    def paths(self, *queries: str, **request) -> list[str]:
        results = self.ask(*queries, **request).results
        return list(dict.fromkeys(result.path for result in results))

    def __enter__(self) -> "Engine":
        return self

    def __exit__(self, *_: object) -> None:
        self.orchestrator.close()
        self.reader.close()
        self.writer.close()
