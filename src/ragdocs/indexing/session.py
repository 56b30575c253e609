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
from typing import TypeVar

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
from ragdocs.store.integrity import StoreCondition, StoreState, Unsealed, is_sealed
from ragdocs.store.lock import try_write_lock, write_lock
from ragdocs.store.reader import Reader, release_all
from ragdocs.store.records import ManifestEntry, Position
from ragdocs.store.snapshot import Snapshot
from ragdocs.store.stored_index import Prepares, StoredIndex
from ragdocs.store.transaction import Transaction
from ragdocs.store.writer import StoreWriter, check_ours

# What the index manager is made from: the settings that concern it, and who listens and stops.

MAX_FILE_BYTES = 10_000_000
LOCK_SECONDS = 60.0
"""How long others may keep us from writing: a deep check of a large store takes seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexSetup:
    """One index: where it is, what it is made from, and how.

    `settings` are what the fingerprint is of. Without `owns_directory`, programs with other
    settings may keep their index there: it is then left to them.
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


def _nobody(_: Progress) -> None:
    """The listener when there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Control:
    """Who may end the work early, who hears how far it is, and what time it is."""

    stop: Event = field(default_factory=Event)
    on_progress: Callable[[Progress], None] = _nobody
    lock_seconds: float = LOCK_SECONDS
    clock_ns: Callable[[], int] = time.time_ns


# The manifest as of one commit, so that one edit does not read every file's row again.
#
# The change log tells of documents, not of files that were only touched or failed. So the entries
# are carried from commit to commit by our own changes, and read again when someone else has
# written.

Entries = dict[DocId, ManifestEntry]


class ManifestCache:
    """Every known file, at the position of the last look."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._position: Position | None = None
        self._entries: Entries = {}
        self.readings = 0
        """How often all rows were read."""

    def current(self) -> Entries:
        """The entries as they are now; the caller's to keep."""
        with self._reader.snapshot() as snapshot:
            self._follow(snapshot)
        return dict(self._entries)

    def at(self, position: Position) -> Mapping[DocId, ManifestEntry]:
        """The entries of the last commit, for whoever holds the write lock; not to be kept."""
        if self._position != position:
            with self._reader.snapshot() as snapshot:
                self._follow(snapshot)
        return self._entries

    def advance(
        self,
        before: Position,
        after: Position,
        written: Mapping[DocId, ManifestEntry | None] | None = None,
    ) -> None:
        """Our own commit led from one position to the next; None is a file that was forgotten."""
        if self._position != before:
            return
        for doc_id, entry in (written or {}).items():
            if entry is None:
                self._entries.pop(doc_id, None)
            else:
                self._entries[doc_id] = entry
        self._position = after

    def forget(self) -> None:
        self._position = None
        self._entries = {}

    def _follow(self, snapshot: Snapshot) -> None:
        """A store with another history lacks more than what has changed since: then everything
        must be looked at, and IndexIncompatible says so."""
        if self._position == snapshot.position:
            return
        is_cut_off = self._position and snapshot.changes_since(self._position) is None
        self.forget()
        if is_cut_off:
            raise IndexIncompatible("the index was replaced by another one: look at all files")
        self._entries = snapshot.manifest()
        self._position = snapshot.position
        self.readings += 1


# The store of one index directory, for a process that is one of many: locks, waiting, reopening.
#
# Reading needs no lock. The writer is opened when there is something to write, because opening
# checks the whole store, and is kept open; each transaction takes the write lock for itself alone.

LOST = (IndexIncompatible, IndexCorrupt, IndexMissing)
"""The store is not, or no longer, the one that was expected: open it again and start over."""
CHECKING_SHARE = 0.2
"""Of the time, at most, for checking a store that something else changes again and again."""
_PAUSES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
_T = TypeVar("_T")


