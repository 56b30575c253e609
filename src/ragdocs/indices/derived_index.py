"""A keyword index that lives in a folder beside the store and follows it by the change log.

Any thread, and any process, may bring it up to date; one does it at a time, and the others adopt
what they find. The state that was opened goes on answering until the next one is whole.
"""

import logging
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from ragdocs.errors import IndexLocked
from ragdocs.indices.derived_folder import DerivedFolder, Look
from ragdocs.indices.derived_state import Damaged, State
from ragdocs.indices.keyword_entries import Entries, Entry
from ragdocs.indices.progress import IN_FLIGHT_SECONDS, Progress
from ragdocs.models import DocId
from ragdocs.store.records import ChangeKind, Position
from ragdocs.store.snapshot import Snapshot

WAIT_SECONDS = 5.0
"""How long another process may be writing before a query is told to come again."""
_POLL_SECONDS = 0.02
_ATTEMPTS = 5
"""A state can be replaced while its files are being checked: then the new one is looked at."""
UNSAVED_GENERATIONS = 500
"""Commits that change no text move no file, until the change log might forget where we stand."""
SMALL = 100
"""So few chunks are made anew in a tenth of a second."""
WORN_SHARE = 0.2
"""What was removed still counts in tantivy's mean length: few long ones shift every score."""
_KINDS = frozenset({ChangeKind.UPSERT, ChangeKind.DELETE})

_log = logging.getLogger(__name__)


class OpenIndex(Protocol):
    """Files that were opened for searching; they do not change any more."""

    @property
    def live(self) -> int:
        """How many chunks it has."""
        ...

    @property
    def dead(self) -> int:
        """How many more it carries along that were removed."""
        ...


@dataclass(frozen=True, slots=True)
class Changes:
    """What is to be written: all entries of some documents go, and these come."""

    is_new: bool
    removed: frozenset[DocId]
    entries: Iterator[Entry]


O_co = TypeVar("O_co", bound=OpenIndex, covariant=True)
O = TypeVar("O", bound=OpenIndex)  # noqa: E741


class Library(Protocol[O_co]):
    """What an engine does with files. `version`: all that decides what is in them."""

    @property
    def version(self) -> str: ...

    def open(self, directory: Path) -> O_co:
        """Files that have been verified. Raises Damaged when the library refuses them."""
        ...

    def write(self, directory: Path, changes: Changes) -> None: ...


@dataclass(frozen=True, slots=True)
class _Adopted(Generic[O]):
    """A state of the folder that was verified and opened."""

    state: State
    look: Look
    index: O


