"""One update: look at the files, compare them with the manifest, prepare batches, commit
each one.
"""

import stat
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from threading import Event
from typing import TypeVar

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
from ragdocs.indexing.manifest import Diff, SourceFile, concerned, diff, moves
from ragdocs.indexing.reading import (
    Ingestion,
    opened_below,
    opened_root,
    relative_parts,
    too_many_open,
)
from ragdocs.indexing.session import Control, IndexSetup, Session
from ragdocs.indices.view import Writer
from ragdocs.models import DateSource, DocId, FileState, IndexedFile, TreeName
from ragdocs.parsers.ids import encode_path
from ragdocs.store.records import FileFailure, ManifestEntry, Position

# A file to read → what to store of it: all that can be done before the write lock is taken.


@dataclass(frozen=True, slots=True)
class PreparedFile:
    """A file that was read: new content, or a failure, or neither when it is as it was."""

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
        """What the manifest holds of it once it is stored."""
        file = self.file
        state = self.failure.state if self.failure else self.state
        return ManifestEntry(file.doc_id, file.tree, file.path, state, self.read_ns)

    @property
    def rows(self) -> int:
        """How many rows the store will have of it, about."""
        if self.content is None:
            return 0
        document = self.content.document
        parts = (document.headings, document.links, document.code_blocks, self.content.chunks)
        return sum(map(len, parts))

    def failed(self, error: Exception) -> "PreparedFile":
        return failed(self.file, self.read_ns, error)


def failed(file: SourceFile, read_ns: int, error: Exception) -> PreparedFile:
    """With the state that was found, so that the file is not read again until it changes.

    For want of memory or the like, without a state: it is read again whenever it is looked at.
    """
    state = FileState(file.found.size, file.found.mtime_ns, "")
    kind = type(error).__name__
    known = isinstance(error, SourceError)
    # An error that nobody foresaw may quote the text: only its name is told.
    reason = str(error) if known else f"{encode_path(file.path)}: it cannot be indexed ({kind})"
    noted = None if isinstance(error, (MemoryError, OSError)) else state
    failure = FileFailure(file.tree, file.path, kind, reason, noted, read_ns)
    return PreparedFile(file, state, read_ns, failure=failure)


class Preparation:
    """Reads, parses and chunks. `anew`: also what has the bytes that are known.

    `is_dated_by_file` tells whether a stored document has its date from the file's mtime.
    """

    def __init__(
        self,
        ingestions: Mapping[TreeName, Ingestion],
        is_dated_by_file: Callable[[DocId], bool],
        clock_ns: Callable[[], int],
        *,
        anew: bool = False,
    ) -> None:
        self._ingestions = ingestions
        self._is_dated_by_file = is_dated_by_file
        self._clock_ns = clock_ns
        self._anew = anew
        self.is_limited = False
        """Whether there was no descriptor left for some file."""

    def prepare(self, file: SourceFile) -> PreparedFile | None:
        """None when it could not be read, and that says nothing of the file that was found, which
        has changed or for which there was no descriptor left: look again."""
        ingestion = self._ingestions[file.tree]
        read_ns = self._clock_ns()
        try:
            data = ingestion.read(file.path)
            if self._is_only_touched(file, data.state):
                return PreparedFile(file, data.state, read_ns)
            content = ingestion.parse(file.path, data)
        except Exception as error:  # whatever one file does to the parser, the others go on
            is_our_limit = reading.is_our_limit(error.__cause__)
            self.is_limited |= is_our_limit
            if is_our_limit or not self.is_as_found(file):
                return None
            return failed(file, read_ns, error)
        return PreparedFile(file, content.state, read_ns, content)

    def is_as_found(self, file: SourceFile) -> bool:
        ingestion = self._ingestions[file.tree]
        return is_as_found(ingestion.root, file.found, ingestion.within)

    def _is_only_touched(self, file: SourceFile, state: FileState) -> bool:
        known = file.known.state if file.known else None
        if self._anew or known is None or not file.is_unchanged(state):
            return False
        return known.mtime_ns == state.mtime_ns or not self._is_dated_by_file(file.doc_id)


