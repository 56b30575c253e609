"""Files as this system offers them: opened without following links, private, read at an offset.

The only module that knows which calls of the operating system there are. Each is tried for by its
name, never guessed from the name of the system. Python lets no child inherit a descriptor.
"""

import errno
import os
import secrets
import stat
import threading
import time
from pathlib import Path

_NO_FOLLOW: int = getattr(os, "O_NOFOLLOW", 0)
# Nothing is waited for, no terminal is taken over, and no byte is changed on the way (Windows).
_PLAIN: int = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0) | getattr(os, "O_BINARY", 0)
_ATTEMPTS = 5
_LONGEST_WINDOWS_PATH = 32_768
# Of a Windows reparse point: it stands for another name, as a link or a junction does.
_NAME_SURROGATE = 0x20000000
# Windows refuses to replace a file that someone has open, which is over in an instant.
_REPLACE_PAUSES = (0.005, 0.01, 0.02, 0.05, 0.1)
_positions = threading.Lock()
CLOSING_FREES_LOCKS = os.name == "posix"
"""Whether closing any descriptor of a file frees all locks on ranges of it that the process has."""


def user_id() -> int | None:
    """Whose process this is; None where files have no owner's number and no mode."""
    ask = getattr(os, "geteuid", None)
    return ask() if ask else None


def is_link(status: os.stat_result) -> bool:
    """Whether `lstat` found something that stands for another place."""
    tag: int = getattr(status, "st_reparse_tag", 0)
    return stat.S_ISLNK(status.st_mode) or bool(tag & _NAME_SURROGATE)


def open_file(path: Path | str, flags: int, mode: int = 0o600, *, follow: bool = False) -> int:
    """A descriptor of what is at the path; of a link only with `follow`. Waits for nobody.

    It may be of something else than a file: ask `fstat`.
    """
    if _NO_FOLLOW:
        return os.open(path, flags | _PLAIN | (0 if follow else _NO_FOLLOW), mode)
    for _ in range(_ATTEMPTS):
        descriptor = _looked_and_opened(path, flags, mode, follow)
        if descriptor is not None:
            return descriptor
    raise _linked(path)


def open_own(path: Path | str, flags: int) -> int:
    """`open_file` for writing in place. A file with other names (hard links) is somebody else's
    too: a new one takes its place, and that one keeps every byte."""
    descriptor = open_file(path, flags)
    if not has_other_names(os.fstat(descriptor)):
        return descriptor
    os.close(descriptor)
    os.unlink(path)
    return open_file(path, flags | os.O_EXCL)


def has_other_names(status: os.stat_result) -> bool:
    """Whether a file can be reached by another path: what is written to it changes both."""
    return stat.S_ISREG(status.st_mode) and status.st_nlink > 1


def _looked_and_opened(path: Path | str, flags: int, mode: int, follow: bool) -> int | None:
    """Without O_NOFOLLOW: None when something else was there when it was opened."""
    try:
        before = os.stat(path) if follow else os.lstat(path)
    except FileNotFoundError:
        return _created(path, flags, mode)
    if flags & os.O_EXCL:
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), os.fspath(path))
    _require_regular(path, before, follow)
    descriptor = os.open(path, flags | _PLAIN, mode)
    if os.path.samestat(before, os.fstat(descriptor)):
        return descriptor
    os.close(descriptor)
    return None


def _created(path: Path | str, flags: int, mode: int) -> int | None:
    if not flags & os.O_CREAT:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), os.fspath(path))
    try:
        return os.open(path, flags | os.O_EXCL | _PLAIN, mode)
    except FileExistsError:
        if flags & os.O_EXCL:
            raise
        return None


def _require_regular(path: Path | str, status: os.stat_result, follow: bool) -> None:
    """Where opening anything else could wait for ever."""
    if not follow and is_link(status):
        raise _linked(path)
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "it is not a file", os.fspath(path))


def _linked(path: Path | str) -> OSError:
    return OSError(errno.ELOOP, os.strerror(errno.ELOOP), os.fspath(path))


if hasattr(os, "pread") and hasattr(os, "pwrite"):
    read_at = os.pread
    write_at = os.pwrite
else:

    def read_at(descriptor: int, size: int, at: int, /) -> bytes:
        with _positions:
            os.lseek(descriptor, at, os.SEEK_SET)
            return os.read(descriptor, size)

    def write_at(descriptor: int, data: bytes, at: int, /) -> int:
        with _positions:
            os.lseek(descriptor, at, os.SEEK_SET)
            return os.write(descriptor, data)


def path_of(descriptor: int) -> str | None:
    """Where the file that is open lies, whatever led there; None where the system cannot tell."""
    if os.name == "nt":
        return _windows_path_of(descriptor)
    try:
        return os.readlink(f"/proc/self/fd/{descriptor}")
    except OSError:
        return None


def _windows_path_of(descriptor: int) -> str | None:
    import ctypes
    from importlib import import_module
    from typing import Any

    windows: Any = ctypes
    system: Any = import_module("msvcrt")
    final_path = windows.WinDLL("kernel32", use_last_error=True).GetFinalPathNameByHandleW
    final_path.argtypes = [ctypes.c_void_p, ctypes.c_wchar_p, ctypes.c_uint32, ctypes.c_uint32]
    room = ctypes.create_unicode_buffer(_LONGEST_WINDOWS_PATH)
    length: int = final_path(system.get_osfhandle(descriptor), room, len(room), 0)
    return without_marker(room.value) if 0 < length < len(room) else None


def without_marker(path: str) -> str:
    """A path of Windows without the `\\\\?\\` that lifts its limits, as `realpath` gives it."""
    if path.startswith("\\\\?\\UNC\\"):
        return "\\" + path[7:]
    return path.removeprefix("\\\\?\\")


def set_mode(descriptor: int, mode: int) -> None:
    """Where files have modes."""
    change = getattr(os, "fchmod", None)
    if change is not None:
        change(descriptor, mode)


def replace(source: Path | str, target: Path | str) -> None:
    """`os.replace`, tried for a moment longer where someone has the target open."""
    for pause in _REPLACE_PAUSES:
        try:
            os.replace(source, target)
        except PermissionError:
            time.sleep(pause)
        else:
            return
    os.replace(source, target)


def is_obstacle(path: Path) -> bool:
    """Whether something is there that can never be opened as a file: a directory, a pipe, a link
    to nowhere."""
    try:
        return not stat.S_ISREG(path.stat().st_mode)
    except OSError:
        return path.is_symlink()


def set_aside(path: Path) -> bool:
    """Frees the name; False when nothing was in the way.

    A directory may hold someone's files: it gets another name, unless it is empty.
    """
    if not is_obstacle(path):
        return False
    if path.is_symlink() or not path.is_dir():
        path.unlink()
        return True
    try:
        path.rmdir()
    except OSError:
        path.rename(path.with_name(f"{path.name}.moved-{secrets.token_hex(4)}"))
    return True
