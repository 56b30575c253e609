"""One update: look, compare, apply, and look again where files or others were quicker.

Every batch is a commit of its own, so an end at any moment, asked for or not, leaves an index that
is usable, and from which the next update goes on.
"""

from collections.abc import Iterable

from ragdocs.indexing.application import Applied
from ragdocs.indexing.change_set import ChangeSet
from ragdocs.indexing.commits import Commits
from ragdocs.indexing.index_access import IndexAccess
from ragdocs.indexing.index_setup import Control, IndexSetup
from ragdocs.indexing.limits import too_many_open
from ragdocs.indexing.manifest import concerned, diff
from ragdocs.indexing.outcome import Kept, Phase, Progress, Skipped
from ragdocs.indexing.preparation import Preparation
from ragdocs.indexing.scan import RootProblem, RootUnavailable, Scan, TreePath
from ragdocs.indexing.survey import files_in, kept_in, skipped_in, survey
from ragdocs.models import DateSource, DocId
from ragdocs.store.records import ManifestEntry

MAX_ROUNDS = 4
"""A file that is never quiet must not keep the update from ending."""
Paths = frozenset[TreePath] | None
"""Where to look; None is everywhere."""


class Update:
    """What has been done so far, round by round."""

    def __init__(self, setup: IndexSetup, access: IndexAccess, control: Control) -> None:
        self._setup = setup
        self._access = access
        self._control = control
        self._commits = Commits(access, is_whole=True)
        self.applied = Applied()
        self.unchanged = 0
        self.kept: tuple[Kept, ...] = ()
        self.skipped: tuple[Skipped, ...] = ()
        self.unsettled: frozenset[TreePath] = frozenset()
        self._is_limited = False

    def run(self, paths: Paths, *, anew: bool = False) -> None:
        """`anew` reads every file and stores it again, whatever is known of it."""
        self.applied = Applied()  # what was done to a store that was lost does not count
        self._commits = Commits(self._access, is_whole=paths is None)
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
        basis = self._access.retried(self._access.manifest.current)
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
        with self._access.reader.snapshot() as snapshot:
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
