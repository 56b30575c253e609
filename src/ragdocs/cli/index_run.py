"""One run of an indexing command: files in, vectors for their texts, and what the index holds."""

import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ragdocs.app import App
from ragdocs.cli.progress import Display
from ragdocs.config.resolved import Config
from ragdocs.diagnosis.status import FileWarning
from ragdocs.diagnosis.store_look import file_warnings
from ragdocs.errors import EmbeddingError, IndexLocked, IndexStoreError
from ragdocs.indexing.index_setup import LOCK_SECONDS, Control
from ragdocs.indexing.lock import writing
from ragdocs.indexing.manager import IndexManager
from ragdocs.indexing.outcome import Outcome, Phase, Skipped
from ragdocs.indexing.scan import SkipReason
from ragdocs.lifecycle import Ending
from ragdocs.store.records import FileFailure
from ragdocs.store.variants import drop_unused
from ragdocs.wording import process_text


@dataclass(frozen=True, slots=True, kw_only=True)
class Orders:
    """What is asked of a run. `wait`: seconds for others to let the index be written; `advice` for
    when they do not."""

    rebuild: bool
    vectors: bool = True
    wait: float = LOCK_SECONDS
    advice: str = "Try again later."
    drop_unused: bool = False
    """Whether other variants of the index that nobody uses any more are deleted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorWork:
    """What became of the vectors: `made` by the model, or `taken` from an index of these documents
    with other settings. `lacking`: there is no model, and search does without. `error`:
    there is one, and making them failed. `notes` are on the model that was used."""

    made: int = 0
    taken: int = 0
    forgotten: int = 0
    lacking: str = ""
    error: str = ""
    notes: tuple[str, ...] = ()
    seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """What the index holds after the run, whoever put it there."""

    passages: int
    vectors_pending: int
    files_waiting: int | None
    failures: tuple[FileFailure, ...]
    warnings: tuple[FileWarning, ...]
    vocabulary: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """All that can be said of a run. Without `contents` the index could not be read after it.

    `dropped` are other variants of the index, which nobody used any more.
    """

    directory: Path
    outcome: Outcome
    vectors: VectorWork
    contents: Contents | None
    seconds: float
    dropped: tuple[Path, ...] = ()

    @property
    def failures(self) -> tuple[FileFailure, ...]:
        """Files that are not in the index, those of earlier runs that are as they were included."""
        return self.contents.failures if self.contents else self.outcome.failed

    @property
    def warnings(self) -> tuple[FileWarning, ...]:
        """What is odd about files that are in the index, whichever run read them."""
        return self.contents.warnings if self.contents else ()

    @property
    def unseen(self) -> tuple[Skipped, ...]:
        """Folders that may hold files, which nobody can know."""
        skipped = self.outcome.skipped
        return tuple(one for one in skipped if one.skipped.reason is SkipReason.UNREADABLE)

    @property
    def is_well(self) -> bool:
        """Whether the text of all files is in the index, and its vectors as far as they can be."""
        outcome = self.outcome
        is_known = not (outcome.kept or outcome.unsettled or self.unseen)
        return is_known and not (self.failures or self.vectors.error)

    @property
    def is_complete(self) -> bool:
        """Whether nothing at all is missing."""
        contents = self.contents
        return self.is_well and contents is not None and not contents.vectors_pending


def run(config: Config, orders: Orders, ending: Ending, display: Display) -> Run:
    """Ends early, with what was done so far, when the ending begins.

    Raises:
        IndexLocked: another process kept the index from being written for too long.
        IndexStoreError: it cannot be written at all.
    """
    began = time.monotonic()
    control = Control(stop=ending.begun, on_progress=display.report, lock_seconds=orders.wait)
    with App(config) as app:
        with app.manager(control) as manager:
            try:
                outcome = manager.update(rebuild=orders.rebuild)
            except IndexLocked as error:
                raise _locked(app.directory, orders) from error
            finally:
                display.end()
            manager.update_communities(anew=orders.rebuild)
            work = _Vectors(app, manager, orders, ending)
            vectors = work.make(outcome, display)
        contents = _contents(app)
        # Not before their vectors were taken.
        is_complete = contents is not None and not contents.vectors_pending
        may_drop = orders.drop_unused and is_complete and not ending.begun.is_set()
        dropped = drop_unused(app.directory) if may_drop else ()
    return Run(
        directory=app.directory,
        outcome=outcome,
        vectors=vectors,
        contents=contents,
        seconds=time.monotonic() - began,
        dropped=dropped,
    )


class _Vectors:
    """The second half of a run."""

    def __init__(self, app: App, manager: IndexManager, orders: Orders, ending: Ending) -> None:
        self._app = app
        self._manager = manager
        self._orders = orders
        self._ending = ending

    def make(self, outcome: Outcome, display: Display) -> VectorWork:
        if self._ending.begun.is_set() or not self._orders.vectors or not self._has_work():
            return VectorWork()
        began = time.monotonic()
        display.begin(Phase.EMBEDDING)
        try:
            self._app.embedder.load()
        except EmbeddingError as error:
            return VectorWork(lacking=str(error))
        display.begin(Phase.EMBEDDING)  # how fast it goes has nothing to do with the loading
        try:
            filled = self._manager.fill()
            made, error = filled.stored, filled.error
        except IndexLocked:
            made, error = 0, str(_locked(self._app.directory, self._orders))
        finally:
            display.end()
        forgotten = 0 if outcome.kept or error else self._forget(outcome)
        taken = self._manager.vectors_taken
        return VectorWork(
            made=max(0, made - taken),
            taken=taken,
            forgotten=forgotten,
            error=error,
            notes=self._app.embedder.notes,
            seconds=time.monotonic() - began,
        )

    def _has_work(self) -> bool:
        """Loading the model takes longer than looking whether it is needed."""
        if self._orders.rebuild or self._app.terms is not None:
            return True
        try:
            with self._app.reader.snapshot() as snapshot:
                return snapshot.count_missing_embeddings(self._app.embedder.identity) > 0
        except IndexStoreError:
            return True

    def _forget(self, outcome: Outcome) -> int:
        """All that nothing uses in a rebuild. Otherwise only when it is much, so that a document
        may go and come back; and so may the settings of an index that was taken over."""
        if self._ending.begun.is_set():
            return 0
        forgotten = 0
        with suppress(IndexStoreError):  # the next run will do
            is_pruned = self._orders.rebuild and not outcome.taken_over
            forgotten = self._manager.prune() if is_pruned else self._manager.tidy()
        self._manager.shrink()
        return forgotten


def _contents(app: App) -> Contents | None:
    try:
        with app.reader.snapshot() as snapshot:
            terms = app.terms
            if terms is not None:
                terms.catch_up(snapshot)
            return Contents(
                passages=snapshot.count_passages(),
                vectors_pending=snapshot.count_missing_embeddings(app.embedder.identity),
                files_waiting=snapshot.waiting,
                failures=snapshot.failures(),
                warnings=file_warnings(snapshot),
                vocabulary=None if terms is None else len(terms),
            )
    except IndexStoreError:
        return None


def _locked(directory: Path, orders: Orders) -> IndexLocked:
    holder = writing(directory)
    who = process_text(holder.pid if holder else None)
    return IndexLocked(
        f"{who} is writing the index in {directory}, and did not let go within "
        f"{orders.wait:g} s. Search goes on meanwhile. {orders.advice}"
    )