class Session:
    """A reader for all, and a writer for one thread: the one that uses it first."""

    def __init__(self, setup: IndexSetup, control: Control) -> None:
        self.reader = Reader(
            setup.directory, setup.fingerprint, settings=setup.settings, indices=setup.tables
        )
        self.manifest = ManifestCache(self.reader)
        self._setup = setup
        self._control = control
        self._writer: StoreWriter | None = None
        self._state = StoreState()
        """What is known against the store, until it is opened again."""
        self._rebuilt: str | None = None
        self.took_over = False
        """Whether it was emptied because another program had made it; until `take_rebuilt`."""
        self._seen: Position | None = None
        self._trusted_until = 0.0

    @property
    def directory(self) -> Path:
        return self._setup.directory

    def take_rebuilt(self) -> str | None:
        """Why the store was emptied since this was asked last."""
        reason, self._rebuilt, self.took_over = self._rebuilt, None, False
        return reason

    def look(self) -> StoreState:
        """The state of the store: sound when it has only gone on since the last update or look,
        and nothing is known against it. What is found against it counts until it is opened again.
        """
        if not self._state.is_sound:
            return self._state
        try:
            return self.retry(self._look)
        except LOST as error:
            return self.lose(StoreState.after(error))

    def _look(self) -> StoreState:
        with self.reader.snapshot() as snapshot:
            found = snapshot.state
            has_gone_on = self._seen is None or snapshot.changes_since(self._seen) is not None
        self._confirm(found)
        if not has_gone_on:
            return StoreState(StoreCondition.LOST, "commits that were there are gone")
        self._seen = snapshot.position
        return StoreState(is_compared=found.is_compared)

    def _confirm(self, found: StoreState) -> None:
        """Compares a store that looks changed again under the lock, where nobody else can be about
        to write. Not at once when it was checked just now: whoever is answered hears of the change
        all the while.

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
            raise Unsealed("the index was changed by another program: it is checked")

    def settle(self) -> None:
        """All files were compared with the store as it is: from here on it must go on. Not only
        from the next look on: until then an older copy may have been put in its place."""
        self._seen = self.retry(self.reader.position)

    def ready(self) -> bool:
        """Makes sure that there is a store to read; False when it had to be opened for that."""
        if self._state.is_sound:
            try:
                self._confirm(self.retry(self.reader.look))
                return True
            except LOST as error:
                self.lose(StoreState.after(error))
        self.open()
        return False

    def check_ours(self) -> None:
        """Before anything is locked or written, in a folder that others may use too.

        Raises OthersIndex: another program has made the store.
        """
        setup = self._setup
        if setup.owns_directory:
            return
        try:
            check_ours(setup.directory, setup.fingerprint, setup.settings)
        except OthersIndex:
            raise
        except IndexStoreError:
            pass  # whoever opens it finds that too

    def open(self, *, takes_over: bool = False) -> None:
        """Opens the writer, which checks the store and empties one that cannot be used.

        `takes_over`: even one that another program has made.

        Raises OthersIndex: another program has made it, and it is left alone.
        """
        if not takes_over:
            self.check_ours()
        self.retry(lambda: self._open_locked(takes_over))

    def examine(self) -> None:
        """Reads all of the store, which needs no lock, and rebuilds what is wrong in it. A
        store that another program has made is taken over.

        An index inside the store can be whole and yet not be what its documents make of it, after
        an error in this program for example: no other check would tell.
        """
        wrong: list[str] = []
        try:
            # Another reader: ours may remember pages as they were.
            with (
                Reader.open(self._setup.directory, self._setup.fingerprint) as reader,
                reader.snapshot() as snapshot,
            ):
                wrong = self._find_wrong(snapshot)
        except LOST as error:
            self.lose(StoreState.after(error))
        self.open(takes_over=True)
        if wrong:
            self.run(lambda transaction: transaction.remake_indices(wrong))

    def _find_wrong(self, snapshot: Snapshot) -> list[str]:
        """The names of the indices that are not as they should be. LOST when more is wrong. Those
        that are behind are made anew by whoever opens the store."""
        documents = snapshot.document_keys()
        tables = snapshot.indices_in_step(self._setup.tables)
        steps, total = count(), len(documents) * len(tables)

        def tell(done: int) -> None:
            self._control.on_progress(Progress(Phase.CHECKING, done, total))

        def told() -> Iterator[int]:
            for document in documents:
                tell(next(steps))
                if self._control.stop.is_set():
                    raise IndexLocked("it was stopped")
                yield document

        tell(0)
        snapshot.verify(deep=True)
        wrong = [table.name for table in tables if not snapshot.holds(table, told())]
        tell(total)
        return wrong

    def run(self, work: Callable[[Transaction], _T]) -> _T:
        """One transaction, tried again while others write: the work may be done more than once.

        Raises:
            IndexLocked: nobody else let go in time, or it was stopped.
            IndexIncompatible, IndexCorrupt, IndexMissing: see LOST.
        """
        return self.retry(lambda: self._run_locked(work))

    @contextmanager
    def prepare(self, texts: Iterable[str]) -> Generator[None]:
        """Works out for the indices inside the store what it can of texts that a transaction will
        store: not while it holds the lock."""
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
        """One short step of giving space back; whether there may be more to do.

        Raises IndexLocked while others write: nothing is waited for.
        """
        return self._writer is not None and self._maintain(StoreWriter.shrink_some)

    @property
    def has_long_log(self) -> bool:
        return self._writer is not None and self._writer.has_long_log

    def mark_unused(self, keys: Collection[int], now: int) -> None:
        """Notes since when vectors have been unused. Raises as `shrink_some` does."""
        self._maintain(lambda writer: writer.mark_unused(keys, now))

    def _maintain(self, work: Callable[[StoreWriter], _T]) -> _T:
        lock = try_write_lock(self._setup.directory)
        if lock is None:
            raise IndexLocked(f"{self._setup.directory} is being written by another program")
        with lock:
            if self._writer is None:
                self._open(takes_over=False)
                if reason := self._get_writer().rebuilt:
                    raise IndexIncompatible(f"the index was emptied: {reason}")
            try:
                return work(self._get_writer())
            except IndexLocked:
                raise
            except BaseException:
                self._close_writer()
                raise

    def lose(self, state: StoreState) -> StoreState:
        """Gives up what was open or known, because the store is not sound; returns the worst that
        is known against it."""
        self._state = self._state.worst(state)
        if writer := self._take_writer():
            writer.abandon()
        self.manifest.forget()
        return self._state

    def retry(self, action: Callable[[], _T]) -> _T:
        deadline = time.monotonic() + self._control.lock_seconds
        for pause in chain(_PAUSES, repeat(_PAUSES[-1])):
            try:
                return action()
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
        # It is the last one then, unless others have the store open: only a writer can put the
        # log into the store's file.
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

    def _run_locked(self, work: Callable[[Transaction], _T]) -> _T:
        with self._take_lock():
            if self._writer is None:
                self._open(takes_over=False)
                if reason := self._get_writer().rebuilt:
                    raise IndexIncompatible(f"the index was emptied: {reason}")
            try:
                with self._get_writer().transaction() as transaction:
                    done = work(transaction)
                self._check_visible(transaction.position)
                return done
            except IndexLocked:
                raise
            except BaseException:
                # Whatever it was (a full disk, a damaged page): the next time starts clean.
                self._close_writer()
                raise

    def _open_locked(self, takes_over: bool) -> None:
        with self._take_lock():
            if self._writer is None:
                self._open(takes_over=takes_over)

    def _check_visible(self, position: Position) -> None:
        """While the lock is held, the last commit is ours: who reads must see it."""
        with suppress(IndexLocked):  # it was done: it must not be done again for that
            if self.reader.position() != position:
                raise IndexCorrupt("what was written to the index cannot be read: it is checked")

    def _open(self, *, takes_over: bool) -> None:
        setup = self._setup
        if not takes_over:
            self.check_ours()  # again under the lock: opening alone would write
        if not self._state.is_sound:
            self._let_go()
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
        self._rebuilt = writer.rebuilt or self._rebuilt
        self.took_over |= writer.took_over
        if writer.rebuilt:
            self.manifest.forget()

    def _let_go(self) -> None:
        """Of the memory that is shared with others: it may be damaged, or a file that was deleted,
        which only shows when nothing of this process holds on to it."""
        release_all(self._setup.directory)
        reset_shared_memory(self._setup.directory)

    def _take_lock(self) -> FileLock:
        return write_lock(self._setup.directory, self._control.lock_seconds, self._control.stop)

    def _get_writer(self) -> StoreWriter:
        assert self._writer is not None
        return self._writer

    def _close_writer(self) -> None:
        """While the write lock is held."""
        if writer := self._take_writer():
            writer.close()

    def _take_writer(self) -> StoreWriter | None:
        writer, self._writer = self._writer, None
        return writer
