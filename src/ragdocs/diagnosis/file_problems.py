"""Files that could not be indexed, and warnings about files that were: read from the store.

Apart from `status`, because the indexing commands need only this.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ragdocs.parsers.ids import encode_path

if TYPE_CHECKING:
    from ragdocs.store.snapshot import Snapshot

MAX_FAILURES = MAX_WARNINGS = 100
"""How many of each `status` lists."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedFile:
    """A file that could not be indexed, and why."""

    tree: str
    path: str
    kind: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FileWarning:
    """A warning about an indexed file: `kind` is a name for programs, `count` how often it occurs
    (in bytes, headings, …), `is_loss` whether some of the text cannot be found because of it."""

    tree: str
    path: str
    kind: str
    count: int
    is_loss: bool
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WarningCount:
    """How many files have warnings of one kind, and how often it occurs in all of them."""

    kind: str
    files: int
    count: int


def failed_files(snapshot: "Snapshot") -> tuple[FailedFile, ...]:
    return tuple(
        FailedFile(
            tree=found.tree, path=encode_path(found.path), kind=found.kind, reason=found.reason
        )
        for found in snapshot.failures(MAX_FAILURES)
    )


def file_warnings(snapshot: "Snapshot") -> tuple[FileWarning, ...]:
    """All of them; the ones with loss come first."""
    found = [
        FileWarning(
            tree=document.tree,
            path=encode_path(document.path),
            kind=one.kind.value,
            count=one.count,
            is_loss=one.is_loss,
            text=one.text,
        )
        for document in snapshot.documents_with_warnings()
        for one in document.warnings
    ]
    return tuple(sorted(found, key=lambda one: not one.is_loss))


def warning_counts(warnings: Iterable[FileWarning]) -> tuple[WarningCount, ...]:
    """Per kind, in the order in which the kinds first appear."""
    files: dict[str, set[tuple[str, str]]] = {}
    counts: Counter[str] = Counter()
    for one in warnings:
        files.setdefault(one.kind, set()).add((one.tree, one.path))
        counts[one.kind] += one.count
    return tuple(
        WarningCount(kind=kind, files=len(having), count=counts[kind])
        for kind, having in files.items()
    )
