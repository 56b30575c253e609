"""One change set on its way into the store, batch by batch."""

from collections.abc import Iterable
from dataclasses import replace

from ragdocs.errors import RagdocsError
from ragdocs.indexing.application import Applied, Batch, Manifest
from ragdocs.indexing.batching import Read, batches, portions
from ragdocs.indexing.commits import Commits
from ragdocs.indexing.index_setup import Control
from ragdocs.indexing.manifest import Diff, moves
from ragdocs.indexing.outcome import Phase, Progress
from ragdocs.indexing.preparation import Preparation
from ragdocs.indexing.scan import TreePath
from ragdocs.models import DocId
from ragdocs.store.records import ManifestEntry


class ChangeSet:
    """Made from what the manifest said (`basis`) before the files were looked at.

    `applied` tells what was done, and in `again` which files must be looked at once more.
    """

    def __init__(
        self, commits: Commits, control: Control, preparation: Preparation, basis: Manifest
    ) -> None:
        self._commits = commits
        self._control = control
        self._preparation = preparation
        self._basis = basis
        self.applied = Applied()

    def make(self, found: Diff) -> None:
        """In the order that `Diff` asks for; what is not done when it is stopped is left out."""
        self._commits.expect(len(found.removed) + len(found.to_read))
        self._remove(found.gone)
        missing = {entry.doc_id: entry for entry in found.missing}
        to_read, candidates, done = found.to_read, found.candidates, 0
        self._report(done, len(to_read))
        for batch in batches(to_read, self._preparation.prepare, self._control.stop):
            self._take(batch, missing)
            done += len(batch)
            self._report(done, len(to_read))
            if done >= candidates:
                self._remove(missing.values())
                missing.clear()

    def _take(self, batch: list[Read], missing: dict[DocId, ManifestEntry]) -> None:
        """Stores what was read, and in the same commit forgets what it was called before."""
        prepared = tuple(one for _, one in batch if one)
        read = {one.doc_id: one.state for one in prepared if one.content}
        moved = moves(missing.values(), read) if missing else ()
        removals = tuple(missing.pop(move.old) for move in moved)
        self._commits.skip(len(batch) - len(prepared))
        self._commit(Batch(prepared, removals, frozenset(move.new for move in moved)))
        # Another process that was told of a change before this commit saw nothing to do: so
        # whether the files are still what was just stored is for us to see.
        self.applied.again |= {
            TreePath(file.tree, file.path)
            for file, one in batch
            if one is None or not self._preparation.is_as_found(file)
        }

    def _remove(self, entries: Iterable[ManifestEntry]) -> None:
        for part in portions(entries, self._control.stop):
            self._commit(Batch(removals=tuple(part)))

    def _commit(self, batch: Batch) -> None:
        try:
            self._commit_whole(batch)
        except RagdocsError:
            raise
        except Exception as error:  # one file that the store cannot take costs one failure
            if not batch.prepared:
                raise
            self._commit_singly(batch, error)

    def _commit_singly(self, batch: Batch, error: Exception) -> None:
        if len(batch.prepared) == 1:
            (one,) = batch.prepared
            self._commit_whole(replace(batch, prepared=(one.failed(error),)))
            return
        for one in batch.prepared:
            self._commit(Batch((one,), moved=batch.moved))
        self._commit_whole(Batch(removals=batch.removals))

    def _commit_whole(self, batch: Batch) -> None:
        self.applied.add(self._commits.store(batch, self._basis))

    def _report(self, done: int, total: int) -> None:
        self._control.on_progress(Progress(Phase.READING, done, total, self.applied.chunks))