class DerivedIndex(Generic[O]):
    """The newest whole state of the folder; safe to use from several threads."""

    def __init__(self, path: Path, library: Library[O], entries: Entries) -> None:
        self._folder = DerivedFolder(path)
        self._library = library
        self._entries = entries
        self._progress = Progress()
        self._adopted: _Adopted[O] | None = None
        self._damage = ""
        self._catching_up = threading.Lock()

    @property
    def position(self) -> Position | None:
        """The commit that has been applied; None before the first catch-up."""
        return self._progress.position

    def opened(self, snapshot: Snapshot) -> O:
        """What can be searched now."""
        while (adopted := self._adopted) is None:
            self.catch_up(snapshot)
        return adopted.index

    def catch_up(self, snapshot: Snapshot) -> None:
        """Brings the files to the snapshot: adopts what another process made of them, or redoes
        what was touched, or all of it.

        Raises IndexLocked when another thread or process takes too long, and IndexStoreError when
        the folder cannot be written; what was opened before stays.
        """
        deadline = time.monotonic() + WAIT_SECONDS
        if not self._catching_up.acquire(timeout=WAIT_SECONDS):
            raise self._busy()
        try:
            while self._is_behind(snapshot):
                with self._folder.lock() as is_ours:
                    if is_ours:
                        if self._is_behind(snapshot):
                            self._follow(snapshot)
                        return
                if time.monotonic() > deadline:
                    raise self._busy()
                time.sleep(_POLL_SECONDS)
        finally:
            self._catching_up.release()

    def forget(self) -> None:
        """The next catch-up starts over: commits that were applied are gone from the store."""
        with self._catching_up:
            self._progress.forget()

    def _busy(self) -> IndexLocked:
        return IndexLocked(f"{self._folder.path} is still being written: try again")

    def _is_behind(self, snapshot: Snapshot) -> bool:
        """Whether something must be written; what others have written is adopted first."""
        self._adopt()
        if self._adopted is None:
            return True
        if not self._progress.is_behind(snapshot):
            return False
        touched = self._progress.touched(snapshot, _KINDS)
        passed = snapshot.position.generation - self._adopted.state.position.generation
        if touched or touched is None or passed > UNSAVED_GENERATIONS:
            return True
        self._progress.reach(snapshot.position)
        return False

    def _adopt(self) -> None:
        """Opens what the folder holds, unless that is what we have."""
        adopted = self._adopted
        if adopted is not None and self._folder.look(adopted.state) == adopted.look:
            return
        try:
            found = self._open()
        except Damaged as damage:
            found, self._damage = None, str(damage)
        if found is None:
            self._adopted = None
            self._progress.forget()
        else:
            self._take(found)

    def _open(self) -> _Adopted[O] | None:
        for attempt in range(_ATTEMPTS):
            state = self._folder.state()
            if state is None or state.version != self._library.version:
                return None
            try:
                self._folder.verify(state)
                return self._opened(state)
            except Damaged:
                if attempt + 1 == _ATTEMPTS or self._folder.state() == state:
                    raise
        return None

    def _opened(self, state: State) -> _Adopted[O]:
        look = self._folder.look(state)
        if look is None:
            raise Damaged("a file is missing")
        return _Adopted(state, look, self._library.open(self._folder.path / state.directory))

    def _take(self, found: _Adopted[O]) -> None:
        """A request may come with a snapshot from just before the commit that another process has
        brought the folder to: the commits passed on the way tell it from one of another history.
        """
        is_recent = 0 <= time.time() - found.state.written < IN_FLIGHT_SECONDS
        if self._progress.position is None and is_recent:
            for position in found.state.trail:
                self._progress.reach(position)
        self._progress.reach(found.state.position)
        self._adopted = found

    def _follow(self, snapshot: Snapshot) -> None:
        """Under the lock: writes the next state, and opens it."""
        if self._damage:
            _log.warning("%s is damaged (%s): made anew", self._folder.path, self._damage)
        touched = self._progress.touched(snapshot, _KINDS)
        base = self._adopted
        trail = (*base.state.trail, base.state.position) if base and touched is not None else ()
        written = None
        if base is not None and touched is not None and not _is_most(len(touched), snapshot):
            changes = Changes(False, touched, self._entries.of(snapshot, touched))
            written = self._write(snapshot, changes, base.state, trail)
        if written is None or _is_worn(written.index):
            changes = Changes(True, frozenset(), self._entries.of_all(snapshot))
            written = self._write(snapshot, changes, None, trail)
        self._damage = ""
        self._take(written)

    def _write(
        self,
        snapshot: Snapshot,
        changes: Changes,
        base: State | None,
        trail: tuple[Position, ...],
    ) -> _Adopted[O]:
        with self._folder.draft(snapshot.position, base) as draft:
            self._library.write(draft.directory, changes)
            state = self._folder.publish(draft, self._library.version, snapshot.position, trail)
        return self._opened(state)


def _is_most(touched: int, snapshot: Snapshot) -> bool:
    """Whether making all of it anew costs little more."""
    return touched * 2 > snapshot.ledger.count("documents")


def _is_worn(index: OpenIndex) -> bool:
    """Whether so much that was removed is left behind that it shows."""
    return index.dead > (0 if index.live <= SMALL else index.live * WORN_SHARE)
