"""What an update says of itself, while it runs and when it has ended: values."""

from dataclasses import dataclass
from enum import StrEnum

from ragdocs.indexing.scan import SkippedPath, TreePath
from ragdocs.models import TreeName
from ragdocs.store.records import FileFailure


class Phase(StrEnum):
    """What is being done."""

    CHECKING = "checking"
    SCANNING = "scanning"
    READING = "reading"
    EMBEDDING = "embedding"
    TERMS = "terms"


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a phase is: steps, trees, files or texts; `chunks` are those stored in it so far."""

    phase: Phase
    done: int
    total: int
    chunks: int = 0


@dataclass(frozen=True, slots=True)
class Kept:
    """Documents of a tree that stay, because it could not be seen whether their files do."""

    tree: TreeName
    reason: str
    documents: int


@dataclass(frozen=True, slots=True)
class Skipped:
    """Something in a tree that was left out, and that its user should hear about."""

    tree: TreeName
    skipped: SkippedPath


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What an update did, and what the index holds after it.

    `unchanged` are files that were looked at and are as known; `failed` those that could not be
    indexed this time. `unsettled` changed again and again while they were read: look there again.
    """

    added: int
    modified: int
    unchanged: int
    removed: int
    moved: int
    failed: tuple[FileFailure, ...]
    kept: tuple[Kept, ...]
    skipped: tuple[Skipped, ...]
    unsettled: frozenset[TreePath]
    documents: int
    chunks: int
    seconds: float
    rebuilt: str | None
    """Why the store was emptied when it was opened, if so."""
    taken_over: bool
    """Whether that was because another program had made it."""
    stopped: bool

    @property
    def has_changed(self) -> bool:
        """Whether documents came, went or changed: search may answer differently now."""
        changed = self.added + self.modified + self.removed + self.moved
        return bool(changed or self.failed or self.rebuilt)
