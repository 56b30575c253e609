"""A complete search engine over a few Markdown texts, real in every part, with a tiny model; and
candidates from real documents, to test one stage alone.
"""

import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from itertools import combinations, count
from pathlib import Path
from typing import ClassVar

import numpy as np

from ragdocs.app import Assembly
from ragdocs.chunking.chunker import ChunkSizes, chunk_document
from ragdocs.chunking.splitting import Limits
from ragdocs.config.choices import Stemmer
from ragdocs.config.loading import load_config
from ragdocs.config.settings import SearchConfig
from ragdocs.indices.embedded import EmbeddedIndex
from ragdocs.indices.term_vectors import TermVectors
from ragdocs.indices.vocabulary import Vocabulary
from ragdocs.models import DocId, NodeKind, TreeName
from ragdocs.search.candidates import Candidate
from ragdocs.search.orchestrator import QueryOrchestrator, Surroundings
from ragdocs.search.requests import QueryRequest, Topic
from ragdocs.search.retrieval import Retrieval, RunningQuery
from ragdocs.search.vector_search import Bounds
from ragdocs.store.reader import Reader
from ragdocs.store.records import ChunkKey, PendingText, StoredChunk, StoredDocument
from ragdocs.store.writer import StoreWriter
from tests.support.documents import SEED_SIZES, parse
from tests.support.models import WordEmbedder, stored_vectors
from tests.support.stores import ENGLISH, indexed, store_communities

NOW = datetime(2026, 1, 1, tzinfo=UTC)


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
        place = {"documents_path": str(folder.parent), "index_path": str(folder)}
        home = {"HOME": str(folder.parent / "home")}
        self._config = load_config(cwd=folder.parent, environ=home, flags={"indexing": place})
        self._stemmer = Stemmer(settings.get("stemmer", ENGLISH))
        self.folder = folder
        self.sizes = sizes
        self.embedder = embedder or WordEmbedder()
        chosen = {name: settings[name] for name in ("keyword_engine",) if name in settings}
        parts = self._parts(SearchConfig(stemmer=self._stemmer, **chosen))
        self.analyzer = parts.analyzer
        self.writer = StoreWriter.open(folder, "test", indices=parts.tables)
        self.reader = Reader.open(folder)
        self.update(texts)
        self.orchestrator = self.configured(**settings)
        self.indices, self.tools = self.latest
        self.settings = self._search_settings(settings)
        self.index = EmbeddedIndex(self.reader, self.indices)

    def _parts(self, search: SearchConfig) -> Assembly:
        """The application's own parts, over the test's store. The test passes in the models, so the
        settings open none."""
        given = search.model_copy(update={"rerank_enabled": False, "synonyms_enabled": False})
        parts = Assembly(replace(self._config, search=given), self.embedder)
        parts.directory = self.folder
        return parts

    def _search_settings(self, given: Mapping[str, object]) -> SearchConfig:
        return SearchConfig(**{**self.usual, "stemmer": self._stemmer, **given})

    def configured(
        self, thesaurus=None, cross_encoder=None, surroundings=None, **settings
    ) -> QueryOrchestrator:
        chosen = self._search_settings(settings)
        parts = self._parts(chosen)
        tools = replace(parts.query_tools, cross_encoder=cross_encoder, thesaurus=thesaurus)
        self.latest = parts.indices, tools
        place = surroundings or Surroundings(clock=lambda: NOW)
        return QueryOrchestrator(EmbeddedIndex(self.reader, parts.indices), tools, chosen, place)

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
        """The answer with other settings, from the same index."""
        orchestrator = self.configured(**settings)
        if communities:
            self.find_communities()
        try:
            return orchestrator.search(request)
        finally:
            orchestrator.close()

    def find(self, topic: Topic, **settings) -> RunningQuery:
        """What every index finds for one topic, with these settings or its own."""
        chosen = self._search_settings(settings) if settings else self.settings
        with closing(Retrieval(self.tools, chosen)) as retrieval, self.index.view() as view:
            (started,) = retrieval.start([topic])
            request = QueryRequest(queries=(topic.words or "words",))
            read = retrieval.read(view, started, request, None)
            return retrieval.find(view, read, Bounds())

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
    """With the program's defaults, except for the settings that are given."""

    usual: ClassVar = {}


