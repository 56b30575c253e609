"""What the indexing thread says of itself: written by it, read by any thread."""

import threading
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from ragdocs.indexing.outcome import Progress
from ragdocs.indexing.watcher import WatchMode


class Duty(StrEnum):
    """What the thread is there for at the moment."""

    STARTING = "starting"
    WATCHING = "watching"
    """It keeps the index in step with the files."""
    STANDBY = "standby"
    """Another process does; this one takes over when that one ends."""
    UNWATCHED = "not watching"
    """The settings say so: files were read at the start."""
    STOOD_DOWN = "stood down"
    """Another program has made the index in a folder that the user has named."""
    FAILING = "failing"
    """What it tried last failed; it will try again."""
    ENDED = "ended"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceState:
    """`error` is why it fails or stood down, `trouble` what is wrong while the rest goes on."""

    duty: Duty = Duty.STARTING
    is_alive: bool = False
    watch: WatchMode = WatchMode.OFF
    watch_reason: str = ""
    progress: Progress | None = None
    last_scan: datetime | None = None
    failures: int = 0
    """How often it failed one after the other; 0 when the last attempt was well."""
    restarts: int = 0
    """How often the thread itself was gone and had to be started again."""
    error: str = ""
    trouble: str = ""
    kept: str = ""
    """Documents of which it cannot be seen whether their files are as they were, and why."""
    doubt: str = ""
    """Why the index is being looked at again: what it answers meanwhile may not be right."""

    def facts(self) -> dict[str, str]:
        """For others who ask who watches, in words."""
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
    """The state as it was last said."""

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
