"""Locks between real processes: one holder, freed by the kernel, and not passed on to children."""

import os
import signal
import stat
import subprocess
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic

import pytest

from ragdocs.errors import IndexLocked, IndexStoreError
from ragdocs.indexing.service import ServiceState
from ragdocs.locks import Holder, holder
from ragdocs.store.folder import claim_folder
from ragdocs.store.lock import (
    LOOK_SECONDS,
    WATCH_LOCK,
    WRITE_LOCK,
    Succession,
    lock,
    try_lock,
    try_watch_lock,
    try_write_lock,
    watching,
    write_lock,
    writing,
)
from tests.support.machine import until
from tests.support.processes import python_process, read_line, send_line
from tests.support.systems import needs

DEADLINE = 60.0


def started(code: str, directory: Path) -> AbstractContextManager["subprocess.Popen[str]"]:
    """Runs code that finds the index directory in `directory`; it talks over its pipes."""
    prologue = (
        "import os, subprocess, sys, threading\n"
        "from pathlib import Path\n"
        "from ragdocs.store.lock import *\n"
        "directory = Path(sys.argv[1])\n"
        "def say(*words):\n"
        "    print(*words, flush=True)\n"
        "    sys.stdin.readline()\n"
    )
    return python_process(prologue + code, directory)


HOLDS = "held = try_watch_lock(directory)\nsay('held', held is not None)\n"


def test_one_holder_at_a_time(tmp_path: Path):
    with try_watch_lock(tmp_path) as held:
        assert held.is_held
        assert try_watch_lock(tmp_path) is None
        with started(HOLDS, tmp_path) as process:
            assert read_line(process) == "held False"
    assert not held.is_held
    with started(HOLDS, tmp_path) as process:
        assert read_line(process) == "held True"
        assert try_watch_lock(tmp_path) is None


def test_the_two_locks_have_nothing_to_do_with_each_other(tmp_path: Path):
    with try_watch_lock(tmp_path), try_write_lock(tmp_path):
        assert (tmp_path / WATCH_LOCK).exists()
        assert (tmp_path / WRITE_LOCK).exists()


def test_a_killed_holder_leaves_no_lock(tmp_path: Path):
    with started(HOLDS, tmp_path) as process:
        assert read_line(process) == "held True"
        assert watching(tmp_path) is not None
        process.send_signal(signal.SIGKILL)
        process.wait(timeout=DEADLINE)
        # What it wrote is still there, and nobody believes it.
        assert (tmp_path / WATCH_LOCK).read_bytes() != b""
        assert watching(tmp_path) is None
        with try_watch_lock(tmp_path) as held:
            assert held.is_held


def test_who_holds_it_and_since_when(tmp_path: Path):
    assert watching(tmp_path) is None
    assert list(tmp_path.iterdir()) == []
    before = datetime.now(UTC).replace(microsecond=0)
    with started(HOLDS, tmp_path) as process:
        read_line(process)
        found = watching(tmp_path)
        assert found is not None
        assert found.pid == process.pid
        assert found.since is not None
        assert before <= found.since <= datetime.now(UTC)
    assert watching(tmp_path) is None
    assert writing(tmp_path) is None


@pytest.mark.parametrize(
    "content",
    [b"", b"nonsense", b"[]", b'{"pid": "1"}', b'{"pid": -4}', b'{"since": "soon"}', b"[" * 200],
)
def test_what_is_written_in_the_file_is_not_trusted(tmp_path: Path, content: bytes):
    claim_folder(tmp_path)
    path = tmp_path / "a.lock"
    path.write_bytes(b'{"pid": 1}')
    assert holder(path) is None
    with try_lock(path):
        path.write_bytes(content)
        assert replace(holder(path), heard=None) == Holder()
        assert try_lock(path) is None


def test_asking_never_takes_the_lock_away(tmp_path: Path):
    """Who asks has the lock for an instant; whoever tries it then must not be turned away."""
    path = tmp_path / "a.lock"
    try_lock(path).close()
    stop = threading.Event()

    def ask() -> None:
        while not stop.is_set():
            holder(path)

    asking = [threading.Thread(target=ask) for _ in range(2)]
    for thread in asking:
        thread.start()
    try:
        for _ in range(200):
            with lock(path, timeout=DEADLINE):
                assert try_lock(path) is None
    finally:
        stop.set()
        for thread in asking:
            thread.join()


