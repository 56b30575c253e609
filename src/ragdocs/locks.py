"""A lock on a file between processes, which the kernel frees when its holder dies.

Uses `flock`, or `msvcrt.locking` where there is no `fcntl` (specs/0071). A lock file is never
deleted: a process that has it open would then lock a file that no other process sees. Its content,
the holder's process id, is for people; only the kernel's answer is trusted.
"""

import errno
import json
import os
import stat
import threading
import time
import weakref
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib import import_module
from itertools import count
from pathlib import Path
from typing import Any, cast

from ragdocs.files import (
    has_other_names,
    open_file,
    read_at,
    set_aside,
    set_mode,
    user_id,
    write_at,
)
from ragdocs.models import Closable
from ragdocs.text import process_text

_PAUSES = (0.002, 0.005, 0.01, 0.02, 0.05)
# A process that asks who holds the lock has it for an instant; a retry tells it from a real holder.
_ATTEMPTS = 3
_LOOKED_AT_EVERY = 8
_MAX_HOLDER_BYTES = 40_000
_MAX_FACT_CHARS = 300
_TIMES_BY_DESCRIPTOR = os.utime in os.supports_fd

try:
    import fcntl

    def _take(descriptor: int) -> bool:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _is_taken(descriptor: int) -> bool:
        """Tests with a shared lock, so that two processes that ask do not see each other."""
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        return False

    def _free(descriptor: int) -> None:
        """Closing the descriptor frees the lock."""

except ImportError:
    _msvcrt: Any = import_module("msvcrt")
    # Other processes cannot read a locked byte either, so it is far behind the content.
    _LOCKED_BYTE = 1 << 30

    def _locking(descriptor: int, mode: int) -> None:
        os.lseek(descriptor, _LOCKED_BYTE, os.SEEK_SET)
        _msvcrt.locking(descriptor, mode, 1)

    def _take(descriptor: int) -> bool:
        try:
            _locking(descriptor, _msvcrt.LK_NBLCK)
        except OSError as error:
            if error.errno in (errno.EACCES, errno.EDEADLK):
                return False
            raise
        return True

    def _is_taken(descriptor: int) -> bool:
        """There is no shared lock: another process that asks has it for an instant."""
        for attempt in range(_ATTEMPTS):
            if _take(descriptor):
                _free(descriptor)
                return False
            if attempt + 1 < _ATTEMPTS:
                time.sleep(_PAUSES[0])
        return True

    def _free(descriptor: int) -> None:
        """Frees the lock now; the system does so only some time after closing."""
        with suppress(OSError):
            _locking(descriptor, _msvcrt.LK_UNLCK)


class LockHeld(Exception):
    """The lock was not released in time; the message names its holder."""

    def __init__(self, path: Path, timeout: float, found: "Holder | None") -> None:
        who = process_text(found.pid if found else None)
        super().__init__(
            f"{path} is locked by {who} and was not released within {timeout:g} s: try again when "
            "it has finished, or end it if it hangs"
        )


@dataclass(frozen=True, slots=True)
class Holder:
    """The process that claims to hold a lock, and since when; None if that cannot be read.

    `says` are other facts that the holder publishes, `heard` is its last heartbeat.
    """

    pid: int | None = None
    since: datetime | None = None
    says: Mapping[str, str] = field(default_factory=dict[str, str])
    heard: datetime | None = None

    def is_heard_within(self, seconds: float) -> bool:
        """False for a stopped process, which keeps its locks but does nothing."""
        if self.heard is None:
            return False
        return abs((datetime.now(UTC) - self.heard).total_seconds()) <= seconds


class FileLock(Closable):
    """A lock, held until it is closed. Children do not inherit it."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path = path
        self._descriptor: int | None = descriptor
        self._since = datetime.now(UTC)
        self.said: Mapping[str, str] = {}
        _open_locks.add(self)

    @property
    def is_held(self) -> bool:
        """False if it was closed, or if the file was deleted and others lock a new one."""
        if self._descriptor is None:
            return False
        return _is_at(self.path, self._descriptor)

    def say(self, facts: Mapping[str, str]) -> None:
        """Publishes facts to processes that ask for the holder; replaces earlier facts."""
        if self._descriptor is None:
            return
        self.said = dict(facts)
        about = {"pid": os.getpid(), "since": self._since.isoformat(timespec="seconds")}
        about |= {name: text[:_MAX_FACT_CHARS] for name, text in facts.items()}
        encoded = json.dumps(about).encode()
        with suppress(OSError):  # a full disk must not prevent locking
            # One write over all of the earlier content: a concurrent reader sees the old or the
            # new content, never a mixture.
            before = min(os.fstat(self._descriptor).st_size, _MAX_HOLDER_BYTES)
            write_at(self._descriptor, encoded.ljust(before), 0)
        if not _TIMES_BY_DESCRIPTOR:  # Windows may store the new time only on closing
            self.beat()

    def beat(self) -> None:
        """A heartbeat: updates only the time of the file."""
        with suppress(OSError):
            if _TIMES_BY_DESCRIPTOR and self._descriptor is not None:
                os.utime(self._descriptor)
            elif self.is_held:
                os.utime(self.path)

    def close(self) -> None:
        """Releases the lock."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            with suppress(OSError):
                os.ftruncate(descriptor, 0)
            _free(descriptor)
            os.close(descriptor)

    def forget(self) -> None:
        """For a child process: the lock stays with the parent and ends with it."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)


_open_locks: weakref.WeakSet["FileLock | LockAttempt"] = weakref.WeakSet()
# No fork between taking a lock and recording it: the child would keep it alive after its parent.
_forking = threading.Lock()


def _forget_all() -> None:
    _forking.release()
    for lock in list(_open_locks):
        lock.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_forking.acquire, after_in_parent=_forking.release, after_in_child=_forget_all
    )


def make_folder(folder: Path) -> None:
    """Creates the folder, private to the user, if it does not exist."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)


