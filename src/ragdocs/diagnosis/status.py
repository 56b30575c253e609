"""What `status` tells of an index: values of plain types, so that they are JSON as they stand."""

from dataclasses import dataclass

from ragdocs.diagnosis.file_problems import FailedFile, FileWarning, WarningCount
from ragdocs.embedding.base import EmbeddingCounts
from ragdocs.search.responses import Readiness
from ragdocs.text import number_of


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeStatus:
    """A configured folder, and what is indexed of it; `problem` is why it cannot be looked at."""

    name: str
    root: str
    scope: str
    documents: int
    chunks: int
    problem: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Holdings:
    """How much the index holds. Passages are the chunks that want a vector.

    `files_waiting` are known to differ and not stored yet; None: not all were looked at so far.
    """

    documents: int = 0
    chunks: int = 0
    passages: int = 0
    vectors: int = 0
    vectors_pending: int = 0
    files_waiting: int | None = None
    files_failed: int = 0
    files_with_loss: int = 0
    """Indexed, but not all that stands in them can be found or shown: see `warnings`."""
    links_unresolved: int = 0
    unused_vector_bytes: int = 0
    """Vectors of texts that are gone, kept for a while: as of the last probe, once a day."""
    generation: int = 0
    communities: int = 0
    """Groups of linked documents."""
    communities_generation: int | None = None
    """The commit whose links they were computed from; None when none were computed."""
    communities_current: bool = True
    """Whether the links between documents are still those."""

    def communities_text(self) -> str:
        """Empty when there is nothing to tell."""
        if self.communities_generation is None:
            return "" if self.communities_current else "communities not computed"
        found = number_of(self.communities, "community", "communities")
        is_old = "" if self.communities_current else ", links have changed since"
        return f"{found} (of generation {self.communities_generation}{is_old})"


@dataclass(frozen=True, slots=True, kw_only=True)
class WriterStatus:
    """A process that writes at this moment; None where it could not be read."""

    pid: int | None
    since: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchStatus:
    """Who keeps the index up to date with the files, and how; empty where nobody has said it.

    `mode` is watching, polling or off, and `reason` why; `trouble` is what fails meanwhile.
    """

    pid: int | None = None
    since: str | None = None
    is_ours: bool = False
    """Whether it is this very process."""
    is_heard: bool = True
    """Whether it gave a sign of life: a process can be stopped and hold its lock."""
    mode: str = ""
    reason: str = ""
    activity: str = ""
    last_scan: str = ""
    trouble: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskUse:
    """Bytes of the index directory, by part; `other` is not the program's, and not in `total`."""

    store: int = 0
    log: int = 0
    engines: int = 0
    other: int = 0
    total: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelStatus:
    """A model as it is configured: `problem` is why it cannot be used, `place` where it was found,
    in words, and `folder` where its files are. It has not been loaded for this.
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
    """How texts met the model's window in this process, if any were embedded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeywordStatus:
    """What finds words, and how far it is: the store's own tables always are."""

    engine: str
    state: str
    generation: int | None = None
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class VariantStatus:
    """An index of the same documents, of whatever settings; `last_used` is empty when unknown."""

    path: str
    is_own: bool
    """Whether it is the one that this program uses."""
    bytes: int
    last_used: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingDifference:
    """A setting as the index was built with (`stored`) and as it is here (`own`), in JSON."""

    key: str
    stored: str
    own: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """What this program expects of the store, and what the store says; None: it says nothing."""

    fingerprint: str
    stored_fingerprint: str | None
    schema: int
    stored_schema: int | None
    same_settings: bool
    differences: tuple[SettingDifference, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class IgnoredSetting:
    """What a project's file sets and is not in force, because the file is not trusted; without a
    key, the whole file. `meaning` is what the setting would let the project do.
    """

    file: str
    line: int | None
    key: str
    value: str
    meaning: str
    standing: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """All of it. `summary` is one line for people, `notes` what else they should know or do."""

    state: Readiness
    summary: str
    notes: tuple[str, ...]
    version: str
    config_files: tuple[str, ...]
    trees: tuple[TreeStatus, ...]
    holdings: Holdings
    failures: tuple[FailedFile, ...]
    warnings: tuple[FileWarning, ...]
    """Those of loss first; of very many only the first."""
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
        """Whether it is as it should be, or becomes so by waiting."""
        return self.state in (Readiness.READY, Readiness.BUILDING)
