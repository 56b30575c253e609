"""Keeps one index up to date with its files: updates, vectors and communities."""

import gc
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ragdocs.errors import EmbeddingError, IndexLocked, IndexStoreError
from ragdocs.indexing.changes import Hints, Outcome
from ragdocs.indexing.session import LOST, Control, IndexSetup, Session
from ragdocs.indexing.update import Update, paths_of
from ragdocs.indexing.vectors import SPARE_BYTES, Filled, Filler
from ragdocs.models import Closable, DocId
from ragdocs.store.integrity import StoreState
from ragdocs.store.records import ChangeKind, Position
from ragdocs.store.snapshot import Snapshot
from ragdocs.store.tables import CommunityOrigin

if TYPE_CHECKING:
    from ragdocs.embedding.base import Embedder
    from ragdocs.indices.term_vectors import TermVectors

# Keeps the stored communities up to date with the links: computed in the background, committed as a
# generation of their own.
#
# Louvain's method takes seconds for ten thousand documents, so the write lock is taken only for the
# commit. Until then, searches use the stored communities, which lag behind the links.

REST = 20.0
"""A pause of this many times the run follows each run, so that communities take at most a twentieth
of one core, however often links change."""
FIRST_REST = 2.0
"""Before the first run: a server gets its first query as soon as it can answer, and that query
should have the CPU."""
END_SECONDS = 0.5
"""How long to wait for a run to stop."""
_LINKING = frozenset({ChangeKind.UPSERT, ChangeKind.DELETE, ChangeKind.LINKS})


@dataclass(frozen=True, slots=True)
class _Computed:
    """Each document's community number, and the links they were computed from."""

    numbers: dict[DocId, int]
    origin: CommunityOrigin


