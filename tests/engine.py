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
from ragdocs.indices.near_words import Vocabulary
from ragdocs.indices.signature_table import SignatureIndex
from ragdocs.indices.term_vectors import TermVectors
from ragdocs.indices.vector import VectorIndex
from ragdocs.indices.vocabulary import VocabularyIndex
from ragdocs.models import DocId
from ragdocs.search.interpretation import WordSources
from ragdocs.search.orchestrator import QueryOrchestrator, Surroundings
from ragdocs.search.requests import QueryRequest
from ragdocs.search.retrieval import Indices
from ragdocs.store.reader import Reader
from ragdocs.store.writer import Writer
from tests.corpus import ANALYZER, ENGLISH, indexed, keyword_engine, keyword_tables
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
        code, vocabulary = CodeIndex(code_analyzer()), VocabularyIndex(ENGLISH)
        tables = [keyword_tables(), code, SignatureIndex(), vocabulary]
        self.embedder = embedder or WordEmbedder()
        self.writer = Writer.open(folder, "test", indices=tables)
        self.reader = Reader.open(folder)
        self.update(texts)
        self.orchestrator = self.configured(**settings)

    def configured(self, thesaurus=None, **settings) -> QueryOrchestrator:
        """Expansion is off unless asked for: the tiny model knows no meanings."""
        vocabulary = Vocabulary(ANALYZER)
        indices = Indices(
            analyzer=ANALYZER,
            keyword=keyword_engine(),
            code=CodeEngine(code_analyzer(), ANALYZER),
            vector=VectorIndex(self.embedder),
            embedder=self.embedder,
            graph=GraphIndex(),
            words=WordSources(
                vocabulary=vocabulary,
                terms=TermVectors(self.embedder, vocabulary, limit=10_000),
                thesaurus=thesaurus,
            ),
        )
        usual = {"min_confidence": 0.0, "fusion": "score", "query_expansion_enabled": False}
        chosen = SearchConfig(**{**usual, **settings})
        return QueryOrchestrator(self.reader, indices, chosen, Surroundings(clock=lambda: NOW))

    def update(self, texts: Mapping[str, str], removed: tuple[str, ...] = ()) -> None:
        with self.writer.transaction() as transaction:
            for path, text in texts.items():
                transaction.put(indexed(path, text), time.time_ns())
            for path in removed:
                transaction.remove(DocId(f"docs:{path}"))
        embed_missing(self.writer, self.reader, self.embedder)

    def embed_terms(self) -> None:
        """What the index manager does for expansion."""
        terms = TermVectors(self.embedder, Vocabulary(ANALYZER), limit=10_000)
        with self.reader.snapshot() as snapshot:
            pending = terms.missing(snapshot)
        vectors = self.embedder.embed_documents([each.text for each in pending])
        with self.writer.transaction() as transaction:
            transaction.put_embeddings(
                self.embedder.identity,
                [
                    (each.text_hash, vector.astype("<f4").tobytes())
                    for each, vector in zip(pending, vectors, strict=True)
                ],
            )

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
