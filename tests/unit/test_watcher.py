"""The watcher on real trees: what it hints at, what it leaves alone, and what it does when it
cannot watch. No test waits for nothing to happen: a later edit is waited for instead."""

import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from time import monotonic

import pytest

from ragdocs.indexing import watcher as watcher_module
from ragdocs.indexing.changes import (
    MAX_PATHS,
    FoundFile,
    Hints,
    Inbox,
    Pending,
    Scan,
    TreePath,
    outermost,
)
from ragdocs.indexing.discovery import discover, look
from ragdocs.indexing.watch_events import EventSource, Target, WatchRules
from ragdocs.indexing.watcher import Watcher, WatchMode, WatchOptions
from tests.support.machine import until
from tests.support.processes import run_code, run_python, with_tests
from tests.support.systems.needs import resource

DEADLINE = 60.0
STOP_SECONDS = 10.0
"""Stopping takes no time; a busy machine may let it wait for some."""
DEBOUNCE = 0.05
linux_only = pytest.mark.skipif(sys.platform != "linux", reason="inotify is Linux's")


@dataclass(frozen=True)
class Tree:
    root: Path
    name: str = "docs"
    include: tuple[str, ...] = ("**/*.md", "**/*.txt")
    exclude: tuple[str, ...] = ()
    within: Path | None = None


def at(path: str, tree: str = "docs") -> TreePath:
    return TreePath(tree, path)


def covers(hints: Hints, path: str, tree: str = "docs") -> bool:
    inside = outermost({*hints.paths, at(path, tree)}) <= hints.paths
    return hints.must_rescan or inside


class Seen:
    """Gathers the hints of a stream until they say what a test waits for."""

    def __init__(self, stream: Watcher) -> None:
        self.stream = stream
        self.hints: list[Hints] = []
        self._told: frozenset[TreePath] = frozenset()

    def until(self, is_enough: Callable[[Hints], bool]) -> Hints:
        """All that was hinted at up to then, as one. Where the watching thread had to wait, an
        earlier edit may be hinted at again: that is left out if it is not what is waited for."""
        deadline = monotonic() + DEADLINE
        while not self.hints or not is_enough(self.sum()):
            assert monotonic() < deadline, self.hints
            found = self.stream.wait(0.2)
            self.hints += [found] if found else []
        total = self.sum()
        fresh = Hints(total.paths - self._told, total.must_rescan, total.notes)
        self._told |= total.paths
        self.hints.clear()
        return fresh if is_enough(fresh) else total

    def sum(self) -> Hints:
        return Hints(
            frozenset[TreePath]().union(*(hints.paths for hints in self.hints)),
            any(hints.must_rescan for hints in self.hints),
            tuple(note for hints in self.hints for note in hints.notes),
        )

    def of(self, *paths: str) -> Hints:
        return self.until(lambda hints: all(covers(hints, path) for path in paths))

    def rescan(self) -> Hints:
        return self.until(lambda hints: hints.must_rescan)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "root"
    folder.mkdir()
    return folder


@pytest.fixture
def running() -> Iterator[Callable[..., Seen]]:
    watchers: list[Watcher] = []

    def start(*trees: Tree, **options: object) -> Seen:
        watcher = Watcher(trees, WatchOptions(**({"debounce_seconds": DEBOUNCE} | options)))
        watchers.append(watcher)
        watcher.start()
        assert watcher.mode is WatchMode.WATCHING, watcher.reason
        return Seen(watcher)

    yield start
    for watcher in watchers:
        watcher.stop()


def write(path: Path, text: str = "text") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


# What is hinted at


def test_a_new_an_edited_and_a_deleted_file(root: Path, running: Callable[..., Seen]):
    seen = running(Tree(root))
    write(root / "a.md")
    assert seen.of("a.md") == Hints(frozenset({at("a.md")}))
    write(root / "a.md", "more text")
    assert seen.of("a.md") == Hints(frozenset({at("a.md")}))
    (root / "a.md").unlink()
    assert seen.of("a.md") == Hints(frozenset({at("a.md")}))


