"""The manifest as of one commit, so that one edit does not read every file's row again.

The change log tells of documents, not of files that were only touched or failed. So the entries
are carried from commit to commit by our own changes, and read again when someone else has written.
"""

from collections.abc import Mapping

from ragdocs.errors import IndexIncompatible
from ragdocs.models import DocId
from ragdocs.store.reader import Reader
from ragdocs.store.records import ManifestEntry, Position
from ragdocs.store.snapshot import Snapshot

Entries = dict[DocId, ManifestEntry]


class ManifestCache:
    """Every known file, at the position of the last look."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._position: Position | None = None
        self._entries: Entries = {}
        self.readings = 0
        """How often all rows were read."""

    def current(self) -> Entries:
        """The entries as they are now; the caller's to keep."""
        with self._reader.snapshot() as snapshot:
            self._follow(snapshot)
        return dict(self._entries)

    def at(self, position: Position) -> Mapping[DocId, ManifestEntry]:
        """The entries of the last commit, for whoever holds the write lock; not to be kept."""
        if self._position != position:
            with self._reader.snapshot() as snapshot:
                self._follow(snapshot)
        return self._entries

    def advance(
        self,
        before: Position,
        after: Position,
        written: Mapping[DocId, ManifestEntry | None] | None = None,
    ) -> None:
        """Our own commit led from one position to the next; None is a file that was forgotten."""
        if self._position != before:
            return
        for doc_id, entry in (written or {}).items():
            if entry is None:
                self._entries.pop(doc_id, None)
            else:
                self._entries[doc_id] = entry
        self._position = after

    def forget(self) -> None:
        self._position = None
        self._entries = {}

    def _follow(self, snapshot: Snapshot) -> None:
        """A store with another history lacks more than what has changed since: then everything
        must be looked at, and IndexIncompatible says so."""
        if self._position == snapshot.position:
            return
        is_cut_off = self._position and snapshot.changes_since(self._position) is None
        self.forget()
        if is_cut_off:
            raise IndexIncompatible("the index was replaced by another one: look at all files")
        self._entries = snapshot.manifest()
        self._position = snapshot.position
        self.readings += 1
