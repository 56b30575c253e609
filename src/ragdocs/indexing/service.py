"""The indexing thread of one process, supervised: it cannot die unseen.

Whatever it fails with is said in its state, and tried again after a pause. Should the thread itself
be gone, whoever asks for the state starts it anew.
"""

import logging
import threading
from contextlib import suppress
from dataclasses import replace

from ragdocs.errors import OthersIndex, RagdocsError
from ragdocs.indexing.duty import IndexDuty, ServiceParts
from ragdocs.indexing.service_state import Board, Duty, ServiceState

PAUSES = (0.5, 1.0, 2.0, 5.0, 10.0)
"""Between attempts that fail one after the other: a disk with room again is noticed in time."""
_log = logging.getLogger(__name__)


class IndexService:
    """Keeps the index in step until it is stopped; any thread may start, stop and ask it."""

    def __init__(self, parts: ServiceParts) -> None:
        self._board = Board()
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._duty = IndexDuty(parts, self._board, self._stop)

    @property
    def state(self) -> ServiceState:
        """A thread that has died is started again by this."""
        thread = self._thread
        if thread is not None and not thread.is_alive() and not self._stop.is_set():
            self._board.say(duty=Duty.STARTING, restarts=self._board.state.restarts + 1)
            self.start()
        is_alive = self._thread is not None and self._thread.is_alive()
        return replace(self._board.state, is_alive=is_alive)

    def start(self) -> None:
        """Returns at once. Nothing happens when it runs already, or was stopped."""
        with self._lock:
            if self._stop.is_set() or (self._thread and self._thread.is_alive()):
                return
            thread = threading.Thread(target=self._run, name="indexing", daemon=True)
            self._thread = thread
            try:
                thread.start()
            except RuntimeError as error:  # no room for a thread: asking for the state tries again
                self._board.say(duty=Duty.FAILING, error=str(error))

    def stop(self, timeout: float | None = None) -> bool:
        """Ends the thread; False when it was still at work after that time."""
        self._stop.set()
        self._duty.wake()
        thread = self._thread
        if thread is None:
            return True
        with suppress(RuntimeError):  # never started
            thread.join(timeout)
        if thread.is_alive():
            return False
        self._duty.release()
        self._board.say(duty=Duty.ENDED, progress=None)
        return True

    def suspect(self, error: Exception) -> None:
        """A reader found the index damaged: it is checked and repaired."""
        self._duty.suspect(error)

    def doubt(self, reason: str) -> None:
        """A reader found that the index was changed by something else than a commit."""
        self._duty.doubt(reason)

    def _run(self) -> None:
        while not self._stop.is_set():
            self._attempt()
            failures = self._board.state.failures
            self._stop.wait(PAUSES[min(failures, len(PAUSES)) - 1])
        self._duty.release()  # whoever stopped it may not have waited for this

    def _attempt(self) -> None:
        """One stretch of duty; it ends by itself only when it fails."""
        try:
            self._duty.run()
        except OthersIndex as error:
            self._fail(Duty.STOOD_DOWN, error)
        except (RagdocsError, OSError) as error:
            self._fail(Duty.FAILING, error)
        except Exception as error:
            _log.exception("the indexing thread failed")
            self._fail(Duty.FAILING, error)

    def _fail(self, duty: Duty, error: Exception) -> None:
        failures = self._board.state.failures + 1
        text = str(error) or type(error).__name__
        self._board.say(duty=duty, progress=None, failures=failures, error=text)
        self._duty.tell_failure(stood_down=duty is Duty.STOOD_DOWN)
