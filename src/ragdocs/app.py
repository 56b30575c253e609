"""One index at work: kept in step with its files, searched, read. The edges know only this.

Nothing heavy is imported or opened before it is asked for; each part is made once.
"""

import os
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

from ragdocs.assembly import Assembly, StoredAssembly, TreeFiles
from ragdocs.closable import Closable
from ragdocs.config.making import Difference, Making, differences, read_making
from ragdocs.config.resolved import Config
from ragdocs.config.trust import in_words
from ragdocs.errors import (
    EmbeddingError,
    IndexCorrupt,
    IndexMissing,
    IndexStoreError,
    OtherSettings,
    OtherVersion,
)

if TYPE_CHECKING:
    from ragdocs.embedding.base import Embedder
    from ragdocs.indexing.index_setup import Control
    from ragdocs.indexing.manager import IndexManager
    from ragdocs.indexing.service import IndexService
    from ragdocs.indexing.service_state import ServiceState
    from ragdocs.search.index_state import IndexState
    from ragdocs.search.library.library import Library, LibrarySetup
    from ragdocs.search.orchestrator import QueryOrchestrator
    from ragdocs.search.requests import QueryRequest
    from ragdocs.search.responses import SearchResponse
    from ragdocs.search.upkeep import Upkeep
    from ragdocs.store.reader import Reader
    from ragdocs.store.records import Position

STOP_SECONDS = 1.2
"""A process must end within two seconds; what the thread has not committed by then is lost, and
found again at the next start."""
_ADOPTIONS = 3
"""How often the settings of a store may change while one question is answered."""
_NO_MEANING = (
    "meaning is not searched, because its vectors are of other embedding settings than those here"
)
_T = TypeVar("_T")
_FIRST_BUILD = "the index is being built for the first time: ask again soon"


