"""The store as the indexer uses it: opened, locked for short slices, checked and replaced when
damaged.
"""

import time
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import chain, count, repeat
from pathlib import Path
from threading import Event
from typing import ParamSpec, TypeVar

from ragdocs.chunking.chunker import ChunkSizes
from ragdocs.config.resolved import Tree
from ragdocs.errors import (
    IndexCorrupt,
    IndexIncompatible,
    IndexLocked,
    IndexMissing,
    IndexStoreError,
    OthersIndex,
)
from ragdocs.indexing.changes import Phase, Progress
from ragdocs.indexing.reading import Ingestion
from ragdocs.locks import FileLock
from ragdocs.models import DocId, TreeName
from ragdocs.store.database import reset_shared_memory
from ragdocs.store.generations import Ledger, Meta
from ragdocs.store.integrity import StoreCondition, StoreState, Unsealed, is_sealed
from ragdocs.store.lock import try_write_lock, write_lock
from ragdocs.store.reader import Reader, release_all
from ragdocs.store.records import ManifestEntry, Position
from ragdocs.store.snapshot import Snapshot
from ragdocs.store.stored_index import Prepares, StoredIndex
from ragdocs.store.transaction import Transaction
from ragdocs.store.writer import StoreWriter, check_ours

# What the index manager is built from: its settings, and the callbacks to stop it and follow it.

MAX_FILE_BYTES = 10_000_000
LOCK_SECONDS = 60.0
"""How long to wait for the write lock: a deep check of a large store takes seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexSetup:
    """One index: where it is, what it is built from, and how.

    The fingerprint is computed from `settings`. Without `owns_directory`, programs with other
    settings may keep their index there, and it is left to them.
    """

    directory: Path
    fingerprint: str
    settings: str = ""
    owns_directory: bool = True
    trees: tuple[Tree, ...]
    sizes: ChunkSizes
    tables: tuple[StoredIndex, ...] = ()
    max_file_bytes: int = MAX_FILE_BYTES
    respect_gitignore: bool = True
    has_communities: bool = True
    """Whether communities of linked documents are computed and stored."""

    def ingestions(self) -> dict[TreeName, Ingestion]:
        return {
            tree.name: Ingestion(tree.name, tree.root, self.max_file_bytes, self.sizes, tree.within)
            for tree in self.trees
        }


def _ignore(_: Progress) -> None:
    """The default listener."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Control:
    """How to stop the work early, who receives its progress, and its clock."""

    stop: Event = field(default_factory=Event)
    on_progress: Callable[[Progress], None] = _ignore
    lock_seconds: float = LOCK_SECONDS
    clock_ns: Callable[[], int] = time.time_ns


# The manifest as of one commit, so that one edit does not read every file's row again.
#
# The change log records documents, not files that were only touched or failed. So our own changes
# carry the entries from commit to commit, and they are read again when another process has written.

Entries = dict[DocId, ManifestEntry]


