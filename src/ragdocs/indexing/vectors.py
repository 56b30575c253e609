"""Vectors for what lacks them, a short piece of work at a time, the newest edits first.

Between two pieces the caller can look for changes and stop. What others have embedded meanwhile is
not embedded again, and neither is what another variant of the index has a vector of.
"""

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial

from ragdocs.embedding.base import Embedder
from ragdocs.errors import EmbeddingError, IndexIncompatible, IndexLocked, IndexStoreError
from ragdocs.indexing.changes import Phase, Progress
from ragdocs.indexing.session import LOST, Control, Session
from ragdocs.indices.term_vectors import TermVectors
from ragdocs.indices.view import Writer
from ragdocs.store.embeddings import FLOAT_BYTES, UnusedVector
from ragdocs.store.integrity import StoreState
from ragdocs.store.records import ChangeKind, PendingText, Position, TextHash
from ragdocs.store.snapshot import Snapshot
from ragdocs.store.stored_index import StoredIndex
from ragdocs.store.variants import SiblingVectors

WINDOW_TEXTS = 512
"""Fetched at once, and embedded by length: equal lengths share a run of the model."""
MAX_DOCUMENTS = 256
"""With more changed documents than this, asking for all is as quick as for each."""
FIRST_TEXTS, MIN_TEXTS, MAX_TEXTS = 16, 1, 256
QUICK_SECONDS, SLOW_SECONDS = 0.25, 1.0
"""A piece of work grows and shrinks to stay between these: a stop must not wait two seconds."""

SPARE_BYTES, SPARE_SECONDS = 64 << 20, 30 * 24 * 3600
"""Vectors that nothing uses are kept for files that come back, by an undo or another branch: so
much or as much as is in use, whichever is more, and for so long."""
DROPPED_AT_ONCE = 2000
"""In one transaction: some ten milliseconds."""


@dataclass(frozen=True, slots=True)
class Filled:
    """One piece of work: how many vectors are new, and whether more is to be done.

    With an `error` nothing was embedded: search by words goes on, and trying again is up to the
    caller.
    """

    phase: Phase
    stored: int = 0
    has_more: bool = False
    error: str = ""


def find_excess(unused: Sequence[UnusedVector], used_bytes: int, now: int) -> list[UnusedVector]:
    """What is too much of the unused, or too old: the oldest first."""
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


def _drop(keys: Sequence[int], models: Collection[str], transaction: Writer) -> int:
    return transaction.drop_unused(keys, models)


class Filler:
    """Remembers what is known to be complete, so that one edit asks for one document only."""

    def __init__(
        self,
        session: Session,
        control: Control,
        embedder: Embedder | None,
        terms: TermVectors | None,
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
        """Raises IndexLocked only when others have kept the lock for too long."""
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
            # The next update opens the store again; there is nothing to be done before that.
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
        """Without a model nothing is known to be of no use."""
        if self._embedder is None:
            return 0
        self._embedder.load()
        models = {self._embedder.identity}
        return self._store(lambda transaction: transaction.prune_embeddings(models))

    def drop_excess(self, tables: Sequence[StoredIndex], now: int) -> int:
        """Keeps what is unused within its bounds; says how many vectors went.

        What is unused is found without the lock, which is taken for short pieces only.
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
            pass  # busy, or a full disk: the next time will do
        return dropped

    def _fill(self, embedder: Embedder) -> Filled:
        texts = self._session.retry(lambda: self._next(embedder))
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
        self, embedder: Embedder, texts: Sequence[PendingText]
    ) -> list[tuple[TextHash, bytes]]:
        """Those that another variant of the index has, and only the others from the model."""
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

    def _next(self, embedder: Embedder) -> list[PendingText]:
        """The next texts without a vector; none when all is complete."""
        with self._session.reader.snapshot() as snapshot:
            # After an edit the newest come first; and others may have embedded what was fetched.
            if not self._window or snapshot.position != self._at:
                self._fetch(snapshot, embedder.identity)
        part, self._window = self._window[: self._size], self._window[self._size :]
        return part

    def _fetch(self, snapshot: Snapshot, model: str) -> None:
        self._at = snapshot.position
        texts = self._missing(snapshot, model)
        phase = Phase.EMBEDDING
        if not texts:
            self._complete = snapshot.position
            if self._terms is not None:  # without words yet it would be false
                phase, texts = Phase.TERMS, self._terms.missing(snapshot, WINDOW_TEXTS)
        self._begin(phase, len(texts), snapshot, model)
        self._window = sorted(texts, key=lambda text: len(text.text))

    def _missing(self, snapshot: Snapshot, model: str) -> Sequence[PendingText]:
        changes = snapshot.changes_since(self._complete) if self._complete else None
        if changes is not None:
            edited = [one.doc_id for one in changes if ChangeKind.UPSERT in one.kinds]
            if len(edited) <= MAX_DOCUMENTS:
                return snapshot.missing_embeddings(model, edited)
        return snapshot.missing_embeddings(model, limit=WINDOW_TEXTS)

    def _begin(self, phase: Phase, texts: int, snapshot: Snapshot, model: str) -> None:
        """A new count when another kind of work begins; otherwise the old one goes on."""
        if phase is not self._phase or not texts:
            self._phase, self._done = phase, 0
        waiting = texts
        if phase is Phase.EMBEDDING and texts >= WINDOW_TEXTS:
            waiting = snapshot.count_missing_embeddings(model)
        self._total = self._done + waiting

    def _store(self, put: Callable[[Writer], int]) -> int:
        def work(transaction: Writer) -> tuple[int, Position, Writer]:
            before = transaction.position
            return put(transaction), before, transaction

        try:
            stored, before, transaction = self._session.run(work)
        except IndexIncompatible as error:
            # Others may only have been killed in the middle of a commit. A vector belongs to its
            # text, whatever became of the rest: so it is opened, with its checks, and tried again.
            self._session.lose(StoreState.after(error))
            stored, before, transaction = self._session.run(work)
        self._session.manifest.advance(before, transaction.position)
        if self._at == before:
            self._at = transaction.position
        return stored

    def _adapt(self, seconds: float) -> None:
        if seconds > SLOW_SECONDS:
            self._size = max(MIN_TEXTS, self._size // 2)
        elif seconds < QUICK_SECONDS:
            self._size = min(MAX_TEXTS, self._size * 2)

    def _report(self) -> None:
        progress = Progress(self._phase, self._done, max(self._total, self._done), self._done)
        self._control.on_progress(progress)
