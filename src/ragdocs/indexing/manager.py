"""Keeps one index up to date with its files: updates, vectors and communities."""

import gc
import threading
import time
from dataclasses import dataclass

from ragdocs.embedding.base import Embedder
from ragdocs.errors import EmbeddingError, IndexLocked, IndexStoreError
from ragdocs.indexing.changes import Hints, Outcome
from ragdocs.indexing.session import LOST, Control, IndexSetup, Session
from ragdocs.indexing.update import Update, paths_of
from ragdocs.indexing.vectors import SPARE_BYTES, Filled, Filler
from ragdocs.indices.graph import detect, pair_weights
from ragdocs.indices.term_vectors import TermVectors
from ragdocs.indices.view import Writer
from ragdocs.models import Closable, DocId
from ragdocs.store.integrity import StoreState
from ragdocs.store.records import ChangeKind, Position
from ragdocs.store.snapshot import Snapshot
from ragdocs.store.tables import CommunityOrigin

# Keeps the stored communities those of the links: computed beside everything else, committed as a
# generation of their own.
#
# Louvain's method takes seconds for ten thousand documents, so the write lock is taken only for the
# commit. As long as they are behind the links, the stored ones are used.

REST = 20.0
"""After a run it rests this many times as long: communities take at most a twentieth of one core,
however often links change."""
FIRST_REST = 2.0
"""Before the first run: a server is asked its first question as soon as it can answer, and that
one should have the processor."""
END_SECONDS = 0.5
"""How long a run that was told to stop is waited for."""
_LINKING = frozenset({ChangeKind.UPSERT, ChangeKind.DELETE, ChangeKind.LINKS})


@dataclass(frozen=True, slots=True)
class _Computed:
    """The number of each document's community, and the links that they are of."""

    numbers: dict[DocId, int]
    origin: CommunityOrigin