class ManifestCache:
    """Every known file, at the position of the last look."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._position: Position | None = None
        self._entries: Entries = {}
        self.readings = 0
        """How often all rows were read."""

    def at(self, position: Position | None) -> Mapping[DocId, ManifestEntry]:
        """The entries at this commit, if they are those in memory; otherwise as they are now. They
        change with the next commit."""
        if position is None or self._position != position:
            with self._reader.snapshot() as snapshot:
                self._follow(snapshot)
        return self._entries

    def advance(
        self,
        before: Position,
        after: Position,
        written: Mapping[DocId, ManifestEntry | None],
    ) -> None:
        """Applies our own commit from one position to the next; None is a removed file."""
        if self._position != before:
            return
        for doc_id, entry in written.items():
            if entry is None:
                self._entries.pop(doc_id, None)
            else:
                self._entries[doc_id] = entry
        self._position = after

    def forget(self) -> None:
        self._position = None
        self._entries = {}

    def _follow(self, snapshot: Snapshot) -> None:
        """A store with another history may differ in more than the recent changes: then raises
        IndexIncompatible, so that all files are compared."""
        if self._position == snapshot.position:
            return
        is_cut_off = self._position and snapshot.changes_since(self._position) is None
        self.forget()
        if is_cut_off:
            raise IndexIncompatible("the index was replaced by another one; comparing all files")
        self._entries = snapshot.manifest()
        self._position = snapshot.position
        self.readings += 1


# The store of one index directory, shared by several processes: locks, waiting, reopening.
#
# Reading needs no lock. The writer is opened when there is something to write, because opening
# checks the whole store, and stays open; each transaction takes the write lock separately.

LOST = (IndexIncompatible, IndexCorrupt, IndexMissing)
"""The store is not, or no longer, the expected one: open it again and start over."""
CHECKING_SHARE = 0.2
"""The most of our time to spend checking a store that another program keeps changing."""
_PAUSES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
_T = TypeVar("_T")
_P = ParamSpec("_P")


def _nothing(_: object) -> Mapping[DocId, ManifestEntry | None]:
    return {}


@dataclass(frozen=True, slots=True)
class Look:
    """What a look at the store found. `at`: when (monotonic), or 0 for our own commit."""

    state: StoreState
    meta: Meta
    at: float = 0.0


class Session:
    """A reader for all threads, and a writer for one: the thread that uses it first."""

    def __init__(self, setup: IndexSetup, control: Control) -> None:
        self.reader = Reader(
            setup.directory, setup.fingerprint, settings=setup.settings, indices=setup.tables
        )
        self.manifest = ManifestCache(self.reader)
        self._setup = setup
        self._control = control
        self._writer: StoreWriter | None = None
        self._state = StoreState()
        """The known problem of the store, until it is opened again."""
        self._rebuilt: str | None = None
        self.took_over = False
        """Whether it was emptied because another program created it; until `take_rebuilt`."""
        self._looked: Look | None = None
        """The last look, if it found a sound store; our own commits renew it."""
        self._seen: Position | None = None
        """The history of the store must continue from here."""
        self._trusted_until = 0.0

    @property
    def directory(self) -> Path:
        return self._setup.directory

    @property
    def position(self) -> Position | None:
        """The commit that the last look, or our own last commit, left us with."""
        return self._looked.meta.position if self._looked else None

    def take_rebuilt(self) -> str | None:
        """Why the store was emptied since the last call, if it was."""
        reason, self._rebuilt, self.took_over = self._rebuilt, None, False
        return reason

    def look(self, max_age: float = 0.0) -> StoreState:
        """The state of the store: sound when it only has new commits since the last update or look,
        and no known problem. A problem counts until the store is opened again. `max_age`: how old,
        in seconds, a sound look may be to count again.
        """
        if not self._state.is_sound:
            return self._state
        if self._looked and time.monotonic() - self._looked.at < max_age:
            return self._looked.state
        self._looked = None
        try:
            looked, has_gone_on = self.retry(self._look)
        except LOST as error:
            return self.lose(StoreState.after(error))
        if not has_gone_on:
            return StoreState(StoreCondition.LOST, "earlier commits are gone")
        self._looked = looked
        self._seen = looked.meta.position
        return looked.state

    def _look(self) -> tuple[Look, bool]:
        """Also returns whether the history has continued. Raises Unsealed."""
        began = time.monotonic()
        with self.reader.snapshot() as snapshot:
            found, meta = snapshot.state, snapshot.meta
            has_gone_on = self._seen is None or snapshot.changes_since(self._seen) is not None
        self._confirm(found)
        return Look(StoreState(is_compared=found.is_compared), meta, began), has_gone_on

    def _confirm(self, found: StoreState) -> None:
        """Checks a store that looks changed again under the lock, where no other process can be
        writing. Waits if it was checked just now; meanwhile, answers still mention the change.

        Raises Unsealed.
        """
        if found.is_sound or time.monotonic() < self._trusted_until:
            return
        with self._take_lock():
            position = self.reader.position()
            is_as_left = (
                self._writer.is_as_left(position)
                if self._writer
                else is_sealed(self._setup.directory, position)
            )
        if not is_as_left:
            raise Unsealed("the index was changed by another program; checking it")

    def settle(self) -> None:
        """Call it after all files were compared with the store: from this position on, its history
        must continue. Not only from the next look, because an older copy may replace it before."""
        self._seen = self.position or self.retry(self.reader.position)

    def ready(self, *, looked: bool = False) -> bool:
        """Makes sure that there is a sound store to read; False if it had to be reopened. `looked`:
        the caller has just looked, and a sound store needs no second look."""
        if self._state.is_sound:
            if looked and self._looked:
                return True
            try:
                self._looked, _ = self.retry(self._look)
                return True
            except LOST as error:
                self.lose(StoreState.after(error))
        self.open()
        return False

    def counts(self) -> Ledger:
        """How many rows each table has, at the last look or our own last commit."""
        if self._looked:
            return self._looked.meta.ledger
        with self.reader.snapshot() as snapshot:
            return snapshot.ledger

    def check_ours(self) -> None:
        """Call it before locking or writing anything in a folder that other programs may use too.

        Raises OthersIndex: another program created the store.
        """
        setup = self._setup
        if setup.owns_directory:
            return
        try:
            check_ours(setup.directory, setup.fingerprint, setup.settings)
        except OthersIndex:
            raise
        except IndexStoreError:
            pass  # opening it raises this too

    def open(self, *, takes_over: bool = False) -> None:
        """Opens the writer, which checks the store and empties one that cannot be used.

        `takes_over`: even one that another program created.

        Raises OthersIndex: another program created it; nothing was changed.
        """
        if not takes_over:
            self.check_ours()
        self.retry(self._open_locked, takes_over)

    def examine(self) -> None:
        """Reads the whole store, which needs no lock, and rebuilds what is wrong in it. Takes over
        a store that another program created.

        An index inside the store can be intact and still not match its documents, after a bug in
        this program for example; no other check would notice.
        """
        wrong: list[str] = []
        try:
            # A new reader: ours may have cached pages.
            with (
                Reader.open(self._setup.directory, self._setup.fingerprint) as reader,
                reader.snapshot() as snapshot,
            ):
                wrong = self._find_wrong(snapshot)
        except LOST as error:
            self.lose(StoreState.after(error))
        self.open(takes_over=True)
        if wrong:
            self.run(lambda transaction: transaction.rebuild_indices(wrong))

    def _find_wrong(self, snapshot: Snapshot) -> list[str]:
        """The names of the indices with wrong contents. Raises LOST when more is wrong. Opening the
        store rebuilds out-of-date indices, so they are not checked here."""
        documents = snapshot.document_keys()
        tables = snapshot.up_to_date_indices(self._setup.tables)
        steps, total = count(), len(documents) * len(tables)

        def report(done: int) -> None:
            self._control.on_progress(Progress(Phase.CHECKING, done, total))

        def step() -> Iterator[int]:
            for document in documents:
                report(next(steps))
                if self._control.stop.is_set():
                    raise IndexLocked("stopped")
                yield document

        report(0)
        snapshot.verify(deep=True)
        wrong = [table.name for table in tables if not snapshot.holds(table, step())]
        report(total)
        return wrong

    def run(
        self,
        work: Callable[[Transaction], _T],
        written: Callable[[_T], Mapping[DocId, ManifestEntry | None]] = _nothing,
    ) -> _T:
        """Runs one transaction; retries while others write, so `work` may run more than once.
        `written` takes the files that it changed from what `work` returned.

        Raises:
            IndexLocked: the lock was not released in time, or it was stopped.
            IndexIncompatible, IndexCorrupt, IndexMissing: see LOST.
        """
        return self.retry(self._run_locked, work, written)

    @contextmanager
    def prepare(self, texts: Iterable[str]) -> Generator[None]:
        """Lets the indices inside the store process the texts of the next transaction in advance,
        so that less work is left while it holds the lock."""
        preparing = [table for table in self._setup.tables if isinstance(table, Prepares)]
        found = list(texts) if preparing else []
        for table in preparing:
            table.prepare(found)
        try:
            yield
        finally:
            for table in preparing:
                table.prepare(())

    def shrink_some(self) -> bool:
        """Takes one short step to reclaim space; returns whether there may be more to do.

        Raises IndexLocked while others write, without waiting.
        """
        return self._writer is not None and self._maintain(StoreWriter.shrink_some)

    @property
    def has_long_log(self) -> bool:
        return self._writer is not None and self._writer.has_long_log

    def mark_unused(self, keys: Collection[int], now: int) -> None:
        """Records since when vectors have been unused. Raises what `shrink_some` raises."""
        self._maintain(lambda writer: writer.mark_unused(keys, now))

    def _maintain(self, work: Callable[[StoreWriter], _T]) -> _T:
        lock = try_write_lock(self._setup.directory)
        if lock is None:
            raise IndexLocked(f"{self._setup.directory} is being written by another program")
        with lock, self._use_writer() as writer:
            return work(writer)

    def lose(self, state: StoreState) -> StoreState:
        """Discards what was open or cached, because the store is not sound; returns the worst known
        state."""
        self._state = self._state.worst(state)
        self._looked = None
        if writer := self._take_writer():
            writer.abandon()
        self.manifest.forget()
        return self._state

    def retry(self, action: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
        """Repeats the action while the store is locked, up to a limit."""
        deadline = time.monotonic() + self._control.lock_seconds
        for pause in chain(_PAUSES, repeat(_PAUSES[-1])):
            try:
                return action(*args, **kwargs)
            except IndexLocked:
                is_late = time.monotonic() + pause > deadline
                if is_late or self._control.stop.wait(pause):
                    raise
        raise AssertionError("unreachable")

    def close(self) -> None:
        self.reader.close()
        writer = self._take_writer()
        if writer is None:
            return
        # Release our readers first: then the writer is the last connection, unless others have the
        # store open. Only a writer can merge the log into the store's file.
        release_all(self._setup.directory)
        try:
            lock = try_write_lock(self._setup.directory)
        except IndexStoreError:
            lock = None
        if lock is None:
            writer.abandon()
            return
        with lock:
            writer.close()

    def _run_locked(
        self,
        work: Callable[[Transaction], _T],
        written: Callable[[_T], Mapping[DocId, ManifestEntry | None]],
    ) -> _T:
        with self._take_lock(), self._use_writer() as writer:
            with writer.transaction() as transaction:
                before = transaction.position
                done = work(transaction)
            self.manifest.advance(before, transaction.position, written(done))
            self._check_visible(transaction.position)
            return done

    @contextmanager
    def _use_writer(self) -> Generator[StoreWriter]:
        """The writer, opened if necessary. Call it while holding the write lock.

        Raises IndexIncompatible when opening emptied the store.
        """
        writer = self._writer
        if writer is None:
            writer = self._open(takes_over=False)
            if reason := writer.rebuilt:
                raise IndexIncompatible(f"the index was emptied: {reason}")
        try:
            yield writer
        except IndexLocked:
            raise
        except BaseException:
            # After any error (a full disk, a damaged page), the next call starts clean.
            if writer := self._take_writer():
                writer.close()
            raise

    def _open_locked(self, takes_over: bool) -> None:
        with self._take_lock():
            if self._writer is None:
                self._open(takes_over=takes_over)

    def _check_visible(self, position: Position) -> None:
        """While we hold the lock, the last commit is ours, so readers must see it."""
        with suppress(IndexLocked):  # the commit is done and must not be retried
            with self.reader.snapshot() as snapshot:
                if snapshot.position != position:
                    raise IndexCorrupt("what was written to the index cannot be read; checking it")
            at = self._looked.at if self._looked else 0.0
            self._looked = Look(snapshot.state, snapshot.meta, at)
            # From our commit, not only from the next look: damage may undo it before.
            self._seen = position

    def _open(self, *, takes_over: bool) -> StoreWriter:
        setup = self._setup
        if not takes_over:
            self.check_ours()  # again under the lock, because opening already writes
        if not self._state.is_sound:
            self._release_shared_memory()
        began = time.monotonic()
        writer = StoreWriter.open(
            setup.directory,
            setup.fingerprint,
            settings=setup.settings,
            indices=setup.tables,
            deep=self._state.condition is StoreCondition.DAMAGED,
            takes_over=takes_over or setup.owns_directory,
        )
        if self._state.condition is StoreCondition.CHANGED:
            ended = time.monotonic()
            self._trusted_until = ended + (ended - began) * (1 / CHECKING_SHARE - 1)
        self._writer = writer
        self._state = StoreState()
        self._looked = None
        self._rebuilt = writer.rebuilt or self._rebuilt
        self.took_over |= writer.took_over
        if writer.rebuilt:
            self.manifest.forget()
        return writer

    def _release_shared_memory(self) -> None:
        """The memory shared with other processes may be damaged, or belong to a deleted file, which
        shows only after this process has released it."""
        release_all(self._setup.directory)
        reset_shared_memory(self._setup.directory)

    def _take_lock(self) -> FileLock:
        return write_lock(self._setup.directory, self._control.lock_seconds, self._control.stop)

    def _take_writer(self) -> StoreWriter | None:
        writer, self._writer = self._writer, None
        return writer
