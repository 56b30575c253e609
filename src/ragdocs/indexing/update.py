"""One update: scan the files, compare them with the manifest, prepare batches, commit each."""

import stat
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, TypeVar

from ragdocs.errors import RagdocsError, SourceError
from ragdocs.indexing import reading
from ragdocs.indexing.changes import (
    FoundFile,
    Hints,
    Kept,
    Phase,
    Progress,
    RootProblem,
    RootUnavailable,
    Scan,
    Skipped,
    TreePath,
)
from ragdocs.indexing.discovery import discover, look
from ragdocs.indexing.manifest import Diff, SourceFile, diff, moves, relevant_entries
from ragdocs.indexing.reading import (
    Ingestion,
    open_below,
    open_root,
    relative_parts,
    too_many_open,
)
from ragdocs.indexing.session import Control, IndexSetup, Session
from ragdocs.models import DateSource, DocId, FileState, IndexedFile, TreeName
from ragdocs.parsers.ids import encode_path
from ragdocs.store.records import FileFailure, ManifestEntry, UnreadCounts

if TYPE_CHECKING:
    from ragdocs.indices.view import Writer

# A file to read → what to store of it: all the work that does not need the write lock.


@dataclass(frozen=True, slots=True)
class PreparedFile:
    """A file that was read: new content, or a failure, or neither when it is unchanged."""

    file: SourceFile
    state: FileState
    read_ns: int
    content: IndexedFile | None = None
    failure: FileFailure | None = None

    @property
    def doc_id(self) -> DocId:
        return self.file.doc_id

    @property
    def entry(self) -> ManifestEntry:
        """Its manifest entry once it is stored."""
        file = self.file
        state = self.failure.state if self.failure else self.state
        return ManifestEntry(file.doc_id, file.tree, file.path, state, self.read_ns)

    @property
    def rows(self) -> int:
        """About how many rows it takes in the store."""
        if self.content is None:
            return 0
        document = self.content.document
        parts = (document.headings, document.links, document.code_blocks, self.content.chunks)
        return sum(map(len, parts))

    def fail(self, error: Exception) -> "PreparedFile":
        return fail(self.file, self.read_ns, error)


def fail(file: SourceFile, read_ns: int, error: Exception) -> PreparedFile:
    """Records the state that was found, so that the file is not read again until it changes.

    After a lack of memory or an I/O error, records no state: every scan that sees the file reads
    it again.
    """
    state = FileState(file.found.size, file.found.mtime_ns, "")
    kind = type(error).__name__
    known = isinstance(error, SourceError)
    # The message of an unexpected error may quote the text, so show only its type.
    reason = str(error) if known else f"{encode_path(file.path)}: it cannot be indexed ({kind})"
    noted = None if isinstance(error, (MemoryError, OSError)) else state
    failure = FileFailure(file.tree, file.path, kind, reason, noted, read_ns)
    return PreparedFile(file, state, read_ns, failure=failure)


class Preparation:
    """Reads, parses and chunks files; with `reread`, even those whose bytes are unchanged.

    `is_dated_by_file` returns whether a stored document takes its date from the file's mtime.
    """

    def __init__(
        self,
        ingestions: Mapping[TreeName, Ingestion],
        is_dated_by_file: Callable[[DocId], bool],
        clock_ns: Callable[[], int],
        *,
        reread: bool = False,
    ) -> None:
        self._ingestions = ingestions
        self._is_dated_by_file = is_dated_by_file
        self._clock_ns = clock_ns
        self._reread = reread
        self.is_limited = False
        """Whether the process ran out of descriptors for some file."""

    def prepare(self, file: SourceFile) -> PreparedFile | None:
        """None when the file must be scanned again: it could not be read because it has changed
        since the scan, or because no descriptor was left."""
        ingestion = self._ingestions[file.tree]
        read_ns = self._clock_ns()
        try:
            data = ingestion.read(file.path)
            if self._is_only_touched(file, data.state):
                return PreparedFile(file, data.state, read_ns)
            content = ingestion.parse(file.path, data)
        except Exception as error:  # no file may stop the others, whatever it does to the parser
            is_our_limit = reading.is_our_limit(error.__cause__)
            self.is_limited |= is_our_limit
            if is_our_limit or not self.is_as_found(file):
                return None
            return fail(file, read_ns, error)
        return PreparedFile(file, content.state, read_ns, content)

    def is_as_found(self, file: SourceFile) -> bool:
        ingestion = self._ingestions[file.tree]
        return is_as_found(ingestion.root, file.found, ingestion.within)

    def _is_only_touched(self, file: SourceFile, state: FileState) -> bool:
        known = file.known.state if file.known else None
        if self._reread or known is None or not file.is_unchanged(state):
            return False
        return known.mtime_ns == state.mtime_ns or not self._is_dated_by_file(file.doc_id)


