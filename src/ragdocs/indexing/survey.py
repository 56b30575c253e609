"""Where to look → what is there: whole trees, or the paths that hints name."""

from collections import defaultdict
from collections.abc import Iterable, Mapping

from ragdocs.indexing.discovery import discover, look
from ragdocs.indexing.hints import Hints
from ragdocs.indexing.index_setup import IndexSetup
from ragdocs.indexing.manifest import Diff
from ragdocs.indexing.outcome import Kept, Skipped
from ragdocs.indexing.scan import RootUnavailable, Scan, TreePath
from ragdocs.models import TreeName

Scans = Mapping[TreeName, Scan | RootUnavailable]


def paths_of(hints: Hints | None) -> frozenset[TreePath] | None:
    """None is everywhere."""
    return None if hints is None or hints.must_rescan else hints.paths


def survey(setup: IndexSetup, paths: Iterable[TreePath] | None) -> Scans:
    """Trees in which nothing is to be looked at are not in it."""
    gitignore = setup.respect_gitignore
    if paths is None:
        return {tree.name: discover(tree, respect_gitignore=gitignore) for tree in setup.trees}
    wanted: defaultdict[TreeName, list[str]] = defaultdict(list)
    for at in paths:
        wanted[at.tree].append(at.path)
    return {
        tree.name: look(tree, wanted[tree.name], respect_gitignore=gitignore)
        for tree in setup.trees
        if tree.name in wanted
    }


def files_in(scans: Scans) -> int:
    return sum(len(scan.files) for scan in scans.values() if isinstance(scan, Scan))


def skipped_in(scans: Scans) -> tuple[Skipped, ...]:
    return tuple(
        Skipped(tree, one)
        for tree, scan in scans.items()
        if isinstance(scan, Scan)
        for one in scan.skipped
    )


def kept_in(scans: Scans, found: Diff) -> tuple[Kept, ...]:
    """Trees that are away, even when nothing of them is known; then those seen in part."""
    counts: defaultdict[TreeName, int] = defaultdict(int)
    for entry in found.kept:
        counts[entry.tree] += 1
    away = {tree: scan for tree, scan in scans.items() if isinstance(scan, RootUnavailable)}
    return (
        *(Kept(tree, scan.problem.value, counts[tree]) for tree, scan in away.items()),
        *(
            Kept(tree, "has folders that cannot be looked into", count)
            for tree, count in counts.items()
            if tree not in away
        ),
    )
