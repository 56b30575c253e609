"""Every error a caller may catch. One base class, caught at the edge.

* RagdocsError
  - ConfigError            the configuration cannot be used
  - SourceError            one file cannot be indexed; the run goes on without it
    · SourceTooLarge       over `max_file_bytes`
    · SourceBinary         not text
    · SourceUnreadable     gone, not permitted, not a regular file, or outside its tree
  - IndexStoreError        the index on disk cannot be used as it is
    · IndexMissing         no index has been built yet
    · IndexFolderForeign   its folder contains something else, or belongs to another account
    · IndexLocked          another process is writing; try again
    · IndexCorrupt         a checksum or SQLite reports damage: rebuild
    · IndexIncompatible    not the expected store: open it again, or rebuild
      - OthersIndex        another program's: rebuilt only on request
        · OtherSettings    built with other settings; it can be read as it is
        · OtherFolders     built from other documents
        · OtherVersion     written by another version of this program
  - EmbeddingError         text cannot be turned into vectors
    · ModelMissing         no usable model was found
    · ModelCorrupt         the model's files are damaged, or not the ones we know
    · ModelRefused         the model needs foreign code to run, or is a pickle
  - QueryError             the request cannot be answered as asked
    · NotThere             what it names is not in the index
  - EvaluationError        a labelled set or a run cannot be used
  - FileKept               a file was left unchanged: an edit would have lost something

A message says what happened, where, and what the user can do next.
"""

from ragdocs.text import advised


class RagdocsError(Exception):
    """Base class: catch this one at the edge."""


class ConfigError(RagdocsError):
    """The configuration cannot be used; the message names file, line and key."""


class SourceError(RagdocsError):
    """One file cannot be indexed; it is reported and skipped."""


class SourceTooLarge(SourceError):
    """The file is over `max_file_bytes`; it was not read."""


class SourceBinary(SourceError):
    """The file's bytes are not text."""


class SourceUnreadable(SourceError):
    """The file is gone, forbidden, not a regular file, or outside its tree."""


class IndexStoreError(RagdocsError):
    """The index on disk cannot be used as it is."""


class IndexMissing(IndexStoreError):
    """No index has been built yet."""


class IndexFolderForeign(IndexStoreError):
    """The folder contains something else, or belongs to another account; left unchanged."""


class IndexLocked(IndexStoreError):
    """Another process is writing. Busy is not corrupt: try again."""


REBUILD = "rebuild the index"


class IndexCorrupt(IndexStoreError):
    """A checksum, a count or SQLite itself reports that the index is damaged. `what` is the message
    without the advice, for callers that have already rebuilt the index."""

    def __init__(self, what: str, advice: str = "") -> None:
        super().__init__(f"{what}: {advice}" if advice else what)
        self.what = what


class IndexIncompatible(IndexStoreError):
    """The store is not the expected one; the subclasses say how."""


class OthersIndex(IndexIncompatible):
    """Built by a program with other settings, or by another version of this one. `what` is the
    message without the advice, `stored` are the settings in the store."""

    def __init__(self, what: str, stored: str = "") -> None:
        super().__init__(f"{what}; {self._advice()}")
        self.what = what
        self.stored = stored

    def _advice(self) -> str:
        raise NotImplementedError


class OtherSettings(OthersIndex):
    """Built with other settings: it can be read as it is."""

    def _advice(self) -> str:
        return (
            f"this program only reads it. {advised('rebuild-index')} rebuilds it with the settings "
            "used here; or use another index folder (--index, or indexing.index_path)"
        )


class OtherFolders(OthersIndex):
    """An index of other documents, which must not be shown under the names of these."""

    def _advice(self) -> str:
        return (
            "use another index folder (--index, or indexing.index_path). "
            f"{advised('rebuild-index')} replaces it"
        )


class OtherVersion(OthersIndex):
    """Written by another version of this program, which this one cannot read."""

    def _advice(self) -> str:
        return f"{advised('rebuild-index')} rebuilds it for this version"


class EmbeddingError(RagdocsError):
    """Text cannot be turned into vectors; keyword, code and graph search still work."""


class ModelMissing(EmbeddingError):
    """No usable embedding model was found; the message lists the places searched."""


class ModelCorrupt(EmbeddingError):
    """A model file is damaged, or not the one we know by its hash."""


class ModelRefused(EmbeddingError):
    """A model needs foreign code to run, or has only pickled weights."""


class QueryError(RagdocsError):
    """The request cannot be answered as asked."""


class Ambiguous(QueryError):
    """A reference could be several documents."""


class NotThere(QueryError):
    """The document, section or line that was named is not in the index; `listed_by` is the command
    that lists what could have been named, if one does. `folder` is given if a folder was named
    where a document is meant."""

    def __init__(self, message: str, listed_by: str = "", folder: str = "") -> None:
        super().__init__(message)
        self.listed_by = listed_by
        self.folder = folder


class EvaluationError(RagdocsError):
    """A labelled set, a run or its chart cannot be used; the message names file and line."""


class FileKept(RagdocsError):
    """A file that others also use was left unchanged; the message says why and what to do."""
