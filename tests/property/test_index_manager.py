"""Random file operations: the index that followed them holds what a fresh one holds."""

import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    rule,
    run_state_machine_as_test,
)

from ragdocs.indexing.changes import Hints, TreePath
from ragdocs.indexing.manager import IndexManager
from tests.support.indexes import DOCS, fresh, held, setup, tree
from tests.support.models import CountingEmbedder

FOLDERS = ["", "a", "a/b", "c", "x.md"]
NAMES = ["x.md", "y.md", "Y.md", "z.txt", "ä#%.md", "ignored.md"]
PATHS = st.builds(
    lambda folder, name: f"{folder}/{name}".lstrip("/"),
    st.sampled_from(FOLDERS),
    st.sampled_from(NAMES),
)
TEXTS = st.sampled_from(
    [
        b"",
        b"# Title\n\ntext\n",
        b"# Title\n\nlinks [[y]] and [[Title]]\n",
        b"---\ndate: 2020-01-01\naliases: [y]\n---\nsame size as below 1\n",
        b"---\ndate: 2020-01-01\naliases: [y]\n---\nsame size as below 2\n",
        b"\x89PNG\r\n\x1a\n\x00\x00\x00",
        b"# Long\n\n" + b"## Part\n\nMany words are here, again and again. \n\n" * 40,
        b"x" * 5001,
    ]
)


class FilesAndIndex(RuleBasedStateMachine):
    """Two managers of one index take turns; one is replaced now and then, as after a crash."""

    @initialize()
    def begin(self) -> None:
        self.place = Path(tempfile.mkdtemp(prefix="manager-"))
        self.root = self.place / "notes"
        self.root.mkdir()
        self.trees = [tree(self.root)]
        self.managers = [self.made(), self.made()]
        self.hints: set[str] = set()
        self.checks = 0

    def made(self) -> IndexManager:
        given = setup(self.place / "index", *self.trees, max_file_bytes=5000)
        return IndexManager(given, CountingEmbedder())

    @rule(path=PATHS, text=TEXTS)
    def write(self, path: str, text: bytes) -> None:
        with suppress(OSError):
            (self.root / path).parent.mkdir(parents=True, exist_ok=True)
            (self.root / path).write_bytes(text)
            self.hints.add(path)

    @rule(path=PATHS, text=TEXTS)
    def write_and_keep_mtime(self, path: str, text: bytes) -> None:
        with suppress(OSError):
            status = (self.root / path).stat()
            (self.root / path).write_bytes(text)
            os.utime(self.root / path, ns=(status.st_atime_ns, status.st_mtime_ns))
            self.hints.add(path)

    @rule(path=PATHS, seconds=st.integers(0, 2**32))
    def touch(self, path: str, seconds: int) -> None:
        with suppress(OSError):
            os.utime(self.root / path, ns=(seconds * 10**9, seconds * 10**9))
            self.hints.add(path)

    @rule(path=PATHS | st.sampled_from(FOLDERS[1:]))
    def delete(self, path: str) -> None:
        with suppress(OSError):
            self.hints.add(path)
            at = self.root / path
            shutil.rmtree(at) if at.is_dir() else at.unlink()

    @rule(old=PATHS | st.sampled_from(FOLDERS[1:]), new=PATHS | st.sampled_from(FOLDERS[1:]))
    def move(self, old: str, new: str) -> None:
        with suppress(OSError):
            self.hints |= {old, new}
            (self.root / new).parent.mkdir(parents=True, exist_ok=True)
            (self.root / old).rename(self.root / new)

    @rule(folder=st.sampled_from(["", "a"]), text=st.sampled_from(["", "ignored.md\n", "b\n"]))
    def ignore(self, folder: str, text: str) -> None:
        with suppress(OSError):
            (self.root / folder).mkdir(exist_ok=True)
            (self.root / folder / ".gitignore").write_text(text, encoding="utf-8")
            self.hints.add(f"{folder}/.gitignore".lstrip("/"))

    @rule(which=st.integers(0, 1))
    def replace_a_manager(self, which: int) -> None:
        self.managers[which].close()
        self.managers[which] = self.made()

    @rule(which=st.integers(0, 1))
    def update_without_vectors(self, which: int) -> None:
        self.managers[which].update(self.all_hints())

    @rule(which=st.integers(0, 1), how=st.sampled_from(["hints", "scan", "rebuild"]))
    def update(self, which: int, how: str) -> None:
        manager = self.managers[which]
        outcome = manager.update(
            self.all_hints() if how == "hints" else None, rebuild=how == "rebuild"
        )
        assert (outcome.kept, outcome.unsettled, outcome.rebuilt) == ((), frozenset(), None)
        assert manager.fill().error == ""
        manager.prune()
        self.checks += 1
        new = self.place / f"fresh-{self.checks}"
        assert held(self.place / "index") == fresh(new, *self.trees, max_file_bytes=5000)
        shutil.rmtree(new)

    def all_hints(self) -> Hints:
        hints = Hints(frozenset(TreePath(DOCS, path) for path in self.hints))
        self.hints.clear()
        return hints

    def teardown(self) -> None:
        for manager in getattr(self, "managers", ()):
            manager.close()
        if hasattr(self, "place"):
            shutil.rmtree(self.place, ignore_errors=True)


def test_random_operations_are_survived_and_end_as_a_fresh_index():
    run_state_machine_as_test(
        FilesAndIndex,
        settings=settings(max_examples=25, stateful_step_count=25, deadline=None),
    )