class CommunityUpdates:
    """Used by the writing thread; `update_some` computes in another thread."""

    def __init__(self, session: Session, control: Control, first_rest: float = FIRST_REST) -> None:
        self._session = session
        self._control = control
        self._thread: threading.Thread | None = None
        self._computed: _Computed | None = None
        self._error: Exception | None = None
        self._looked: Position | None = None
        """The last commit whose communities were computed, or found to be stored already."""
        self._not_before = time.monotonic() + first_rest

    def update(self, *, rebuild: bool = False) -> bool:
        """Recomputes and stores them if the links have changed, or always with `rebuild`; returns
        whether the stored communities changed. Gives up until later if the store is locked or lost.
        """
        try:
            computed = self._session.retry(self._compute, rebuild=rebuild)
        except IndexLocked:
            return False
        except LOST as error:
            self._session.lose(StoreState.after(error))
            return False
        return computed is not None and self._store(computed)

    def update_some(self) -> None:
        """Like `update`, without waiting: starts a run when it is due, and stores the result of a
        finished one. Raises the error that a run failed with."""
        if self._thread is not None:
            if self._thread.is_alive():
                return
            self._thread = None
            self._take()
        elif time.monotonic() >= self._not_before and not self._is_known_current():
            self._thread = threading.Thread(target=self._run, name="communities", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """Call it after the control was stopped, or when no more runs are wanted."""
        if self._thread is not None:
            self._thread.join(END_SECONDS)

    def _take(self) -> None:
        """Takes the result or the error of the last run."""
        computed, error = self._computed, self._error
        self._computed = self._error = None
        if isinstance(error, LOST):
            self._session.lose(StoreState.after(error))
        elif error is not None and not isinstance(error, IndexStoreError):
            raise error
        if computed is not None:
            self._store(computed)

    def _run(self) -> None:
        began = time.monotonic()
        try:
            self._computed = self._compute()
        except Exception as error:  # re-raised by `_take`, in the supervised thread
            self._error = error
        if self._computed is not None:
            # NetworkX's graphs are reference cycles: 45 MB for 10,000 documents, until collected.
            gc.collect()
        ended = time.monotonic()
        self._not_before = ended + REST * (ended - began)

    def _compute(self, *, rebuild: bool = False) -> _Computed | None:
        """None when the stored ones are current, or when stopped."""
        from ragdocs.indices.graph import detect, pair_weights

        with self._session.reader.snapshot() as snapshot:
            if not rebuild and self._is_current(snapshot):
                self._looked = snapshot.position
                return None
            origin = CommunityOrigin(snapshot.position, snapshot.edges_digest())
            weights = pair_weights(snapshot.all_links())
        numbers = detect(weights, self._control.stop)
        return None if numbers is None else _Computed(numbers, origin)

    def _is_known_current(self) -> bool:
        return self._looked is not None and self._looked == self._session.position

    def _is_current(self, snapshot: Snapshot) -> bool:
        changes = snapshot.changes_since(self._looked) if self._looked else None
        if changes is not None and not any(change.kinds & _LINKING for change in changes):
            return True
        return snapshot.has_current_communities()

    def _store(self, computed: _Computed) -> bool:
        try:
            has_changed = self._session.run(
                lambda transaction: transaction.put_communities(computed.numbers, computed.origin)
            )
        except LOST as error:
            self._session.lose(StoreState.after(error))
            return False
        except IndexStoreError:  # busy, or a full disk: the next run tries again
            return False
        self._looked = computed.origin.position
        return has_changed


# Keeps one index up to date with its files. Thin: each step is a module of its own.
#
# For one thread: the thread that first updates must also fill and close. Any number of managers, in
# any number of processes, may work on one index directory.

MAX_RESTARTS = 3
"""An update that loses the store more often than this gives up."""

SPARE_VECTORS = 2 * SPARE_BYTES // (4 * 384)
"""Counted in vectors of the built-in model."""
LOOK_SECONDS = 24 * 3600
"""How often to look for unused vectors; sooner when there are far too many."""


class IndexManager(Closable):
    """Indexes files (`update`), then embeds their texts (`fill_some`)."""

    def __init__(
        self,
        setup: IndexSetup,
        embedder: "Embedder | None" = None,
        terms: "TermVectors | None" = None,
        control: Control | None = None,
    ) -> None:
        self._setup = setup
        self._control = control or Control()
        self._session = Session(setup, self._control)
        self._filler = Filler(self._session, self._control, embedder, terms)
        self._communities = CommunityUpdates(self._session, self._control)
        self._shrunk: Position | None = None
        """The commit after which there was no more space to reclaim."""
        self._log_is_left = False

    def open(self) -> None:
        """Opens the store for writing and checks it now, instead of at the first change."""
        self._session.open()

    def check_ours(self) -> None:
        """Raises OthersIndex when another program created the index in a folder that the user
        configured; locks and writes nothing."""
        self._session.check_ours()

    @property
    def position(self) -> Position | None:
        """The last known commit."""
        return self._session.position

    def look(self, max_age: float = 0.0) -> StoreState:
        """The state of the store, as it was at most `max_age` seconds ago. The next update repairs
        any problem found."""
        return self._session.look(max_age)

    def lose(self, state: StoreState) -> None:
        """Marks the store as gone or damaged; the next update opens, checks and repairs it."""
        self._session.lose(state)

    def update(
        self, hints: Hints | None = None, *, rebuild: bool = False, looked: bool = False
    ) -> Outcome:
        """Updates the index to match the files: all of them, or those that the hints name. It looks
        at the store first, unless the caller has just `looked`.

        A rebuild checks the whole store first, then reads every file again; search keeps working,
        and existing vectors are kept. In a folder that the user configured, it also takes over an
        index that a program with other settings created. May be called again after it raises.

        Raises:
            IndexLocked: another process held the write lock for too long.
            OthersIndex: another program created the index in a folder that the user configured.
            IndexStoreError: the directory cannot be written.
        """
        began = time.monotonic()
        update = Update(self._setup, self._session, self._control)
        try:
            self._run(update, hints, rebuild, looked)
        except IndexLocked:
            if not self._control.stop.is_set():
                raise
        return self._outcome(update, time.monotonic() - began)

    def fill_some(self) -> Filled:
        """Embeds one short batch; call it again while `has_more`."""
        return self._filler.fill_some()

    def fill(self) -> Filled:
        """Embeds everything, until it is done, fails, or is stopped."""
        stored = 0
        while True:
            filled = self.fill_some()
            stored += filled.stored
            if not filled.has_more or self._control.stop.is_set():
                return Filled(filled.phase, stored, filled.has_more, filled.error)

    @property
    def vectors_taken(self) -> int:
        """How many of the new vectors came from another variant of the index."""
        return self._filler.taken

    def update_communities(self, *, rebuild: bool = False) -> bool:
        """Recomputes and stores the communities of linked documents if links have changed, or
        always with `rebuild`; returns whether the stored communities changed."""
        return self._setup.has_communities and self._communities.update(rebuild=rebuild)

    def update_some_communities(self) -> None:
        """The same in the background; call it repeatedly."""
        if self._setup.has_communities:
            self._communities.update_some()

    def prune(self) -> int:
        """Deletes unused vectors; call it after an update that saw every tree."""
        return self._filler.prune()

    def tidy(self) -> int:
        """Deletes unused vectors that are too many or too old; keeps the others for files that may
        come back."""
        now = self._control.clock_ns() // 10**9
        with self._session.reader.snapshot() as snapshot:
            vectors, chunks = (snapshot.ledger.count(table) for table in ("embeddings", "chunks"))
            looked = snapshot.unused_checked_at
        is_new = looked is not None and 0 <= now - looked < LOOK_SECONDS
        if not vectors or (is_new and vectors <= 2 * chunks + SPARE_VECTORS):
            return 0
        try:
            return self._filler.drop_excess(self._setup.tables, now)
        except EmbeddingError:  # without the model we do not know which vectors belong to it
            return 0

    def shrink_some(self) -> bool:
        """Takes one short step to reclaim the space of deleted rows; returns whether there may be
        more to do. After a failure, on a full disk for example, a later call tries again."""
        if not self._log_is_left and self._shrunk and self._shrunk == self._session.position:
            return False
        try:
            with self._session.reader.snapshot() as snapshot:
                self._shrunk = snapshot.position
                if not self._log_is_left and not snapshot.space.is_wasted:
                    return False
            has_more = self._session.shrink_some()
            self._log_is_left = not has_more and self._session.has_long_log
        except IndexLocked:
            self._shrunk = None
            return False
        except LOST as error:
            self._session.lose(StoreState.after(error))
            return False
        except IndexStoreError:
            return False
        if has_more:
            self._shrunk = None
        return has_more

    def shrink(self) -> None:
        """Reclaims all of it."""
        while self.shrink_some() and not self._control.stop.is_set():
            pass

    def close(self) -> None:
        self._communities.close()
        self._session.close()

    def _run(self, update: Update, hints: Hints | None, rebuild: bool, looked: bool) -> None:
        must_examine = rebuild
        for restarts in range(MAX_RESTARTS + 1):
            try:
                if must_examine:
                    self._session.examine()
                    must_examine = False
                # A store that was emptied, by us or by others, is filled from all files.
                is_whole = self._session.ready(looked=looked and restarts == 0) and restarts == 0
                paths = paths_of(hints) if is_whole else None
                update.run(paths, reread=rebuild)
                if paths is None:
                    self._session.settle()
                return
            except LOST as error:
                self._session.lose(StoreState.after(error))
                if not rebuild:
                    self.check_ours()
                if restarts == MAX_RESTARTS:
                    raise

    def _outcome(self, update: Update, seconds: float) -> Outcome:
        applied = update.applied
        documents = chunks = 0
        with suppress(IndexLocked, *LOST):
            counts = self._session.counts()
            documents, chunks = counts.count("documents"), counts.count("chunks")
        return Outcome(
            added=applied.added,
            modified=applied.modified,
            unchanged=update.unchanged + applied.unchanged,
            removed=applied.removed,
            moved=applied.moved,
            failed=tuple(applied.failures.values()),
            kept=update.kept,
            skipped=update.skipped,
            unsettled=update.unsettled,
            documents=documents,
            chunks=chunks,
            seconds=seconds,
            taken_over=self._session.took_over,
            rebuilt=self._session.take_rebuilt(),
            stopped=self._control.stop.is_set(),
            unread=update.unread,
        )