class CommunityUpdates:
    """Used by the one thread that writes; `update_some` computes in another one."""

    def __init__(self, session: Session, control: Control, first_rest: float = FIRST_REST) -> None:
        self._session = session
        self._control = control
        self._thread: threading.Thread | None = None
        self._computed: _Computed | None = None
        self._error: Exception | None = None
        self._looked: Position | None = None
        """The commit whose communities were last found, or seen to be stored."""
        self._not_before = time.monotonic() + first_rest

    def update(self, *, anew: bool = False) -> bool:
        """Computes and stores them if the links have changed since, or `anew` in any case; returns
        whether other ones are stored now. What others hold or have broken is left for another time.
        """
        try:
            computed = self._session.retry(lambda: self._compute(anew=anew))
        except IndexLocked:
            return False
        except LOST as error:
            self._session.lose(StoreState.after(error))
            return False
        return computed is not None and self._store(computed)

    def update_some(self) -> None:
        """As `update`, without waiting: begins a run when it is time, and stores what one has
        found. Raises what a run has failed with."""
        if self._thread is not None:
            if self._thread.is_alive():
                return
            self._thread = None
            self._take()
        elif time.monotonic() >= self._not_before:
            self._thread = threading.Thread(target=self._run, name="communities", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """After the control was stopped, or when nothing more is wanted."""
        if self._thread is not None:
            self._thread.join(END_SECONDS)

    def _take(self) -> None:
        """What the last run has left."""
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
        except Exception as error:  # raised by the thread that is supervised
            self._error = error
        if self._computed is not None:
            # NetworkX's graphs refer to themselves: 45 MB after 10,000 documents, until collected.
            gc.collect()
        ended = time.monotonic()
        self._not_before = ended + REST * (ended - began)

    def _compute(self, *, anew: bool = False) -> _Computed | None:
        """None when the stored ones are current, or it was stopped."""
        with self._session.reader.snapshot() as snapshot:
            if not anew and self._is_current(snapshot):
                self._looked = snapshot.position
                return None
            origin = CommunityOrigin(snapshot.position, snapshot.edges_digest())
            weights = pair_weights(snapshot.all_links())
        numbers = detect(weights, self._control.stop)
        return None if numbers is None else _Computed(numbers, origin)

    def _is_current(self, snapshot: Snapshot) -> bool:
        changes = snapshot.changes_since(self._looked) if self._looked else None
        if changes is not None and not any(change.kinds & _LINKING for change in changes):
            return True
        return snapshot.has_current_communities()

    def _store(self, computed: _Computed) -> bool:
        def work(transaction: Writer) -> tuple[bool, Position, Writer]:
            before = transaction.position
            return (
                transaction.put_communities(computed.numbers, computed.origin),
                before,
                transaction,
            )

        try:
            is_other, before, transaction = self._session.run(work)
        except LOST as error:
            self._session.lose(StoreState.after(error))
            return False
        except IndexStoreError:  # busy, or a full disk: the next time will do
            return False
        self._session.manifest.advance(before, transaction.position)
        self._looked = computed.origin.position
        return is_other


# Keeps one index up to date with its files. Thin: each step is a module of its own.
#
# For one thread: the one that first updates also fills and closes. Any number of managers, in any
# number of processes, may work on one index directory.

MAX_RESTARTS = 3
"""A store that is lost again and again, while it is written, is not to be had now."""

SPARE_VECTORS = 2 * SPARE_BYTES // (4 * 384)
"""Of the built-in model."""
LOOK_SECONDS = 24 * 3600
"""How often unused vectors are looked for; sooner when there are far too many."""


class IndexManager(Closable):
    """Files into the index (`update`), then vectors for their texts (`fill_some`)."""

    def __init__(
        self,
        setup: IndexSetup,
        embedder: Embedder | None = None,
        terms: TermVectors | None = None,
        control: Control | None = None,
    ) -> None:
        self._setup = setup
        self._control = control or Control()
        self._session = Session(setup, self._control)
        self._filler = Filler(self._session, self._control, embedder, terms)
        self._communities = CommunityUpdates(self._session, self._control)
        self._shrunk: Position | None = None
        self._log_is_left = False
        """The commit after which there was no more space to give back."""

    def open(self) -> None:
        """Opens the store for writing now, with its checks, instead of at the first change."""
        self._session.open()

    def check_ours(self) -> None:
        """Raises OthersIndex when another program has made the index in a folder that the user has
        named; nothing is locked or written for that."""
        self._session.check_ours()

    def look(self) -> StoreState:
        """The state of the store. What is found against it is mended by the next update."""
        return self._session.look()

    def lose(self, state: StoreState) -> None:
        """The store was found gone or damaged: the next update opens, checks and repairs it."""
        self._session.lose(state)

    def update(self, hints: Hints | None = None, *, rebuild: bool = False) -> Outcome:
        """Updates the index to match the files: with all of them, or where hints say.

        A rebuild checks the whole store first, then reads every file again; search goes on, and
        what has a vector keeps it. In a folder that the user has named, it also takes over what a
        program with other settings has made. May be called again whenever it raises.

        Raises:
            IndexLocked: others kept the write lock for too long.
            OthersIndex: another program has made the index in a folder that the user has named.
            IndexStoreError: the directory cannot be written.
        """
        began = time.monotonic()
        update = Update(self._setup, self._session, self._control)
        try:
            self._run(update, hints, rebuild)
        except IndexLocked:
            if not self._control.stop.is_set():
                raise
        return self._outcome(update, time.monotonic() - began)

    def fill_some(self) -> Filled:
        """One short piece of embedding; call it again while it `has_more`."""
        return self._filler.fill_some()

    def fill(self) -> Filled:
        """All of it, until there is no more, it fails, or it is stopped."""
        stored = 0
        while True:
            filled = self.fill_some()
            stored += filled.stored
            if not filled.has_more or self._control.stop.is_set():
                return Filled(filled.phase, stored, filled.has_more, filled.error)

    @property
    def vectors_taken(self) -> int:
        """Of those that were filled in: how many came from another variant of the index."""
        return self._filler.taken

    def update_communities(self, *, anew: bool = False) -> bool:
        """Computes and stores the communities of linked documents if links have changed since, or
        `anew` in any case; returns whether other ones are stored now."""
        return self._setup.has_communities and self._communities.update(anew=anew)

    def update_some_communities(self) -> None:
        """The same beside other work, and not at once; call it again and again."""
        if self._setup.has_communities:
            self._communities.update_some()

    def prune(self) -> int:
        """Forgets vectors that nothing uses any more; after an update that saw every tree."""
        return self._filler.prune()

    def tidy(self) -> int:
        """Forgets what is too much of unused vectors, or unused for too long: the others are kept
        for files that come back."""
        now = self._control.clock_ns() // 10**9
        with self._session.reader.snapshot() as snapshot:
            vectors, chunks = (snapshot.ledger.count(table) for table in ("embeddings", "chunks"))
            looked = snapshot.looked_for_unused
        is_new = looked is not None and 0 <= now - looked < LOOK_SECONDS
        if not vectors or (is_new and vectors <= 2 * chunks + SPARE_VECTORS):
            return 0
        try:
            return self._filler.drop_excess(self._setup.tables, now)
        except EmbeddingError:  # without its model it is not known which vectors are its own
            return 0

    def shrink_some(self) -> bool:
        """One short step of giving back the space that deletions left; whether there may be more
        to do. What fails, on a full disk for example, is left for another time."""
        try:
            with self._session.reader.snapshot() as snapshot:
                is_known = snapshot.position == self._shrunk
                self._shrunk = snapshot.position
                if not self._log_is_left and (is_known or not snapshot.space.is_wasted):
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
        """All of it."""
        while self.shrink_some() and not self._control.stop.is_set():
            pass

    def close(self) -> None:
        self._communities.close()
        self._session.close()

    def _run(self, update: Update, hints: Hints | None, rebuild: bool) -> None:
        must_examine = rebuild
        for restarts in range(MAX_RESTARTS + 1):
            try:
                if must_examine:
                    self._session.examine()
                    must_examine = False
                # What was emptied, by us or by others, is filled from all files.
                is_whole = self._session.ready() and restarts == 0
                paths = paths_of(hints) if is_whole else None
                update.run(paths, anew=rebuild)
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
        try:
            with self._session.reader.snapshot() as snapshot:
                documents = snapshot.ledger.count("documents")
                chunks = snapshot.ledger.count("chunks")
        except (IndexLocked, *LOST):
            pass
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
        )
