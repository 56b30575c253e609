"""The indexing thread of a server: it watches, updates, embeds and reports its state."""

import logging
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path

from ragdocs.errors import IndexCorrupt, OthersIndex, RagdocsError
from ragdocs.indexing.changes import Hints, Progress, TreePath
from ragdocs.indexing.manager import IndexManager
from ragdocs.indexing.reading import in_words
from ragdocs.indexing.session import Control
from ragdocs.indexing.watcher import Watcher, WatchMode
from ragdocs.locks import FileLock, Holder
from ragdocs.store.integrity import StoreCondition, StoreState
from ragdocs.store.lock import SILENT_SECONDS, Succession, try_watch_lock, watching
from ragdocs.store.records import Position
from ragdocs.store.variants import DAY_SECONDS, drop_unused

# What the indexing thread reports: written by it, read by any thread.


class Role(StrEnum):
    """What the thread is doing."""

    STARTING = "starting"
    WATCHING = "watching"
    """It keeps the index up to date with the files."""
    STANDBY = "standby"
    """Another process keeps it up to date; this one takes over when that one ends."""
    UNWATCHED = "not watching"
    """The settings turn watching off; files were read at the start."""
    STOOD_DOWN = "stood down"
    """Another program created the index in a folder that the user configured."""
    FAILING = "failing"
    """The last attempt failed; it will try again."""
    ENDED = "ended"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceState:
    """`error` is why it fails or stood down, `trouble` a problem that does not stop the rest."""

    role: Role = Role.STARTING
    is_alive: bool = False
    watch: WatchMode = WatchMode.OFF
    watch_reason: str = ""
    progress: Progress | None = None
    last_scan: datetime | None = None
    failures: int = 0
    """How many attempts in a row have failed; 0 after a successful one."""
    restarts: int = 0
    """How often the thread itself died and was restarted."""
    error: str = ""
    trouble: str = ""
    kept: str = ""
    """Which documents may be out of date because their files cannot be read, and why."""
    doubt: str = ""
    """Why the index is being checked again; until then its answers may be wrong."""

    def facts(self) -> dict[str, str]:
        """The state as text, for other processes that ask about the watcher."""
        progress = self.progress
        activity = "idle" if self.last_scan else "starting"
        if progress:
            activity = f"{progress.phase} {progress.done} of {progress.total}"
        last_scan = self.last_scan.isoformat(timespec="seconds") if self.last_scan else ""
        return {
            "mode": self.watch.value,
            "reason": self.watch_reason,
            "last_scan": last_scan,
            "activity": activity,
            "error": self.error,
            "trouble": self.trouble,
            "kept": self.kept,
            "doubt": self.doubt,
        }


class Board:
    """The state as it was last published."""

    def __init__(self) -> None:
        self._state = ServiceState()
        self._lock = threading.Lock()

    @property
    def state(self) -> ServiceState:
        return self._state

    def say(self, **facts: object) -> None:
        """Sets the named fields of the state."""
        with self._lock:
            self._state = replace(self._state, **facts)  # pyright: ignore[reportArgumentType]


# The service: a thread that watches, or stands by until the watching process ends.
#
# Its state reports every failure; it then waits and starts over. Nothing is lost, because every
# update starts from the files. If the thread itself dies, reading the state restarts it.

TICK_SECONDS = 1.0
"""How often to check that the index is still ours, and whether the watching process has ended."""
PUBLISH_SECONDS = 1.0
"""The shortest interval between heartbeats of the watching process, during long work too."""
GRACE_SECONDS = 3.0
"""How long the watching process has to make the index usable before a standby process does."""
AGAIN_SECONDS = 0.5
"""The pause before checking again files that changed while they were read."""
EMBEDDING_RETRY_SECONDS = 30.0
"""A model that cannot be used now may become usable: its files can be installed later."""
PAUSES = (0.5, 1.0, 2.0, 5.0, 10.0)
"""Between failed attempts: short enough to notice soon that a full disk has space again."""
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceParts:
    """What the service is built from. Without a watcher, files are read once, at the start.

    `follow` updates this process's own views to the last known commit, so that queries need not.
    """

    directory: Path
    make_manager: Callable[[Control], IndexManager]
    make_watcher: Callable[[], Watcher] | None
    follow: Callable[[Position | None], None]


