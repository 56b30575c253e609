"""How processes end: real ones, that hang in calls which nothing can interrupt."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest

from ragdocs import shutdown
from ragdocs.shutdown import PARENT_SECONDS, Ending, EndReason
from ragdocs.store.folder import MARK_FILE
from ragdocs.store.lock import watching, writing
from tests.support.children import ALLOWED_SECONDS, LATE_SECONDS
from tests.support.machine import until
from tests.support.processes import read_line
from tests.support.systems import needs

DEADLINE = 60.0

PROLOGUE = f"""
import ctypes, os, signal, subprocess, sys, threading, time
from pathlib import Path
from ragdocs.store.lock import try_watch_lock, try_write_lock
from ragdocs import shutdown as lifecycle
from ragdocs.shutdown import Ending, EndReason

# As in `tests.support.children`: so late that it is known who ended the process.
usual, lifecycle.ALARM_SECONDS = lifecycle.ALARM_SECONDS, {LATE_SECONDS}

def say(*words):
    print(*words, flush=True)

def hang():
    # A mutex locked twice: the call takes no time, releases the GIL, and goes on after signals.
    c, mutex = ctypes.CDLL(None), ctypes.create_string_buffer(128)
    c.pthread_mutex_lock(mutex)
    c.pthread_mutex_lock(mutex)

