"""The backend of the server: opened after the handshake, called in a few threads, and implemented
by the application.
"""

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Protocol, TypeVar

from ragdocs.errors import IndexCorrupt, IndexStoreError
from ragdocs.limits import MAX_ANSWER_TOKENS, MAX_PAGE_ENTRIES, READS_AT_ONCE, SEARCHES_AT_ONCE
from ragdocs.mcp_server.instructions import MAX_NAMES, SummaryFile, TreeSummary, top_folders
from ragdocs.mcp_server.roots import ClientRoots

if TYPE_CHECKING:
    from ragdocs.app import App
    from ragdocs.diagnosis.status import Status
    from ragdocs.library.library import Library
    from ragdocs.lint.findings import LintReport, LintRequest
    from ragdocs.search.requests import QueryRequest
    from ragdocs.search.responses import IndexState, SearchResponse

# Everything that the server needs from the rest of the program.


class Backend(Protocol):
    """One index that is kept up to date; several threads may call every method."""

    @property
    def hyde_enabled(self) -> bool:
        """Whether `search_with_hypothesis` is offered."""
        ...

    def search(self, request: "QueryRequest") -> "SearchResponse": ...

    @property
    def library(self) -> "Library":
        """Raises IndexStoreError when there is no index to read."""
        ...

    def index_state(self) -> "IndexState":
        """The state that is shown with a list; never raises."""
        ...

    def status(self) -> "Status":
        """Never raises."""
        ...

    def lint(self, request: "LintRequest") -> "LintReport":
        """Raises IndexStoreError when there is no index to read."""
        ...

    def report(self, error: IndexCorrupt) -> None:
        """A call found damage: the index is checked and repaired soon."""
        ...

    def changed_settings(self) -> Mapping[str, str]:
        """The settings that differ from their default, as they would be written in a file."""
        ...

    @property
    def trees_from(self) -> str:
        """What named the folders of the documents."""
        ...

    def document_ids(self) -> Sequence[str]:
        """The ids of all documents, in order; empty while there is no index."""
        ...

    def activity(self) -> str:
        """What is being indexed now, in words; empty if nothing is. Never waits."""
        ...

    def close(self) -> None: ...


# The host: opens the backend, and calls it in a few threads.
#
# Opening imports most of the program, so it starts after the client has its first answer. If it
# fails (a wrong configuration, say), the next call tries again, so no restart is needed.


Answer = TypeVar("Answer")
_log = logging.getLogger(__name__)


class Host:
    """Opens the backend once, and runs calls to it in a few threads."""

    def __init__(
        self, open_backend: Callable[[], Backend], roots: ClientRoots | None = None
    ) -> None:
        """Without `roots`, opening the backend does not ask the client for any."""
        self._open = open_backend
        self.roots = roots or ClientRoots()
        if roots is None:
            self.roots.are_not_needed()
        self._lock = threading.Lock()
        self._opening: Future[Backend] | None = None
        self._queued = 0
        self._searches = ThreadPoolExecutor(SEARCHES_AT_ONCE, "mcp-search")
        self._reads = ThreadPoolExecutor(READS_AT_ONCE, "mcp-library")

    def start(self) -> "Future[Backend]":
        """Starts to open the backend, unless it is open or being opened."""
        with self._lock:
            opening = self._opening
            if opening is None or (opening.done() and opening.exception() is not None):
                opening = self._opening = Future()
                threading.Thread(
                    target=self._run, args=(opening,), name="mcp-open", daemon=True
                ).start()
            return opening

    async def search(self, work: Callable[[Backend], Answer]) -> Answer:
        """Queued with the other searches; leaves the queue if it is cancelled."""
        self._queued += 1
        try:
            return await asyncio.wrap_future(self._searches.submit(self._do, work))
        finally:
            self._queued -= 1

    async def read(self, work: Callable[[Backend], Answer]) -> Answer:
        """For quick calls."""
        return await asyncio.wrap_future(self._reads.submit(self._do, work))

    def activity(self) -> str:
        """What a call is waiting for, in words."""
        opening = self._opening
        if opening is None or not opening.done():
            return "opening the index"
        said = [] if opening.exception() is not None else [opening.result().activity()]
        if self._queued > SEARCHES_AT_ONCE:
            said.append(f"{self._queued} searches waiting or running")
        return "; ".join(filter(None, said)) or "searching"

    def close(self) -> None:
        """Does not wait for running calls."""
        self.roots.close()
        with self._lock:
            opening = self._opening
        for threads in (self._searches, self._reads):
            threads.shutdown(wait=False, cancel_futures=True)
        if opening is not None and opening.done() and opening.exception() is None:
            opening.result().close()

    def _do(self, work: Callable[[Backend], Answer]) -> Answer:
        return work(self.start().result())

    def _run(self, opening: "Future[Backend]") -> None:
        try:
            backend = self._open()
        except BaseException as error:
            _log.warning("the index could not be opened: %s", type(error).__name__)
            self.roots.are_not_needed()
            opening.set_exception(error)
        else:
            self.roots.are_not_needed()
            opening.set_result(backend)


