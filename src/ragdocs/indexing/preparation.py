"""A file to read → what to store of it: all that can be done before the write lock is taken."""

import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from ragdocs.errors import SourceError
from ragdocs.indexing import limits
from ragdocs.indexing.containment import opened_below, opened_root, relative_parts
from ragdocs.indexing.ingestion import Ingestion
from ragdocs.indexing.manifest import SourceFile
from ragdocs.indexing.scan import FoundFile
from ragdocs.models import DocId, FileState, IndexedFile, TreeName
from ragdocs.parsers.identity import encode_path
from ragdocs.store.records import FileFailure, ManifestEntry


@dataclass(frozen=True, slots=True)
class Prepared:
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

    def failed(self, error: Exception) -> "Prepared":
        return failed(self.file, self.read_ns, error)


def failed(file: SourceFile, read_ns: int, error: Exception) -> Prepared:
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
    return Prepared(file, state, read_ns, failure=failure)


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

    def prepare(self, file: SourceFile) -> Prepared | None:
        """None when it could not be read, and that says nothing of the file that was found, which
        has changed or for which there was no descriptor left: look again."""
        ingestion = self._ingestions[file.tree]
        read_ns = self._clock_ns()
        try:
            data = ingestion.read(file.path)
            if self._is_only_touched(file, data.state):
                return Prepared(file, data.state, read_ns)
            content = ingestion.parse(file.path, data)
        except Exception as error:  # whatever one file does to the parser, the others go on
            is_our_limit = limits.is_our_limit(error.__cause__)
            self.is_limited |= is_our_limit
            if is_our_limit or not self.is_as_found(file):
                return None
            return failed(file, read_ns, error)
        return Prepared(file, content.state, read_ns, content)

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