directory = Path(sys.argv[1])
"""


@contextmanager
def started(code: str, directory: Path) -> Iterator["subprocess.Popen[str]"]:
    """With a session to itself, all of which is killed at the end, or at the deadline."""
    with subprocess.Popen(
        [sys.executable, "-c", PROLOGUE + code, os.fspath(directory)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        env=os.environ | {"PYTHONUNBUFFERED": ""},
        start_new_session=True,
    ) as process:

        def kill() -> None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)

        timer = threading.Timer(DEADLINE, kill)
        timer.start()
        try:
            yield process
        finally:
            timer.cancel()
            timer.join()
            kill()


def ends(process: "subprocess.Popen[str]") -> tuple[int, float]:
    """Its exit code, and how long that took."""
    began = time.monotonic()
    code = process.wait(timeout=DEADLINE)
    return code, time.monotonic() - began


READY = "    say('ready')\n"
HANGS = {
    "the main thread": f"{READY}    hang()\n",
    "a thread, at the exit": (
        f"    threading.Thread(target=hang).start()\n{READY}    ending.begun.wait()\n"
    ),
    "a callback, and the exit": (
        f"    ending.when_begun(hang)\n{READY}    ending.begun.wait()\nhang()\n"
    ),
}
NO_TURN = (
    "    lifecycle.ALARM_SECONDS = usual\n"
    "    def hold_the_gil():\n"
    "        ending.begun.wait()\n"
    "        while True:\n"
    "            ctypes.PyDLL(None).sleep(60)\n"
    f"    threading.Thread(target=hold_the_gil).start()\n{READY}    ending.begun.wait()\n"
)
# Without timers it is faulthandler that ends such a process, and that always says 1.
HAS_TIMERS = hasattr(signal, "setitimer")
CASES = [
    *((where, body, signal.SIGTERM, 143) for where, body in HANGS.items()),
    *((where, body, signal.SIGINT, 130) for where, body in HANGS.items()),
    ("where no thread gets a turn", NO_TURN, signal.SIGTERM, 143 if HAS_TIMERS else 1),
    ("where no thread gets a turn", NO_TURN, signal.SIGINT, 130 if HAS_TIMERS else 1),
]


def test_a_process_that_hangs_ends_in_time_and_leaves_no_lock(tmp_path):
    """All at once, since each takes its time."""
    locks = "writes, watches = try_write_lock(directory), try_watch_lock(directory)\n"
    with ExitStack() as stack:
        processes: dict[Path, subprocess.Popen[str]] = {}
        for number, (_, body, *_) in enumerate(CASES):
            program = f"{locks}with Ending() as ending:\n{body}"
            directory = tmp_path / str(number)
            processes[directory] = stack.enter_context(started(program, directory))
        for directory, process in processes.items():
            assert read_line(process) == "ready"
            assert writing(directory).pid == watching(directory).pid == process.pid
        began = time.monotonic()
        for process, (_, _, number, _) in zip(processes.values(), CASES, strict=True):
            process.send_signal(number)
        for (directory, process), (where, _, number, code) in zip(
            processes.items(), CASES, strict=True
        ):
            assert process.wait(timeout=DEADLINE) == code, (where, number)
            assert time.monotonic() - began < ALLOWED_SECONDS, (where, number)
            assert (writing(directory), watching(directory)) == (None, None)
            left = {file.name for file in directory.iterdir()} - {MARK_FILE}
            assert left == {"write.lock", "watch.lock"}


def test_what_was_printed_comes_out_and_what_nobody_reads_keeps_no_process_alive(tmp_path):
    last_words = (
        f"lifecycle.LAST_SECONDS = {LATE_SECONDS}\n"  # or a busy machine may be too slow for them
        "with Ending() as ending:\n"
        "    ending.before_force(lambda: 1 / 0)\n"
        "    ending.before_force(lambda: print('last words', file=sys.stderr))\n"
        "    say('ready')\n"
        "    print('still in the buffer')\n"
        "    hang()\n"
    )
    blocked = (
        "def fill():\n"
        "    while True:\n"
        "        print('x' * 1000)\n"
        "with Ending() as ending:\n"
        "    say('ready')\n"
        "    threading.Thread(target=fill).start()\n"
        "    hang()\n"
    )
    with started(last_words, tmp_path) as says, started(blocked, tmp_path) as waits:
        for process in (says, waits):
            assert read_line(process) == "ready"
            process.send_signal(signal.SIGTERM)
        ended, seconds = ends(waits)
        assert (ended, seconds < ALLOWED_SECONDS) == (143, True)
        assert says.stdout.read() == "still in the buffer\n"
        assert says.stderr.read() == "last words\n"


def test_a_process_that_ends_by_itself_is_not_disturbed(tmp_path):
    code = (
        f"with Ending(watch_parent=False, limit={LATE_SECONDS}) as ending:\n"
        "    say('ready')\n"
        "    ending.begun.wait()\n"
        "say(ending.reason, ending.exit_code)\n"
        "sys.exit(7)\n"
    )
    with started(code, tmp_path) as process:
        read_line(process)
        process.send_signal(signal.SIGINT)
        assert read_line(process) == "SIGINT 130"
        assert process.wait(timeout=DEADLINE) == 7


# The parent


ORPHANS = {
    f"{EndReason.ORPHANED}\n": (
        f"with Ending(limit={LATE_SECONDS}) as ending:\n"  # it ends by itself
        f"{READY}    ending.begun.wait()\nsay(ending.reason)\n"
    ),
    "": f"with Ending() as ending:\n{READY}    hang()\n",
}


def test_a_process_whose_parent_was_killed_ends_in_time(tmp_path):
    """A middle process starts it and is killed. Its output is ours, and ends when it does."""
    with ExitStack() as stack:
        processes: dict[str, subprocess.Popen[str]] = {}
        for said, body in ORPHANS.items():
            code = f"held = try_watch_lock(directory)\n{body}"
            middle = (
                f"child = [sys.executable, '-c', {PROLOGUE + code!r}, sys.argv[1]]\n"
                "subprocess.Popen(child).wait()\n"
            )
            processes[said] = stack.enter_context(started(middle, tmp_path / str(len(said))))
        for said, process in processes.items():
            assert read_line(process) == "ready"
            assert watching(tmp_path / str(len(said))).pid != process.pid
        began = time.monotonic()
        for process in processes.values():
            process.kill()
        for said, process in processes.items():
            assert process.stdout.read() == said
            assert time.monotonic() - began < ALLOWED_SECONDS
            # Its output is closed a moment before its lock is.
            place = tmp_path / str(len(said))
            until(lambda place=place: watching(place) is None)


@needs.fork
def test_not_every_orphan_ends(tmp_path):
    """One was an orphan before it began, as services are; and one does not want to know."""
    service = (
        "parent = os.getpid()\n"
        "if os.fork():\n"
        "    os._exit(0)\n"
        "while os.getppid() == parent:\n"
        "    time.sleep(0.001)\n"
        "with Ending() as ending:\n"
        "    say('ready')\n"
        f"    say(ending.begun.wait({4 * PARENT_SECONDS}))\n"
    )
    background = (
        "parent = os.getpid()\n"
        "if os.fork():\n"
        "    sys.stdin.readline()\n"
        "    os._exit(0)\n"
        "with Ending(watch_parent=False) as ending:\n"
        "    say('ready')\n"
        "    while os.getppid() == parent:\n"
        "        time.sleep(0.001)\n"
        f"    say(ending.begun.wait({4 * PARENT_SECONDS}))\n"
    )
    with started(service, tmp_path) as one, started(background, tmp_path) as two:
        assert (read_line(one), read_line(two)) == ("ready", "ready")
        two.kill()
        assert (read_line(one), read_line(two)) == ("False", "False")


# Signals


def test_a_second_signal_ends_it_at_once(tmp_path):
    code = "with Ending(limit=600) as ending:\n    say('ready')\n    hang()\n"
    with started(code, tmp_path) as process:
        read_line(process)
        deadline = time.monotonic() + DEADLINE
        while process.poll() is None and time.monotonic() < deadline:
            process.send_signal(signal.SIGINT)
            threading.Event().wait(0.05)  # as fast as nobody types
        assert process.returncode == 130


def test_the_echo_of_a_signal_is_no_second_one(tmp_path):
    """A terminal sends Ctrl-C to all of a group, and some of those pass it on to their children."""
    code = (
        "with Ending(limit=600) as ending:\n"
        "    say('ready')\n"
        "    ending.begun.wait()\n"
        "    say('begun')\n"
        "    sys.stdin.readline()\n"
        "say('ended')\n"
    )
    with started(code, tmp_path) as process:
        read_line(process)
        # Both while it is stopped, so that they come at once, however busy the machine is.
        process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGTERM)  # two that the kernel does not take for one
        process.send_signal(signal.SIGCONT)
        assert read_line(process) == "begun"
        process.stdin.write("\n")
        process.stdin.flush()
        assert read_line(process) == "ended"
        assert process.wait(timeout=DEADLINE) == 0


def test_signals_are_heard_when_an_event_loop_took_the_wakeup_descriptor(tmp_path):
    code = (
        f"with Ending(limit={LATE_SECONDS}) as ending:\n"
        "    signal.set_wakeup_fd(-1)\n"
        "    say('ready')\n"
        "    ending.begun.wait()\n"
        "    say(ending.reason)\n"
    )
    with started(code, tmp_path) as process:
        read_line(process)
        process.send_signal(signal.SIGTERM)
        assert read_line(process) == "SIGTERM"


def test_a_signal_just_before_the_end_of_the_with_is_heard(tmp_path):
    """The thread that hears it may have no turn until the `with` is left."""
    code = (
        f"lifecycle.LAST_SECONDS = {LATE_SECONDS}\n"
        "with Ending(limit=600) as ending:\n"
        "    sys.setswitchinterval(1000)\n"  # as on a busy machine
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "say(ending.reason)\n"
    )
    with started(code, tmp_path) as process:
        assert read_line(process) == "SIGINT"


# Within this process, without a limit


def handlers() -> tuple[object, ...]:
    wakeup = signal.set_wakeup_fd(-1)
    signal.set_wakeup_fd(wakeup)
    return signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT), wakeup


def test_handlers_and_descriptors_are_restored(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(shutdown, "LAST_SECONDS", DEADLINE)  # for its thread to end
    before, files = handlers(), len(os.listdir("/dev/fd"))
    with Ending(limit=None) as ending:
        os.kill(os.getpid(), signal.SIGTERM)
        assert ending.begun.wait(DEADLINE)
    assert ending.reason is EndReason.TERMINATED
    assert handlers() == before
    assert len(os.listdir("/dev/fd")) <= files
    assert "ending" not in {thread.name for thread in threading.enumerate()}


def test_another_signal_is_none_of_its_business():
    heard = threading.Event()
    before = signal.signal(signal.SIGUSR1, lambda *_: heard.set())
    try:
        with Ending(limit=None) as ending:
            os.kill(os.getpid(), signal.SIGUSR1)
            assert heard.wait(DEADLINE)
            ending.begin()
        assert ending.reason is EndReason.ASKED
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_another_thread_leaves_the_signals_alone():
    before, within = handlers(), []

    def use() -> None:
        with Ending(limit=None) as ending:
            within.append((signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)))
            ending.begin()
            within.append(ending.begun.is_set())

    thread = threading.Thread(target=use)
    thread.start()
    thread.join(DEADLINE)
    assert within == [before[:2], True]


def test_callbacks_are_called_once_and_a_late_one_at_once():
    called: list[str] = []
    with Ending(limit=None) as ending:
        ending.when_begun(lambda: called.append("first"))
        ending.when_begun(lambda: 1 / 0)
        ending.when_begun(lambda: called.append("third"))
        assert (called, ending.exit_code) == ([], 0)
        ending.begin(EndReason.INTERRUPTED)
        ending.begin(EndReason.TERMINATED)
        assert called == ["first", "third"]
        ending.when_begun(lambda: called.append("late"))
    assert called == ["first", "third", "late"]
    assert (ending.reason, ending.exit_code) == (EndReason.INTERRUPTED, 130)