# The application as this backend.

FIRST_SECONDS = 2.0
"""Within this time the first documents of a small folder are indexed."""
_PAUSE = 0.05
_SUMMARY_FIRST_SECONDS = 2.0
_SUMMARY_SECONDS = 600.0


class ServedApp:
    """An application whose index is kept up to date.

    During the first `patience` seconds, a call waits until an empty index has its first documents;
    later it reports at once that there are none.
    """

    def __init__(
        self,
        app: "App",
        patience: float = 0.0,
        trees_from: str = "",
        summary: SummaryFile | None = None,
    ) -> None:
        """`summary` is kept up to date for the handshake of the next server."""
        self._app = app
        self._patient_until = time.monotonic() + patience
        self._trees_from = trees_from
        self._is_closed = threading.Event()
        if summary is not None:
            threading.Thread(
                target=self._keep, args=(summary,), name="mcp-summary", daemon=True
            ).start()

    @property
    def trees_from(self) -> str:
        config = self._app.config
        origins = (str(config.tree_origin(tree)) for tree in config.trees)
        return self._trees_from or ", ".join(dict.fromkeys(origins))

    def summary(self) -> tuple[TreeSummary, ...]:
        """What each tree is about. Raises IndexStoreError when there is no index to read."""
        from ragdocs.library.requests import ListKind, ListRequest
        from ragdocs.parsers.ids import decode_path

        library = self._app.library
        listed = library.list(
            ListRequest(kind=ListKind.TREES, limit=MAX_PAGE_ENTRIES, max_tokens=MAX_ANSWER_TOKENS)
        )
        paths: dict[str, list[str]] = {}
        for doc_id in self.document_ids():
            tree, _, path = doc_id.partition(":")
            paths.setdefault(tree, []).append(decode_path(path))
        descriptions = {str(tree.name): tree.description for tree in self._app.config.trees}
        return tuple(
            TreeSummary(
                name=entry.name,
                description=descriptions.get(entry.name, ""),
                documents=entry.documents,
                folders=top_folders(paths.get(entry.name, ())),
                tags=tuple(
                    (each.tag, each.documents)
                    for each in library.list(
                        ListRequest(kind=ListKind.TAGS, tree=entry.name, limit=MAX_NAMES)
                    ).tags
                ),
            )
            for entry in listed.trees
        )

    def _keep(self, file: SummaryFile) -> None:
        """Writes the summary when the index is there, and again from time to time; it looks ever
        less often at trees that stay empty."""
        from ragdocs.search.responses import Readiness

        written, pause = 0, _SUMMARY_FIRST_SECONDS
        while not self._is_closed.wait(pause):
            pause = min(2 * pause, _SUMMARY_SECONDS)
            try:
                state = self._app.index_state()
                is_built = state.documents and state.state is not Readiness.BUILDING
                if is_built and state.generation != written:
                    file.write(self.summary(), self._app.config.files)
                    written, pause = state.generation, _SUMMARY_SECONDS
            except Exception as error:  # the next time, or the next handshake says less
                _log.debug("no summary was made: %s", type(error).__name__)

    @property
    def hyde_enabled(self) -> bool:
        return self._app.config.search.advanced.hyde_enabled

    def search(self, request: "QueryRequest") -> "SearchResponse":
        self._wait_for_documents()
        return self._app.search(request)

    @property
    def library(self) -> "Library":
        self._wait_for_documents()
        return self._app.library

    def index_state(self) -> "IndexState":
        return self._app.index_state()

    def status(self) -> "Status":
        from ragdocs.diagnosis.collector import collect_status

        return collect_status(self._app, self._app.service.state)

    def lint(self, request: "LintRequest") -> "LintReport":
        self._wait_for_documents()
        return self._app.lint(request)

    def report(self, error: IndexCorrupt) -> None:
        self._app.report_error(error)

    def changed_settings(self) -> Mapping[str, str]:
        from ragdocs.config.problems import OriginKind
        from ragdocs.text import toml_value

        return {
            one.key: toml_value(one.value)
            for one in self._app.config.in_force()
            if one.origin.kind is not OriginKind.DEFAULT
        }

    def document_ids(self) -> Sequence[str]:
        try:
            with self._app.reader.snapshot() as snapshot:
                return snapshot.document_ids()
        except IndexStoreError:
            return ()

    def activity(self) -> str:
        progress = self._app.service.state.progress
        return f"{progress.phase}: {progress.done:,} of {progress.total:,}" if progress else ""

    def close(self) -> None:
        self._is_closed.set()
        self._app.close()

    def _wait_for_documents(self) -> None:
        """At most until `patience` has run out."""
        while time.monotonic() < self._patient_until:
            state = self._app.index_state()
            if state.documents or state.complete:
                self._patient_until = 0.0
            else:
                time.sleep(_PAUSE)
