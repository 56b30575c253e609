"""What a look at a tree gives: values, of a whole tree or of some paths in it."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from ragdocs.models import TreeName


class SkipReason(StrEnum):
    """Why something that looks as if it should be indexed is not."""

    UNREADABLE = "cannot be looked into"
    BROKEN_LINK = "is a link that leads nowhere"
    LINK_OUTSIDE = "is a link out of the tree, and those are not followed"
    LINK_TO_UNINDEXED = "is a link to a file that is not indexed itself"
    SPECIAL = "is not a regular file"
    KEY_NAME = "has the name of a private key"
    PATH_TOO_LONG = "has a path that is too long"
    IGNORE_FILE = "was not used: its rules do not apply"


class RootProblem(StrEnum):
    """Why a tree could not be scanned at all."""

    MISSING = "is not there"
    NOT_A_DIRECTORY = "is not a folder"
    UNREADABLE = "cannot be read"
    LINKED = "lies behind a link, and links of a project are not followed"
    LIMITED = "cannot be looked at now, because too many files are open"


@dataclass(frozen=True, slots=True, order=True)
class TreePath:
    """A file or a folder of a configured tree; the empty path is the whole tree."""

    tree: TreeName
    path: str


class FoundFile(NamedTuple):
    """A regular file by its tree-relative POSIX path; a byte that is not UTF-8 is a surrogate.

    `ctime_ns` tells of an edit that kept both size and mtime. A tuple, because every start makes
    one for each file: a dataclass takes three times as long, and the garbage collector follows it.
    """

    path: str
    size: int
    mtime_ns: int
    ctime_ns: int


@dataclass(frozen=True, slots=True, order=True)
class SkippedPath:
    """Something left out that the user should hear about."""

    path: str
    reason: SkipReason
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Scan:
    """What a tree holds, sorted by path. With a scope: what it holds at and below those paths."""

    files: tuple[FoundFile, ...]
    skipped: tuple[SkippedPath, ...]
    unseen: frozenset[str] = frozenset()
    scope: frozenset[str] | None = None

    def covers(self, path: str) -> bool:
        """Whether the path was looked for at all."""
        return self.scope is None or _is_within(path, self.scope)

    def proves_absent(self, path: str) -> bool:
        """Whether a path not among the files is gone, rather than hidden by what was unreadable
        or not looked for."""
        return self.covers(path) and not _is_within(path, self.unseen)


@dataclass(frozen=True, slots=True)
class RootUnavailable:
    """The tree could not be scanned: nothing is known of its files, least of all that they went."""

    root: Path
    problem: RootProblem


def _is_within(path: str, places: frozenset[str]) -> bool:
    """Whether the path, or a folder on the way to it, is one of the places."""
    if not places:
        return False
    parts = path.split("/")
    return any("/".join(parts[:end]) in places for end in range(1, len(parts) + 1))
