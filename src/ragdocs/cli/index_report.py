"""What an indexing command says of its run: a summary, what is wrong, or all of it as JSON."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import islice
from pathlib import Path

from ragdocs.cli.index_run import Run
from ragdocs.cli.output import shown
from ragdocs.cli.place import described
from ragdocs.cli.status import warning_line
from ragdocs.config.notation import plain_value, printable
from ragdocs.config.problems import OriginKind
from ragdocs.config.resolved import Config
from ragdocs.indexing.outcome import Skipped
from ragdocs.lifecycle import EndReason
from ragdocs.locks import Holder
from ragdocs.wording import number_of

MAX_LISTED = 10
"""Of each kind; --json lists all."""
KEPT = "What was done is kept; the next run goes on from there."


def opening(config: Config) -> Iterator[str]:
    """What is about to be indexed: whoever started this in the wrong folder can still stop it."""
    for tree in config.trees:
        is_guess = config.tree_origin(tree).kind is OriginKind.DEFAULT and tree.root == Path.cwd()
        why = ": the working directory, since no --docs and no configuration names another"
        yield f"Indexing {described(tree)}{why if is_guess else ''}"


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
    yield f"In {shown(str(run.directory))}, {run.seconds:.1f} s"


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
    """What is not in the index and should be."""
    failures = [shown(f"{one.tree}:{one.reason}") for one in run.failures]
    yield from _listed(f"{number_of(len(failures), 'file')} could not be indexed", failures)
    yield from map(_left_out, run.unseen)
    for kept in run.outcome.kept:
        documents = f"its {number_of(kept.documents, 'document')} in the index stay as they were"
        what = documents if kept.documents else "nothing of it is indexed"
        yield f"{shown(kept.tree)} {kept.reason}: {what}"
    unsettled = [shown(f"{at.tree}:{at.path}") for at in sorted(run.outcome.unsettled)]
    changing = f"{number_of(len(unsettled), 'file')} kept changing while being read: run it again"
    yield from _listed(changing, unsettled)
    if run.vectors.lacking:
        yield f"Passages are found by their words only, for want of vectors: {run.vectors.lacking}"
    if run.vectors.error:
        yield f"Not all vectors could be made: {run.vectors.error}"


def notes(run: Run) -> Iterator[str]:
    """What its user may want to know, and nothing is wrong with."""
    if run.outcome.rebuilt:
        reason, _, advice = run.outcome.rebuilt.rpartition(": rebuild")
        yield f"The index was rebuilt: {shown(reason or advice)}"
    if run.dropped:
        dropped = number_of(len(run.dropped), "index", "indices")
        yield f"Deleted {dropped} of other settings, not used for 30 days"
    if not run.outcome.documents and not run.outcome.stopped and not run.failures:
        yield "There is nothing to search: the folders have no Markdown or text files to index"
    yield from map(shown, run.vectors.notes)
    lossy = [warning_line(one) for one in run.warnings if one.is_loss]
    yield from _listed("Indexed, but not all that these files hold can be found", lossy)
    left_out = [_left_out(one) for one in run.outcome.skipped if one not in run.unseen]
    yield from _listed(f"{number_of(len(left_out), 'path')} left out", left_out)


def taken_from(run: Run, keeper: Holder | None) -> Iterator[str]:
    """`keeper` watched when the run began: by other settings, it only reads the index now."""
    if keeper is not None and keeper.pid and run.outcome.taken_over:
        yield (
            f"Process {keeper.pid} kept it with the other settings, and only reads it from now on: "
            "restart it with these, or give one of you another index folder (--index)"
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
        "warnings": [asdict(one) for one in run.warnings],
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
    return f"{shown(f'{one.tree}:{one.skipped.path}')} {one.skipped.reason.value}"


def _listed(title: str, items: Sequence[str]) -> Iterator[str]:
    if not items:
        return
    yield f"{title}:"
    for item in islice(items, MAX_LISTED):
        yield f"  {item}"
    if len(items) > MAX_LISTED:
        yield f"  and {len(items) - MAX_LISTED:,} more (--json lists all)"
