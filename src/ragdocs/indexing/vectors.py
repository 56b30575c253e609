"""Embeds texts that have no vector, one short batch at a time, the newest edits first.

Between two batches the caller can check for changes and stop. Texts that another process has
embedded meanwhile, or that have a vector in another variant of the index, are not embedded again.
"""

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from ragdocs.errors import EmbeddingError, IndexIncompatible, IndexLocked, IndexStoreError
from ragdocs.indexing.changes import Phase, Progress
from ragdocs.indexing.session import LOST, Control, Session
from ragdocs.store.embeddings import FLOAT_BYTES, UnusedVector
from ragdocs.store.integrity import StoreState
from ragdocs.store.records import ChangeKind, PendingText, Position, TextHash
from ragdocs.store.snapshot import Snapshot
from ragdocs.store.stored_index import StoredIndex
from ragdocs.store.variants import SiblingVectors

if TYPE_CHECKING:
    from ragdocs.embedding.base import Embedder
    from ragdocs.indices.term_vectors import TermVectors
    from ragdocs.indices.view import Writer

WINDOW_TEXTS = 512
"""Fetched at once and embedded by length: texts of equal length share a run of the model."""
MAX_DOCUMENTS = 256
"""With more changed documents than this, querying all of them is as fast as querying each."""
FIRST_TEXTS, MIN_TEXTS, MAX_TEXTS = 16, 1, 256
QUICK_SECONDS, SLOW_SECONDS = 0.25, 1.0
"""The batch size adapts to stay between these: a stop must not wait two seconds."""

SPARE_BYTES, SPARE_SECONDS = 64 << 20, 30 * 24 * 3600
"""Unused vectors are kept for files that come back, by an undo or a switch of branches: up to this
many bytes or as many as are in use, whichever is more, and for this long."""
DROPPED_AT_ONCE = 2000
"""In one transaction: about ten milliseconds."""


@dataclass(frozen=True, slots=True)
class Filled:
    """One batch: how many vectors are new, and whether there is more to do.

    With an `error`, nothing was embedded: keyword search keeps working, and the caller decides
    when to try again.
    """

    phase: Phase
    stored: int = 0
    has_more: bool = False
    error: str = ""


def find_excess(unused: Sequence[UnusedVector], used_bytes: int, now: int) -> list[UnusedVector]:
    """The unused vectors to delete, because they are too many or too old; the oldest first."""
    by_age = sorted(unused, key=lambda one: (now if one.since is None else one.since, one.key))
    excess = sum(one.size for one in by_age) - max(SPARE_BYTES, used_bytes)
    found: list[UnusedVector] = []
    for one in by_age:
        is_old = one.since is not None and now - one.since > SPARE_SECONDS
        if excess <= 0 and not is_old:
            break
        found.append(one)
        excess -= one.size
    return found


def _drop(keys: Sequence[int], models: Collection[str], transaction: "Writer") -> int:
    return transaction.drop_unused(keys, models)


