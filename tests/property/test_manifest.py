"""Random trees and edits: a look agrees with a scan, and a diff leads from one to the next."""

import os
import shutil
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ragdocs.indexing.changes import Scan, TreePath, outermost
from ragdocs.indexing.discovery import discover, look
from ragdocs.indexing.manifest import SETTLED_NS, Diff, diff, moves, relevant_entries
from ragdocs.indexing.reading import read_file
from ragdocs.models import DocId, TreeName
from ragdocs.parsers.ids import document_id
from ragdocs.store.records import ManifestEntry

DOCS = TreeName("docs")
Known = dict[DocId, ManifestEntry]
PATHS = st.builds(
    lambda folders, name: "/".join([*folders, name]),
    st.lists(st.sampled_from(["a", "b", "x.md", ".h", "node_modules", "no"]), max_size=3),
    st.sampled_from(["x.md", "y.md", "Y.MD", "z.txt", "p.png", "id_rsa.md", ".gitignore", "b"]),
)
ACTIONS = st.lists(
    st.tuples(
        st.sampled_from(["write", "write", "write", "same", "delete", "move", "link", "ignore"]),
        PATHS,
        PATHS,
        st.integers(0, 3),
    ),
    max_size=8,
)
settled = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@dataclass(frozen=True)
class Tree:
    root: Path
    include: tuple[str, ...] = ("*.md", "a")
    exclude: tuple[str, ...] = ("no",)
    within: Path | None = None


def act(root: Path, kind: str, path: str, other: str, number: int) -> None:
    """One edit; what the file system does not allow is no edit."""
    here, there = root / path, root / other
    with suppress(OSError):
        here.parent.mkdir(parents=True, exist_ok=True)
        if kind == "write":
            here.write_text("text" * number, encoding="utf-8")
        elif kind == "same":
            status = here.stat()
            here.write_bytes(here.read_bytes()[::-1])
            os.utime(here, ns=(status.st_atime_ns, status.st_mtime_ns))
        elif kind == "delete":
            shutil.rmtree(here) if here.is_dir() else here.unlink()
        elif kind == "move":
            there.parent.mkdir(parents=True, exist_ok=True)
            here.rename(there)
        elif kind == "link":
            here.symlink_to(os.path.relpath(there, here.parent))
        elif kind == "ignore":
            (here.parent / ".gitignore").write_text(here.name + "\n", encoding="utf-8")


def whole(tree: Tree) -> Scan:
    found = discover(tree)
    assert isinstance(found, Scan)
    return found


def every_path(root: Path, more: Iterable[str]) -> list[str]:
    names = {
        os.path.relpath(os.path.join(folder, name), root)
        for folder, folders, files in os.walk(root)
        for name in (*folders, *files)
    }
    return sorted({*names, *more})


@settled
@given(actions=ACTIONS, more=st.lists(PATHS, max_size=3))
def test_a_look_at_any_path_agrees_with_a_scan(
    actions: list[tuple[str, str, str, int]], more: list[str]
):
    with tempfile.TemporaryDirectory() as folder:
        tree = Tree(Path(folder))
        for action in actions:
            act(tree.root, *action)
        full = whole(tree)
        candidates = every_path(tree.root, more)
        for asked in [*([path] for path in candidates), candidates, more]:
            seen = look(tree, asked)
            assert isinstance(seen, Scan)
            assert seen.files == tuple(file for file in full.files if seen.covers(file.path))
            within = {one for one in seen.skipped if seen.covers(one.path)}
            assert within == {one for one in full.skipped if seen.covers(one.path)}
            for path in asked:
                assert path.endswith(".gitignore") or seen.covers(path)


def read(root: Path, paths: Iterable[str]) -> Known:
    """What the store would know after reading these files."""
    known: Known = {}
    for path in paths:
        state = read_file(root, path, 10_000).state
        doc_id = document_id(DOCS, path)
        # So long after the last edit that only a later one can be a doubt.
        read_ns = os.lstat(root / path).st_ctime_ns + SETTLED_NS
        known[doc_id] = ManifestEntry(doc_id, DOCS, path, state, read_ns)
    return known


def applied(
    known: dict[DocId, ManifestEntry], found: Diff, root: Path
) -> dict[DocId, ManifestEntry]:
    gone = {entry.doc_id for entry in found.removed}
    kept = {doc_id: entry for doc_id, entry in known.items() if doc_id not in gone}
    return kept | read(root, [file.path for file in found.to_read])


def contents(known: Known) -> dict[DocId, str]:
    return {doc_id: entry.state.content_hash for doc_id, entry in known.items() if entry.state}


@settled
@given(before=ACTIONS, after=ACTIONS)
def test_a_diff_leads_from_one_state_to_the_next(
    before: list[tuple[str, str, str, int]], after: list[tuple[str, str, str, int]]
):
    with tempfile.TemporaryDirectory() as folder:
        tree = Tree(Path(folder))
        for action in before:
            act(tree.root, *action)
        known = read(tree.root, [file.path for file in whole(tree).files])
        # The clock does not go on by two seconds for a test: as if read right after the edits.
        known = {key: one._replace(read_ns=one.read_ns - SETTLED_NS) for key, one in known.items()}
        for action in after:
            act(tree.root, *action)
        seen = whole(tree)
        found = diff(known.values(), {DOCS: seen}, {DOCS})
        result = applied(known, found, tree.root)
        assert contents(result) == contents(read(tree.root, [file.path for file in seen.files]))
        assert sorted((*found.gone, *found.missing), key=lambda entry: entry.path) == [
            *found.removed
        ]
        assert {*found.to_read} == {*found.added, *found.modified}
        assert len(found.to_read) == len(found.added) + len(found.modified)
        states = {file.doc_id: result[file.doc_id].state for file in found.to_read}
        for move in moves(found.removed, {key: one for key, one in states.items() if one}):
            assert move.old in {entry.doc_id for entry in found.missing}
            assert contents(known)[move.old] == contents(result)[move.new]


@settled
@given(before=ACTIONS, after=ACTIONS)
def test_diffs_of_single_paths_add_up_to_the_diff_of_all(
    before: list[tuple[str, str, str, int]], after: list[tuple[str, str, str, int]]
):
    with tempfile.TemporaryDirectory() as folder:
        tree = Tree(Path(folder))
        for action in before:
            act(tree.root, *action)
        known = read(tree.root, [file.path for file in whole(tree).files])
        for action in after:
            act(tree.root, *action)
        everything = diff(known.values(), {DOCS: whole(tree)}, {DOCS})
        asked = every_path(tree.root, (entry.path for entry in known.values()))
        parts: list[Diff] = []
        for path in asked:
            scans = {DOCS: look(tree, [path])}
            parts.append(diff(relevant_entries(known, scans), scans, {DOCS}))
            assert parts[-1] == diff(known.values(), scans, {DOCS})
        for kind in ("added", "modified", "removed"):
            one_by_one = {file.doc_id for part in parts for file in getattr(part, kind)}
            assert one_by_one == {file.doc_id for file in getattr(everything, kind)}


@given(st.sets(st.builds(TreePath, st.sampled_from(["t", "u"]), PATHS | st.just("")), max_size=12))
def test_the_outermost_paths_cover_the_same(paths: set[TreePath]):
    def covered(by: Iterable[TreePath], one: TreePath) -> bool:
        inside = (at for at in by if at.tree == one.tree)
        return any(at.path in ("", one.path) or one.path.startswith(f"{at.path}/") for at in inside)

    least = outermost(paths)
    assert least <= paths
    assert all(covered(least, one) for one in paths)
    assert not any(covered(least - {one}, one) for one in least)
