"""From a configuration to the parts of the program: each setting goes where it is read.

Nothing heavy is imported or opened before it is asked for; what is shared is made once.
"""

import os
import weakref
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from ragdocs.config.choices import EmbeddingProvider, KeywordEngine, Stemmer
from ragdocs.config.making import Making, read_making
from ragdocs.config.resolved import Config, TreeScope
from ragdocs.errors import OtherVersion, SourceUnreadable
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

    has_meaning = True
    """Whether the stored vectors are of this configuration's model."""

    def __init__(self, config: Config, embedder: "Embedder | None" = None) -> None:
        self.config = config
        self._given_embedder = embedder

    @cached_property
    def directory(self) -> Path:
        """The folder of this program's own store; see `index_directory`."""
        from ragdocs.store.variants import variant_name

        place = self.config.index_place
        if place.named is None:
            return place.default / variant_name(self.making.text)
        return self._named_directory(place.named)

    @property
    def owns_directory(self) -> bool:
        """Whether no program with other settings would look for its index there."""
        return self.config.index_place.named is None

    @cached_property
    def making(self) -> Making:
        """All that decides what is in the index."""
        from ragdocs.indices.keyword_engines import folder_version
        from ragdocs.store.schema import SCHEMA_VERSION

        tables = {table.name: table.version for table in self._all_tables}
        beside = folder_version(self.config.search)
        tables |= {"beside the store": beside} if beside else {}
        return Making(SCHEMA_VERSION, self.config.fingerprint_settings(), tables)

    @property
    def fingerprint(self) -> str:
        return self.making.fingerprint

    @cached_property
    def tables(self) -> "tuple[StoredIndex, ...]":
        """What the writer keeps inside the store besides the documents themselves."""
        _ = self._keyword  # fails here when its library is not installed
        return self._all_tables

    @cached_property
    def _all_tables(self) -> "tuple[StoredIndex, ...]":
        from ragdocs.indices.analysis import code_analyzer
        from ragdocs.indices.code import CodeIndex
        from ragdocs.indices.keyword_engines import keyword_tables
        from ragdocs.indices.signature_table import SignatureIndex
        from ragdocs.indices.vocabulary import VocabularyIndex

        return (
            *keyword_tables(self.config.search, self._analyzer),
            CodeIndex(code_analyzer()),
            SignatureIndex(),
            VocabularyIndex(self.config.search.stemmer),
        )

    @cached_property
    def embedder(self) -> "Embedder":
        from ragdocs.embedding.providers import make_embedder

        if self._given_embedder is not None:
            return self._given_embedder
        return make_embedder(self.config.embedding)

    @cached_property
    def terms(self) -> "TermVectors | None":
        """The vocabulary's vectors, when queries are expanded by them."""
        from ragdocs.indices.near_words import Vocabulary
        from ragdocs.indices.term_vectors import TermVectors

        settings = self.config.search
        if not settings.query_expansion_enabled or not self.has_meaning:
            return None
        vocabulary = Vocabulary(self._analyzer)
        return TermVectors(self.embedder, vocabulary, settings.query_expansion_max_terms)

    @property
    def index_setup(self) -> "IndexSetup":
        from ragdocs.chunking.header_chunker import ChunkSizes
        from ragdocs.indexing.index_setup import IndexSetup

        indexing = self.config.indexing
        return IndexSetup(
            directory=self.directory,
            owns_directory=self.owns_directory,
            fingerprint=self.fingerprint,
            settings=self.making.text,
            trees=self.config.trees,
            sizes=ChunkSizes.from_settings(self.config.chunking),
            tables=self.tables,
            max_file_bytes=indexing.max_file_bytes,
            respect_gitignore=indexing.respect_gitignore,
            has_communities=self.config.search.advanced.community_detection_enabled,
        )

    def make_watcher(self) -> "Watcher":
        from ragdocs.indexing.watcher import Watcher, WatchOptions

        indexing = self.config.indexing
        options = WatchOptions(
            debounce_seconds=indexing.debounce_seconds,
            rescan_seconds=indexing.rescan_interval_seconds,
            private=(self.config.index_place.folder,),
        )
        return Watcher(self.config.trees, options)

    @cached_property
    def indices(self) -> "Indices":
        from ragdocs.indices.analysis import code_analyzer
        from ragdocs.indices.code import CodeEngine
        from ragdocs.indices.graph import GraphIndex
        from ragdocs.indices.vector import VectorIndex
        from ragdocs.search.retrieval import Indices

        is_usual = self.config.embedding.provider is EmbeddingProvider.BUILTIN
        return Indices(
            analyzer=self._analyzer,
            keyword=self._keyword.engine,
            code=CodeEngine(code_analyzer(), self._analyzer),
            vector=VectorIndex(self.embedder, is_usual=is_usual) if self.has_meaning else None,
            embedder=self.embedder if self.has_meaning else None,
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
        return Surroundings(
            local_trees=frozenset(local),
            parent_size=size,
            parent_overlap=chunking.parent_overlap_chars,
        )

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

        return keyword_setup(self.config.search, self._analyzer, self._engine_directory)

    @property
    def _engine_directory(self) -> Path:
        """Where an engine that is not inside the store keeps its files."""
        return self.directory

    @property
    def _analyzer(self) -> "Analyzer":
        from ragdocs.indices.analysis import text_analyzer

        return text_analyzer(self.config.search.stemmer)

    def _named_directory(self, folder: Path) -> Path:
        """The folder that the user has named; or, when another version of this program keeps its
        store there, one of our own below it: then neither shuts the other out."""
        from ragdocs.store.connection import store_path
        from ragdocs.store.variants import variant_name

        own = folder / variant_name(self._version)
        if os.path.exists(store_path(folder)):
            return own if self._is_of_other_version(folder) else folder
        return own if os.path.exists(store_path(own)) else folder

    @property
    def _version(self) -> str:
        """Of this program's indices, whatever the settings are."""
        plain = _with_search(
            self.config, stemmer=Stemmer.ENGLISH, keyword_engine=KeywordEngine.FTS5
        )
        making = Assembly(plain).making
        return f"{making.schema} {sorted(making.tables.items())}"

    def _is_of_other_version(self, folder: Path) -> bool:
        from ragdocs.store.opening import stored_settings

        try:
            settings = stored_settings(folder)
        except OtherVersion:
            return True
        stored = read_making(settings) if settings else None
        if stored is None:
            return False  # there is none, or none that can be read: it is repaired
        try:
            StoredAssembly(self, stored, folder)
        except OtherVersion:
            return True
        return False


class StoredAssembly(Assembly):
    """The parts that read a store of other settings in a folder that the user has named: by the
    words as they are stored there. Nothing is loaded because that store names it.

    Raises OtherVersion when another version of this program made its tables.
    """

    def __init__(self, own: Assembly, stored: Making, directory: Path) -> None:
        super().__init__(_as_stored(own.config, stored))
        self._own = own
        self.directory = directory
        self.making = stored
        self._forget_folder: weakref.finalize[..., StoredAssembly] | None = None
        self.has_meaning = stored.section("embedding") == own.making.section("embedding")
        tables = {table.name: table.version for table in self._all_tables}
        if any(stored.tables.get(name) != version for name, version in tables.items()):
            raise OtherVersion(
                f"the index in {directory} was written by another version of this program"
            )

    @property
    def embedder(self) -> "Embedder":  # pyright: ignore[reportIncompatibleVariableOverride]
        return self._own.embedder

    def close(self) -> None:
        if self._forget_folder is not None:
            self._forget_folder()

    @property
    def _engine_directory(self) -> Path:
        if self.config.search.keyword_engine is KeywordEngine.FTS5:
            return self.directory
        return self._private_folder

    @cached_property
    def _private_folder(self) -> Path:
        """What reads a store of others writes nothing beside it."""
        import shutil
        from tempfile import mkdtemp

        folder = mkdtemp(prefix="ragdocs-words-")
        self._forget_folder = weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        return Path(folder)


def index_directory(config: Config) -> Path:
    """Where this program keeps its store. By default every set of index settings has a folder of
    its own, below that of the documents; in a folder that the user has named, there is one store
    for each version of this program."""
    return Assembly(config).directory


def _as_stored(config: Config, stored: Making) -> Config:
    """With what decides how the stored words were made, and an engine that can read them."""
    from ragdocs.indices.fts5 import TABLE as FTS5_TABLE

    try:
        stemmer = Stemmer(stored.value("search", "stemmer"))
    except ValueError:
        raise OtherVersion("the index was made with a stemmer that this program lacks") from None
    engine = config.search.keyword_engine
    if FTS5_TABLE in stored.tables:
        engine = KeywordEngine.FTS5
    elif engine is KeywordEngine.FTS5:
        engine = KeywordEngine.WHOOSH
    return _with_search(config, stemmer=stemmer, keyword_engine=engine)


def _with_search(config: Config, **settings: object) -> Config:
    return replace(config, search=config.search.model_copy(update=settings))


class TreeFiles:
    """Files as indexing reads them, for those who show them: never outside of their tree."""

    def __init__(self, config: Config) -> None:
        self._trees = {tree.name: tree for tree in config.trees}
        self._max_bytes = config.indexing.max_file_bytes

    def read(self, tree: TreeName, path: str) -> "FoundFile":
        """Raises SourceError when it cannot be read."""
        from ragdocs.indexing.reading import read_file
        from ragdocs.search.library.sources import FoundFile

        at = self._trees.get(tree)
        if at is None:
            raise SourceUnreadable(f"{tree} is not a tree of this configuration")
        found = read_file(at.root, path, self._max_bytes, at.within)
        return FoundFile(found.data, found.state.content_hash)
