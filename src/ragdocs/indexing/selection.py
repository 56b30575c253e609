"""The user's choice of files in a tree: the `include` and `exclude` patterns."""

import os
from pathlib import Path
from typing import Protocol

from ragdocs.indexing.patterns import RuleSet

TEXT_EXTENSIONS = frozenset({".md", ".markdown", ".txt"})


class TreeRules(Protocol):
    """What discovery needs to know of a configured tree."""

    @property
    def root(self) -> Path: ...
    @property
    def within(self) -> Path | None: ...
    @property
    def include(self) -> tuple[str, ...]: ...
    @property
    def exclude(self) -> tuple[str, ...]: ...


class Selection:
    """The user's patterns. Extensions are compared without regard to case, the rest exactly."""

    def __init__(self, tree: TreeRules) -> None:
        self._include = RuleSet(tree.include), RuleSet(map(_fold_extension, tree.include))
        self._exclude = RuleSet(tree.exclude), RuleSet(map(_fold_extension, tree.exclude))
        self._has_excludes = bool(tree.exclude)

    def excludes(self, parts: tuple[str, ...], is_directory: bool) -> bool:
        return self._has_excludes and self._verdict(self._exclude, parts, is_directory) is True

    def includes(self, parts: tuple[str, ...], inside: bool) -> bool:
        verdict = self._verdict(self._include, parts, False)
        if verdict is not None:
            return verdict
        return inside and os.path.splitext(parts[-1])[1].lower() in TEXT_EXTENSIONS

    def includes_directory(self, parts: tuple[str, ...], inside: bool) -> bool:
        """Whether a pattern names this folder, or one around it: then its texts are included."""
        verdict = self._verdict(self._include, parts, True)
        return inside if verdict is None else verdict

    @staticmethod
    def _verdict(
        rules: tuple[RuleSet, RuleSet], parts: tuple[str, ...], is_directory: bool
    ) -> bool | None:
        exact, folded = rules
        if is_directory:
            return exact.verdict(parts, True)
        name = _fold_extension(parts[-1])
        return folded.verdict(parts if name == parts[-1] else (*parts[:-1], name), False)


def _fold_extension(path: str) -> str:
    if path.islower():  # most names, and a third of the time
        return path
    stem, extension = os.path.splitext(path)
    return stem + extension.lower()
