"""What `status` reports about an index: values of plain types, ready to become JSON."""

from collections.abc import Mapping
from dataclasses import dataclass

from ragdocs.diagnosis.file_problems import FailedFile, FileWarning, WarningCount
from ragdocs.embedding.base import EmbeddingCounts
from ragdocs.search.responses import Readiness
from ragdocs.text import number_of


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeStatus:
    """A configured folder and how much of it is indexed; `problem` is why it cannot be read."""

    name: str
    root: str
    scope: str
    documents: int
    chunks: int
    problem: str
    unread: Mapping[str, int]
    """Documents whose format is not read, by extension, as of the last scan."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Holdings:
    """The contents of the index in numbers. Passages are the chunks that need a vector.

    `files_waiting` have changed and are not stored yet; None if not all files were checked so far.
    """

    documents: int = 0
    chunks: int = 0
    passages: int = 0
    vectors: int = 0
    vectors_pending: int = 0
    files_waiting: int | None = None
    files_failed: int = 0
    files_with_loss: int = 0
    """Indexed, but a part of their text cannot be found or shown: see `warnings`."""
    links_unresolved: int = 0
    """Links to no document of the index: to files that are not indexed, out of the trees, or broken
    ones, which lint tells apart."""
    unused_vector_bytes: int = 0
    """Vectors of deleted text, kept for a while; counted once a day."""
    generation: int = 0
    communities: int = 0
    """Groups of linked documents."""
    communities_generation: int | None = None
    """The generation whose links they were computed from; None if they were not."""
    communities_current: bool = True
    """Whether the links between documents are still the same."""

    def communities_text(self) -> str:
        """Empty if there is nothing to report."""
        if self.communities_generation is None:
            return "" if self.communities_current else "communities not computed"
        found = number_of(self.communities, "community", "communities")
        is_old = "" if self.communities_current else ", links have changed since"
        return f"{found} (of generation {self.communities_generation}{is_old})"


@dataclass(frozen=True, slots=True, kw_only=True)
class WriterStatus:
    """The process that is writing now; None for what could not be read."""

    pid: int | None
    since: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchStatus:
    """The process that keeps the index up to date, and how; empty for what it did not report.

    `mode` is watching, polling or off, `reason` is why; `trouble` is what fails at the moment.
    """

    pid: int | None = None
    since: str | None = None
    is_ours: bool = False
    """Whether it is this process."""
    is_heard: bool = True
    """Whether it has reported lately: a stopped process still holds its lock."""
    mode: str = ""
    reason: str = ""
    activity: str = ""
    last_scan: str = ""
    trouble: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskUse:
    """Bytes in the index directory, by part; `other` is not ours and not part of `total`."""

    store: int = 0
    log: int = 0
    engines: int = 0
    other: int = 0
    total: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelStatus:
    """A configured model, which was not loaded for this: `problem` is why it cannot be used,
    `place` says in words where it was found, `folder` has its files.
    """

    name: str
    is_on: bool = True
    identity: str = ""
    dimension: int = 0
    place: str = ""
    folder: str = ""
    problem: str = ""
    notes: tuple[str, ...] = ()
    counts: EmbeddingCounts | None = None
    """How many texts fitted the model's window in this process, if any were embedded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeywordStatus:
    """The keyword engine and its state; FTS5 is inside the store and so always up to date."""

    engine: str
    state: str
    generation: int | None = None
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class VariantStatus:
    """An index of the same documents with any settings; `last_used` is empty if unknown."""

    path: str
    is_own: bool
    """Whether this program uses it."""
    bytes: int
    last_used: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingDifference:
    """A setting's value in the index (`stored`) and in this program (`own`), as JSON."""

    key: str
    stored: str
    own: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """Format and settings: expected by this program, and found in the store (None if unknown)."""

    fingerprint: str
    stored_fingerprint: str | None
    schema: int
    stored_schema: int | None
    same_settings: bool
    differences: tuple[SettingDifference, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class IgnoredSetting:
    """A setting that is ignored because its project file is not trusted; without a key, the whole
    file is. `meaning` is what the setting would let the project do.
    """

    file: str
    line: int | None
    key: str
    value: str
    meaning: str
    standing: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """The whole status. `summary` is one line for people, `notes` is what else they should know."""

    state: Readiness
    summary: str
    notes: tuple[str, ...]
    version: str
    config_files: tuple[str, ...]
    trees: tuple[TreeStatus, ...]
    holdings: Holdings
    failures: tuple[FailedFile, ...]
    warnings: tuple[FileWarning, ...]
    """Those with loss first; only the first ones if there are many."""
    warning_counts: tuple[WarningCount, ...]
    index_directory: str
    disk: DiskUse
    variants: tuple[VariantStatus, ...]
    writer: WriterStatus | None
    watcher: WatchStatus | None
    model: ModelStatus
    reranker: ModelStatus
    keyword: KeywordStatus
    agreement: Agreement
    ignored: tuple[IgnoredSetting, ...] = ()

    @property
    def is_usable(self) -> bool:
        """Whether the index is ready, or will be by waiting."""
        return self.state in (Readiness.READY, Readiness.BUILDING)