def mean_cosine(engine, results):
    """Over all pairs; every result must be a leaf."""
    with engine.reader.snapshot() as snapshot:
        keys = {leaf.chunk.id: leaf.key for leaf in snapshot.leaves()}
    vectors = stored_vectors(engine.reader, engine.embedder)
    chosen = [vectors[keys[result.matched.id]] for result in results]
    return float(np.mean([one @ other for one, other in combinations(chosen, 2)]))


SMALL = ChunkSizes(leaf=Limits(1, 400), small_document=0, overlap=0)
"""Every section is a leaf of its own."""


class ParsedCorpus:
    """Documents by path; answers like a snapshot of the store."""

    def __init__(self, sizes=SMALL):
        self._sizes = sizes
        self._keys = count(1)
        self._nodes = {}
        self.documents = {}

    def add(self, path, text, tree="docs", mtime_ns=0):
        document = replace(parse(text, path, mtime_ns), tree=TreeName(tree))
        self.documents[path] = stored_document(document)
        self._nodes[document.id] = [
            StoredChunk(ChunkKey(next(self._keys)), chunk, None)
            for chunk in chunk_document(document, self._sizes)
        ]
        return self

    def nodes_of(self, doc_id, _found=(), **_reach):
        return self._nodes[doc_id]

    def leaves(self, path):
        nodes = self._nodes[self.documents[path].id]
        return [node for node in nodes if node.chunk.text is not None]

    def node(self, place):
        """`path#slug`, with `~2` for a part; a document is its path."""
        path = place.partition("#")[0]
        nodes = self._nodes[self.documents[path].id]
        return next(node for node in nodes if node.chunk.id == f"docs:{place}")

    def leaf(self, place):
        """The leaf of this section, or the leaf in which it begins."""
        own = self.node(place)
        if own.chunk.text is not None:
            return own
        at = own.chunk.span.byte_start
        spans = [(leaf, leaf.chunk.span) for leaf in self.leaves(place.partition("#")[0])]
        found = (leaf for leaf, span in spans if span.byte_start <= at < span.byte_end)
        return next(found, own)

    def candidate(self, place, score=0.5, vector=None, **given):
        """Indices find leaves; pass `passage` for a section without text of its own."""
        found = self.node(place) if "passage" in given else self.leaf(place)
        return Candidate(
            stored=found,
            document=self.documents[place.partition("#")[0].partition("~")[0]],
            score=score,
            relevance=given.pop("relevance", score),
            confidence=given.pop("confidence", score),
            vector=None if vector is None else np.array(vector, dtype=np.float32),
            **given,
        )


def stored_document(document):
    return StoredDocument(
        id=document.id,
        tree=document.tree,
        path=document.path,
        title=document.title,
        front_matter=document.front_matter,
        tags=document.tags,
        date=document.date,
        date_source=document.date_source,
        encoding=document.source.encoding,
        size=document.source.size,
        lines=len(document.source.line_starts),
        body_start=document.body_start,
        warnings=document.warnings,
    )


def candidates(*texts, scores=(), vectors=()):
    """One candidate per text; each text is a document without headings: `0.md`, `1.md`, …"""
    corpus = ParsedCorpus(ChunkSizes(leaf=Limits(0, 100_000), small_document=0, overlap=0))
    given_scores = scores or [1.0 - place / 100 for place in range(len(texts))]
    given_vectors = vectors or [None] * len(texts)
    found = []
    for place, text in enumerate(texts):
        corpus.add(f"{place}.md", text)
        found.append(corpus.candidate(f"{place}.md", given_scores[place], given_vectors[place]))
    return found


def places(found):
    """Which of `candidates(...)` these are."""
    return [int(item.document.path.removesuffix(".md")) for item in found]


def slugs(found):
    return [name_of(item.stored) or item.document.path for item in found]


def name_of(stored):
    """The section that a leaf is embedded under, as a slug; a part of one by its number."""
    chunk = stored.chunk
    if chunk.kind is NodeKind.PART and chunk.headings:
        return chunk.title.lower().replace(" ", "-")
    return chunk.id.partition("#")[2]


def scores(found):
    return [item.score for item in found]


def nobody(_title):
    """No title says what the query asks for."""
    return False