def is_as_found(root: Path, found: FoundFile, within: Path | None = None) -> bool:
    """Whether the file is still there, and was not changed since it was found."""
    *folders, name = relative_parts(found.path)
    try:
        with opened_root(root, within) as top, opened_below(top, folders) as folder:
            status = folder.status(name)
    except OSError:
        return False
    now = FoundFile(found.path, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
    return stat.S_ISREG(status.st_mode) and now == found


# One batch into one transaction, unless someone else has been there first.
#
# A batch was prepared from what the manifest said then (`basis`). Where it says something else
# under the write lock, another process has looked at the file since: its word stands if it read the
# same bytes, and otherwise the file is looked at again. So no stale reading ever replaces a newer
# one.

Manifest = Mapping[DocId, ManifestEntry]


@dataclass(frozen=True, slots=True)
class Batch:
    """What takes effect together: files that were read, and documents that are gone.

    `moved` are files of the batch that are removed documents under another name.
    """

    prepared: tuple[PreparedFile, ...] = ()
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


def apply(transaction: Writer, batch: Batch, basis: Manifest, now: Manifest) -> Applied:
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
        _remove(transaction, entry, basis, now, applied)
    # A moved document is one document: it neither came nor went.
    applied.removed -= min(applied.moved, applied.removed)
    return applied


def _store(transaction: Writer, one: PreparedFile, applied: Applied, *, is_moved: bool) -> None:
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
    transaction: Writer,
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


# The transactions of one update: each stores a batch, and says how many files are left to store.
#
# An update of all trees says what it has left, whatever was said before. One that follows hints
# knows of some files only: it adds its own, and takes them away again as they are stored. An update
# that ends early leaves its number behind, until the next one that looks at all trees.


class Commits:
    """One update's way into the store. `is_whole`: it looks at all trees."""

    def __init__(self, session: Session, *, is_whole: bool) -> None:
        self._session = session
        self._is_whole = is_whole
        self._left = self._told = 0

    def expect(self, files: int) -> None:
        """So many files are to be stored or removed in this round."""
        self._left = files

    def skip(self, files: int) -> None:
        """So many of them changed while they were read: they belong to the next round."""
        self._left -= files

    def store(self, batch: Batch, basis: Manifest) -> Applied:
        """One transaction, done again while others write: so nothing is noted before its end."""
        manifest = self._session.manifest
        left = self._left - len(batch.prepared) - len(batch.removals)

        def work(transaction: Writer) -> tuple[Applied, Position, Writer]:
            before = transaction.position
            applied = apply(transaction, batch, basis, manifest.at(before))
            self._tell(transaction, left)
            return applied, before, transaction

        with self._session.prepare(_texts(batch)):
            applied, before, transaction = self._session.run(work)
        manifest.advance(before, transaction.position, applied.written)
        self._left = self._told = left
        return applied

    def finish(self) -> None:
        """All trees were looked at, and what was found is stored: says so, unless it is said."""
        if self._is_whole and self._session.retry(self._waiting) != 0:
            self._left = 0
            self.store(Batch(), {})

    def _tell(self, transaction: Writer, left: int) -> None:
        waiting = transaction.waiting
        if self._is_whole:
            transaction.expect(left)
        elif waiting is not None:
            transaction.expect(max(left, waiting + left - self._told))

    def _waiting(self) -> int | None:
        with self._session.reader.snapshot() as snapshot:
            return snapshot.waiting


def _texts(batch: Batch) -> Iterator[str]:
    """Of the leaves that will be stored."""
    for one in batch.prepared:
        for chunk in one.content.chunks if one.content else ():
            if chunk.text is not None:
                yield chunk.text


# How much goes into one transaction: little enough that nobody waits long for the lock.

FILES_PER_BATCH = 32
"""Some 350 chunks: half a second to store, with all tables; a tenth of one to remove."""
BYTES_PER_BATCH = 1_000_000
"""Storing text takes more than twice as long as parsing it: half a second for this much."""
ROWS_PER_BATCH = 25_000
"""Headings, links, code blocks and chunks: a note of 100 kB has a few hundred, one of nothing but
headings 25,000. Each takes a kilobyte until it is stored, and 20 microseconds to store."""
SECONDS_PER_BATCH = 0.5
"""Of reading and parsing; so what was edited is soon found, however slow the disk."""
TURN_SECONDS = 0.06
"""Whoever waits for the lock tries every 50 ms. Between files that are read there is time enough
for that; between removals it must be left to them."""

Read = tuple[SourceFile, PreparedFile | None]
_T = TypeVar("_T")


def batches(
    files: Iterable[SourceFile], prepare: Callable[[SourceFile], PreparedFile | None], stop: Event
) -> Iterator[list[Read]]:
    """Files with what was prepared of each; ends early, without the last batch, when stopped."""
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
    """As many at a time as files in a batch, with a pause in between; ends early when stopped."""
    iterator = iter(items)
    part = tuple(islice(iterator, FILES_PER_BATCH))
    while part and not stop.is_set():
        yield part
        part = tuple(islice(iterator, FILES_PER_BATCH))
        if part:
            stop.wait(TURN_SECONDS)


# One change set on its way into the store, batch by batch.


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


# Where to look → what is there: whole trees, or the paths that hints name.

Scans = Mapping[TreeName, Scan | RootUnavailable]


def paths_of(hints: Hints | None) -> frozenset[TreePath] | None:
    """None is everywhere."""
    return None if hints is None or hints.must_rescan else hints.paths


def survey(setup: IndexSetup, paths: Iterable[TreePath] | None) -> Scans:
    """Trees in which nothing is to be looked at are not in it."""
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


def skipped_in(scans: Scans) -> tuple[Skipped, ...]:
    return tuple(
        Skipped(tree, one)
        for tree, scan in scans.items()
        if isinstance(scan, Scan)
        for one in scan.skipped
    )


def kept_in(scans: Scans, found: Diff) -> tuple[Kept, ...]:
    """Trees that are away, even when nothing of them is known; then those seen in part."""
    counts: defaultdict[TreeName, int] = defaultdict(int)
    for entry in found.kept:
        counts[entry.tree] += 1
    away = {tree: scan for tree, scan in scans.items() if isinstance(scan, RootUnavailable)}
    return (
        *(Kept(tree, scan.problem.value, counts[tree]) for tree, scan in away.items()),
        *(
            Kept(tree, "has folders that cannot be looked into", count)
            for tree, count in counts.items()
            if tree not in away
        ),
    )


# One update: look, compare, apply, and look again where files or others were quicker.
#
# Every batch is a commit of its own, so an end at any moment, asked for or not, leaves an index
# that is usable, and from which the next update goes on.

MAX_ROUNDS = 4
"""A file that is never quiet must not keep the update from ending."""
Paths = frozenset[TreePath] | None
"""Where to look; None is everywhere."""


class Update:
    """What has been done so far, round by round."""

    def __init__(self, setup: IndexSetup, session: Session, control: Control) -> None:
        self._setup = setup
        self._session = session
        self._control = control
        self._commits = Commits(session, is_whole=True)
        self.applied = Applied()
        self.unchanged = 0
        self.kept: tuple[Kept, ...] = ()
        self.skipped: tuple[Skipped, ...] = ()
        self.unsettled: frozenset[TreePath] = frozenset()
        self._is_limited = False

    def run(self, paths: Paths, *, anew: bool = False) -> None:
        """`anew` reads every file and stores it again, whatever is known of it."""
        self.applied = Applied()  # what was done to a store that was lost does not count
        self._commits = Commits(self._session, is_whole=paths is None)
        stop = self._control.stop
        if not stop.is_set():
            self._round(paths, anew=anew, is_first=True)
        for _ in range(MAX_ROUNDS - 1):
            if self.unsettled and not stop.is_set():
                self._round(self.unsettled)
        if self.unsettled and self._is_limited:
            raise too_many_open()
        if not stop.is_set():
            self._commits.finish()

    def _round(self, paths: Paths, *, anew: bool = False, is_first: bool = False) -> None:
        trees = len(self._setup.trees)
        self._control.on_progress(Progress(Phase.SCANNING, 0, trees))
        # Before the files are looked at: what others store meanwhile then shows as a difference.
        basis = self._session.retry(self._session.manifest.current)
        scans = survey(self._setup, paths)
        if any(_is_limited(scan) for scan in scans.values()):
            raise too_many_open()
        self._control.on_progress(Progress(Phase.SCANNING, trees, trees))
        known = concerned(basis, scans)
        if anew:
            known = [_as_unread(entry) for entry in known]
        elif is_first and known:
            known = _with_doubts(known, self._control.clock_ns())
        found = diff(known, scans, {tree.name for tree in self._setup.trees})
        if is_first:
            self.unchanged = files_in(scans) - len(found.added) - len(found.modified)
            self.kept, self.skipped = kept_in(scans, found), skipped_in(scans)
        preparation = Preparation(
            self._setup.ingestions(), self._is_dated_by_file, self._control.clock_ns, anew=anew
        )
        changes = ChangeSet(self._commits, self._control, preparation, basis)
        try:
            changes.make(found)
        finally:
            self.applied.add(changes.applied)
            self.unsettled = frozenset(changes.applied.again)
            self._is_limited = preparation.is_limited

    def _is_dated_by_file(self, doc_id: DocId) -> bool:
        with self._session.reader.snapshot() as snapshot:
            document = snapshot.document(doc_id)
        return document is None or document.date_source is DateSource.MTIME


def _is_limited(scan: Scan | RootUnavailable) -> bool:
    return isinstance(scan, RootUnavailable) and scan.problem is RootProblem.LIMITED


def _with_doubts(known: Iterable[ManifestEntry], now_ns: int) -> list[ManifestEntry]:
    """What was read later than now was read before the clock was set back: no time of its file
    proves anything."""
    return [_as_unread(entry) if entry.read_ns > now_ns else entry for entry in known]


def _as_unread(entry: ManifestEntry) -> ManifestEntry:
    """Read before anything was written: then its file may have changed since, whatever it is."""
    return entry._replace(read_ns=0)
