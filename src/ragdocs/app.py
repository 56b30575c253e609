"""One index at work: kept in step with its files, searched, read. The edges know only this.

Nothing heavy is imported or opened before it is asked for; each part is made once.
"""

import os
import threading
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from ragdocs.assembly import Assembly, TreeFiles
from ragdocs.closable import Closable
from ragdocs.config.resolved import Config
from ragdocs.errors import (
    EmbeddingError,
    IndexCorrupt,
    IndexIncompatible,
    IndexMissing,
    IndexStoreError,
)

if TYPE_CHECKING:
    from ragdocs.embedding.base import Embedder
    from ragdocs.indexing.index_setup import Control
    from ragdocs.indexing.manager import IndexManager
    from ragdocs.indexing.service import IndexService
    from ragdocs.indexing.service_state import ServiceState
    from ragdocs.indices.background import BackgroundCommunities
    from ragdocs.search.index_state import IndexState
    from ragdocs.search.library.library import Library
    from ragdocs.search.orchestrator import QueryOrchestrator
    from ragdocs.search.requests import QueryRequest
    from ragdocs.search.responses import SearchResponse
    from ragdocs.search.upkeep import Upkeep
    from ragdocs.store.reader import Reader
    from ragdocs.store.records import Position

STOP_SECONDS = 1.2
"""A process must end within two seconds; what the thread has not committed by then is lost, and
found again at the next start."""
_FIRST_BUILD = "the index is being built for the first time: ask again soon"


class App(Assembly, Closable):
    """One index of one configuration. Close it, or use it in a `with`."""

    def __init__(self, config: Config, embedder: "Embedder | None" = None) -> None:
        super().__init__(config, embedder)
        self._making = threading.RLock()
        self._followed: Position | None = None
        self._told_doubts = 0

    def manager(self, control: "Control | None" = None) -> "IndexManager":
        """Brings the index in step with the files; to be closed by the thread that uses it."""
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
                directory=self.config.index_directory,
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
        before, doubts = self.upkeep(), self._doubts()
        try:
            with self._making:
                orchestrator = self._orchestrator
            response = orchestrator.search(request)
        except IndexStoreError as error:
            return no_answer(self._reported(error), before)
        return replace(response, index=self._judged(response.index, before, doubts))

    def index_state(self) -> "IndexState":
        """What could be answered for now; never raises for an index that cannot be used."""
        from ragdocs.search.unavailable import no_index

        before, doubts = self.upkeep(), self._doubts()
        try:
            with self._making:
                orchestrator = self._orchestrator
            state = orchestrator.state()
        except IndexStoreError as error:
            return no_index(self._reported(error), before)
        return self._judged(state, before, doubts)

    def upkeep(self, service: "ServiceState | None" = None) -> "Upkeep":
        """How the index is kept in step. `service`: this process's own, as it was before."""
        from ragdocs.keepers import upkeep_of

        return upkeep_of(self.config, service or self._service_state())

    @cached_property
    def library(self) -> "Library":
        """What is in the index, word for word. Raises IndexMissing when there is none yet."""
        from ragdocs.indexing.patterns import matches_any
        from ragdocs.search.library.library import Library, LibrarySetup

        setup = LibrarySetup(
            trees=self.config.trees,
            context=self.config.context,
            search=self.search,
            matches=matches_any,
            files=TreeFiles(self.config),
        )
        with self._making:
            return Library(self.reader, self.indices, setup)

    def find_communities(self) -> None:
        """Now, for a command that shows them; a server finds them in the background."""
        graph = self.indices.graph
        if graph is not None:
            with self.reader.snapshot() as snapshot:
                graph.catch_up(snapshot)
            graph.communities()

    @cached_property
    def reader(self) -> "Reader":
        """Raises IndexMissing when nothing was indexed yet."""
        from ragdocs.keepers import advised
        from ragdocs.store.reader import Reader

        directory = self.config.index_directory
        try:
            return Reader.open(directory, self.fingerprint, indices=self.tables)
        except IndexIncompatible as error:
            raise advised(error, directory) from error

    def close(self) -> None:
        """Only what was made. The indexing thread is given a moment to end."""
        made = vars(self)
        if "service" in made:
            self.service.stop(STOP_SECONDS)
        for name in ("_orchestrator", "reader"):
            if name in made:
                made.pop(name).close()

    @cached_property
    def _orchestrator(self) -> "QueryOrchestrator":
        from ragdocs.search.orchestrator import QueryOrchestrator

        return QueryOrchestrator(self.reader, self.indices, self.config.search, self.surroundings)

    def _reported(self, error: IndexStoreError) -> IndexStoreError:
        """What a reader found is for the indexing thread to mend; and that thread knows more."""
        from ragdocs.keepers import advised

        if "service" in vars(self):
            if isinstance(error, IndexCorrupt):
                self.service.suspect(error)
            state = self.service.state
            if isinstance(error, IndexMissing) and (state.error or state.is_alive):
                error = IndexMissing(state.error or _FIRST_BUILD)
        error = advised(error, self.config.index_directory)
        return type(error)(self._for_others(str(error)))

    def _for_others(self, text: str) -> str:
        """An answer may leave this machine: where the index is kept is for `status` to say."""
        folder = os.fspath(self.config.index_directory)
        return text.replace(f"{folder}{os.sep}", "").replace(folder, "the index folder")

    def _service_state(self) -> "ServiceState | None":
        return self.service.state if "service" in vars(self) else None

    def _doubts(self) -> int:
        """How often the store was found changed by something else, so far."""
        reader: Reader | None = vars(self).get("reader")
        return reader.doubts if reader else 0

    def _judged(self, state: "IndexState", before: "Upkeep", doubts: int) -> "IndexState":
        """The same, with what was known against it before it was asked, and is known now: it may
        have been brought in step just after."""
        from ragdocs.search.upkeep import BEING_CHECKED, UNCHECKED, Upkeep, judged

        known, now = judged(state, before), self._doubts()
        if "service" in vars(self):
            if now != self._told_doubts:  # also of those who only read
                self._told_doubts = now
                self.service.doubt(BEING_CHECKED)
            known = judged(known, self.upkeep())
        elif now != doubts:
            known = judged(known, Upkeep(doubt=UNCHECKED))
        return replace(known, reason=self._for_others(known.reason))

    def _follow(self) -> None:
        """Does for queries what they would have to do before they answer."""
        with suppress(EmbeddingError):  # the rest of the search goes on without a model
            self.embedder.load()
        with self._making:
            reader, indices = self.reader, self.indices
        with reader.snapshot() as snapshot:
            if snapshot.position != self._followed:
                indices.catch_up(snapshot)
                self._followed = snapshot.position
        if self.config.search.advanced.community_detection_enabled:
            self._communities.refresh()

    @cached_property
    def _communities(self) -> "BackgroundCommunities":
        from ragdocs.indices.background import BackgroundCommunities

        graph = self.indices.graph
        assert graph is not None
        return BackgroundCommunities(graph)
