"""Compares the manifest with a scan → the files to read and the documents to remove, as a value.

Nothing is read here. A file counts as modified when it may have changed since it was read; its
bytes decide later. A document counts as removed only when a scan proved its file absent.
"""

from collections import defaultdict, deque
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from ragdocs.indexing.changes import FoundFile, RootUnavailable, Scan
from ragdocs.models import DocId, FileState, TreeName
from ragdocs.parsers.ids import document_id
from ragdocs.store.records import ManifestEntry

SETTLED_NS = 2_000_000_000
"""The coarsest file system timestamp (FAT's): a later edit may have the same time."""
FEW_PATHS = 32
"""Up to this many paths, `relevant_entries` filters the entries; beyond it, it returns them all."""


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file to read, with its manifest entry, or None for a new file."""

    doc_id: DocId
    tree: TreeName
    found: FoundFile
    known: ManifestEntry | None = None

    @property
    def path(self) -> str:
        return self.found.path

    def is_unchanged(self, state: FileState) -> bool:
        """Whether the bytes just read are the ones already indexed."""
        known = self.known.state if self.known else None
        return known is not None and known.content_hash == state.content_hash


@dataclass(frozen=True, slots=True)
class Moved:
    """A document that now has another path."""

    old: DocId
    new: DocId


@dataclass(frozen=True, slots=True)
class Diff:
    """A change set. Apply it in this order: `gone`, `to_read`, then `missing`.

    `missing` documents may have moved: some file to read has the same size. Each is removed in the
    same transaction that stores the file it proves to be (see `moves`), so that search always finds
    one of the two; those without such a file, after the first `candidates` of `to_read`. `kept`
    ones were not found either, but are in places that could not be read.
    """

    added: tuple[SourceFile, ...] = ()
    modified: tuple[SourceFile, ...] = ()
    removed: tuple[ManifestEntry, ...] = ()
    kept: tuple[ManifestEntry, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.added or self.modified or self.removed)

    @property
    def to_read(self) -> tuple[SourceFile, ...]:
        """Files that may be moved documents come first, because those are quickly dealt with; then
        modified files; then new ones."""
        files = (*self.modified, *self.added)
        sizes = self._sizes()
        return (
            *(file for file in files if file.found.size in sizes),
            *(file for file in files if file.found.size not in sizes),
        )

    @property
    def candidates(self) -> int:
        """How many of the files to read may be moved documents."""
        sizes = self._sizes()
        return sum(file.found.size in sizes for file in (*self.added, *self.modified))

    @property
    def gone(self) -> tuple[ManifestEntry, ...]:
        """Removed documents that cannot have moved."""
        sizes = self._sizes()
        return tuple(entry for entry in self.removed if _size(entry) not in sizes)

    @property
    def missing(self) -> tuple[ManifestEntry, ...]:
        sizes = self._sizes()
        return tuple(entry for entry in self.removed if _size(entry) in sizes)

    def _sizes(self) -> set[int | None]:
        """Sizes that removed documents share with files to read: equal bytes have equal sizes."""
        found = {file.found.size for file in (*self.added, *self.modified)}
        return {_size(entry) for entry in self.removed} & found


def relevant_entries(
    manifest: Mapping[DocId, ManifestEntry], scans: Mapping[TreeName, Scan | RootUnavailable]
) -> Collection[ManifestEntry]:
    """The entries that `diff` needs for these scans: those at and below the scanned paths.

    One edit must not cost a comparison with every known file. A full scan finds the documents of
    trees that are no longer configured.
    """
    looked_at: list[DocId] = []
    for tree, scan in scans.items():
        if isinstance(scan, RootUnavailable) or scan.scope is None:
            return manifest.values()
        looked_at += [document_id(tree, path) for path in scan.scope]
    if len(looked_at) > FEW_PATHS:
        return manifest.values()
    below = tuple(f"{doc_id}/" for doc_id in looked_at)
    ids = {doc_id for doc_id in manifest if doc_id.startswith(below)}
    ids |= manifest.keys() & looked_at
    return [manifest[doc_id] for doc_id in ids]


def diff(
    indexed: Iterable[ManifestEntry],
    scans: Mapping[TreeName, Scan | RootUnavailable],
    configured: Collection[TreeName],
) -> Diff:
    """The changes from the indexed state to the scanned one, each part sorted by tree and path.

    Scans may cover only some trees, or some paths of a tree (`discovery.look`); the rest stays as
    it is. Documents of trees that are not configured are removed.
    """
    known: defaultdict[TreeName, dict[str, ManifestEntry]] = defaultdict(dict)
    for entry in indexed:
        known[entry.tree][entry.path] = entry
    added: list[SourceFile] = []
    modified: list[SourceFile] = []
    removed: list[ManifestEntry] = []
    kept: list[ManifestEntry] = []
    for tree in sorted({*known, *scans}):
        entries = known[tree]
        if tree not in configured:
            removed += _sort(entries.values())
            continue
        scan = scans.get(tree)
        if isinstance(scan, Scan):
            _compare(tree, scan, entries, added, modified)
            absent = _find_absent(scan, entries)
            removed += [entry for entry in absent if scan.proves_absent(entry.path)]
            kept += [entry for entry in absent if not scan.proves_absent(entry.path)]
        elif scan is not None:
            kept += _sort(entries.values())
    return Diff(tuple(added), tuple(modified), tuple(removed), tuple(kept))


def moves(missing: Iterable[ManifestEntry], read: Mapping[DocId, FileState]) -> tuple[Moved, ...]:
    """Matches missing documents with the files just read, one to one; where several have the same
    bytes, those with the same name are matched first."""
    old = {entry.doc_id: entry.state.content_hash for entry in missing if entry.state}
    new = {doc_id: state.content_hash for doc_id, state in read.items()}
    found = _pairs(
        {doc_id: (content, _name(doc_id)) for doc_id, content in old.items()},
        {doc_id: (content, _name(doc_id)) for doc_id, content in new.items()},
    )
    taken = set(found.values())
    found |= _pairs(
        {doc_id: content for doc_id, content in old.items() if doc_id not in found},
        {doc_id: content for doc_id, content in new.items() if doc_id not in taken},
    )
    return tuple(Moved(old, new) for old, new in sorted(found.items()))


def _pairs(old: Mapping[DocId, object], new: Mapping[DocId, object]) -> dict[DocId, DocId]:
    """Pairs ids with equal values, one to one, in id order."""
    files: defaultdict[object, deque[DocId]] = defaultdict(deque)
    for doc_id in sorted(new):
        files[new[doc_id]].append(doc_id)
    return {doc_id: files[old[doc_id]].popleft() for doc_id in sorted(old) if files[old[doc_id]]}


def may_have_changed(found: FoundFile, known: ManifestEntry) -> bool:
    """Whether the file may have changed, so that only reading it can tell.

    Compares the size and both times: the kernel sets ctime at every change, whatever mtime is set
    to, so ctime must be well before the moment at which the bytes were read.
    """
    state = known.state
    if state is None or (found.size, found.mtime_ns) != (state.size, state.mtime_ns):
        return True
    settled = known.read_ns - SETTLED_NS
    return found.ctime_ns > settled or abs(known.read_ns - found.mtime_ns) < SETTLED_NS


def _compare(
    tree: TreeName,
    scan: Scan,
    entries: Mapping[str, ManifestEntry],
    added: list[SourceFile],
    modified: list[SourceFile],
) -> None:
    for found in scan.files:
        entry = entries.get(found.path)
        if entry is None:
            added.append(SourceFile(document_id(tree, found.path), tree, found))
        elif may_have_changed(found, entry):
            modified.append(SourceFile(entry.doc_id, tree, found, entry))


def _find_absent(scan: Scan, entries: Mapping[str, ManifestEntry]) -> list[ManifestEntry]:
    found = {file.path for file in scan.files}
    covered = (entry for path, entry in entries.items() if path not in found)
    return _sort(entry for entry in covered if scan.covers(entry.path))


def _sort(entries: Iterable[ManifestEntry]) -> list[ManifestEntry]:
    return sorted(entries, key=lambda entry: (entry.tree, entry.path))


def _size(entry: ManifestEntry) -> int | None:
    return entry.state.size if entry.state else None


def _name(doc_id: DocId) -> str:
    return doc_id.partition(":")[2].rpartition("/")[2]
