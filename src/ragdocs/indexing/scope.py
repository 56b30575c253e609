"""Which part of a tree is looked at: some files, and all below some folders."""

from collections.abc import Iterable

from ragdocs.errors import SourceError
from ragdocs.indexing.containment import relative_parts
from ragdocs.indexing.ignores import GITIGNORE

Names = dict[str, "Names | None"]
"""The names in a folder that are looked for, with those below each; None for all below it."""


def scope_of(paths: Iterable[str]) -> frozenset[str] | None:
    """The paths in their one spelling, None for the whole tree.

    An ignore file stands for its folder, because it decides there. A path that no file of a tree
    could have is left out.
    """
    scope: set[str] = set()
    for path in paths:
        try:
            parts = relative_parts(path) if path else ()
        except SourceError:
            continue
        parts = parts[:-1] if parts[-1:] == (GITIGNORE,) else parts
        if not parts:
            return None
        scope.add("/".join(parts))
    return frozenset(scope)


def names_in(scope: frozenset[str]) -> Names:
    top: Names = {}
    # A folder comes before what is below it, and then says it all.
    for path in sorted(scope, key=lambda path: path.split("/")):
        *folders, name = path.split("/")
        here: Names | None = top
        for folder in folders:
            here = here.setdefault(folder, {}) if here is not None else None
        if here is not None:
            here[name] = None
    return top