def is_as_found(root: Path, found: FoundFile, within: Path | None = None) -> bool:
    """Whether the file still exists and has not changed since the scan."""
    *folders, name = relative_parts(found.path)
    try:
        with open_root(root, within) as top, open_below(top, folders) as folder:
            status = folder.status(name)
    except OSError:
        return False
    now = FoundFile(found.path, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
    return stat.S_ISREG(status.st_mode) and now == found


# Applies one batch in one transaction, except for files that another process stored first.
#
# A batch was prepared against the manifest at that time (`basis`). If an entry differs under the
# write lock, another process has read the file since: its entry stays if it read the same bytes;
# otherwise the file is scanned again. So a stale read never replaces a newer one.

Manifest = Mapping[DocId, ManifestEntry]


@dataclass(frozen=True, slots=True)
class Batch:
    """Changes that take effect together: files that were read, and documents that are gone.

    `moved` are files of the batch that are removed documents under a new path.
    """

    prepared: tuple[PreparedFile, ...] = ()
    removals: tuple[ManifestEntry, ...] = ()
    moved: frozenset[DocId] = frozenset()


@dataclass(slots=True)
class Applied:
    """What one or more batches did."""

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
            self.failures.pop(doc_id, None)  # read again since, perhaps with success
        self.failures |= other.failures
        self.written |= other.written
        self.added += other.added
        self.modified += other.modified
        self.unchanged += other.unchanged
        self.removed += other.removed
        self.moved += other.moved
        self.chunks += other.chunks


def apply(transaction: "Writer", batch: Batch, basis: Manifest, now: Manifest) -> Applied:
    """`now` is the manifest at the start of the transaction."""
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
        _remove(transaction, entry, basis, now, applied)
    # A moved document counts neither as added nor as removed.
    applied.removed -= min(applied.moved, applied.removed)
    return applied


def _store(transaction: "Writer", one: PreparedFile, applied: Applied, *, is_moved: bool) -> None:
    if one.content is not None:
        try:
            transaction.put(one.content, one.read_ns)
        except SourceError as error:
            one = one.fail(error)
    if one.failure is not None:
        transaction.fail(one.failure)
    elif one.content is None and not transaction.touch(one.doc_id, one.state, one.read_ns):
        # The store has no document to touch, so the file is read again as a new one.
        transaction.remove(one.doc_id)
        applied.written[one.doc_id] = None
        applied.again.add(TreePath(one.file.tree, one.file.path))
        return
    applied.written[one.doc_id] = one.entry
    _count(applied, one, is_moved=is_moved)


def _count(applied: Applied, one: PreparedFile, *, is_moved: bool) -> None:
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
    transaction: "Writer",
    entry: ManifestEntry,
    basis: Manifest,
    stored: Manifest,
    applied: Applied,
) -> None:
    before, now = basis.get(entry.doc_id), stored.get(entry.doc_id)
    if now is None:
        return
    if now != before:
        applied.again.add(TreePath(entry.tree, entry.path))
        return
    transaction.remove(entry.doc_id)
    applied.written[entry.doc_id] = None
    applied.removed += 1


def _texts(batch: Batch) -> Iterator[str]:
    """The texts of the leaves to be stored."""
    for one in batch.prepared:
        for chunk in one.content.chunks if one.content else ():
            if chunk.text is not None:
                yield chunk.text


# How much goes into one transaction: small enough that no process waits long for the lock.