class Filler:
    """Embeds missing texts; remembers the last complete position, so that after an edit it queries
    only the edited document."""

    def __init__(
        self,
        session: Session,
        control: Control,
        embedder: "Embedder | None",
        terms: "TermVectors | None",
    ) -> None:
        self._session = session
        self._control = control
        self._embedder = embedder
        self._terms = terms
        self._phase = Phase.EMBEDDING
        self._complete: Position | None = None
        self._at: Position | None = None
        self._window: list[PendingText] = []
        self._size = FIRST_TEXTS
        self._siblings = SiblingVectors(session.directory)
        self._done = self._total = 0

    def fill_some(self) -> Filled:
        """Raises IndexLocked only when another process held the lock for too long."""
        if self._embedder is None:
            return Filled(self._phase)
        if self._control.stop.is_set():
            return Filled(self._phase, has_more=True)
        try:
            self._embedder.load()
            return self._fill(self._embedder)
        except EmbeddingError as error:
            return Filled(self._phase, error=str(error))
        except LOST as error:
            # The next update opens the store again; nothing can be done before that.
            self._session.lose(StoreState.after(error))
            self._complete = self._at = None
            return Filled(self._phase, error=str(error))
        except IndexLocked:
            if not self._control.stop.is_set():
                raise
            return Filled(self._phase, has_more=True)

    @property
    def taken(self) -> int:
        """Vectors that came from another variant of the index."""
        return self._siblings.taken

    def prune(self) -> int:
        """Deletes unused vectors; without a model we cannot know which are unused."""
        if self._embedder is None:
            return 0
        self._embedder.load()
        models = {self._embedder.identity}
        return self._store(lambda transaction: transaction.prune_embeddings(models))

    def drop_excess(self, tables: Sequence[StoredIndex], now: int) -> int:
        """Deletes unused vectors beyond their limits; returns how many.

        Finds the unused ones without the lock, which it takes only for short batches.
        """
        if self._embedder is None:
            return 0
        self._embedder.load()
        models = {self._embedder.identity}
        with self._session.reader.snapshot() as snapshot:
            unused = snapshot.unused_vectors(models, tables)
            used = snapshot.ledger.count("embeddings") - len(unused)
        excess = find_excess(unused, used * self._embedder.dimension * FLOAT_BYTES, now)
        dropped = 0
        for start in range(0, len(excess), DROPPED_AT_ONCE):
            if self._control.stop.is_set():
                return dropped
            part = [one.key for one in excess[start : start + DROPPED_AT_ONCE]]
            dropped += self._store(partial(_drop, part, models))
        gone = {one.key for one in excess}
        try:
            self._session.mark_unused([one.key for one in unused if one.key not in gone], now)
        except LOST:
            raise
        except IndexStoreError:
            pass  # busy, or a full disk: the next call tries again
        return dropped

    def _fill(self, embedder: "Embedder") -> Filled:
        texts = self._session.retry(self._next, embedder)
        if not texts:
            return Filled(self._phase)
        began = time.monotonic()
        rows = self._vectors(embedder, texts)
        self._adapt(time.monotonic() - began)
        stored = self._store(
            lambda transaction: transaction.put_embeddings(embedder.identity, rows)
        )
        self._done += len(texts)
        self._report()
        return Filled(self._phase, stored, has_more=True)

    def _vectors(
        self, embedder: "Embedder", texts: Sequence[PendingText]
    ) -> list[tuple[TextHash, bytes]]:
        """Takes vectors from other variants of the index, and only the rest from the model."""
        known = self._siblings.find(embedder.identity, [text.text_hash for text in texts])
        rest = [text for text in texts if text.text_hash not in known]
        rows = list(known.items())
        if rest:
            made = embedder.embed_documents([text.text for text in rest])
            rows += (
                (text.text_hash, vector.astype("<f4").tobytes())
                for text, vector in zip(rest, made, strict=True)
            )
        return rows

    def _next(self, embedder: "Embedder") -> list[PendingText]:
        """The next texts without a vector; empty when all have one."""
        with self._session.reader.snapshot() as snapshot:
            # After a commit, fetch again: new edits come first, and another process may have
            # embedded what was fetched.
            if not self._window or snapshot.position != self._at:
                self._fetch(snapshot, embedder.identity)
        part, self._window = self._window[: self._size], self._window[self._size :]
        return part

    def _fetch(self, snapshot: Snapshot, model: str) -> None:
        self._at = snapshot.position
        texts, waiting = self._missing(snapshot, model)
        phase = Phase.EMBEDDING
        if not texts:
            self._complete = snapshot.position
            if self._terms is not None:  # not a truth test: empty term vectors are false
                words = self._terms.missing(snapshot)
                phase, texts, waiting = Phase.TERMS, words[:WINDOW_TEXTS], len(words)
        self._begin(phase, waiting)
        self._window = sorted(texts, key=lambda text: len(text.text))

    def _missing(self, snapshot: Snapshot, model: str) -> tuple[Sequence[PendingText], int]:
        """The next texts, and how many there are in all: a total that is known before the work."""
        changes = snapshot.changes_since(self._complete) if self._complete else None
        if changes is not None:
            edited = [one.doc_id for one in changes if ChangeKind.UPSERT in one.kinds]
            if len(edited) <= MAX_DOCUMENTS:
                texts = snapshot.missing_embeddings(model, edited)
                return texts, len(texts)
        texts = snapshot.missing_embeddings(model, limit=WINDOW_TEXTS)
        return texts, snapshot.count_missing_texts(model) if texts else 0

    def _begin(self, phase: Phase, waiting: int) -> None:
        """Restarts the count when a new phase begins; otherwise continues it."""
        if phase is not self._phase or not waiting:
            self._phase, self._done = phase, 0
        self._total = self._done + waiting

    def _store(self, put: "Callable[[Writer], int]") -> int:
        def work(transaction: "Writer") -> tuple[int, bool]:
            return put(transaction), transaction.position == self._at

        try:
            stored, is_next = self._session.run(work)
        except IndexIncompatible as error:
            # Perhaps another process was merely killed in the middle of a commit. A vector belongs
            # to its text, whatever else has changed, so reopen the store, with its checks, and
            # try again.
            self._session.lose(StoreState.after(error))
            stored, is_next = self._session.run(work)
        if is_next:
            self._at = self._session.position
        return stored

    def _adapt(self, seconds: float) -> None:
        if seconds > SLOW_SECONDS:
            self._size = max(MIN_TEXTS, self._size // 2)
        elif seconds < QUICK_SECONDS:
            self._size = min(MAX_TEXTS, self._size * 2)

    def _report(self) -> None:
        progress = Progress(self._phase, self._done, max(self._total, self._done), self._done)
        self._control.on_progress(progress)