class LockAttempt(Closable):
    """The only way to take a lock: retries, with one system call for each try.

    Each system call lets other threads of this process run first, which on a busy machine takes
    long. So the file stays open between tries. The path is opened again every few tries, and if the
    locked file turns out to be deleted or not ours alone.
    """

    def __init__(self, path: Path, prepare_folder: Callable[[Path], None] = make_folder) -> None:
        self._path = path
        self._prepare_folder = prepare_folder
        self._descriptor: int | None = None
        self._tries = 0
        _open_locks.add(self)

    def take(self) -> FileLock | None:
        """None if another holds it. Raises OSError if the file cannot be created or opened."""
        self._tries += 1
        if self._descriptor is None:
            self._open_file()
        try:
            with _forking:
                if self._descriptor is None:  # in a child that was forked in between
                    self._descriptor = _open_or_clear(self._path)
                is_taken = _take(self._descriptor)
                if is_taken and _is_own(self._path, self._descriptor):
                    return self._record(self._descriptor)
        except BaseException:
            self.close()
            raise
        # The file may have been deleted, and others may lock a new one.
        if is_taken or self._tries % _LOOKED_AT_EVERY == 0:
            self.close()
        return None

    def _open_file(self) -> None:
        """Retries if the folder is deleted just after it was prepared."""
        for number in range(_ATTEMPTS):
            self._prepare_folder(self._path.parent)
            try:
                with _forking:
                    self._descriptor = _open_or_clear(self._path)
                    return
            except FileNotFoundError:
                if number + 1 == _ATTEMPTS:
                    raise

    def _record(self, descriptor: int) -> FileLock:
        taken = FileLock(self._path, descriptor)
        self._descriptor = None
        try:
            taken.say({})
        except BaseException:
            taken.close()
            raise
        return taken

    def close(self) -> None:
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)

    forget = close
    """For a child process, which must not hold a lock that its parent takes later."""


def try_lock(path: Path, prepare_folder: Callable[[Path], None] = make_folder) -> FileLock | None:
    """The lock, or None if another process, or another part of this one, holds it.

    Raises:
        OSError: the file cannot be created or opened.
    """
    with LockAttempt(path, prepare_folder) as attempt:
        for number in range(_ATTEMPTS):
            found = attempt.take()
            if found is not None:
                return found
            if number + 1 < _ATTEMPTS:
                time.sleep(_PAUSES[0])
    return None


def lock(
    path: Path,
    timeout: float,
    stop: threading.Event | None = None,
    prepare_folder: Callable[[Path], None] = make_folder,
) -> FileLock:
    """Waits for the lock; `stop` ends the wait early. The folder is prepared each time the file is
    opened, because it may have been deleted in the meantime.

    Raises:
        LockHeld: it was not released in time.
        OSError: the file cannot be created or opened.
    """
    deadline = time.monotonic() + timeout
    stop = stop or threading.Event()
    with LockAttempt(path, prepare_folder) as attempt:
        for number in count():
            found = attempt.take()
            if found is not None:
                return found
            pause = _PAUSES[min(number, len(_PAUSES) - 1)]
            if time.monotonic() + pause > deadline or stop.wait(pause):
                break
    raise LockHeld(path, timeout, holder(path))


def holder(path: Path) -> Holder | None:
    """The process that holds the lock now, if any. Changes nothing and creates no file."""
    try:
        descriptor = open_file(path, os.O_RDONLY)
    except OSError:
        return None
    try:
        return _read_holder(descriptor) if _is_taken(descriptor) else None
    except OSError:
        return None
    finally:
        os.close(descriptor)


def _open_or_clear(path: Path) -> int:
    try:
        return _open(path)
    except OSError:
        if not _clear_way(path):
            raise
        return _open(path)


def _open(path: Path) -> int:
    descriptor = open_file(path, os.O_RDWR | os.O_CREAT)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "it is not a file")
    return descriptor


def _clear_way(path: Path) -> bool:
    """Never follows a link: its author would choose which file is written."""
    if path.is_symlink():
        path.unlink(missing_ok=True)
        return True
    return set_aside(path)


def _is_own(path: Path, descriptor: int) -> bool:
    """Whether a lock that was just taken may be kept, and its file written to.

    False if the file was deleted between opening and locking: it would exclude nobody. Also false
    if it has other names (hard links): it may be someone else's file. Then its path is deleted, so
    that the next attempt creates a new file; no lock is lost, because this process holds it.
    """
    if not _is_at(path, descriptor):
        return False
    status = os.fstat(descriptor)
    if has_other_names(status):
        os.unlink(path)
        return False
    if user_id() is not None and stat.S_IMODE(status.st_mode) != 0o600:
        with suppress(OSError):
            set_mode(descriptor, 0o600)
    return True


def _is_at(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(os.lstat(path), os.fstat(descriptor))
    except OSError:
        return False


def _read_holder(descriptor: int) -> Holder:
    try:
        about: object = json.loads(read_at(descriptor, _MAX_HOLDER_BYTES, 0))
        values = cast("dict[str, object]", about) if isinstance(about, dict) else {}
        pid, since = values.pop("pid", None), values.pop("since", None)
        return Holder(
            pid if isinstance(pid, int) and pid > 0 else None,
            datetime.fromisoformat(since) if isinstance(since, str) else None,
            {name: text for name, text in values.items() if isinstance(text, str)},
            datetime.fromtimestamp(os.fstat(descriptor).st_mtime, UTC),
        )
    except (OSError, ValueError, RecursionError):
        return Holder()