def test_both_ends_of_a_move(root: Path, running: Callable[..., Seen]):
    write(root / "one" / "a.md")
    (root / "two").mkdir()
    seen = running(Tree(root))
    (root / "one" / "a.md").rename(root / "two" / "b.md")
    assert seen.of("one/a.md", "two/b.md").paths == {at("one/a.md"), at("two/b.md")}


def test_a_move_in_and_a_move_out(root: Path, running: Callable[..., Seen]):
    outside = write(root.parent / "outside.md")
    seen = running(Tree(root))
    outside.rename(root / "in.md")
    assert seen.of("in.md").paths == {at("in.md")}
    (root / "in.md").rename(outside)
    assert seen.of("in.md").paths == {at("in.md")}


def test_an_atomic_save(root: Path, running: Callable[..., Seen]):
    write(root / "a.md")
    seen = running(Tree(root))
    write(root / ".a.md.tmp123", "new text").rename(root / "a.md")
    write(root / "a.md.tmp", "newer text").rename(root / "a.md")
    assert seen.of("a.md").paths == {at("a.md")}


def test_an_edit_that_keeps_size_and_mtime(root: Path, running: Callable[..., Seen]):
    file = write(root / "a.md", "1234")
    times = file.stat()
    seen = running(Tree(root))
    file.write_text("4321", encoding="utf-8")
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert seen.of("a.md").paths == {at("a.md")}


def test_a_new_folder_with_files_already_in_it(root: Path, running: Callable[..., Seen]):
    write(root.parent / "made" / "deep" / "a.md")
    seen = running(Tree(root))
    (root.parent / "made").rename(root / "made")
    assert seen.of("made").paths == {at("made")}
    write(root / "made" / "deep" / "a.md", "its folder is watched now")
    assert seen.of("made/deep/a.md").paths == {at("made/deep/a.md")}


def test_a_renamed_folder_is_watched_under_its_new_name(root: Path, running: Callable[..., Seen]):
    write(root / "old" / "sub" / "a.md")
    seen = running(Tree(root))
    (root / "old").rename(root / "new")
    assert seen.of("old", "new").paths == {at("old"), at("new")}
    write(root / "new" / "sub" / "a.md", "again")
    assert seen.of("new/sub/a.md").paths == {at("new/sub/a.md")}


def test_a_folder_that_was_moved_away_is_not_watched_any_more(
    root: Path, running: Callable[..., Seen]
):
    write(root / "sub" / "deep" / "a.md")
    seen = running(Tree(root))
    (root / "sub").rename(root.parent / "away")
    assert seen.of("sub").paths == {at("sub")}
    write(root / "sub" / "new.md")
    seen.of("sub")
    write(root.parent / "away" / "deep" / "a.md", "outside")
    shutil.rmtree(root.parent / "away")
    shutil.rmtree(root / "sub")
    write(root / "last.md")
    assert at("sub/deep/a.md") not in seen.of("last.md").paths


def test_a_deleted_and_remade_folder(root: Path, running: Callable[..., Seen]):
    write(root / "sub" / "deep" / "a.md")
    seen = running(Tree(root))
    for number in range(5):
        shutil.rmtree(root / "sub")
        write(root / "sub" / "deep" / f"{number}.md")
    assert at("sub") in seen.of("sub").paths
    write(root / "sub" / "deep" / "b.md")
    assert seen.of("sub/deep/b.md")


def test_an_ignore_file_decides_for_its_folder(root: Path, running: Callable[..., Seen]):
    write(root / "sub" / "a.md")
    seen = running(Tree(root))
    write(root / "sub" / ".gitignore", "a.md\n")
    assert seen.of("sub").paths == {at("sub")}
    write(root / ".gitignore", "b.md\n")
    assert seen.of("").paths == {at("")}


def test_names_that_are_not_utf8(root: Path, running: Callable[..., Seen]):
    seen = running(Tree(root))
    name = os.fsdecode(b"caf\xe9 \n.md")
    try:
        (root / name).touch()
    except OSError:
        pytest.skip("this file system does not allow the name")
    assert seen.of(name).paths == {at(name)}


