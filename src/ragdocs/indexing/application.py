"""One batch into one transaction, unless someone else has been there first.

A batch was prepared from what the manifest said then (`basis`). Where it says something else under
the write lock, another process has looked at the file since: its word stands if it read the same
bytes, and otherwise the file is looked at again. So no stale reading ever replaces a newer one.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from ragdocs.errors import SourceError
from ragdocs.indexing.preparation import Prepared
from ragdocs.indexing.scan import TreePath
from ragdocs.models import DocId
from ragdocs.store.records import FileFailure, ManifestEntry
from ragdocs.store.transaction import Transaction

Manifest = Mapping[DocId, ManifestEntry]


@dataclass(frozen=True, slots=True)
class Batch:
    """What takes effect together: files that were read, and documents that are gone.

    `moved` are files of the batch that are removed documents under another name.
    """

    prepared: tuple[Prepared, ...] = ()
    removals: tuple[ManifestEntry, ...] = ()
    moved: frozenset[DocId] = frozenset()


@dataclass(slots=True)
class Applied:
    """What a batch did, or several."""

    written: dict[DocId, ManifestEntry | None] = field(
        default_factory=dict[DocId, ManifestEntry | None]
    )
    again: set[TreePath] = field(default_factory=set[TreePath])
    failures: dict[DocId, FileFailure] = field(default_factory=dict[DocId, FileFailure])
    added: int = 0
    modified: int = 0
    unchanged: int = 0
    removed: int = 0
    moved: int = 0
    chunks: int = 0

    def add(self, other: "Applied") -> None:
        for doc_id in other.written:
            self.failures.pop(doc_id, None)  # read again since, and perhaps it is well now
        self.failures |= other.failures
        self.written |= other.written
        self.again |= other.again
        self.added += other.added
        self.modified += other.modified
        self.unchanged += other.unchanged
        self.removed += other.removed
        self.moved += other.moved
        self.chunks += other.chunks


def apply(transaction: Transaction, batch: Batch, basis: Manifest, now: Manifest) -> Applied:
    """`now` is the manifest as the transaction finds it."""
    applied = Applied()
    for one in batch.prepared:
        current = now.get(one.doc_id)
        if current == basis.get(one.doc_id):
            _store(transaction, one, applied, is_moved=one.doc_id in batch.moved)
        elif current is not None and current.state == one.state:
            applied.unchanged += 1
        else:
            applied.again.add(TreePath(one.file.tree, one.file.path))
    for entry in batch.removals:
        _remove(transaction, entry, (basis, now), applied)
    # A moved document is one document: it neither came nor went.
    applied.removed -= min(applied.moved, applied.removed)
    return applied


def _store(transaction: Transaction, one: Prepared, applied: Applied, *, is_moved: bool) -> None:
    if one.content is not None:
        try:
            transaction.put(one.content, one.read_ns)
        except SourceError as error:
            one = one.failed(error)
    if one.failure is not None:
        transaction.fail(one.failure)
    elif one.content is None and not transaction.touch(one.doc_id, one.state, one.read_ns):
        # There is nothing of which these bytes could be a new state: it is read as a new file.
        transaction.remove(one.doc_id)
        applied.written[one.doc_id] = None
        applied.again.add(TreePath(one.file.tree, one.file.path))
        return
    applied.written[one.doc_id] = one.entry
    _count(applied, one, is_moved=is_moved)


def _count(applied: Applied, one: Prepared, *, is_moved: bool) -> None:
    if one.failure is not None:
        applied.failures[one.doc_id] = one.failure
    elif one.file.is_unchanged(one.state):
        applied.unchanged += 1
    elif is_moved:
        applied.moved += 1
    elif one.file.known is None:
        applied.added += 1
    else:
        applied.modified += 1
    applied.chunks += len(one.content.chunks) if one.content else 0


def _remove(
    transaction: Transaction,
    entry: ManifestEntry,
    manifests: tuple[Manifest, Manifest],
    applied: Applied,
) -> None:
    before, now = (manifest.get(entry.doc_id) for manifest in manifests)
    if now is None:
        return
    if now != before:
        applied.again.add(TreePath(entry.tree, entry.path))
        return
    transaction.remove(entry.doc_id)
    applied.written[entry.doc_id] = None
    applied.removed += 1
