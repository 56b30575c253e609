"""Portable file access: opening without following links, private files, reading at an offset.

The only module that knows which system calls exist. Each is looked up by its name, never guessed
from the name of the system. Python lets no child inherit a descriptor.
"""

import errno
import os
import secrets
import stat
import threading
import time
from pathlib import Path

_NO_FOLLOW: int = getattr(os, "O_NOFOLLOW", 0)
# Never waits, never takes over a terminal, never translates line ends (Windows).
_PLAIN: int = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0) | getattr(os, "O_BINARY", 0)
_ATTEMPTS = 5
_LONGEST_WINDOWS_PATH = 32_768
# Set in the tag of a Windows reparse point that refers to another name: a link or a junction.
_NAME_SURROGATE = 0x20000000
# Windows refuses to replace a file that another process has open; that rarely lasts long.
_REPLACE_PAUSES = (0.005, 0.01, 0.02, 0.05, 0.1)
_positions = threading.Lock()
CLOSING_FREES_LOCKS = os.name == "posix"
"""Whether closing any descriptor of a file frees all range locks that the process has on it."""


def user_id() -> int | None:
    """The user of this process; None on systems without file owners and modes."""
    ask = getattr(os, "geteuid", None)
    return ask() if ask else None


def is_link(status: os.stat_result) -> bool:
    """Whether `lstat` found a link or a junction."""
    tag: int = getattr(status, "st_reparse_tag", 0)
    return stat.S_ISLNK(status.st_mode) or bool(tag & _NAME_SURROGATE)


def open_file(path: Path | str, flags: int, mode: int = 0o600, *, follow: bool = False) -> int:
    """Opens the path without waiting; follows a link only with `follow`.

    The descriptor may not be of a regular file: check with `fstat`.
    """
    if _NO_FOLLOW:
        return os.open(path, flags | _PLAIN | (0 if follow else _NO_FOLLOW), mode)
    for _ in range(_ATTEMPTS):
        descriptor = _check_and_open(path, flags, mode, follow)
        if descriptor is not None:
            return descriptor
    raise _link_error(path)


def open_own(path: Path | str, flags: int) -> int:
    """`open_file` for writing in place. A file with other names (hard links) may belong to someone
    else: it is replaced by a new file, and keeps every byte under its other names."""
    descriptor = open_file(path, flags)
    if not has_other_names(os.fstat(descriptor)):
        return descriptor
    os.close(descriptor)
    os.unlink(path)
    return open_file(path, flags | os.O_EXCL)


def has_other_names(status: os.stat_result) -> bool:
    """Whether the file has other paths (hard links), which a write would change too."""
    return stat.S_ISREG(status.st_mode) and status.st_nlink > 1


def _check_and_open(path: Path | str, flags: int, mode: int, follow: bool) -> int | None:
    """For systems without O_NOFOLLOW. None if the path changed between `stat` and `open`."""
    try:
        before = os.stat(path) if follow else os.lstat(path)
    except FileNotFoundError:
        return _create(path, flags, mode)
    if flags & os.O_EXCL:
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), os.fspath(path))
    _require_regular(path, before, follow)
    descriptor = os.open(path, flags | _PLAIN, mode)
    if os.path.samestat(before, os.fstat(descriptor)):
        return descriptor
    os.close(descriptor)
    return None


def _create(path: Path | str, flags: int, mode: int) -> int | None:
    if not flags & os.O_CREAT:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), os.fspath(path))
    try:
        return os.open(path, flags | os.O_EXCL | _PLAIN, mode)
    except FileExistsError:
        if flags & os.O_EXCL:
            raise
        return None


def _require_regular(path: Path | str, status: os.stat_result, follow: bool) -> None:
    """Opening anything else could wait for ever."""
    if not follow and is_link(status):
        raise _link_error(path)
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "it is not a file", os.fspath(path))


def _link_error(path: Path | str) -> OSError:
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
    """The real path of an open file; None if the system cannot tell."""
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
    """A Windows path without the `\\\\?\\` prefix of long paths, as `realpath` returns it."""
    if path.startswith("\\\\?\\UNC\\"):
        return "\\" + path[7:]
    return path.removeprefix("\\\\?\\")


def set_mode(descriptor: int, mode: int) -> None:
    """Does nothing on systems without file modes."""
    change = getattr(os, "fchmod", None)
    if change is not None:
        change(descriptor, mode)


def replace(source: Path | str, target: Path | str) -> None:
    """`os.replace` with a few retries, in case another process has the target open."""
    for pause in _REPLACE_PAUSES:
        try:
            os.replace(source, target)
        except PermissionError:
            time.sleep(pause)
        else:
            return
    os.replace(source, target)


def is_obstacle(path: Path) -> bool:
    """Whether the path exists but can never be opened as a file: a directory, a pipe, a broken
    link."""
    try:
        return not stat.S_ISREG(path.stat().st_mode)
    except OSError:
        return path.is_symlink()


def set_aside(path: Path) -> bool:
    """Moves an obstacle out of the way; False if there was none.

    A directory may contain someone's files, so it is renamed unless it is empty.
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