def test_a_storm_in_new_nested_folders_misses_nothing(root: Path, running: Callable[..., Seen]):
    seen = running(Tree(root))
    wanted: set[str] = set()
    for number in range(2000):
        path = f"{number % 7}/{number % 41}/{number % 13}/{number}.md"
        write(root / path)
        wanted.add(path)
    total = seen.until(lambda hints: all(covers(hints, path) for path in wanted))
    assert not total.must_rescan
    found = look(Tree(root), [hint.path for hint in total.paths])
    assert isinstance(found, Scan)
    assert {file.path for file in found.files} == wanted
    write(root / "6/40/12/late.md")
    seen.of("6/40/12/late.md")


def disturb(root: Path, rng: random.Random) -> None:
    """One edit of any kind; what the file system does not allow is no edit."""
    folders = [root, *(path for path in root.rglob("*") if path.is_dir())]
    here, there = rng.choice(folders), rng.choice(folders)
    with suppress(OSError):
        match rng.randrange(6):
            case 0 | 1:
                write(here / f"{rng.randrange(9)}.md", "text" * rng.randrange(9))
            case 2:
                write(here / str(rng.randrange(5)) / str(rng.randrange(5)) / "deep.md")
            case 3:
                here.rename(there / str(rng.randrange(5)))
            case 4 if here != root:
                shutil.rmtree(here)
            case _:
                (here / "1.md").rename(there / "2.md")


@pytest.mark.parametrize("seed", range(3))
def test_following_the_hints_leads_to_the_files(
    root: Path, running: Callable[..., Seen], seed: int
):
    """Hints are followed while the edits go on; in the end all is known as a scan knows it."""
    tree, rng = Tree(root), random.Random(seed)
    seen = running(tree, debounce_seconds=0.01)
    editing = threading.Thread(target=lambda: [disturb(root, rng) for _ in range(300)])
    editing.start()
    known: dict[str, FoundFile] = {}
    deadline = monotonic() + DEADLINE
    while editing.is_alive() or known != {file.path: file for file in whole(tree).files}:
        assert monotonic() < deadline, seed
        hints = seen.stream.wait(0.05) or Hints()
        paths = [""] if hints.must_rescan else [hint.path for hint in hints.paths]
        found = look(tree, paths)
        assert isinstance(found, Scan)
        known = {path: file for path, file in known.items() if not found.proves_absent(path)}
        known |= {file.path: file for file in found.files}
    editing.join()


def whole(tree: Tree) -> Scan:
    found = discover(tree)
    assert isinstance(found, Scan)
    return found


def test_nested_trees_and_trees_with_one_root_each_get_their_hint(
    root: Path, running: Callable[..., Seen]
):
    (root / "sub").mkdir()
    trees = [Tree(root, "outer"), Tree(root / "sub", "inner"), Tree(root, "again")]
    seen = running(*trees)
    write(root / "sub" / "deep" / "a.md")
    expected = [("sub/deep", "outer"), ("deep", "inner"), ("sub/deep", "again")]
    seen.until(lambda hints: all(covers(hints, *one) for one in expected))
    write(root / "sub" / "deep" / "a.md", "again")
    expected = [("sub/deep/a.md", "outer"), ("deep/a.md", "inner"), ("sub/deep/a.md", "again")]
    found = seen.until(lambda hints: all(covers(hints, *one) for one in expected))
    assert found.paths == {at(*one) for one in expected}


def test_a_root_that_is_a_link(root: Path, running: Callable[..., Seen]):
    (root.parent / "link").symlink_to(root)
    seen = running(Tree(root.parent / "link"))
    write(root / "a.md")
    assert seen.of("a.md").paths == {at("a.md")}
    other = root.parent / "other"
    other.mkdir()
    (root.parent / "link").unlink()
    (root.parent / "link").symlink_to(other)
    assert seen.rescan()
    write(other / "b.md")
    assert seen.of("b.md").paths == {at("b.md")}


