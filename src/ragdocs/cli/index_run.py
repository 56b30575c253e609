"""One run of `update` or `rebuild-index`: reads files, computes vectors, and reports the result."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from ragdocs.app import App
from ragdocs.cli.main import describe_tree
from ragdocs.cli.progress import Display
from ragdocs.cli.status import warning_line
from ragdocs.config.problems import OriginKind
from ragdocs.config.resolved import Config
from ragdocs.diagnosis.file_problems import FileWarning, file_warnings
from ragdocs.errors import EmbeddingError, IndexLocked, IndexStoreError
from ragdocs.indexing.changes import (
    Outcome,
    Phase,
    Skipped,
    SkipReason,
)
from ragdocs.indexing.manager import IndexManager
from ragdocs.indexing.session import LOCK_SECONDS, Control
from ragdocs.locks import Holder
from ragdocs.shutdown import Ending, EndReason
from ragdocs.store.lock import writing
from ragdocs.store.records import FileFailure
from ragdocs.store.variants import drop_unused
from ragdocs.text import escaped, kinds_text, number_of, plain_value, printable, process_text

# One run of an indexing command: reads files, computes vectors, counts what is in the index.


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexingOptions:
    """The options of a run. `wait`: seconds to wait for other writers of the index; `advice`: what
    to suggest when they take longer."""

    rebuild: bool
    vectors: bool = True
    most_vectors: int | None = None
    """Compute vectors only if no more passages than this lack one."""
    check: Callable[[App], None] | None = None
    """What to check before vectors are computed, which may take minutes; it raises QueryError."""
    wait: float = LOCK_SECONDS
    advice: str = "Try again later."
    drop_unused: bool = False
    """Whether to delete other variants of the index that are no longer used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorWork:
    """How many vectors were `made` by the model, or `taken` from an index of these documents with
    other settings. `lacking`: why there is no model; search works without. `error`: why the model
    failed. `notes` are about the model that was used."""

    made: int = 0
    taken: int = 0
    forgotten: int = 0
    lacking: str = ""
    error: str = ""
    notes: tuple[str, ...] = ()
    seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """What is in the index after the run, from this run or an earlier one."""

    passages: int
    vectors_pending: int
    files_waiting: int | None
    failures: tuple[FileFailure, ...]
    warnings: tuple[FileWarning, ...]
    vocabulary: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """The result of a run. `contents` is None if the index could not be read after it.

    `dropped` are deleted variants of the index that were no longer used.
    """

    directory: Path
    outcome: Outcome
    vectors: VectorWork
    contents: Contents | None
    seconds: float
    dropped: tuple[Path, ...] = ()

    @property
    def failures(self) -> tuple[FileFailure, ...]:
        """Files that are not in the index, including unchanged ones that failed in earlier runs."""
        return self.contents.failures if self.contents else self.outcome.failed

    @property
    def warnings(self) -> tuple[FileWarning, ...]:
        """Warnings about files that are in the index, from this run or an earlier one."""
        return self.contents.warnings if self.contents else ()

    @property
    def unseen(self) -> tuple[Skipped, ...]:
        """Unreadable folders, which may contain files."""
        skipped = self.outcome.skipped
        return tuple(one for one in skipped if one.skipped.reason is SkipReason.UNREADABLE)

    @property
    def is_well(self) -> bool:
        """Whether the text of all files is in the index, and computing vectors did not fail."""
        outcome = self.outcome
        is_known = not (outcome.kept or outcome.unsettled or self.unseen)
        return is_known and not (self.failures or self.vectors.error)

    @property
    def is_complete(self) -> bool:
        """Whether nothing at all is missing."""
        contents = self.contents
        return self.is_well and contents is not None and not contents.vectors_pending


