"""Keeps the stored communities those of the links: computed beside everything else, committed as a
generation of their own.

Louvain's method takes seconds for ten thousand documents, so the write lock is taken only for the
commit. As long as they are behind the links, the stored ones are used.
"""

import gc
import threading
import time
from dataclasses import dataclass

from ragdocs.errors import IndexLocked, IndexStoreError
from ragdocs.indexing.index_access import LOST, IndexAccess
from ragdocs.indexing.index_setup import Control
from ragdocs.indices.communities import detect, pair_weights
from ragdocs.models import DocId
from ragdocs.store.community_rows import CommunityOrigin
from ragdocs.store.records import ChangeKind, Position
from ragdocs.store.snapshot import Snapshot
from ragdocs.store.transaction import Transaction

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

    def __init__(
        self, access: IndexAccess, control: Control, first_rest: float = FIRST_REST
    ) -> None:
        self._access = access
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
            computed = self._access.retried(lambda: self._compute(anew=anew))
        except IndexLocked:
            return False
        except LOST as error:
            self._access.lose(error)
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
            self._access.lose(error)
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
        with self._access.reader.snapshot() as snapshot:
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
        def work(transaction: Transaction) -> tuple[bool, Position, Transaction]:
            before = transaction.position
            return (
                transaction.put_communities(computed.numbers, computed.origin),
                before,
                transaction,
            )

        try:
            is_other, before, transaction = self._access.run(work)
        except LOST as error:
            self._access.lose(error)
            return False
        except IndexStoreError:  # busy, or a full disk: the next time will do
            return False
        self._access.manifest.advance(before, transaction.position)
        self._looked = computed.origin.position
        return is_other