# What is left alone


def test_what_is_never_indexed_is_no_hint(root: Path, running: Callable[..., Seen]):
    for folder in (".git", "node_modules", "drafts", "index"):
        (root / folder).mkdir()
    seen = running(Tree(root, exclude=("drafts", "*.skip.md")), private=(root / "index",))
    for name in [
        ".git/HEAD.md",
        ".git/objects/ab/c.md",
        "node_modules/lib/a.md",
        "drafts/a.md",
        "index/store.db",
        "index/a.md",
        "picture.png",
        "a.md~",
        ".hidden.md",
        "a.skip.md",
        ".new/a.md",
    ]:
        write(root / name)
    write(root / "last.md")
    assert seen.of("last.md") == Hints(frozenset({at("last.md")}))


def test_reading_is_no_change(root: Path, running: Callable[..., Seen]):
    """Or else our own reading would be a reason to read again, for ever."""
    write(root / "sub" / "a.md")
    seen = running(Tree(root))
    for _ in range(3):
        (root / "sub" / "a.md").read_bytes()
        list((root / "sub").iterdir())
        assert isinstance(discover(Tree(root)), Scan)
    write(root / "last.md")
    assert seen.of("last.md").paths == {at("last.md")}


def test_links_are_not_followed(root: Path, running: Callable[..., Seen]):
    outside = root.parent / "outside"
    outside.mkdir()
    (root / "out").symlink_to(outside)
    seen = running(Tree(root))
    (root / "later").symlink_to(outside)
    write(outside / "a.md")
    write(root / "last.md")
    assert seen.of("last.md").paths == {at("last.md")}


# Roots that come and go


def test_a_root_that_is_moved_away_and_back(root: Path, running: Callable[..., Seen]):
    write(root / "a.md")
    seen = running(Tree(root))
    root.rename(root.parent / "away")
    assert "docs: its folder is gone" in seen.rescan().notes
    assert isinstance(seen.stream, Watcher)
    assert seen.stream.mode is WatchMode.WATCHING
    assert "docs" in seen.stream.reason
    (root.parent / "away").rename(root)
    assert "docs: its folder is watched" in seen.rescan().notes
    assert seen.stream.reason == ""
    write(root / "a.md", "again")
    assert seen.of("a.md").paths == {at("a.md")}


def test_a_root_whose_parent_is_moved(root: Path, running: Callable[..., Seen]):
    """Nothing tells of that: it is looked for."""
    inner = root / "inner"
    inner.mkdir()
    seen = running(Tree(inner))
    root.rename(root.parent / "away")
    assert seen.rescan()
    (root.parent / "away").rename(root)
    assert seen.rescan()
    write(inner / "a.md")
    assert seen.of("a.md").paths == {at("a.md")}


def test_a_root_that_is_deleted_and_made_again_at_once(root: Path, running: Callable[..., Seen]):
    seen = running(Tree(root))
    shutil.rmtree(root)
    write(root / "a.md")
    assert seen.rescan()
    write(root / "b.md")
    assert seen.of("b.md")


def test_a_root_that_comes_later(root: Path, running: Callable[..., Seen]):
    seen = running(Tree(root / "later"), Tree(root, "other"))
    assert isinstance(seen.stream, Watcher)
    assert "docs" in seen.stream.reason
    write(root / "later" / "a.md")
    assert seen.rescan()
    write(root / "later" / "b.md")
    seen.of("b.md")


@contextmanager
def folder_of_someone_whom_permissions_bind() -> Iterator[Path]:
    """Permissions mean nothing to root, so that root steps down for as long as this lasts."""
    if sys.platform == "linux":
        import_module("watchdog.observers.inotify_c")  # who has stepped down may not read it
    with tempfile.TemporaryDirectory() as folder:
        root, user = Path(folder), os.geteuid()
        if user == 0:
            os.chown(root, 65534, -1)
            os.seteuid(65534)
        try:
            yield root
        finally:
            os.seteuid(user)


