"""Which events of a tree are worth a look, decided by names alone.

These are discovery's rules, as far as they cost nothing: what they let through and should not is
left out when it is looked at. Ignore files are not read here, because they change.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Protocol

from ragdocs.indexing.ignores import GITIGNORE, is_hidden, is_ignored_directory, is_leftover
from ragdocs.indexing.selection import Selection, TreeRules
from ragdocs.models import TreeName

Parts = tuple[str, ...]


class WatchedTree(TreeRules, Protocol):
    """What watching needs to know of a configured tree."""

    @property
    def name(self) -> TreeName: ...


class WatchRules:
    """The rules of one tree, for one thread at a time. `private` folders are not entered."""

    def __init__(self, tree: TreeRules, root: Path, private: Iterable[Path] = ()) -> None:
        self._selection = Selection(tree)
        resolved = [folder.resolve() for folder in private]
        self._private = {
            folder.relative_to(root).parts for folder in resolved if folder.is_relative_to(root)
        }

    def enters(self, parts: Parts) -> bool:
        """Whether a folder is watched, in one that is."""
        name = parts[-1]
        return not (
            is_ignored_directory(name)
            or parts in self._private
            or self._selection.excludes(parts, is_directory=True)
        )

    def reaches(self, parts: Parts) -> bool:
        """Whether every folder on the way is watched."""
        return all(self.enters(parts[:end]) for end in range(1, len(parts)))

    def file_hint(self, parts: Parts) -> Parts | None:
        """Where to look when the file changed: for an ignore file, at its folder."""
        if parts[-1] == GITIGNORE:
            return parts[:-1]
        return parts if self._wants(parts) else None

    def _wants(self, parts: Parts) -> bool:
        return (
            self._selection.includes(parts, inside=True)
            and not is_hidden(parts[-1])
            and not is_leftover(parts[-1])
            and not self._selection.excludes(parts, is_directory=False)
        )