def run(config: Config, options: IndexingOptions, ending: Ending, display: Display) -> Run:
    """Stops early, and returns what was done so far, when the ending begins.

    Raises:
        IndexLocked: another process wrote the index for too long.
        IndexStoreError: the index cannot be written at all.
    """
    began = time.monotonic()
    control = Control(stop=ending.begun, on_progress=display.report, lock_seconds=options.wait)
    with App(config) as app:
        with app.manager(control) as manager:
            try:
                outcome = manager.update(rebuild=options.rebuild)
            except IndexLocked as error:
                raise _lock_error(app.directory, options) from error
            finally:
                display.end()
            manager.update_communities(rebuild=options.rebuild)
            work = _Vectors(app, manager, options, ending)
            vectors = work.make(outcome, display)
        contents = _contents(app)
        # Only after their vectors were reused.
        is_complete = contents is not None and not contents.vectors_pending
        may_drop = options.drop_unused and is_complete and not ending.begun.is_set()
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

    def __init__(
        self, app: App, manager: IndexManager, options: IndexingOptions, ending: Ending
    ) -> None:
        self._app = app
        self._manager = manager
        self._options = options
        self._ending = ending

    def make(self, outcome: Outcome, display: Display) -> VectorWork:
        if self._ending.begun.is_set() or not self._options.vectors or not self._has_work():
            return VectorWork()
        if self._options.check is not None:
            self._options.check(self._app)
        if self._is_too_much():
            return VectorWork()
        began = time.monotonic()
        display.begin(Phase.EMBEDDING)
        try:
            self._app.embedder.load()
        except EmbeddingError as error:
            return VectorWork(lacking=str(error))
        display.begin(Phase.EMBEDDING)  # the time to load the model does not count for the rate
        try:
            filled = self._manager.fill()
            made, error = filled.stored, filled.error
        except IndexLocked:
            made, error = 0, str(_lock_error(self._app.directory, self._options))
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
        """Loading the model takes longer than checking whether it is needed."""
        if self._options.rebuild or self._app.terms is not None:
            return True
        return self._count_missing() != 0

    def _is_too_much(self) -> bool:
        most = self._options.most_vectors
        return most is not None and (self._count_missing() or 0) > most

    def _count_missing(self) -> int | None:
        """None if the index cannot be read."""
        try:
            with self._app.reader.snapshot() as snapshot:
                return snapshot.count_missing_embeddings(self._app.embedder.identity)
        except IndexStoreError:
            return None

    def _forget(self, outcome: Outcome) -> int:
        """Deletes unused vectors: all of them in a rebuild, otherwise only when there are many. So
        a document may come back after it was removed, and so may the settings of an index that was
        taken over."""
        if self._ending.begun.is_set():
            return 0
        forgotten = 0
        with suppress(IndexStoreError):  # the next run tries again
            is_pruned = self._options.rebuild and not outcome.taken_over
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


def _lock_error(directory: Path, options: IndexingOptions) -> IndexLocked:
    holder = writing(directory)
    who = process_text(holder.pid if holder else None)
    return IndexLocked(
        f"{who} is writing the index in {directory}, and did not finish within "
        f"{options.wait:g} s. Search keeps working meanwhile. {options.advice}"
    )


# What an indexing command prints about its run: a summary and the problems, or JSON.

MAX_LISTED = 10
"""Lines for each kind of problem; --json lists all."""
KEPT = "What was done is kept; the next run continues from there."


def opening(config: Config) -> Iterator[str]:
    """What is about to be indexed, so that a user in the wrong folder can stop it."""
    for tree in config.trees:
        is_guess = config.tree_origin(tree).kind is OriginKind.DEFAULT and tree.root == Path.cwd()
        why = ": the working directory, since neither --docs nor a configuration names a folder"
        yield f"Indexing {describe_tree(tree)}{why if is_guess else ''}"


def summary(run: Run, reason: EndReason | None) -> Iterator[str]:
    outcome = run.outcome
    if reason:
        yield f"Stopped early ({reason.value}). {KEPT}"
    counts = (
        (outcome.added, "added"),
        (outcome.modified, "modified"),
        (outcome.moved, "moved"),
        (outcome.removed, "removed"),
        (outcome.unchanged, "unchanged"),
    )
    changes = ", ".join(f"{count:,} {what}" for count, what in counts if count)
    yield f"Files: {changes or 'none'}"
    yield f"Index: {number_of(outcome.documents, 'document')}{_passages(run)}"
    if run.contents and run.contents.vocabulary:
        yield f"Vocabulary: {number_of(run.contents.vocabulary, 'word')} for query expansion"
    yield f"In {escaped(str(run.directory))}, {run.seconds:.1f} s"


def _passages(run: Run) -> str:
    contents = run.contents
    if contents is None:
        return ""
    passages = f", {number_of(contents.passages, 'passage')}"
    if not contents.passages:
        return passages
    counts = ((run.vectors.made, "new"), (run.vectors.taken, "from an index with other settings"))
    said = ", ".join(f"{count:,} {what}" for count, what in counts if count)
    made = f" ({said})" if said else ""
    if not contents.vectors_pending:
        return f"{passages}, all with vectors{made}"
    with_vectors = contents.passages - contents.vectors_pending
    pending = f"{contents.vectors_pending:,} still without"
    return f"{passages}: {with_vectors:,} with vectors{made}, {pending}"


def problems(run: Run) -> Iterator[str]:
    """What is missing from the index."""
    failures = [escaped(f"{one.tree}:{one.reason}") for one in run.failures]
    yield from _list(f"{number_of(len(failures), 'file')} could not be indexed", failures)
    yield from map(_left_out, run.unseen)
    for kept in run.outcome.kept:
        documents = f"kept its {number_of(kept.documents, 'document')} in the index"
        what = documents if kept.documents else "none of it is indexed"
        yield f"{escaped(kept.tree)} {kept.reason}: {what}"
    unsettled = [escaped(f"{at.tree}:{at.path}") for at in sorted(run.outcome.unsettled)]
    changing = f"{number_of(len(unsettled), 'file')} kept changing while being read: run it again"
    yield from _list(changing, unsettled)
    if run.vectors.lacking:
        yield f"There are no vectors, so search uses keywords only: {run.vectors.lacking}"
    if run.vectors.error:
        yield f"Not all vectors could be computed: {run.vectors.error}"