def test_a_folder_that_cannot_be_read_is_no_obstacle(running: Callable[..., Seen]):
    with folder_of_someone_whom_permissions_bind() as root:
        write(root / "locked" / "a.md")
        (root / "locked").chmod(0o000)
        seen = running(Tree(root))
        write(root / "open" / "a.md")
        seen.of("open/a.md")
        (root / "locked").chmod(0o755)
        assert seen.of("locked").paths == {at("locked")}
        write(root / "locked" / "a.md", "again")
        assert seen.of("locked/a.md").paths == {at("locked/a.md")}


def test_a_root_that_cannot_be_read_is_watched_when_it_can(running: Callable[..., Seen]):
    with folder_of_someone_whom_permissions_bind() as folder:
        root = folder / "root"
        write(root / "a.md")
        root.chmod(0o000)
        seen = running(Tree(root))
        assert isinstance(seen.stream, Watcher)
        assert "docs" in seen.stream.reason
        root.chmod(0o755)
        seen.rescan()
        assert seen.stream.reason == ""
        write(root / "a.md", "again")
        assert seen.of("a.md").paths == {at("a.md")}


# Starting and stopping


def names() -> set[str]:
    return {thread.name for thread in threading.enumerate()}


def test_start_and_stop_may_be_repeated_and_leave_nothing(root: Path):
    threads, descriptors = names(), len(os.listdir("/dev/fd"))
    watcher = Watcher([Tree(root)], WatchOptions(debounce_seconds=DEBOUNCE))
    assert (watcher.mode, watcher.wait(0.01)) == (WatchMode.OFF, None)
    watcher.stop()
    for _ in range(3):
        watcher.start()
        watcher.start()
        assert watcher.mode is WatchMode.WATCHING
        write(root / "a.md")
        Seen(watcher).of("a.md")
        began = monotonic()
        watcher.stop()
        watcher.stop()
        assert monotonic() - began < STOP_SECONDS
        assert (watcher.mode, watcher.reason) == (WatchMode.OFF, "not started")
        assert watcher.wait(0.01) is None
        until(lambda: names() <= threads)
    until(lambda: len(os.listdir("/dev/fd")) <= descriptors)


@linux_only
def test_many_trees_have_one_thread(root: Path):
    trees = [Tree(root / str(number), str(number)) for number in range(10)]
    for tree in trees:
        tree.root.mkdir()
    before = set(threading.enumerate())
    watcher = Watcher(trees, WatchOptions())
    watcher.start()
    assert len(set(threading.enumerate()) - before) == 1
    watcher.stop()
    until(lambda: not set(threading.enumerate()) - before)


def test_stopping_ends_a_wait(root: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(watcher_module, "CHECK_SECONDS", DEADLINE)  # it would end one as well
    watcher = Watcher([Tree(root)], WatchOptions())
    watcher.start()
    answers: list[Hints | None] = []
    waiting = threading.Thread(target=lambda: answers.append(watcher.wait(DEADLINE)))
    waiting.start()
    watcher.stop()
    waiting.join(STOP_SECONDS)
    assert answers == [None]


def test_stopping_in_the_middle_of_a_storm(root: Path):
    watcher = Watcher([Tree(root)], WatchOptions(debounce_seconds=DEBOUNCE))
    watcher.start()
    for number in range(500):
        write(root / str(number % 50) / f"{number}.md")
    began = monotonic()
    watcher.stop()
    assert monotonic() - began < STOP_SECONDS


# When it cannot watch


@linux_only
def test_an_overflow_asks_for_a_scan_and_watching_goes_on(root: Path):
    """A real one: watchdog's thread is held up while more happens than the kernel keeps."""
    from ragdocs.indexing.inotify import InotifySource

    room = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text(encoding="utf-8"))
    if room > 100_000:
        pytest.skip("the kernel's queue is very long here")
    held = threading.Event()

    class SlowInbox(Inbox):
        def touch(self, at: TreePath) -> None:
            held.wait(DEADLINE)
            super().touch(at)

    tree = Tree(root)
    write(root / "sub" / "a.md")
    write(root / "sub" / "b.md")
    inbox, source = SlowInbox(DEBOUNCE), InotifySource()
    try:
        source.arm(Target(tree.name, root, WatchRules(tree, root), inbox, threading.Event()))
        # Twice as many as there is room for: a good part is read before the thread is held up.
        for _ in range(room):
            os.utime(root / "sub" / "a.md")
            os.utime(root / "sub" / "b.md")
        write(root / "lost" / "deep" / "a.md")
        held.set()
        found = inbox.take(monotonic() + DEADLINE)
        while not (found and found.must_rescan):
            found = inbox.take(monotonic() + DEADLINE)
            assert found
        assert found.notes == ("too many events at once: some were lost",)
        write(root / "lost" / "deep" / "b.md")
        while not (found and at("lost/deep/b.md") in found.paths):
            found = inbox.take(monotonic() + DEADLINE)
            assert found
        assert source.is_alive
    finally:
        held.set()
        source.close()