FILES_PER_BATCH = 32
"""About 350 chunks: half a second to store, with all tables; a tenth of a second to remove."""
BYTES_PER_BATCH = 1_000_000
"""Storing text takes more than twice as long as parsing it: half a second for this many bytes."""
ROWS_PER_BATCH = 25_000
"""Headings, links, code blocks and chunks: a note of 100 kB has a few hundred, one of nothing but
headings 25,000. Each takes a kilobyte of memory until it is stored, and 20 microseconds to store.
"""
SECONDS_PER_BATCH = 0.5
"""Of reading and parsing, so that search soon finds an edit, however slow the disk."""
TURN_SECONDS = 0.06
"""A process that waits for the lock tries every 50 ms. Reading files leaves it time enough for
that; between removals we must pause."""

Read = tuple[SourceFile, PreparedFile | None]
_T = TypeVar("_T")


def batches(
    files: Iterable[SourceFile], prepare: Callable[[SourceFile], PreparedFile | None], stop: Event
) -> Iterator[list[Read]]:
    """Each file with its preparation; ends early, without the last batch, when stopped."""
    batch: list[Read] = []
    size, rows, began = 0, 0, time.monotonic()
    for file in files:
        if stop.is_set():
            return
        prepared = prepare(file)
        batch.append((file, prepared))
        size += file.found.size
        rows += prepared.rows if prepared else 0
        if _is_full(len(batch), size, rows, time.monotonic() - began):
            yield batch
            batch, size, rows, began = [], 0, 0, time.monotonic()
    if batch:
        yield batch


def _is_full(files: int, size: int, rows: int, seconds: float) -> bool:
    is_large = size >= BYTES_PER_BATCH or rows >= ROWS_PER_BATCH
    return files >= FILES_PER_BATCH or is_large or seconds >= SECONDS_PER_BATCH


def portions(items: Iterable[_T], stop: Event) -> Iterator[Sequence[_T]]:
    """Slices of FILES_PER_BATCH items, with a pause in between; ends early when stopped."""
    iterator = iter(items)
    part = tuple(islice(iterator, FILES_PER_BATCH))
    while part and not stop.is_set():
        yield part
        part = tuple(islice(iterator, FILES_PER_BATCH))
        if part:
            stop.wait(TURN_SECONDS)


# Where to look → scans: of whole trees, or of the paths that hints name.

Scans = Mapping[TreeName, Scan | RootUnavailable]


def paths_of(hints: Hints | None) -> frozenset[TreePath] | None:
    """None means everywhere."""
    return None if hints is None or hints.must_rescan else hints.paths


def survey(setup: IndexSetup, paths: Iterable[TreePath] | None) -> Scans:
    """Scans the trees; leaves out those without a path to look at."""
    gitignore = setup.respect_gitignore
    if paths is None:
        return {tree.name: discover(tree, respect_gitignore=gitignore) for tree in setup.trees}
    wanted: defaultdict[TreeName, list[str]] = defaultdict(list)
    for at in paths:
        wanted[at.tree].append(at.path)
    return {
        tree.name: look(tree, wanted[tree.name], respect_gitignore=gitignore)
        for tree in setup.trees
        if tree.name in wanted
    }


def files_in(scans: Scans) -> int:
    return sum(len(scan.files) for scan in scans.values() if isinstance(scan, Scan))


def unread_in(scans: Scans) -> UnreadCounts:
    """Of the trees that could be scanned."""
    return {tree: scan.unread for tree, scan in scans.items() if isinstance(scan, Scan)}


def skipped_in(scans: Scans) -> tuple[Skipped, ...]:
    return tuple(
        Skipped(tree, one)
        for tree, scan in scans.items()
        if isinstance(scan, Scan)
        for one in scan.skipped
    )


def kept_in(scans: Scans, found: Diff) -> tuple[Kept, ...]:
    """Unavailable trees, even without documents; then trees that could be read only in part."""
    counts: defaultdict[TreeName, int] = defaultdict(int)
    for entry in found.kept:
        counts[entry.tree] += 1
    away = {tree: scan for tree, scan in scans.items() if isinstance(scan, RootUnavailable)}
    return (
        *(Kept(tree, scan.problem.value, counts[tree]) for tree, scan in away.items()),
        *(
            Kept(tree, "has folders that cannot be read", count)
            for tree, count in counts.items()
            if tree not in away
        ),
    )