def notes(run: Run) -> Iterator[str]:
    """What the user may want to know, but is not a problem."""
    if run.outcome.rebuilt:
        yield f"The index was rebuilt: {escaped(run.outcome.rebuilt)}"
    if run.dropped:
        dropped = number_of(len(run.dropped), "index", "indices")
        yield f"Deleted {dropped} with other settings, not used for 30 days"
    if not run.outcome.documents and not run.outcome.stopped and not run.failures:
        yield "There is nothing to search: the folders have no Markdown or text files to index"
    yield from map(escaped, run.vectors.notes)
    lossy = [warning_line(one) for one in run.warnings if one.is_loss]
    yield from _list("Indexed, but parts of these files cannot be found", lossy)
    for tree, counts in run.outcome.unread.items():
        number = number_of(sum(counts.values()), "document")
        yield f"Not read in {escaped(tree)}: {number} of other formats ({kinds_text(counts)})"
    left_out = [_left_out(one) for one in run.outcome.skipped if one not in run.unseen]
    yield from _list(f"{number_of(len(left_out), 'path')} left out", left_out)


def takeover_notes(run: Run, watcher: Holder | None) -> Iterator[str]:
    """`watcher` watched when the run began; if its settings differ, it now only reads the index."""
    if watcher is not None and watcher.pid and run.outcome.taken_over:
        yield (
            f"Process {watcher.pid} was updating it with the other settings, and now only reads "
            "it: restart it with these settings, or use another index folder here (--index)"
        )


def as_json(run: Run, config: Config, reason: EndReason | None) -> dict[str, object]:
    """The names are part of the interface."""
    outcome, vectors, contents = run.outcome, run.vectors, run.contents
    new = set(outcome.failed)
    return {
        "complete": reason is None and run.is_complete,
        "stopped": reason.value if reason else None,
        "trees": [{"name": tree.name, "root": plain_value(tree.root)} for tree in config.trees],
        "index_directory": plain_value(run.directory),
        "rebuilt": outcome.rebuilt,
        "taken_over": outcome.taken_over,
        "variants_dropped": [plain_value(path) for path in run.dropped],
        "added": outcome.added,
        "modified": outcome.modified,
        "moved": outcome.moved,
        "removed": outcome.removed,
        "unchanged": outcome.unchanged,
        "failed": [
            {
                "tree": one.tree,
                "path": printable(one.path),
                "kind": one.kind,
                "reason": printable(one.reason),
                "new": one in new,
            }
            for one in run.failures
        ],
        "warnings": run.warnings,
        "kept": [
            {"tree": one.tree, "reason": one.reason, "documents": one.documents}
            for one in outcome.kept
        ],
        "skipped": [
            {
                "tree": one.tree,
                "path": printable(one.skipped.path),
                "reason": one.skipped.reason.value,
                "detail": printable(one.skipped.detail),
            }
            for one in outcome.skipped
        ],
        "unread": outcome.unread,
        "unsettled": [
            {"tree": at.tree, "path": printable(at.path)} for at in sorted(outcome.unsettled)
        ],
        "documents": outcome.documents,
        "chunks": outcome.chunks,
        "passages": contents.passages if contents else None,
        "files_waiting": contents.files_waiting if contents else None,
        "vectors_made": vectors.made,
        "vectors_taken": vectors.taken,
        "vectors_stored": contents.passages - contents.vectors_pending if contents else None,
        "vectors_pending": contents.vectors_pending if contents else None,
        "vectors_forgotten": vectors.forgotten,
        "vectors_lacking": vectors.lacking,
        "vectors_error": vectors.error,
        "vectors_notes": list(vectors.notes),
        "vocabulary": contents.vocabulary if contents else None,
        "seconds": round(run.seconds, 3),
        "seconds_reading": round(outcome.seconds, 3),
        "seconds_embedding": round(vectors.seconds, 3),
    }


def _left_out(one: Skipped) -> str:
    return f"{escaped(f'{one.tree}:{one.skipped.path}')} {one.skipped.reason.value}"


def _list(title: str, items: Sequence[str]) -> Iterator[str]:
    if not items:
        return
    yield f"{title}:"
    for item in islice(items, MAX_LISTED):
        yield f"  {item}"
    if len(items) > MAX_LISTED:
        yield f"  and {len(items) - MAX_LISTED:,} more (--json lists all)"