def run(code: str, root: Path, *wrapper: str) -> list[dict[str, str]]:
    """Runs code in a process of its own, where limits can be set; what it said about watchers."""
    prologue = (
        "import json, os, sys, threading\n"
        "from pathlib import Path\n"
        "from time import monotonic\n"
        "from ragdocs.indexing.watcher import Watcher, WatchMode, WatchOptions\n"
        "from tests.unit.test_watcher import Tree, Seen, write\n"
        "from tests.support.machine import until\n"
        "import watchdog.observers.inotify_c\n"
        "root = Path(sys.argv[1])\n"
        "def say(watcher):\n"
        "    print(json.dumps({'mode': watcher.mode, 'reason': watcher.reason}), flush=True)\n"
    )
    done = run_python("-c", prologue + code, root, env=with_tests(), wrapper=wrapper)
    assert done.stderr == ""
    return [json.loads(line) for line in done.stdout.splitlines()]


@linux_only
def test_without_descriptors_it_polls_and_says_why(root: Path):
    code = (
        "import resource\n"
        "_, hard = resource.getrlimit(resource.RLIMIT_NOFILE)\n"
        "in_use = max(int(name) for name in os.listdir('/dev/fd'))\n"
        "for spare in range(3):\n"
        "    resource.setrlimit(resource.RLIMIT_NOFILE, (in_use + spare, hard))\n"
        "    watcher = Watcher([Tree(root)], WatchOptions())\n"
        "    watcher.start(); say(watcher)\n"
        "    before = threading.active_count(); watcher.stop()\n"
        "    assert before == threading.active_count() == 1\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (in_use + 20, hard))\n"
        "watcher.start(); say(watcher); watcher.stop()\n"
    )
    *without, enough = run(code, root)
    assert {found["mode"] for found in without} == {"polling"}
    assert all("many open files" in found["reason"] for found in without)
    assert enough == {"mode": "watching", "reason": ""}


LIMITED = 'echo {} > /proc/sys/user/max_inotify_{} && exec "$@"'


def limited(kind: str, limit: int) -> tuple[str, ...]:
    """Runs what follows where there is room for so many watches, for nobody else."""
    command = ("unshare", "--user", "--map-root-user", "sh", "-c", LIMITED.format(limit, kind), "-")
    if (
        shutil.which("unshare") is None
        or subprocess.run([*command, "true"], check=False).returncode
    ):
        pytest.skip("limits cannot be set for one process here")
    return command


@linux_only
def test_more_folders_than_can_be_watched(root: Path):
    for number in range(8):
        (root / str(number)).mkdir()
    code = (
        "watcher = Watcher([Tree(root)], WatchOptions())\n"
        "watcher.start(); say(watcher); watcher.stop()\n"
    )
    (found,) = run(code, root, *limited("watches", 5))
    assert found["mode"] == "polling"
    assert found["reason"] == "no more folders can be watched: inotify watch limit reached"