def test_waiting_ends_when_the_lock_is_free(tmp_path: Path):
    code = "held = try_write_lock(directory)\nsay('held')\nheld.close()\nsay('free')\n"
    with started(code, tmp_path) as process:
        assert read_line(process) == "held"
        waiting: list[bool] = []

        def wait() -> None:
            with write_lock(tmp_path, timeout=DEADLINE) as held:
                waiting.append(held.is_held)

        thread = threading.Thread(target=wait)
        thread.start()
        send_line(process)
        assert read_line(process) == "free"
        thread.join(DEADLINE)
        assert waiting == [True]


def test_waiting_ends_at_the_deadline_and_names_the_holder(tmp_path: Path):
    with started("held = try_write_lock(directory)\nsay('held')\n", tmp_path) as process:
        read_line(process)
        began = monotonic()
        with pytest.raises(IndexLocked) as caught:
            write_lock(tmp_path, timeout=0.1)
        assert f"locked by process {process.pid}" in str(caught.value)
        assert "not released within 0.1 s: try again when" in str(caught.value)
        assert monotonic() - began < DEADLINE / 2


def test_waiting_ends_when_it_is_told_to(tmp_path: Path):
    stop = threading.Event()
    stop.set()
    with try_write_lock(tmp_path), pytest.raises(IndexLocked):
        write_lock(tmp_path, timeout=DEADLINE, stop=stop)


