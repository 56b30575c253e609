"""One index at work: it builds the parts from a configuration, keeps the index up to date and
answers.

The edges know only `App`. Nothing heavy is imported or opened before it is needed.
"""

import errno
import os
import threading
import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from ragdocs.config.choices import EmbeddingProvider, KeywordEngineName, Stemmer
from ragdocs.config.fingerprint import FingerprintDifference, Making, differences, read_making
from ragdocs.config.resolved import Config, TreeScope
from ragdocs.config.trust import in_words
from ragdocs.errors import (
    EmbeddingError,
    IndexCorrupt,
    IndexMissing,
    IndexStoreError,
    OtherSettings,
    OtherVersion,
    SourceError,
    SourceUnreadable,
)
from ragdocs.models import Closable, TreeName
from ragdocs.places import Places

if TYPE_CHECKING:
    from ragdocs.embedding.base import Embedder, Vectors
    from ragdocs.embedding.cross_encoder import CrossEncoder
    from ragdocs.health import Health
    from ragdocs.indexing.manager import IndexManager
    from ragdocs.indexing.service import IndexService, ServiceState
    from ragdocs.indexing.session import Control, IndexSetup
    from ragdocs.indexing.watcher import Watcher
    from ragdocs.indices.analysis import Analyzer
    from ragdocs.indices.embedded import EmbeddedIndex, EmbeddedIndices
    from ragdocs.indices.engines import KeywordSetup
    from ragdocs.indices.term_vectors import TermVectors
    from ragdocs.library.documents import CurrentFile
    from ragdocs.library.library import Library, LibrarySetup
    from ragdocs.lint.findings import LintReport, LintRequest
    from ragdocs.search.orchestrator import QueryOrchestrator, Surroundings
    from ragdocs.search.requests import QueryRequest
    from ragdocs.search.responses import IndexState, SearchResponse
    from ragdocs.search.retrieval import QueryTools
    from ragdocs.store.integrity import StoreState
    from ragdocs.store.reader import Reader
    from ragdocs.store.records import Position
    from ragdocs.store.stored_index import StoredIndex

# From a configuration to the parts of the program: each setting goes to the part that reads it.
# Shared parts are made once.