@linux_only
def test_the_limit_reached_by_a_new_folder(root: Path):
    code = (
        "watcher = Watcher([Tree(root)], WatchOptions(debounce_seconds=0.05))\n"
        "watcher.start(); say(watcher)\n"
        "seen = Seen(watcher)\n"
        "for number in range(8): write(root / str(number) / 'a.md')\n"
        "seen.until(lambda hints: hints.must_rescan and watcher.mode is WatchMode.POLLING)\n"
        "say(watcher); watcher.stop()\n"
        "until(lambda: threading.active_count() == 1)\n"
    )
    before, after = run(code, root, *limited("watches", 5))
    assert before["mode"] == "watching"
    assert after["mode"] == "polling"


@linux_only
def test_no_more_watchers_than_the_system_allows(root: Path):
    code = (
        "watchers = [Watcher([Tree(root)], WatchOptions()) for _ in range(3)]\n"
        "for watcher in watchers: watcher.start(); say(watcher)\n"
        "for watcher in watchers: watcher.stop()\n"
    )
    modes = [found["mode"] for found in run(code, root, *limited("instances", 2))]
    assert modes == ["watching", "watching", "polling"]


class Refused:
    """A system that has no room; later it may have."""

    def __init__(self) -> None:
        self.is_refused = True

    def __call__(self) -> EventSource:
        if self.is_refused:
            raise OSError(28, "inotify watch limit reached")
        return watcher_module.open_source()