def test_a_lock_file_that_was_deleted_is_noticed_by_whoever_waits(tmp_path: Path):
    file = tmp_path / WRITE_LOCK

    class DeletedAtTheFirstPause(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            if held.is_held:
                file.unlink()
            return super().wait(timeout)

    with try_write_lock(tmp_path) as held:
        with write_lock(tmp_path, timeout=2, stop=DeletedAtTheFirstPause()) as found:
            assert found.is_held
        assert not held.is_held


def test_by_turns_no_two_processes_hold_it(tmp_path: Path):
    """Each counts up a number in a file; without the lock some steps would be lost."""
    count = tmp_path / "count"
    claim_folder(tmp_path)
    count.write_text("0", encoding="utf-8")
    code = (
        "count = directory / 'count'\n"
        "for _ in range(100):\n"
        "    with write_lock(directory, timeout=60):\n"
        "        number = int(count.read_text(encoding='utf-8'))\n"
        "        count.write_text(str(number + 1), encoding='utf-8')\n"
        "say('done')\n"
    )
    with started(code, tmp_path) as one, started(code, tmp_path) as two:
        assert (read_line(one), read_line(two)) == ("done", "done")
    assert count.read_text(encoding="utf-8") == "200"


# Children


@needs.fork
def test_a_forked_child_does_not_keep_the_lock(tmp_path: Path):
    """The parent is killed, the child lives on: the lock is free."""
    code = (
        "held = try_watch_lock(directory)\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    try_again = try_watch_lock(directory)\n"
        "    say('child', held.is_held, try_again is None)\n"
        "    os._exit(0)\n"
        "os.waitpid(child, 0)\n"
    )
    with started(code, tmp_path) as process:
        assert read_line(process) == "child False True"
        process.kill()
        process.wait(timeout=DEADLINE)
        with lock(tmp_path / WATCH_LOCK, timeout=DEADLINE) as held:
            assert held.is_held
        send_line(process)


@needs.fork
def test_a_child_that_ends_does_not_free_its_parents_lock(tmp_path: Path):
    code = (
        "held = try_watch_lock(directory)\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    held.close()\n"
        "    os._exit(0)\n"
        "os.waitpid(child, 0)\n"
        "say('held', held.is_held)\n"
    )
    with started(code, tmp_path) as process:
        assert read_line(process) == "held True"
        assert watching(tmp_path).pid == process.pid
        assert try_watch_lock(tmp_path) is None


def test_a_started_program_does_not_inherit_the_lock(tmp_path: Path):
    code = (
        "held = try_watch_lock(directory)\n"
        "child = subprocess.Popen(['cat'], close_fds=False, stdin=subprocess.PIPE)\n"
        "held.close()\n"
        "say('closed')\n"
    )
    with started(code, tmp_path) as process:
        assert read_line(process) == "closed"
        with try_watch_lock(tmp_path) as held:
            assert held.is_held
        send_line(process)
        process.wait(timeout=DEADLINE)


# Files


@pytest.mark.parametrize(
    ("make", "says", "advice"),
    [
        (lambda path: path.write_bytes(b""), "exists", "move whatever is in its place"),
        (lambda path: path.symlink_to(path), "", "index_path"),
    ],
    ids=["a file", "a loop of links"],
)
def test_a_lock_that_cannot_be_made_says_what_to_do(
    tmp_path: Path, make: Callable[[Path], object], says: str, advice: str
):
    make(tmp_path / "index")
    with pytest.raises(IndexStoreError) as caught:
        try_watch_lock(tmp_path / "index")
    said = str(caught.value)
    assert "watch.lock cannot be locked: " in said
    assert says in said
    assert advice in said


def test_the_longest_words_can_be_read(tmp_path: Path):
    """Each fact is cut, and all of them fit: also those of the widest characters."""
    facts = dict.fromkeys(ServiceState().facts(), "𝄞" * 1000)
    with try_watch_lock(tmp_path) as held:
        held.say(facts)
        assert watching(tmp_path).says == {name: text[:300] for name, text in facts.items()}


def test_a_report_is_read_whole_while_it_is_written(tmp_path: Path):
    """The old ones or the new ones, and no mixture that means nothing."""
    words = [{"error": "x" * 250}, {"error": ""}]
    stop = threading.Event()
    with try_watch_lock(tmp_path) as held:
        held.say(words[0])

        def speak() -> None:
            while not stop.is_set():
                for facts in words:
                    held.say(facts)

        speaking = threading.Thread(target=speak)
        speaking.start()
        try:
            found = [watching(tmp_path) for _ in range(2000)]
        finally:
            stop.set()
            speaking.join()
    assert {one.pid for one in found} == {os.getpid()}
    assert all(one.says in words for one in found)


@needs.modes
def test_the_file_is_private_and_stays(tmp_path: Path):
    directory = tmp_path / "made" / "index"
    try_watch_lock(directory).close()
    path = directory / WATCH_LOCK
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    inode = path.stat().st_ino
    path.chmod(0o666)
    try_watch_lock(directory).close()
    assert (path.stat().st_ino, stat.S_IMODE(path.stat().st_mode)) == (inode, 0o600)


def test_a_deleted_file_is_noticed_by_its_holder(tmp_path: Path):
    """Someone else deleted the index directory: the next one locks another file."""
    with try_watch_lock(tmp_path) as held:
        (tmp_path / WATCH_LOCK).unlink()
        assert not held.is_held
        with try_watch_lock(tmp_path) as other:
            assert other.is_held
            assert not held.is_held
            held.close()
            assert other.is_held
            assert watching(tmp_path).pid == os.getpid()


@pytest.mark.parametrize("kind", ["directory", "link", "fifo"])
def test_what_is_not_a_file_makes_way_and_is_not_followed(tmp_path: Path, kind: str):
    claim_folder(tmp_path)
    path = tmp_path / WATCH_LOCK
    if kind == "directory":
        (path / "precious").mkdir(parents=True)
    elif kind == "link":
        path.symlink_to("elsewhere")
    else:
        os.mkfifo(path)
    assert watching(tmp_path) is None
    lock = try_watch_lock(tmp_path)
    assert lock
    with lock:
        assert lock.is_held
        assert watching(tmp_path).pid == os.getpid()
    assert not (tmp_path / "elsewhere").exists()
    assert len(list(tmp_path.glob("*.moved-*/precious"))) == (kind == "directory")


def test_no_descriptor_is_left_open(tmp_path: Path):
    before = len(os.listdir("/dev/fd"))
    for _ in range(20):
        with try_watch_lock(tmp_path):
            assert try_watch_lock(tmp_path) is None
            watching(tmp_path)
    assert len(os.listdir("/dev/fd")) <= before


# Standing by


def test_whoever_stands_by_has_the_lock_as_soon_as_its_holder_is_killed(tmp_path: Path):
    """On a thread of its own: this one does nothing for it."""
    with started(HOLDS, tmp_path) as other:
        assert read_line(other) == "held True"
        with Succession(tmp_path) as succession:
            assert not succession.is_over.wait(3 * LOOK_SECONDS)
            assert succession.take() is None
            other.kill()
            assert succession.is_over.wait(DEADLINE)
            until(lambda: (now := watching(tmp_path)) is not None and now.pid == os.getpid())
            lock = succession.take()
            assert lock
            assert lock.is_held
        assert lock.is_held, "whoever took it has it"
        lock.close()


def test_a_lock_that_nobody_took_is_freed_with_the_one_who_stood_by(tmp_path: Path):
    succession = Succession(tmp_path)
    assert succession.is_over.wait(DEADLINE)
    succession.close()
    until(lambda: watching(tmp_path) is None)
    with try_watch_lock(tmp_path):
        pass


def test_a_lock_file_that_was_replaced_is_noticed_by_whoever_stands_by(tmp_path: Path):
    held = try_watch_lock(tmp_path)
    with Succession(tmp_path) as succession:
        assert not succession.is_over.wait(2 * LOOK_SECONDS)
        (tmp_path / WATCH_LOCK).unlink()
        assert succession.is_over.wait(DEADLINE)
        lock = succession.take()
        assert lock
        assert lock.is_held
        lock.close()
    held.close()