class IndexService:
    """Keeps the index up to date until it is stopped; any thread may start, stop and ask it."""

    def __init__(self, parts: ServiceParts) -> None:
        self._parts = parts
        self._board = Board()
        self._stop = threading.Event()
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None
        self._was_up_to_date = False
        self._stood_down = False
        self._reported = StoreState()
        """The worst state that readers have reported since the thread last looked."""
        self._reporting = threading.Lock()
        self._unsound_since: float | None = None
        self._again: frozenset[TreePath] = frozenset()
        self._has_pending = True
        self._fill_at = 0.0
        self._tidy_at = 0.0
        self._can_shrink = False
        self._watching: tuple[Watcher, FileLock] | None = None
        self._published_at = 0.0
        self._compared_at = 0.0
        self._held: FileLock | None = None
        self._succession: Succession | None = None

    @property
    def state(self) -> ServiceState:
        """Reading it restarts a thread that has died."""
        thread = self._thread
        if thread is not None and not thread.is_alive() and not self._stop.is_set():
            self._board.say(role=Role.STARTING, restarts=self._board.state.restarts + 1)
            self.start()
        is_alive = self._thread is not None and self._thread.is_alive()
        return replace(self._board.state, is_alive=is_alive)

    def start(self) -> None:
        """Returns at once. Does nothing when it is already running or was stopped."""
        with self._starting:
            if self._stop.is_set() or (self._thread and self._thread.is_alive()):
                return
            thread = threading.Thread(target=self._run, name="indexing", daemon=True)
            self._thread = thread
            try:
                thread.start()
            except RuntimeError as error:  # no thread available: reading the state tries again
                self._board.say(role=Role.FAILING, error=str(error))

    def stop(self, timeout: float | None = None) -> bool:
        """Ends the thread; False if it is still running after the timeout."""
        self._stop.set()
        if watching := self._watching:  # wakes the thread before its next tick
            watching[0].wake()
        if succession := self._succession:
            succession.close()
        thread = self._thread
        if thread is None:
            return True
        with suppress(RuntimeError):  # never started
            thread.join(timeout)
        if thread.is_alive():
            return False
        self._release()
        self._board.say(role=Role.ENDED, progress=None)
        return True

    def report(self, state: StoreState) -> None:
        """A reader found the store changed or damaged. Answers mention this until the thread has
        checked the store, and found it sound or repaired it."""
        with self._reporting:
            self._reported = self._reported.worst(state)
            self._board.say(doubt=state.reason)

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self._keep_up_to_date()
            except OthersIndex as error:
                self._fail(Role.STOOD_DOWN, error)
            except (RagdocsError, OSError) as error:
                self._fail(Role.FAILING, error)
            except Exception as error:
                _log.exception("the indexing thread failed")
                self._fail(Role.FAILING, error)
            failures = self._board.state.failures
            self._stop.wait(PAUSES[min(failures, len(PAUSES)) - 1])
        self._release()  # `stop` may not have waited for this

    def _fail(self, role: Role, error: Exception) -> None:
        """A watching process keeps the lock: that is how others learn that the index is not up to
        date and do not rely on it. Standing down releases the lock to the program that created the
        index."""
        failures = self._board.state.failures + 1
        text = str(error) or type(error).__name__
        self._board.say(role=role, progress=None, failures=failures, error=text, last_scan=None)
        if role is Role.STOOD_DOWN:
            self._stood_down = True
            self._release()
        elif self._held is not None:
            self._held.say(self._board.state.facts())

    def _keep_up_to_date(self) -> None:
        """Returns only when stopped.

        Raises:
            OthersIndex: another program created the index in a folder that the user configured.
            RagdocsError, OSError: the index cannot be used at the moment.
        """
        control = Control(stop=self._stop, on_progress=self._on_progress)
        with self._parts.make_manager(control) as manager:
            self._check_ours(manager)
            make_watcher = self._parts.make_watcher
            # Changes during a failure, or while another process watched, are not known yet.
            self._board.say(role=Role.STARTING, last_scan=None)
            try:
                while not self._stop.is_set():
                    state = self._look(manager)
                    if make_watcher is None:
                        self._keep_unwatched(manager, state)
                    elif lock := self._watch_lock():
                        self._held = lock
                        self._watch(manager, lock, make_watcher())
                        self._release()
                    else:
                        self._stand_by(manager, state)
            finally:
                self._end_succession()

    def _release(self) -> None:
        """Lets another process watch."""
        held, self._held = self._held, None
        if held is not None:
            held.close()

    def _check_ours(self, manager: IndexManager) -> None:
        """After standing down, leaves a damaged index to the program that created it."""
        manager.check_ours()
        if self._stood_down:
            found = manager.look()
            if found.condition is StoreCondition.DAMAGED:
                raise IndexCorrupt(found.reason)
            self._stood_down = False

    def _watch_lock(self) -> FileLock | None:
        """None when another process watches."""
        if self._held is not None and self._held.is_held:
            return self._held
        self._release()  # its file was deleted: other processes lock a new one
        taken = self._succession.take() if self._succession else None
        lock = taken or try_watch_lock(self._parts.directory)
        if lock is not None:
            self._end_succession()
        return lock

    def _end_succession(self) -> None:
        succession, self._succession = self._succession, None
        if succession is not None:
            succession.close()

    def _watch(self, manager: IndexManager, lock: FileLock, watcher: Watcher) -> None:
        self._board.say(role=Role.WATCHING, last_scan=None)
        self._watching = (watcher, lock)
        try:
            watcher.start()  # before the scan, so that no change is missed between the two
            self._publish()
            manager.open()  # with its checks: a damaged store cannot be up to date
            self._update(manager, None, watcher)
            self._publish()
            while not self._stop.is_set() and lock.is_held:
                hints = self._next_hints(watcher)
                # Between two batches of vectors, one look each tick is enough.
                state = self._look(manager, max_age=0.0 if hints else TICK_SECONDS)
                is_known = state.is_sound and state.is_compared
                if hints or not is_known:
                    self._update(manager, hints if is_known else None, watcher, looked=True)
                self._fill(manager)
                self._publish()
        finally:
            self._watching = None
            watcher.stop()
            self._board.say(watch=WatchMode.OFF, watch_reason="")

    def _stand_by(self, manager: IndexManager, state: StoreState) -> None:
        """Gives the watching process time to repair the store: it sees damage as soon as we do.
        But it may have other settings, so we repair it ourselves after the grace period."""
        self._board.say(role=Role.STANDBY)
        succession = self._succession = self._succession or Succession(self._parts.directory)
        if state.is_sound:
            self._unsound_since = None
            self._rely_on(manager, watching(self._parts.directory))
            self._settle(manager)
        else:
            now = time.monotonic()
            self._unsound_since = self._unsound_since or now
            if now - self._unsound_since >= GRACE_SECONDS:
                self._update(manager, None)
        if not self._stop.is_set():
            succession.is_over.wait(TICK_SECONDS)

    def _rely_on(self, manager: IndexManager, holder: Holder | None) -> None:
        """Relies on the watching process while it sends heartbeats and does not fail; otherwise
        checks the files itself."""
        if holder is None:  # it has just ended
            return
        says = holder.says
        if holder.is_heard_within(SILENT_SECONDS) and not says.get("error"):
            self._mark_up_to_date()
            said = says.get("last_scan")
            last_scan = datetime.fromisoformat(said) if said else None
            kept, trouble = says.get("kept", ""), says.get("trouble", "")
            self._board.say(last_scan=last_scan, kept=kept, trouble=trouble)
            return
        if time.monotonic() - self._compared_at >= SILENT_SECONDS / 3:
            self._update(manager, None)
            self._compared_at = time.monotonic()
        self._fill(manager)

    def _keep_unwatched(self, manager: IndexManager, state: StoreState) -> None:
        is_known = state.is_sound and state.is_compared
        if self._board.state.role is not Role.UNWATCHED or not is_known:
            manager.open()
            self._update(manager, None)
        self._board.say(role=Role.UNWATCHED)
        self._fill(manager)
        if not self._can_fill() and not self._can_shrink:
            self._stop.wait(TICK_SECONDS)

    def _update(
        self,
        manager: IndexManager,
        hints: Hints | None,
        watcher: Watcher | None = None,
        *,
        looked: bool = False,
    ) -> None:
        began = time.monotonic()
        outcome = manager.update(hints, looked=looked)
        if hints is None or hints.must_rescan:
            kept = in_words((one.tree, one.reason) for one in outcome.kept)
            self._board.say(last_scan=datetime.now(UTC), kept=kept)
            if watcher:
                watcher.scan_took(time.monotonic() - began)
            if not outcome.kept:  # every tree was seen
                manager.tidy()
        self._again = outcome.unsettled
        self._has_pending = True
        self._fill_at = 0.0
        self._mark_up_to_date()

    def _mark_up_to_date(self) -> None:
        self._was_up_to_date = True
        self._board.say(progress=None, failures=0, error="")

    def _next_hints(self, watcher: Watcher) -> Hints | None:
        """Waits only when there is nothing else to do."""
        pause = AGAIN_SECONDS if self._again else TICK_SECONDS
        hints = watcher.wait(0 if self._can_fill() or self._can_shrink else pause)
        if not self._again:
            return hints
        again, self._again = self._again, frozenset[TreePath]()
        if hints is None:
            return Hints(again)
        return Hints(hints.paths | again, hints.must_rescan, hints.notes)

    def _look(self, manager: IndexManager, max_age: float = 0.0) -> StoreState:
        """The state of the store, including what readers have reported. A store that another
        program changed or replaced is compared with all files at once."""
        with self._reporting:
            reported, self._reported = self._reported, StoreState()
        if reported.condition is StoreCondition.DAMAGED:
            manager.lose(reported)
        state = manager.look(max_age if reported.is_sound else 0.0)
        if state.condition in (StoreCondition.CHANGED, StoreCondition.OTHER_SETTINGS):
            manager.check_ours()
            if self._was_up_to_date:
                self._update(manager, None)
                state = manager.look()
        with self._reporting:
            if state.is_sound and self._reported.is_sound:
                self._board.say(doubt="")
        return state

    def _can_fill(self) -> bool:
        return self._has_pending and time.monotonic() >= self._fill_at

    def _fill(self, manager: IndexManager) -> None:
        manager.update_some_communities()
        if self._can_fill():
            filled = manager.fill_some()
            self._has_pending = filled.has_more or bool(filled.error)
            if filled.error:
                self._fill_at = time.monotonic() + EMBEDDING_RETRY_SECONDS
            self._board.say(trouble=filled.error)
        if not self._can_fill():
            self._can_shrink = manager.shrink_some()
            self._settle(manager)

    def _settle(self, manager: IndexManager) -> None:
        """When idle, does in advance what queries would otherwise have to do."""
        self._board.say(progress=None)
        if not self._has_pending and time.monotonic() >= self._tidy_at:
            self._tidy_at = time.monotonic() + DAY_SECONDS
            drop_unused(self._parts.directory)
        try:
            self._parts.follow(manager.position)
        except IndexCorrupt as error:
            self.report(StoreState.after(error))
        except RagdocsError as error:
            self._board.say(trouble=str(error))

    def _on_progress(self, progress: Progress) -> None:
        self._board.say(progress=progress)
        if time.monotonic() - self._published_at >= PUBLISH_SECONDS:
            self._publish()

    def _publish(self) -> None:
        """Publishes our state to other processes; otherwise touches the lock file."""
        if self._watching is None:
            return
        watcher, lock = self._watching
        self._board.say(watch=watcher.mode, watch_reason=watcher.reason)
        facts = self._board.state.facts()
        if facts != lock.said:
            lock.say(facts)
        elif time.monotonic() - self._published_at >= PUBLISH_SECONDS:
            lock.beat()
        else:
            return
        self._published_at = time.monotonic()
