"""How a process ends: on a signal, on request or when its parent is gone, and always in time.

A thread receives the signals. Python's own handlers run only in the main thread, not while it is
inside a C call, and may find any lock held; so they only pass the signal on.
"""

import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from enum import StrEnum
from importlib import import_module
from types import FrameType, TracebackType
from typing import Any, Self

LIMIT_SECONDS = 1.4
"""From the request to end until the process is ended by force. That loses nothing: the kernel
releases its locks, and the store has everything that was committed."""
LAST_SECONDS = 0.1
"""For the last output of a process that is ended by force: nobody may be reading it any more."""
ALARM_SECONDS = 0.4
"""After this, the C library ends the process, in case no Python thread gets to run."""
PARENT_SECONDS = 0.2
"""How often to check the parent; together with the limit, less than two seconds."""
ECHO_SECONDS = 0.25
"""A signal this soon after the first is a copy of it: a terminal sends Ctrl-C to every process, and
the processes that started this one may pass it on."""

_Handler = Callable[[int, FrameType | None], object] | int | signal.Handlers
_CLOSE = 0
_HANDLED = 0x80  # added to a signal's number when Python, not the C handler, passes it on


class EndReason(StrEnum):
    """Why a process ends."""

    TERMINATED = "SIGTERM"
    INTERRUPTED = "SIGINT"
    ORPHANED = "the parent process is gone"
    ASKED = "asked to"

    @property
    def exit_code(self) -> int:
        """As a shell reports the signal."""
        return {
            EndReason.TERMINATED: 128 + signal.SIGTERM,
            EndReason.INTERRUPTED: 128 + signal.SIGINT,
        }.get(self, 0)


_REASONS: dict[int, EndReason] = {
    signal.SIGTERM: EndReason.TERMINATED,
    signal.SIGINT: EndReason.INTERRUPTED,
}
if hasattr(signal, "SIGBREAK"):  # Windows: Ctrl-Break, the only one that other processes can send
    _REASONS[getattr(signal, "SIGBREAK")] = EndReason.TERMINATED  # noqa: B009


class Ending:
    """Learns that the process must end, tells the others, and enforces it. Use it in a `with`.

    In the main thread it handles SIGTERM and SIGINT until the `with` ends. Once the end has begun,
    the process is ended by force after `limit` seconds (None: never), within the `with` or after
    it, and by a second signal at once. With `interrupts`, a signal also raises KeyboardInterrupt in
    the main thread, for work that never checks whether the end has begun.
    """

    def __init__(
        self,
        *,
        watch_parent: bool = True,
        limit: float | None = LIMIT_SECONDS,
        interrupts: bool = False,
    ) -> None:
        self.begun = threading.Event()
        self.reason: EndReason | None = None
        self.has_interrupted = False
        self._interrupts = interrupts
        self._limit = limit
        self._parent = os.getppid() if watch_parent else None
        self._lock = threading.Lock()
        self._since = 0.0
        self._callbacks: list[Callable[[], object]] = []
        self._last_callbacks: list[Callable[[], object]] = []
        self._read_end = self._write_end = -1
        self._before: dict[int, _Handler] = {}
        self._wakeup_before = -1
        self._thread = threading.Thread(target=self._listen, name="ending", daemon=True)

    @property
    def exit_code(self) -> int:
        return self.reason.exit_code if self.reason else 0

    def begin(self, reason: EndReason = EndReason.ASKED) -> None:
        """From any thread; only the first time counts."""
        with self._lock:
            if self.reason is not None:
                return
            self.reason, self._since = reason, time.monotonic()
            callbacks = tuple(self._callbacks)
        self._arm()
        self.begun.set()
        for callback in callbacks:
            with suppress(Exception):  # one that fails must not stop the others
                callback()
        self._since = time.monotonic()  # a signal that came while they ran is not a second one

    def when_begun(self, callback: Callable[[], object]) -> None:
        """Called once, in whichever thread learns of the end first; at once if it has begun."""
        with self._lock:
            if self.reason is None:
                self._callbacks.append(callback)
                return
        callback()

    def before_force(self, callback: Callable[[], object]) -> None:
        """Called before the process is ended by force; it has a tenth of a second."""
        self._last_callbacks.append(callback)

    def __enter__(self) -> Self:
        self._read_end, self._write_end = os.pipe()
        if hasattr(os, "set_blocking"):
            os.set_blocking(self._write_end, False)
        self._thread.start()
        if threading.current_thread() is threading.main_thread():
            self._handle_signals()  # last, because a signal may interrupt from here on
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._restore_handlers()
        self._send(_CLOSE)
        self._thread.join(LAST_SECONDS)
        if not self._thread.is_alive():  # while a callback runs, the thread needs the pipe
            os.close(self._read_end)
            os.close(self._write_end)

    def _handle_signals(self) -> None:
        # The C handler writes to it, whatever the main thread is doing.
        self._wakeup_before = signal.set_wakeup_fd(self._write_end, warn_on_full_buffer=False)
        for number in _REASONS:
            self._before[number] = signal.signal(number, self._handle) or signal.SIG_DFL

    def _restore_handlers(self) -> None:
        for number, before in self._before.items():
            signal.signal(number, before)
        if self._before:
            signal.set_wakeup_fd(self._wakeup_before)
            self._before.clear()

    def _handle(self, number: int, _: FrameType | None) -> None:
        # Because an event loop may have replaced the wakeup descriptor.
        self._send(number | _HANDLED)
        if self._interrupts and not self.has_interrupted:
            self.has_interrupted = True
            raise KeyboardInterrupt

    def _send(self, message: int) -> None:
        with suppress(OSError):  # full, so the thread will wake up anyway
            os.write(self._write_end, bytes([message]))

    def _listen(self) -> None:
        if not hasattr(select, "poll"):  # Windows can wait like this only for sockets
            self._listen_blocked()
            return
        poller = select.poll()
        poller.register(self._read_end, select.POLLIN)
        while True:
            is_watching = self._parent is not None and self.reason is None
            if poller.poll(PARENT_SECONDS * 1000 if is_watching else None):
                for message in os.read(self._read_end, 64):
                    if message == _CLOSE:
                        return
                    self._receive(message)
            elif os.getppid() != self._parent:
                self.begin(EndReason.ORPHANED)

    def _listen_blocked(self) -> None:
        closed = threading.Event()
        beside = threading.Thread(
            target=self._wait_for_parent, args=(closed,), name="parent", daemon=True
        )
        beside.start()
        while not closed.is_set():
            for message in os.read(self._read_end, 64):
                if message == _CLOSE:
                    closed.set()
                    break
                self._receive(message)
        beside.join()

    def _wait_for_parent(self, closed: threading.Event) -> None:
        """Through a handle: on Windows, the parent's number stays the same when it is gone."""
        if self._parent is None:
            return
        system: Any = import_module("_winapi")
        try:
            parent = system.OpenProcess(system.SYNCHRONIZE, False, self._parent)
        except OSError:  # another user's: only the end of input shows that it is gone
            return
        while not closed.is_set() and self.reason is None:
            waited = system.WaitForSingleObject(parent, int(PARENT_SECONDS * 1000))
            if waited == system.WAIT_OBJECT_0:
                self.begin(EndReason.ORPHANED)
        system.CloseHandle(parent)

    def _receive(self, message: int) -> None:
        reason = _REASONS.get(message & ~_HANDLED)
        if reason is None:  # a signal that others handle: the wakeup descriptor gets every signal
            return
        if self.reason is None:
            self.begin(reason)
        elif not message & _HANDLED and time.monotonic() - self._since > ECHO_SECONDS:
            self._force()

    def _arm(self) -> None:
        if self._limit is None:
            return
        _exit_after(self._limit + ALARM_SECONDS, self.exit_code)
        with suppress(RuntimeError):  # no thread available: the timer ends the process
            threading.Thread(target=self._force_later, name="deadline", daemon=True).start()

    def _force_later(self) -> None:
        time.sleep(self._limit or 0)
        self._force()

    def _force(self) -> None:
        if self._limit is None:
            return
        with suppress(RuntimeError):
            last = threading.Thread(target=self._run_last_callbacks, name="last words", daemon=True)
            last.start()
            last.join(LAST_SECONDS)
        os._exit(self.exit_code)

    def _run_last_callbacks(self) -> None:
        for callback in self._last_callbacks:
            with suppress(Exception):
                callback()
        for stream in (sys.stdout, sys.stderr):
            with suppress(Exception):
                stream.flush()


