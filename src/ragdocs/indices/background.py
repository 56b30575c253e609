"""Communities, found beside everything else: neither queries nor indexing wait for them."""

import gc
import threading
import time

from ragdocs.indices.graph import GraphIndex

REST = 20.0
"""After a run it rests this many times as long: finding communities takes at most a twentieth of
one core, however often links change."""
FIRST_REST = 2.0
"""Before the first run: a server is asked its first question as soon as it can answer, and that
one should have the processor."""


class BackgroundCommunities:
    """Keeps the communities of a graph current, in threads that it starts when needed."""

    def __init__(self, graph: GraphIndex, first_rest: float = FIRST_REST) -> None:
        self._graph = graph
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._not_before = time.monotonic() + first_rest

    def refresh(self) -> None:
        """Starts a run if links have changed and it is time; returns at once."""
        with self._lock:
            if self._thread is not None and self._thread.is_alive():
                return
            if time.monotonic() < self._not_before or self._graph.has_current_communities():
                return
            self._thread = threading.Thread(target=self._run, name="communities", daemon=True)
            self._thread.start()

    def wait(self, timeout: float) -> bool:
        """Until the run that has begun is over; False when it was not by then."""
        thread = self._thread
        if thread is not None:
            thread.join(timeout)
        return thread is None or not thread.is_alive()

    def _run(self) -> None:
        began = time.monotonic()
        self._graph.communities()
        # NetworkX's graphs refer to themselves: 45 MB after 10,000 documents, until collected.
        gc.collect()
        ended = time.monotonic()
        self._not_before = ended + REST * (ended - began)