class Views(Closable):
    """What answers: a reader of the store, and the indices over it, for the settings that the store
    was made with. `reason` says why it is only read, when those are not this program's."""

    def __init__(
        self, parts: Assembly, library_setup: "Callable[[], LibrarySetup]", reason: str
    ) -> None:
        self.parts = parts
        self.reason = reason
        self._library_setup = library_setup

    @cached_property
    def reader(self) -> "Reader":
        """Raises IndexMissing when nothing was indexed yet."""
        from ragdocs.store.reader import Reader
        from ragdocs.store.variants import note_use

        parts, making = self.parts, self.parts.making
        reader = Reader.open(
            parts.directory, making.fingerprint, settings=making.text, indices=parts.tables
        )
        if not self.reason:
            note_use(parts.directory)
        return reader

    @cached_property
    def orchestrator(self) -> "QueryOrchestrator":
        from ragdocs.search.orchestrator import QueryOrchestrator

        parts = self.parts
        settings = parts.config.search
        return QueryOrchestrator(self.reader, parts.indices, settings, parts.surroundings)

    @cached_property
    def library(self) -> "Library":
        from ragdocs.search.library.library import Library

        return Library(self.reader, self.parts.indices, self._library_setup())

    @property
    def doubts(self) -> int:
        """How often the store was found changed by something else, so far."""
        reader: Reader | None = vars(self).get("reader")
        return reader.doubts if reader else 0

    def release(self) -> None:
        """Closes connections that are not in use; the next question opens others."""
        reader: Reader | None = vars(self).get("reader")
        if reader:
            reader.release()

    def close(self) -> None:
        """Only what was made."""
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
        self._told_doubts = 0
        self._views = self._make_views(self)

    def manager(self, control: "Control | None" = None) -> "IndexManager":
        """Updates the index to match the files; to be closed by the thread that uses it."""
        from ragdocs.indexing.manager import IndexManager

        with self._making:  # asked for by the indexing thread while a query asks too
            return IndexManager(self.index_setup, self.embedder, self.terms, control)

    @cached_property
    def service(self) -> "IndexService":
        """The thread that keeps the index in step, not started yet."""
        from ragdocs.indexing.duty import ServiceParts
        from ragdocs.indexing.service import IndexService

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
        """Never waits for indexing; an index that cannot be used is said to be so.

        Raises QueryError for a request that cannot be answered.
        """
        from ragdocs.search.filters import refuse_unknown_trees
        from ragdocs.search.unavailable import no_answer

        refuse_unknown_trees(request.filters.trees, [tree.name for tree in self.config.trees])
        before, doubts = self.upkeep(), self._views.doubts
        try:
            response = self._answered(lambda views: self._orchestrator(views).search(request))
        except IndexStoreError as error:
            answer = no_answer(self._reported(error), before)
            return replace(answer, index=self._noticed(answer.index))
        return replace(response, index=self._judged(response.index, before, doubts))

    def index_state(self) -> "IndexState":
        """What could be answered for now; never raises for an index that cannot be used."""
        from ragdocs.search.unavailable import no_index

        before, doubts = self.upkeep(), self._views.doubts
        try:
            state = self._answered(lambda views: self._orchestrator(views).state())
        except IndexStoreError as error:
            return self._noticed(no_index(self._reported(error), before))
        return self._judged(state, before, doubts)

    def upkeep(self, service: "ServiceState | None" = None) -> "Upkeep":
        """How the index is kept in step. `service`: this process's own, as it was before."""
        from ragdocs.keepers import upkeep_of

        return upkeep_of(self.directory, self.config.trees, service or self._service_state())

    @property
    def library(self) -> "Library":
        """What is in the index, word for word. Raises IndexMissing when there is none yet."""

        def library(views: Views) -> "Library":
            with self._making:
                return self._current(views).library

        return self._answered(library)

    @property
    def reader(self) -> "Reader":
        """Raises IndexMissing when nothing was indexed yet."""

        def reader(views: Views) -> "Reader":
            with self._making:
                return self._current(views).reader

        return self._answered(reader)

    @property
    def reading(self) -> Assembly:
        """The parts that read the store as it is: by other settings than these, where it was made
        with others."""
        return self._views.parts

    def why_read_only(self) -> str:
        """Why the index is read as it is and never written: another program has made it in the
        folder that the user has named. Empty when it is this program's.

        Raises IndexStoreError when it cannot be read.
        """
        try:
            return self._answered(lambda views: self._current(views).reason)
        finally:
            self._views.release()  # whoever only asks this may never close the application

    def differences(self, stored: str) -> tuple[Difference, ...]:
        """Between the settings that a store was made with, and these."""
        making = read_making(stored)
        return differences(making, self.making) if making else ()

    def close(self) -> None:
        """Only what was made. The indexing thread is given a moment to end."""
        made = vars(self)
        if "service" in made:
            self.service.stop(STOP_SECONDS)
        self._views.close()
        self._views = self._make_views(self)

    def _make_views(self, parts: Assembly, reason: str = "") -> Views:
        return Views(parts, self._library_setup, reason)

    def _library_setup(self) -> "LibrarySetup":
        from ragdocs.indexing.patterns import matches_any
        from ragdocs.search.library.library import LibrarySetup

        return LibrarySetup(
            trees=self.config.trees,
            context=self.config.context,
            search=self.search,
            matches=matches_any,
            files=TreeFiles(self.config),
        )

    def _answered(self, ask: Callable[[Views], _T]) -> _T:
        """Asks; again when the store was found to be of other settings than those that were
        expected, and can be read by them."""
        for _ in range(_ADOPTIONS):
            views = self._views
            try:
                return ask(views)
            except OtherSettings as error:
                if self.owns_directory:  # it is emptied by whoever writes next
                    raise
                self._adopt(views, error)
            except IndexStoreError:
                if views is self._views:
                    raise  # otherwise another thread has just found it to be of other settings
        return ask(self._views)

    def _adopt(self, views: Views, error: OtherSettings) -> None:
        """Reads the store by the settings that it was made with.

        Raises OtherVersion when this program cannot.
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
        from ragdocs.store.connection import store_path
        from ragdocs.store.verification import refusal

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
        """Where others may rebuild the index with their settings, only when they have not."""
        if not self.owns_directory:
            views.reader.position()
        return views

    def _reported(self, error: IndexStoreError) -> IndexStoreError:
        """What a reader found is for the indexing thread to mend; and that thread knows more."""
        if "service" in vars(self):
            if isinstance(error, IndexCorrupt):
                self.service.suspect(error)
            state = self.service.state
            if isinstance(error, IndexMissing) and (state.error or state.is_alive):
                error = IndexMissing(state.error or _FIRST_BUILD)
        error.args = (self._for_others(str(error)),)
        return error

    def _for_others(self, text: str) -> str:
        """An answer may leave this machine: where the index is kept is for `status` to say."""
        folder = os.fspath(self.directory)
        return text.replace(f"{folder}{os.sep}", "").replace(folder, "the index folder")

    def _service_state(self) -> "ServiceState | None":
        return self.service.state if "service" in vars(self) else None

    def _judged(self, state: "IndexState", before: "Upkeep", doubts: int) -> "IndexState":
        """The same, with what was known against it before it was asked, and is known now: it may
        have been brought in step just after."""
        from ragdocs.search.upkeep import BEING_CHECKED, Upkeep, judged, unchecked

        known, now = judged(state, before), self._views.doubts
        if "service" in vars(self):
            if now != self._told_doubts:  # also of those who only read
                self._told_doubts = now
                self.service.doubt(BEING_CHECKED)
            known = judged(known, self.upkeep())
        elif now != doubts:
            known = judged(known, Upkeep(doubt=unchecked()))
        if reason := self._views.reason:
            known = known.behind(reason)
        return self._noticed(replace(known, reason=self._for_others(known.reason)))

    def _noticed(self, state: "IndexState") -> "IndexState":
        lines = in_words(self.config.ignored, with_folders=False)
        return replace(state, notices=tuple(lines)) if self.config.ignored else state

    def _follow(self) -> None:
        """Does for queries what they would have to do before they answer."""
        with suppress(EmbeddingError):  # the rest of the search goes on without a model
            self.embedder.load()
        with self._making:
            reader, indices = self.reader, self._views.parts.indices
        with reader.snapshot() as snapshot:
            if snapshot.position != self._followed:
                indices.catch_up(snapshot)
                self._followed = snapshot.position