class Assembly:
    """The parts of one configuration. `embedder` replaces the one that the configuration names."""

    has_meaning = True
    """Whether the stored vectors were made by this configuration's model."""

    def __init__(self, config: Config, embedder: "Embedder | None" = None) -> None:
        self.config = config
        self.places = Places.of(config.trees)
        """Where the documents are; an edge replaces it by one with its base folder."""
        self._given_embedder = embedder

    @cached_property
    def directory(self) -> Path:
        """The folder of this program's own store; see `index_directory`."""
        from ragdocs.store.variants import variant_name

        place = self.config.index_place
        if place.named is None:
            return place.default / variant_name(self.making.text)
        return self._configured_directory(place.named)

    @property
    def owns_directory(self) -> bool:
        """Whether no program with other settings keeps its index there."""
        return self.config.index_place.named is None

    @cached_property
    def making(self) -> Making:
        """Everything that determines the contents of the index."""
        from ragdocs.indices.engines import folder_version
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
        """The indices that the writer keeps inside the store, beside the documents."""
        _ = self._keyword  # raises if its library is not installed
        return self._all_tables

    @cached_property
    def _all_tables(self) -> "tuple[StoredIndex, ...]":
        from ragdocs.indices.analysis import code_analyzer
        from ragdocs.indices.code import CodeIndex
        from ragdocs.indices.engines import keyword_tables
        from ragdocs.indices.signatures import SignatureIndex
        from ragdocs.indices.vocabulary import VocabularyIndex

        return (
            *keyword_tables(self.config.search, self.analyzer),
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
        """The vectors of the vocabulary, if they are used to expand queries."""
        settings = self.config.search
        if not settings.query_expansion_enabled or not self.has_meaning:
            return None
        from ragdocs.indices.term_vectors import TermVectors
        from ragdocs.indices.vocabulary import Vocabulary

        vocabulary = Vocabulary(self.analyzer)
        return TermVectors(self.embedder, vocabulary, settings.query_expansion_max_terms)

    @property
    def index_setup(self) -> "IndexSetup":
        from ragdocs.chunking.chunker import ChunkSizes
        from ragdocs.indexing.session import IndexSetup

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
    def indices(self) -> "EmbeddedIndices":
        from ragdocs.indices.analysis import code_analyzer
        from ragdocs.indices.code import CodeEngine
        from ragdocs.indices.embedded import EmbeddedIndices
        from ragdocs.indices.vector import VectorIndex
        from ragdocs.indices.vocabulary import Vocabulary

        is_usual = self.config.embedding.provider is EmbeddingProvider.BUILTIN
        return EmbeddedIndices(
            keyword=self._keyword.engine,
            code=CodeEngine(code_analyzer(), self.analyzer),
            vocabulary=Vocabulary(self.analyzer),
            vector=VectorIndex(self.embedder, is_usual=is_usual) if self.has_meaning else None,
            terms=self.terms,
        )

    @cached_property
    def query_tools(self) -> "QueryTools":
        from ragdocs.search.retrieval import QueryTools
        from ragdocs.search.wordnet import WordNet

        return QueryTools(
            analyzer=self.analyzer,
            embedder=self.embedder if self.has_meaning else None,
            cross_encoder=self._cross_encoder,
            thesaurus=WordNet() if self.config.search.synonyms_enabled else None,
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
            places=lambda: self.places,
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
        from ragdocs.indices.engines import keyword_setup

        return keyword_setup(self.config.search, self.analyzer, self._engine_directory)

    @property
    def _engine_directory(self) -> Path:
        """Where an engine that is not inside the store keeps its files."""
        return self.directory

    @property
    def analyzer(self) -> "Analyzer":
        from ragdocs.indices.analysis import text_analyzer

        return text_analyzer(self.config.search.stemmer)

    def _configured_directory(self, folder: Path) -> Path:
        """The folder that the user configured; or, if another version of this program keeps its
        store there, our own folder below it, so that neither locks the other out."""
        from ragdocs.store.database import store_path
        from ragdocs.store.variants import variant_name

        own = folder / variant_name(self._version)
        if os.path.exists(store_path(folder)):
            return own if self._is_of_other_version(folder) else folder
        return own if os.path.exists(store_path(own)) else folder

    @property
    def _version(self) -> str:
        """The version of this program's indices, whatever the settings are."""
        plain = _with_search(
            self.config, stemmer=Stemmer.ENGLISH, keyword_engine=KeywordEngineName.FTS5
        )
        making = Assembly(plain).making
        return f"{making.schema} {sorted(making.tables.items())}"

    def _is_of_other_version(self, folder: Path) -> bool:
        from ragdocs.store.writer import stored_settings

        try:
            settings = stored_settings(folder)
        except OtherVersion:
            return True
        stored = read_making(settings) if settings else None
        if stored is None:
            return False  # missing or unreadable: it is created or repaired
        try:
            StoredAssembly(self, stored, folder)
        except OtherVersion:
            return True
        return False


class StoredAssembly(Assembly):
    """The parts that read a store with other settings in a folder that the user configured, with
    the word analysis of that store. Nothing is loaded only because that store names it.

    Raises OtherVersion if another version of this program made its tables.
    """

    def __init__(self, own: Assembly, stored: Making, directory: Path) -> None:
        super().__init__(_with_stored_settings(own.config, stored))
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
        if self.config.search.keyword_engine is KeywordEngineName.FTS5:
            return self.directory
        return self._private_folder

    @cached_property
    def _private_folder(self) -> Path:
        """Reading another program's store must not write anything beside it."""
        import shutil
        from tempfile import mkdtemp

        folder = mkdtemp(prefix="ragdocs-words-")
        self._forget_folder = weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        return Path(folder)


def index_directory(config: Config) -> Path:
    """Where this program keeps its store. By default, every set of index settings has its own
    folder, below the folder of the documents' indices; a folder that the user configured has one
    store for each version of this program."""
    return Assembly(config).directory


def _with_stored_settings(config: Config, stored: Making) -> Config:
    """The configuration with the stemmer of the stored words, and an engine that can read them."""
    from ragdocs.indices.fts5 import TABLE as FTS5_TABLE

    try:
        stemmer = Stemmer(stored.value("search", "stemmer"))
    except ValueError:
        raise OtherVersion("the index was built with a stemmer that this program lacks") from None
    engine = config.search.keyword_engine
    if FTS5_TABLE in stored.tables:
        engine = KeywordEngineName.FTS5
    elif engine is KeywordEngineName.FTS5:
        engine = KeywordEngineName.WHOOSH
    return _with_search(config, stemmer=stemmer, keyword_engine=engine)


def _with_search(config: Config, **settings: object) -> Config:
    return replace(config, search=config.search.model_copy(update=settings))


class TreeFiles:
    """Reads files for display in the same way as indexing does: never outside their tree."""

    def __init__(self, config: Config) -> None:
        self._trees = {tree.name: tree for tree in config.trees}
        self._max_bytes = config.indexing.max_file_bytes

    def read(self, tree: TreeName, path: str) -> "CurrentFile":
        """Raises SourceError when it cannot be read."""
        from ragdocs.indexing.reading import read_file
        from ragdocs.library.documents import CurrentFile

        at = self._trees.get(tree)
        if at is None:
            raise SourceUnreadable(f"{tree} is not a tree of this configuration")
        found = read_file(at.root, path, self._max_bytes, at.within)
        return CurrentFile(found.data, found.state.content_hash)

    def exists(self, tree: TreeName, path: str) -> bool:
        """Whether the tree has a file or folder at this path. True also for what is behind a link
        or may not be looked at: that is not known to be missing."""
        from ragdocs.indexing.reading import open_below, open_root, relative_parts

        at = self._trees.get(tree)
        try:
            *above, name = relative_parts(path)
            if at is None:
                return False
            with open_root(at.root, at.within) as root, open_below(root, above) as folder:
                folder.status(name)
        except (SourceError, FileNotFoundError):
            return False
        except OSError as error:
            return error.errno != errno.ENAMETOOLONG
        return True


# One index at work: kept up to date with its files, searched and read.

STOP_SECONDS = 1.2
"""A process must end within two seconds. The next start repeats any work that the thread has not
committed by then."""
_ADOPTIONS = 3
"""How often the settings of a store may change during one query."""
_NO_MEANING = (
    "search by meaning is off, because its vectors were made with other embedding settings"
)
_T = TypeVar("_T")
_BEING_BUILT = "the index is being built: ask again soon"


class Views(Closable):
    """A reader of the store and the indices over it, for the settings that the store was built
    with. `reason` says why it is only read, if those are not this program's settings."""

    def __init__(
        self,
        parts: Assembly,
        library_setup: "Callable[[], LibrarySetup]",
        reason: str,
        report: "Callable[[StoreState], None]",
    ) -> None:
        self.parts = parts
        self.reason = reason
        self._library_setup = library_setup
        self._report = report

    @cached_property
    def reader(self) -> "Reader":
        """Raises IndexMissing when nothing was indexed yet."""
        from ragdocs.store.reader import Reader
        from ragdocs.store.variants import note_use

        parts, making = self.parts, self.parts.making
        reader = Reader.open(
            parts.directory,
            making.fingerprint,
            settings=making.text,
            indices=parts.tables,
            report=self._report,
        )
        if not self.reason:
            note_use(parts.directory)
        return reader

    @cached_property
    def index(self) -> "EmbeddedIndex":
        """Raises IndexMissing when nothing was indexed yet."""
        from ragdocs.indices.embedded import EmbeddedIndex

        return EmbeddedIndex(self.reader, self.parts.indices)

    @cached_property
    def orchestrator(self) -> "QueryOrchestrator":
        from ragdocs.search.orchestrator import QueryOrchestrator

        parts = self.parts
        settings = parts.config.search
        return QueryOrchestrator(self.index, parts.query_tools, settings, parts.surroundings)

    @cached_property
    def library(self) -> "Library":
        from ragdocs.library.library import Library

        return Library(self.index, self.parts.analyzer, self._library_setup())

    def release(self) -> None:
        """Closes connections that are not in use; the next query opens new ones."""
        reader: Reader | None = vars(self).get("reader")
        if reader:
            reader.release()

    def close(self) -> None:
        """Closes the parts that were made."""
        made = vars(self)
        for name in ("orchestrator", "reader"):
            if name in made:
                made[name].close()
        if isinstance(self.parts, StoredAssembly):
            self.parts.close()


class App(Assembly, Closable):
    """One index of one configuration. Close it, or use it in a `with`."""

    def __init__(self, config: Config, embedder: "Embedder | None" = None) -> None:
        super().__init__(config, embedder)
        self._making = threading.RLock()
        self._followed: Position | None = None
        self._current_answer = threading.local()
        """Whether a snapshot for the current answer of this thread found the store changed."""
        self._views = self._make_views(self)

    def manager(self, control: "Control | None" = None) -> "IndexManager":
        """Updates the index to match the files. The thread that uses it must close it."""
        from ragdocs.indexing.manager import IndexManager

        with self._making:  # the indexing thread and a query may need the same parts
            return IndexManager(self.index_setup, self.embedder, self.terms, control)

    @cached_property
    def service(self) -> "IndexService":
        """The thread that keeps the index up to date, not started yet."""
        from ragdocs.indexing.service import IndexService, ServiceParts

        is_watching = self.config.indexing.watch
        return IndexService(
            ServiceParts(
                directory=self.directory,
                make_manager=self.manager,
                make_watcher=self.make_watcher if is_watching else None,
                follow=self._follow,
            )
        )

    def search(self, request: "QueryRequest") -> "SearchResponse":
        """Never waits for indexing; if the index cannot be used, the response says why.

        Raises QueryError for a request that cannot be answered.
        """
        from ragdocs.health import no_answer
        from ragdocs.search.requests import refuse_unknown_trees

        refuse_unknown_trees(request.filters.named_trees, [tree.name for tree in self.config.trees])
        before = self._begin()
        try:
            response = self._ask(lambda views: self._orchestrator(views).search(request))
        except IndexStoreError as error:
            answer = no_answer(self.report_error(error), before)
            return replace(answer, index=self._add_notices(answer.index))
        answer = replace(response, index=self._judge(response.index, before))
        return self.places.with_files(answer)

    def check(self, request: "QueryRequest") -> None:
        """Raises QueryError for a filter that `search` would refuse; needs no vectors."""
        from ragdocs.search.requests import refuse_unknown_trees

        refuse_unknown_trees(request.filters.named_trees, [tree.name for tree in self.config.trees])
        with suppress(IndexStoreError):  # the search will report it
            self._ask(lambda views: self._orchestrator(views).check(request))

    def lint(self, request: "LintRequest") -> "LintReport":
        """Problems of the documents, from what is indexed; needs no model.

        Raises QueryError for a request that cannot be answered, IndexStoreError when the index
        cannot be used.
        """
        from datetime import UTC, datetime

        from ragdocs.lint.linter import lint
        from ragdocs.search.requests import refuse_unknown_trees

        refuse_unknown_trees(request.trees, [tree.name for tree in self.config.trees])
        with self.index.view(for_search=False) as view:
            files = TreeFiles(self.config)
            now = datetime.now(UTC)
            report = lint(view, self.config.lint, request, now, files, self.places)
        return self.places.with_files(report)

    def index_state(self) -> "IndexState":
        """How complete an answer would be now; does not raise if the index cannot be used."""
        from ragdocs.health import no_index

        before = self._begin()
        try:
            state = self._ask(lambda views: self._orchestrator(views).state())
        except IndexStoreError as error:
            return self._add_notices(no_index(self.report_error(error), before))
        return self._judge(state, before)

    def health(self, service: "ServiceState | None" = None) -> "Health":
        """Whether the index is kept up to date. `service`: its earlier state, of this process."""
        from ragdocs.health import health_of

        return health_of(self.directory, self.config.trees, service or self._service_state())

    @property
    def library(self) -> "Library":
        """The contents of the index, word for word. Raises IndexMissing when there is none yet."""

        def library(views: Views) -> "Library":
            with self._making:
                return self._current(views).library

        return self._ask(library)

    @property
    def reader(self) -> "Reader":
        """Raises IndexMissing when nothing was indexed yet."""

        def reader(views: Views) -> "Reader":
            with self._making:
                return self._current(views).reader

        return self._ask(reader)

    @property
    def index(self) -> "EmbeddedIndex":
        """Raises IndexMissing when nothing was indexed yet."""

        def index(views: Views) -> "EmbeddedIndex":
            with self._making:
                return self._current(views).index

        return self._ask(index)

    @property
    def reading(self) -> Assembly:
        """The parts that read the store, with the settings that it was built with."""
        return self._views.parts

    def why_read_only(self) -> str:
        """Why the index is only read, never written: another program created it in the folder that
        the user configured. Empty if it is this program's.

        Raises IndexStoreError when it cannot be read.
        """
        try:
            return self._ask(lambda views: self._current(views).reason)
        finally:
            self._views.release()  # a caller that needs only this may never close the application

    def differences(self, stored: str) -> tuple[FingerprintDifference, ...]:
        """The differences between the settings of a store and these."""
        making = read_making(stored)
        return differences(making, self.making) if making else ()

    def close(self) -> None:
        """Closes the parts that were made; waits a moment for the indexing thread to end."""
        made = vars(self)
        if "service" in made:
            self.service.stop(STOP_SECONDS)
        self._views.close()
        self._views = self._make_views(self)

    def _make_views(self, parts: Assembly, reason: str = "") -> Views:
        return Views(parts, self._library_setup, reason, self._report_changed)

    def _library_setup(self) -> "LibrarySetup":
        from ragdocs.indexing.ignore import matches_any
        from ragdocs.library.library import LibrarySetup

        return LibrarySetup(
            trees=self.config.trees,
            places=lambda: self.places,
            context=self.config.context,
            search=self.search,
            matches=matches_any,
            files=TreeFiles(self.config),
            embed=self._embed if self._views.parts.has_meaning else None,
        )

    def _embed(self, texts: Sequence[str]) -> "Vectors":
        """Raises EmbeddingError without a model."""
        return self.embedder.embed_documents(texts)

    def _ask(self, ask: Callable[[Views], _T]) -> _T:
        """Asks; and again if the store turns out to have other settings than expected, and can be
        read with those."""
        for _ in range(_ADOPTIONS):
            views = self._views
            try:
                return ask(views)
            except OtherSettings as error:
                if self.owns_directory:  # the next writer empties it
                    raise
                self._adopt(views, error)
            except IndexStoreError:
                if views is self._views:
                    raise  # otherwise another thread has just adopted other settings
        return ask(self._views)

    def _adopt(self, views: Views, error: OtherSettings) -> None:
        """Switches to reading the store with the settings that it was built with.

        Raises OtherVersion if this program cannot.
        """
        with self._making:
            if views is not self._views:
                return
            stored = read_making(error.stored)
            if stored is None:
                raise OtherVersion(error.what) from error
            self._views = self._views_of(stored)
            self._followed = None
        views.close()

    def _views_of(self, stored: Making) -> Views:
        from ragdocs.store.database import store_path
        from ragdocs.store.integrity import refusal

        if stored == self.making:
            return self._make_views(self)
        refused = refusal(store_path(self.directory), stored.text, self.making.text)
        if not isinstance(refused, OtherSettings):
            raise refused
        parts = StoredAssembly(self, stored, self.directory)
        said = [str(refused)] if parts.has_meaning else [str(refused), _NO_MEANING]
        return self._make_views(parts, "; ".join(said))

    def _orchestrator(self, views: Views) -> "QueryOrchestrator":
        with self._making:
            return views.orchestrator

    def _current(self, views: Views) -> Views:
        """Raises OtherSettings if another program has rebuilt the index with its own settings."""
        if not self.owns_directory:
            views.reader.position()
        return views

    def report_error(self, error: IndexStoreError) -> IndexStoreError:
        """Reports damage to the indexing thread, which repairs it and may know a better reason."""
        from ragdocs.store.integrity import StoreState

        if "service" in vars(self):
            if isinstance(error, IndexCorrupt):
                self.service.report(StoreState.after(error))
            state = self.service.state
            if isinstance(error, IndexMissing) and (state.error or state.is_alive):
                error = IndexMissing(state.error or _BEING_BUILT)
        error.args = (self._without_folder(str(error)),)
        return error

    def _without_folder(self, text: str) -> str:
        """Removes the path of the index folder, because an answer may leave this machine."""
        folder = os.fspath(self.directory)
        return text.replace(f"{folder}{os.sep}", "").replace(folder, "the index folder")

    def _service_state(self) -> "ServiceState | None":
        return self.service.state if "service" in vars(self) else None

    def _begin(self) -> "Health":
        """The health of the index, before it is queried."""
        self._current_answer.found_changed = False
        return self.health()

    def _report_changed(self, state: "StoreState") -> None:
        """Called by the thread that took the snapshot, even if this process only reads."""
        from ragdocs.health import BEING_CHECKED

        self._current_answer.found_changed = True
        if "service" in vars(self):
            self.service.report(replace(state, reason=BEING_CHECKED))

    def _judge(self, state: "IndexState", before: "Health") -> "IndexState":
        """The state, made worse by problems that were known before the query or are known now: the
        index may have been updated in between."""
        from ragdocs.health import BEING_CHECKED, Health, unchecked, with_health

        has_service = "service" in vars(self)
        known = with_health(state, before)
        if self._current_answer.found_changed:
            known = with_health(known, Health(doubt=BEING_CHECKED if has_service else unchecked()))
        if has_service:
            known = with_health(known, self.health())
        if reason := self._views.reason:
            known = known.behind(reason)
        return self._add_notices(replace(known, reason=self._without_folder(known.reason)))

    def _add_notices(self, state: "IndexState") -> "IndexState":
        lines = in_words(self.config.ignored, with_folders=False)
        return replace(state, notices=tuple(lines)) if self.config.ignored else state

    def _follow(self, position: "Position | None") -> None:
        """Does in advance what queries would have to do before they answer, unless that was done
        for this commit already."""
        with suppress(EmbeddingError):  # search works without a model, by words and links
            self.embedder.load()
        if position is None or position != self._followed:
            self._ask(self._catch_up)

    def _catch_up(self, views: Views) -> None:
        with self._making:
            reader, indices = views.reader, views.parts.indices
        with reader.snapshot() as snapshot:
            indices.catch_up(snapshot)
            self._followed = snapshot.position
