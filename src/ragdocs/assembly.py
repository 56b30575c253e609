"""From a configuration to the parts of the program: each setting goes where it is read.

Nothing heavy is imported or opened before it is asked for; what is shared is made once.
"""

import json
from functools import cached_property
from hashlib import blake2b
from typing import TYPE_CHECKING

from ragdocs.config.problems import OriginKind
from ragdocs.config.resolved import Config, TreeScope
from ragdocs.errors import SourceUnreadable
from ragdocs.models import TreeName

if TYPE_CHECKING:
    from ragdocs.embedding.base import Embedder
    from ragdocs.embedding.cross_encoder import CrossEncoder
    from ragdocs.indexing.index_setup import IndexSetup
    from ragdocs.indexing.watcher import Watcher
    from ragdocs.indices.analysis import Analyzer
    from ragdocs.indices.keyword_engines import KeywordSetup
    from ragdocs.indices.term_vectors import TermVectors
    from ragdocs.search.interpretation import WordSources
    from ragdocs.search.library.sources import FoundFile
    from ragdocs.search.orchestrator import Surroundings
    from ragdocs.search.retrieval import Indices
    from ragdocs.store.stored_index import StoredIndex


class Assembly:
    """The parts of one configuration. `embedder`: another one than the configuration names."""

    def __init__(self, config: Config, embedder: "Embedder | None" = None) -> None:
        self.config = config
        self._given_embedder = embedder

    @cached_property
    def fingerprint(self) -> str:
        """Of all settings that decide what is in the index."""
        settings = json.dumps(self.config.fingerprint_settings(), sort_keys=True)
        return blake2b(settings.encode(), digest_size=16).hexdigest()

    @cached_property
    def tables(self) -> "tuple[StoredIndex, ...]":
        """What the writer keeps inside the store besides the documents themselves."""
        from ragdocs.indices.analysis import code_analyzer
        from ragdocs.indices.code import CodeIndex
        from ragdocs.indices.signature_table import SignatureIndex
        from ragdocs.indices.vocabulary import VocabularyIndex

        return (
            *self._keyword.tables,
            CodeIndex(code_analyzer()),
            SignatureIndex(),
            VocabularyIndex(self.config.search.stemmer),
        )

    @cached_property
    def embedder(self) -> "Embedder":
        from ragdocs.embedding.providers import make_embedder

        if self._given_embedder is not None:
            return self._given_embedder
        settings = self.config.embedding
        # A project's file may come from anyone: where texts go is for the user to say.
        if self.config.origins["embedding.allow_remote"].kind is OriginKind.PROJECT:
            settings = settings.model_copy(update={"allow_remote": False})
        return make_embedder(settings)

    @cached_property
    def terms(self) -> "TermVectors | None":
        """The vocabulary's vectors, when queries are expanded by them."""
        from ragdocs.indices.near_words import Vocabulary
        from ragdocs.indices.term_vectors import TermVectors

        settings = self.config.search
        if not settings.query_expansion_enabled:
            return None
        vocabulary = Vocabulary(self._analyzer)
        return TermVectors(self.embedder, vocabulary, settings.query_expansion_max_terms)

    @property
    def index_setup(self) -> "IndexSetup":
        from ragdocs.chunking.header_chunker import ChunkSizes
        from ragdocs.indexing.index_setup import IndexSetup

        indexing = self.config.indexing
        return IndexSetup(
            directory=self.config.index_directory,
            fingerprint=self.fingerprint,
            trees=self.config.trees,
            sizes=ChunkSizes.from_settings(self.config.chunking),
            tables=self.tables,
            max_file_bytes=indexing.max_file_bytes,
            respect_gitignore=indexing.respect_gitignore,
        )

    def make_watcher(self) -> "Watcher":
        from ragdocs.indexing.watcher import Watcher, WatchOptions

        indexing = self.config.indexing
        options = WatchOptions(
            debounce_seconds=indexing.debounce_seconds,
            rescan_seconds=indexing.rescan_interval_seconds,
            private=(self.config.index_directory,),
        )
        return Watcher(self.config.trees, options)

    @cached_property
    def indices(self) -> "Indices":
        from ragdocs.indices.analysis import code_analyzer
        from ragdocs.indices.code import CodeEngine
        from ragdocs.indices.graph import GraphIndex
        from ragdocs.indices.vector import VectorIndex
        from ragdocs.search.retrieval import Indices

        return Indices(
            analyzer=self._analyzer,
            keyword=self._keyword.engine,
            code=CodeEngine(code_analyzer(), self._analyzer),
            vector=VectorIndex(self.embedder),
            embedder=self.embedder,
            graph=GraphIndex(),
            cross_encoder=self._cross_encoder,
            words=self._words,
        )

    @property
    def surroundings(self) -> "Surroundings":
        from ragdocs.chunking.splitting import Limits
        from ragdocs.search.orchestrator import Surroundings

        chunking = self.config.chunking
        size = None
        if chunking.parent_retrieval_enabled:
            size = Limits(chunking.parent_chunk_min_chars, chunking.parent_chunk_max_chars)
        local = (tree.name for tree in self.config.trees if tree.scope is TreeScope.LOCAL)
        return Surroundings(local_trees=frozenset(local), parent_size=size)

    @property
    def _words(self) -> "WordSources":
        from ragdocs.indices.near_words import Vocabulary
        from ragdocs.search.interpretation import WordSources
        from ragdocs.search.wordnet import WordNet

        return WordSources(
            vocabulary=Vocabulary(self._analyzer),
            terms=self.terms,
            thesaurus=WordNet() if self.config.search.synonyms_enabled else None,
        )

    @property
    def _cross_encoder(self) -> "CrossEncoder | None":
        from ragdocs.embedding.cross_encoder import open_cross_encoder

        settings = self.config.search
        if not settings.rerank_enabled:
            return None
        embedding = self.config.embedding
        return open_cross_encoder(
            str(settings.rerank_model), embedding.threads, embedding.cache_folder
        )

    @cached_property
    def _keyword(self) -> "KeywordSetup":
        from ragdocs.indices.keyword_engines import keyword_setup

        return keyword_setup(self.config.search, self._analyzer, self.config.index_directory)

    @property
    def _analyzer(self) -> "Analyzer":
        from ragdocs.indices.analysis import text_analyzer

        return text_analyzer(self.config.search.stemmer)


class TreeFiles:
    """Files as indexing reads them, for those who show them: never outside of their tree."""

    def __init__(self, config: Config) -> None:
        self._roots = {tree.name: tree.root for tree in config.trees}
        self._max_bytes = config.indexing.max_file_bytes

    def read(self, tree: TreeName, path: str) -> "FoundFile":
        """Raises SourceError when it cannot be read."""
        from ragdocs.indexing.reading import read_file
        from ragdocs.search.library.sources import FoundFile

        root = self._roots.get(tree)
        if root is None:
            raise SourceUnreadable(f"{tree} is not a tree of this configuration")
        found = read_file(root, path, self._max_bytes)
        return FoundFile(found.data, found.state.content_hash)
