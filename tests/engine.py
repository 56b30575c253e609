"""A whole search engine over a few Markdown texts: every part real, the model tiny."""

import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import ClassVar

import numpy as np

from ragdocs.chunking.chunker import ChunkSizes
from ragdocs.config.choices import Stemmer
from ragdocs.config.settings import SearchConfig
from ragdocs.indices.analysis import code_analyzer, text_analyzer
from ragdocs.indices.code import CodeEngine, CodeIndex
from ragdocs.indices.engines import keyword_setup
from ragdocs.indices.graph import GraphIndex
from ragdocs.indices.signatures import SignatureIndex
from ragdocs.indices.term_vectors import TermVectors
from ragdocs.indices.vector import VectorIndex
from ragdocs.indices.vocabulary import Vocabulary, VocabularyIndex
from ragdocs.models import DocId
from ragdocs.search.orchestrator import QueryOrchestrator, Surroundings
from ragdocs.search.requests import QueryRequest
from ragdocs.search.retrieval import Indices
from ragdocs.search.understanding import WordSources
from ragdocs.search.vector_search import Reach
from ragdocs.store.reader import Reader
from ragdocs.store.records import PendingText
from ragdocs.store.writer import Writer
from tests.corpus import ENGLISH, indexed
from tests.parsing import SEED_SIZES
from tests.store_builder import store_communities
from tests.word_vectors import WordModel

NOW = datetime(2026, 1, 1, tzinfo=UTC)


class WordEmbedder(WordModel):
    """WordModel behind the seam that the engine knows."""

    name = "words"

    def embed_query(self, text):
        return self.embed(text)

    def embed_documents(self, texts):
        return np.stack([self.embed(text) for text in texts])


def found_by(retrieval, snapshot, topic):
    """What every index finds for one topic."""
    (started,) = retrieval.start([topic])
    return retrieval.find(snapshot, retrieval.read(snapshot, started, ""), Reach())


class Engine:
    """Put and remove texts, then ask; closed at the end of a `with`."""

    usual: ClassVar = {
        "min_confidence": 0.0,
        "fusion": "score",
        "query_expansion_enabled": False,
    }
    """Expansion is off unless asked for: the tiny model knows no meanings."""

    def __init__(
        self,
        folder: Path,
        texts: Mapping[str, str],
        embedder=None,
        sizes: ChunkSizes = SEED_SIZES,
        **settings,
    ) -> None:
        stemmer = Stemmer(settings.get("stemmer", ENGLISH))
        code, vocabulary = CodeIndex(code_analyzer()), VocabularyIndex(stemmer)
        self.folder = folder
        self.analyzer = text_analyzer(stemmer)
        chosen = {name: settings[name] for name in ("keyword_engine",) if name in settings}
        keyword = keyword_setup(SearchConfig(stemmer=stemmer, **chosen), self.analyzer, folder)
        tables = [*keyword.tables, code, SignatureIndex(), vocabulary]
        self.sizes = sizes
        self.embedder = embedder or WordEmbedder()
        self.writer = Writer.open(folder, "test", indices=tables)
        self.reader = Reader.open(folder)
        self.update(texts)
        self.orchestrator = self.configured(**settings)

    def configured(
        self, thesaurus=None, cross_encoder=None, surroundings=None, **settings
    ) -> QueryOrchestrator:
        chosen = SearchConfig(**{**self.usual, **settings})
        vocabulary = Vocabulary(self.analyzer)
        indices = Indices(
            analyzer=self.analyzer,
            keyword=keyword_setup(chosen, self.analyzer, self.folder).engine,
            code=CodeEngine(code_analyzer(), self.analyzer),
            vector=VectorIndex(self.embedder),
            embedder=self.embedder,
            graph=GraphIndex(),
            cross_encoder=cross_encoder,
            words=WordSources(
                vocabulary=vocabulary,
                terms=TermVectors(self.embedder, vocabulary, chosen.query_expansion_max_terms),
                thesaurus=thesaurus,
            ),
        )
        place = surroundings or Surroundings(clock=lambda: NOW)
        return QueryOrchestrator(self.reader, indices, chosen, place)

    def find_communities(self) -> None:
        """What the index manager does."""
        store_communities(self.writer, self.reader)

    def update(self, texts: Mapping[str, str], removed: tuple[str, ...] = ()) -> None:
        with self.writer.transaction() as transaction:
            for path, text in texts.items():
                transaction.put(indexed(path, text, self.sizes), time.time_ns())
            for path in removed:
                transaction.remove(DocId(f"docs:{path}"))
            transaction.expect(0)
        with self.reader.snapshot() as snapshot:
            pending = snapshot.missing_embeddings(self.embedder.identity, limit=1_000_000)
        self._embed(pending)

    def embed_terms(self) -> None:
        """What the index manager does for expansion."""
        terms = TermVectors(self.embedder, Vocabulary(self.analyzer), limit=10_000)
        with self.reader.snapshot() as snapshot:
            pending = terms.missing(snapshot, limit=10_000)
        self._embed(pending)

    def _embed(self, pending: Sequence[PendingText]) -> None:
        if not pending:
            return
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

    def answer(self, request: QueryRequest, *, communities: bool = False, **settings):
        """What other settings would answer; the index is the same."""
        orchestrator = self.configured(**settings)
        if communities:
            self.find_communities()
        try:
            return orchestrator.search(request)
        finally:
            orchestrator.close()

    def paths(self, *queries: str, **request) -> list[str]:
        results = self.ask(*queries, **request).results
        return list(dict.fromkeys(result.path for result in results))

    def __enter__(self) -> "Engine":
        return self

    def __exit__(self, *_: object) -> None:
        self.orchestrator.close()
        self.reader.close()
        self.writer.close()


class DefaultEngine(Engine):
    """The product's own settings, but for those that are given."""

    usual: ClassVar = {}
