"""Any file operations in any order, with servers that come and go: the index is a fresh build's."""

import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    rule,
    run_state_machine_as_test,
)

from ragdocs.app import App
from tests.support.program import served
from tests.support.storms.oracle import compare

FOLDERS = ["", "a", "a/b", "c", "x.md", ".hidden"]
NAMES = ["x.md", "y.md", "Y.md", "z.txt", "ä #%.md", "ignored.md"]
AT_FIRST = ["x.md/x.md", "a/x.md", "a/y.md", "a/b/x.md", "a/b/z.txt", "c/y.md", "y.md"]
PATHS = st.sampled_from([f"{folder}/{name}".lstrip("/") for folder in FOLDERS for name in NAMES])
PLACES = PATHS | st.sampled_from(FOLDERS[1:])
PICKS = st.integers(0, 999)
"""One of the files and folders that are there."""
SELDOM = st.sampled_from([False] * 4 + [True])
"""For what makes everything be looked at: too often, and nothing else is ever needed."""
TEXTS = st.sampled_from(
    [
        b"",
        b"# Title\n\nlinks [[y]] and [[Title]]\n",
        b"---\ndate: 2020-01-01\naliases: [y]\n---\nsame size as below 1\n",
        b"---\ndate: 2020-01-01\naliases: [y]\n---\nsame size as below 2\n",
        b"\x89PNG\r\n\x1a\n\x00\x00\x00",
        b"# Long\n\n" + b"## Part\n\nMany words are here, again and again. \n\n" * 40,
    ]
)


class FilesAndServers(RuleBasedStateMachine):
    """Up to two servers on one index; whoever is left must see everything, however it came."""

    @initialize()
    def begin(self) -> None:
        self.place = Path(tempfile.mkdtemp(prefix="servers-"))
        self.root, self.index = self.place / "docs", self.place / "index"
        for path in AT_FIRST:
            self.write(path, f"# {path}\n\nlinks [[x]] and [[y]]\n".encode())
        self.apps: list[App] = []
        self.start(True)

    @rule(really=SELDOM)
    def start(self, really: bool) -> None:
        if really and len(self.apps) < 2:
            self.apps.append(served(self.root, self.index))
            self.apps[-1].service.start()

    @rule(really=SELDOM)
    def stop_the_first(self, really: bool) -> None:
        """Files may change while nobody looks."""
        if really and self.apps:
            self.apps.pop(0).close()

    @rule(path=PATHS, text=TEXTS)
    def write(self, path: str, text: bytes) -> None:
        with suppress(OSError):
            (self.root / path).parent.mkdir(parents=True, exist_ok=True)
            (self.root / path).write_bytes(text)

    @rule(pick=PICKS, text=TEXTS)
    def write_and_keep_mtime(self, pick: int, text: bytes) -> None:
        with suppress(OSError):
            at = self.some(pick)
            status = at.stat()
            at.write_bytes(text)
            os.utime(at, ns=(status.st_atime_ns, status.st_mtime_ns))

    @rule(pick=PICKS, text=TEXTS)
    def save_atomically(self, pick: int, text: bytes) -> None:
        with suppress(OSError):
            at = self.some(pick)
            beside = at.with_name(f"{at.name}~")
            beside.write_bytes(text)
            beside.replace(at)

    @rule(pick=PICKS, seconds=st.sampled_from([0, 1, 2**31, 4_102_444_800]))
    def set_time(self, pick: int, seconds: int) -> None:
        os.utime(self.some(pick), ns=(seconds * 10**9, seconds * 10**9))

    @rule(pick=PICKS)
    def delete(self, pick: int) -> None:
        at = self.some(pick)
        if at != self.root:
            shutil.rmtree(at) if at.is_dir() else at.unlink()

    @rule(pick=PICKS, new=PLACES)
    def move(self, pick: int, new: str) -> None:
        with suppress(OSError):
            (self.root / new).parent.mkdir(parents=True, exist_ok=True)
            self.some(pick).rename(self.root / new)

    @rule(pick=PICKS)
    def take_out_and_bring_back(self, pick: int) -> None:
        """The events of both ends may come in one go."""
        at = self.some(pick)
        at.rename(self.place / "away")
        (self.place / "away").rename(at)

    @rule(folder=st.sampled_from(["", "a"]), text=st.sampled_from(["", "ignored.md\n", "b\n"]))
    def ignore(self, folder: str, text: str) -> None:
        with suppress(OSError):
            (self.root / folder).mkdir(exist_ok=True)
            (self.root / folder / ".gitignore").write_text(text, encoding="utf-8")

    @rule(really=SELDOM)
    def move_the_root_away_and_back(self, really: bool) -> None:
        if really:
            self.root.rename(self.place / "elsewhere")
            (self.place / "elsewhere").rename(self.root)

    @rule(really=SELDOM)
    def replace_the_root(self, really: bool) -> None:
        """By a copy of itself: other folders, and all of the same names."""
        if not really:
            return
        shutil.copytree(self.root, self.place / "copy", symlinks=True)
        shutil.rmtree(self.root)
        (self.place / "copy").rename(self.root)

    def some(self, pick: int) -> Path:
        """The root itself when there is nothing in it."""
        there = sorted(self.root.rglob("*"))
        return there[pick % len(there)] if there else self.root

    @rule()
    def settle(self) -> None:
        self.start(not self.apps)
        assert compare(self.root, self.index) == []
        assert [app.service.state.error for app in self.apps if app.service.state.error] == []

    def teardown(self) -> None:
        if not hasattr(self, "place"):
            return
        try:
            self.settle()
        finally:
            for app in self.apps:
                app.close()
            shutil.rmtree(self.place, ignore_errors=True)


def assert_random_operations_converge(number: int, *, examples: int, steps: int) -> None:
    """Not made smaller when it fails: each attempt waits for what never comes."""
    chosen = settings(
        max_examples=examples,
        stateful_step_count=steps,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    run_state_machine_as_test(seed(number)(FilesAndServers), settings=chosen)