def _exit_after(seconds: float, code: int) -> None:
    """Makes the C library call `_exit` in its own thread, because Python's may not get to run."""
    if sys.platform == "linux":
        with suppress(Exception):  # no thread or memory available: use the alarm instead
            _start_exit_timer(seconds, code)
            return
    if hasattr(signal, "setitimer"):
        # Its default action also ends the process, but a shell reports that as an alarm.
        signal.setitimer(signal.ITIMER_REAL, seconds)
        return
    import faulthandler

    # Windows: a thread in C, which always ends the process with code 1.
    nowhere = os.open(os.devnull, os.O_WRONLY)
    faulthandler.dump_traceback_later(seconds, exit=True, file=nowhere)


def _start_exit_timer(seconds: float, code: int) -> None:
    """Raises an exception if the C library has no such timer, or no memory for it."""
    import ctypes

    class Event(ctypes.Structure):
        """`struct sigevent`, which is 64 bytes long."""

        _fields_ = (
            ("value", ctypes.c_ssize_t),  # the argument of `function`
            ("number", ctypes.c_int),
            ("notify", ctypes.c_int),
            ("function", ctypes.c_void_p),
            ("attributes", ctypes.c_void_p),
            ("rest", ctypes.c_byte * 32),
        )

    class Times(ctypes.Structure):
        """`struct itimerspec`: the period and the time until the first expiry, in two parts."""

        _fields_ = (("period", ctypes.c_long * 2), ("first", ctypes.c_long * 2))

    call_in_a_thread = 2  # SIGEV_THREAD
    library = ctypes.CDLL(None, use_errno=True)
    function = ctypes.cast(library["_exit"], ctypes.c_void_p)
    event = Event(value=code, notify=call_in_a_thread, function=function)
    timer = ctypes.c_void_p()
    clock = time.CLOCK_MONOTONIC
    if library.timer_create(clock, ctypes.byref(event), ctypes.byref(timer)):
        raise OSError(ctypes.get_errno(), "timer_create")
    whole = int(seconds)
    times = Times(first=(whole, int((seconds - whole) * 1e9)))
    if library.timer_settime(timer, 0, ctypes.byref(times), None):
        raise OSError(ctypes.get_errno(), "timer_settime")
