"""What the server asks of the application, opened behind the handshake, and the threads that ask
it.
"""

import asyncio
import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Protocol, TypeVar

from ragdocs.limits import LOOKS_AT_ONCE, SEARCHES_AT_ONCE

if TYPE_CHECKING:
    from ragdocs.diagnosis.status import Status
    from ragdocs.library.library import Library
    from ragdocs.lint.findings import LintReport, LintRequest
    from ragdocs.search.requests import QueryRequest
    from ragdocs.search.responses import IndexState, SearchResponse

# All that the server asks of the rest of the program.


class Backend(Protocol):
    """One index that is being kept up to date; every method may be called by several threads."""

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
        """As it is told with a list; never raises."""
        ...

    def status(self) -> "Status":
        """Never raises."""
        ...

    def lint(self, request: "LintRequest") -> "LintReport":
        """Raises IndexStoreError when there is no index to read."""
        ...

    def changed_settings(self) -> Mapping[str, str]:
        """The settings that have not their default, as they would be written in a file."""
        ...

    def document_ids(self) -> Sequence[str]:
        """Of all that is indexed, in order; none while there is no index."""
        ...

    def activity(self) -> str:
        """What is being indexed at this moment, in words; empty when nothing is. Never waits."""
        ...

    def close(self) -> None: ...


# The backend, opened behind the handshake, and the threads that ask it.
#
# Opening imports most of the program, so it begins once the client has its first answer. When it
# fails (say, the configuration is wrong) the next call tries again: no restart is needed.


Answer = TypeVar("Answer")
_log = logging.getLogger(__name__)


class Host:
    """Opens the backend once, and runs what is asked of it in a few threads."""

    def __init__(self, open_backend: Callable[[], Backend]) -> None:
        self._open = open_backend
        self._lock = threading.Lock()
        self._opening: Future[Backend] | None = None
        self._in_line = 0
        self._searches = ThreadPoolExecutor(SEARCHES_AT_ONCE, "mcp-search")
        self._looks = ThreadPoolExecutor(LOOKS_AT_ONCE, "mcp-look")

    def start(self) -> "Future[Backend]":
        """Begins to open the backend, unless it is open or being opened."""
        with self._lock:
            opening = self._opening
            if opening is None or (opening.done() and opening.exception() is not None):
                opening = self._opening = Future()
                threading.Thread(
                    target=self._run, args=(opening,), name="mcp-open", daemon=True
                ).start()
            return opening

    async def search(self, work: Callable[[Backend], Answer]) -> Answer:
        """In line with the other searches. Cancelled, it leaves the line."""
        self._in_line += 1
        try:
            return await asyncio.wrap_future(self._searches.submit(self._do, work))
        finally:
            self._in_line -= 1

    async def look(self, work: Callable[[Backend], Answer]) -> Answer:
        """Something quick."""
        return await asyncio.wrap_future(self._looks.submit(self._do, work))

    def activity(self) -> str:
        """What is waited for, in words."""
        opening = self._opening
        if opening is None or not opening.done():
            return "opening the index"
        said = [] if opening.exception() is not None else [opening.result().activity()]
        if self._in_line > SEARCHES_AT_ONCE:
            said.append(f"{self._in_line} searches in line")
        return "; ".join(filter(None, said)) or "searching"

    def close(self) -> None:
        """Waits for nothing that runs."""
        with self._lock:
            opening = self._opening
        for threads in (self._searches, self._looks):
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
            opening.set_exception(error)
        else:
            opening.set_result(backend)