# One update: scan, compare, apply, and scan again where files changed or other processes wrote
# meanwhile.
#
# Every batch is a separate commit, so an interruption at any moment, requested or not, leaves a
# usable index, and the next update continues from there.
#
# Each commit records how many files are left to store. An update of all trees records its own
# number, whatever was stored before. One that follows hints knows only some files: it adds its own
# to the number, and subtracts them as they are stored. An update that ends early leaves its number
# behind, until the next one that scans all trees.

MAX_ROUNDS = 4
"""A file that keeps changing must not keep the update from ending."""
Paths = frozenset[TreePath] | None
"""Where to look; None means everywhere."""


class Update:
    """Runs in rounds and collects what they did."""

    def __init__(self, setup: IndexSetup, session: Session, control: Control) -> None:
        self._setup = setup
        self._session = session
        self._control = control
        self._is_whole = True
        self._basis: Manifest = {}
        """The manifest as it was before this round's scan."""
        self._left = self._recorded = 0
        self.applied = Applied()
        self.unchanged = 0
        self.kept: tuple[Kept, ...] = ()
        self.skipped: tuple[Skipped, ...] = ()
        self.unread: UnreadCounts = {}
        """Of all trees, after a scan of all of them."""
        self.unsettled: frozenset[TreePath] = frozenset()
        """Files to scan once more."""
        self._is_limited = False

    def run(self, paths: Paths, *, reread: bool = False) -> None:
        """`reread` reads and stores every file again, even if it is unchanged."""
        self.applied = Applied()  # changes to a lost store do not count
        self._is_whole = paths is None
        self._left = self._recorded = 0
        stop = self._control.stop
        if not stop.is_set():
            self._round(paths, reread=reread, is_first=True)
        for _ in range(MAX_ROUNDS - 1):
            if self.unsettled and not stop.is_set():
                self._round(self.unsettled)
        if self.unsettled and self._is_limited:
            raise too_many_open()
        if not stop.is_set() and self._is_whole and not self._session.retry(self._is_recorded):
            self._left = 0  # nothing is left to store: record it
            self._store(Batch())

    def _round(self, paths: Paths, *, reread: bool = False, is_first: bool = False) -> None:
        trees = len(self._setup.trees)
        self._control.on_progress(Progress(Phase.SCANNING, 0, trees))
        # From before the scan: what other processes store meanwhile then shows as a difference.
        session = self._session
        self._basis = dict(session.retry(session.manifest.at, session.position))
        scans = survey(self._setup, paths)
        if any(_is_limited(scan) for scan in scans.values()):
            raise too_many_open()
        self._control.on_progress(Progress(Phase.SCANNING, trees, trees))
        known = relevant_entries(self._basis, scans)
        if reread:
            known = [_as_unread(entry) for entry in known]
        elif is_first and known:
            known = _distrust_future(known, self._control.clock_ns())
        found = diff(known, scans, {tree.name for tree in self._setup.trees})
        if is_first:
            self.unchanged = files_in(scans) - len(found.added) - len(found.modified)
            self.kept, self.skipped = kept_in(scans, found), skipped_in(scans)
        if is_first and paths is None:
            self.unread = session.retry(self._join_unread, unread_in(scans))
        preparation = Preparation(
            self._setup.ingestions(), self._is_dated_by_file, self._control.clock_ns, reread=reread
        )
        self.unsettled = frozenset()
        try:
            self._apply(found, preparation)
        finally:
            self._is_limited = preparation.is_limited

    def _apply(self, found: Diff, preparation: Preparation) -> None:
        """Applies the changes in the order that `Diff` defines; when stopped, skips the rest."""
        self._left = len(found.removed) + len(found.to_read)
        self._remove(found.gone)
        missing = {entry.doc_id: entry for entry in found.missing}
        to_read, candidates, done = found.to_read, found.candidates, 0
        self._report(done, len(to_read))
        for batch in batches(to_read, preparation.prepare, self._control.stop):
            self._take(batch, missing, preparation)
            done += len(batch)
            self._report(done, len(to_read))
            if done >= candidates:
                self._remove(missing.values())
                missing.clear()

    def _take(
        self, batch: list[Read], missing: dict[DocId, ManifestEntry], preparation: Preparation
    ) -> None:
        """Stores the files just read, and removes moved ones from their old paths in the same
        commit."""
        prepared = tuple(one for _, one in batch if one)
        read = {one.doc_id: one.state for one in prepared if one.content}
        moved = moves(missing.values(), read) if missing else ()
        removals = tuple(missing.pop(move.old) for move in moved)
        self._left -= len(batch) - len(prepared)  # the next round reads the others
        self._commit(Batch(prepared, removals, frozenset(move.new for move in moved)))
        # Another process that got an event before this commit saw nothing to do, so we must check
        # whether the files still match what was just stored.
        self.unsettled |= {
            TreePath(file.tree, file.path)
            for file, one in batch
            if one is None or not preparation.is_as_found(file)
        }

    def _remove(self, entries: Iterable[ManifestEntry]) -> None:
        for part in portions(entries, self._control.stop):
            self._commit(Batch(removals=tuple(part)))

    def _commit(self, batch: Batch) -> None:
        try:
            self._store(batch)
        except RagdocsError:
            raise
        except Exception as error:  # a file that cannot be stored must not fail the others
            if not batch.prepared:
                raise
            self._commit_singly(batch, error)

    def _commit_singly(self, batch: Batch, error: Exception) -> None:
        if len(batch.prepared) == 1:
            (one,) = batch.prepared
            self._store(replace(batch, prepared=(one.fail(error),)))
            return
        for one in batch.prepared:
            self._commit(Batch((one,), moved=batch.moved))
        self._store(Batch(removals=batch.removals))

    def _store(self, batch: Batch) -> None:
        """Runs one transaction, which is retried while others write; so it updates our own state
        only at the end."""
        left = self._left - len(batch.prepared) - len(batch.removals)

        def work(transaction: "Writer") -> Applied:
            manifest = self._session.manifest.at(transaction.position)
            applied = apply(transaction, batch, self._basis, manifest)
            if self._is_whole:
                transaction.expect(left)
                transaction.note_unread(self.unread)
            elif (waiting := transaction.waiting) is not None:
                transaction.expect(max(left, waiting + left - self._recorded))
            return applied

        with self._session.prepare(_texts(batch)):
            applied = self._session.run(work, lambda applied: applied.written)
        self._left = self._recorded = left
        self.applied.add(applied)
        self.unsettled |= applied.again

    def _is_recorded(self) -> bool:
        """Whether the store knows that nothing is left, and which files are not read."""
        with self._session.reader.snapshot() as snapshot:
            return snapshot.waiting == 0 and snapshot.unread == self.unread

    def _join_unread(self, seen: UnreadCounts) -> UnreadCounts:
        """With what is stored of trees that could not be scanned now; only trees that have any."""
        with self._session.reader.snapshot() as snapshot:
            whole = {**snapshot.unread, **seen}
        names = {tree.name for tree in self._setup.trees}
        return {tree: counts for tree, counts in whole.items() if tree in names and counts}

    def _is_dated_by_file(self, doc_id: DocId) -> bool:
        with self._session.reader.snapshot() as snapshot:
            document = snapshot.document(doc_id)
        return document is None or document.date_source is DateSource.MTIME

    def _report(self, done: int, total: int) -> None:
        self._control.on_progress(Progress(Phase.READING, done, total, self.applied.chunks))


def _is_limited(scan: Scan | RootUnavailable) -> bool:
    return isinstance(scan, RootUnavailable) and scan.problem is RootProblem.LIMITED


def _distrust_future(known: Iterable[ManifestEntry], now_ns: int) -> list[ManifestEntry]:
    """An entry with a future read time is from before the clock was set back, so the times of its
    file prove nothing."""
    return [_as_unread(entry) if entry.read_ns > now_ns else entry for entry in known]


def _as_unread(entry: ManifestEntry) -> ManifestEntry:
    """With a read time of 0, any file counts as possibly changed since."""
    return entry._replace(read_ns=0)