def test_polling_asks_for_scans_and_watches_again_when_it_can(
    root: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(watcher_module, "_POLL_SECONDS", (0.01, 0.5))
    monkeypatch.setattr(watcher_module, "RETRY_SECONDS", 0.1)
    opening = Refused()
    watcher = Watcher([Tree(root)], WatchOptions(debounce_seconds=DEBOUNCE, open_source=opening))
    watcher.scan_took(0)
    watcher.start()
    assert watcher.mode is WatchMode.POLLING
    assert "limit" in watcher.reason
    seen = Seen(watcher)
    for _ in range(3):
        assert "a periodic scan" in seen.rescan().notes
    opening.is_refused = False
    seen.until(lambda hints: watcher.mode is WatchMode.WATCHING and hints.must_rescan)
    write(root / "a.md")
    seen.of("a.md")
    watcher.stop()


def test_polling_stays_within_its_share(root: Path):
    watcher = Watcher([Tree(root)], WatchOptions(open_source=Refused()))
    watcher.start()
    intervals: list[float] = []
    for seconds in (0.001, 0.2, 1000):
        watcher.scan_took(seconds)
        intervals.append(watcher._interval())
    watcher.stop()
    assert intervals == [5, 20, 600]


def test_a_thread_that_ends_is_replaced_and_if_it_ends_again_there_is_polling(root: Path):
    opened: list[EventSource] = []

    def opening() -> EventSource:
        opened.append(watcher_module.open_source())
        return opened[-1]

    watcher = Watcher([Tree(root)], WatchOptions(debounce_seconds=DEBOUNCE, open_source=opening))
    watcher.start()
    seen = Seen(watcher)
    opened[0].close()
    assert "the watching thread had ended" in seen.rescan().notes
    assert watcher.mode is WatchMode.WATCHING
    write(root / "a.md")
    seen.of("a.md")
    opened[1].close()
    seen.rescan()
    assert (watcher.mode, len(opened)) == (WatchMode.POLLING, 2)
    watcher.stop()


def test_a_scan_from_time_to_time(root: Path, running: Callable[..., Seen]):
    seen = running(Tree(root), rescan_seconds=0.1)
    for _ in range(3):
        assert seen.rescan().notes == ("a periodic scan",)


def test_waiting_costs_next_to_nothing(root: Path, running: Callable[..., Seen]):
    seen = running(Tree(root))
    # The least of a few: other threads of this process may have something to do, but not always.
    assert any(_seconds_of_waiting(seen.stream) < 0.1 for _ in range(3))


def _seconds_of_waiting(stream: Watcher) -> float:
    before = resource.getrusage(resource.RUSAGE_SELF)
    assert stream.wait(1.5) is None
    after = resource.getrusage(resource.RUSAGE_SELF)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


# watchdog's observer, for other systems


def test_the_observer_of_other_systems(root: Path):
    """With watchdog's own polling, which works everywhere."""
    from watchdog.observers.polling import PollingObserver

    from ragdocs.indexing.watch_events import ObserverSource

    for name in ("a.md", "sub/b.md", "gone/c.md", ".git/d.md"):
        write(root / name)
    watcher = Watcher(
        [Tree(root), Tree(root, "again")],
        WatchOptions(
            debounce_seconds=DEBOUNCE,
            open_source=lambda: ObserverSource(PollingObserver(timeout=0.05)),
        ),
    )
    watcher.start()
    assert watcher.mode is WatchMode.WATCHING
    seen = Seen(watcher)
    write(root / "a.md", "longer text")
    (root / "sub" / "b.md").rename(root / "sub" / "e.md")
    write(root / "new" / "deep" / "f.md")
    write(root / ".git" / "d.md", "longer text")
    write(root / "picture.png")
    shutil.rmtree(root / "gone")
    wanted = ["a.md", "sub/b.md", "sub/e.md", "new/deep/f.md", "gone/c.md"]
    total = seen.until(
        lambda hints: all(
            covers(hints, path, tree) for path in wanted for tree in ("docs", "again")
        )
    )
    assert not total.must_rescan
    assert not {hint.path for hint in total.paths} & {".git", ".git/d.md", "picture.png"}
    shutil.rmtree(root)
    seen.rescan()
    write(root / "a.md")
    seen.rescan()
    before = threading.active_count()
    watcher.stop()
    until(lambda: threading.active_count() < before)


def test_watchdog_is_imported_only_when_it_watches(root: Path):
    code = (
        "import sys\n"
        "from ragdocs.indexing.watcher import Watcher, WatchOptions\n"
        "watcher = Watcher([], WatchOptions())\n"
        "print([name for name in sys.modules if name.startswith('watchdog')])\n"
    )
    assert run_code(code).strip() == "[]"


# Debouncing, without a clock


def test_hints_wait_for_quiet():
    pending = Pending(0.5)
    assert pending.due() == float("inf")
    pending.touch(at("a.md"), 10.0)
    assert pending.due() == pytest.approx(10.5)
    pending.touch(at("b.md"), 10.4)
    assert pending.due() == pytest.approx(10.9)
    assert pending.take() == Hints(frozenset({at("a.md"), at("b.md")}))
    assert pending.due() == float("inf")


def test_a_file_that_keeps_changing_is_due_after_the_maximum_delay():
    pending = Pending(0.5)
    for tick in range(100):
        pending.touch(at("a.md"), 10.0 + tick * 0.4)
    assert pending.due() == pytest.approx(12.0)


def test_a_long_quiet_time_is_respected():
    pending = Pending(30)
    pending.touch(at("a.md"), 10.0)
    assert pending.due() == pytest.approx(40.0)


def test_what_lies_in_a_folder_that_is_looked_at_needs_no_hint():
    paths = [at("a"), at("a/b.md"), at("a/c/d.md"), at("ab.md"), at("a/b.md", "other")]
    assert outermost(paths) == {at("a"), at("ab.md"), at("a/b.md", "other")}
    assert outermost([*paths, at("")]) == {at(""), at("a/b.md", "other")}


def test_too_many_paths_are_a_scan_of_everything():
    pending = Pending(0.5)
    for number in range(MAX_PATHS + 5):
        pending.touch(at(f"{number}.md"), 10.0)
    hints = pending.take()
    assert (hints.paths, hints.must_rescan) == (frozenset(), True)
    assert hints.notes == (f"more than {MAX_PATHS} paths changed at once",)


def test_a_scan_at_once_does_not_wait():
    pending = Pending(0.5)
    pending.rescan("why", 10.0, at_once=True)
    assert pending.due() < 10.0
