"""Read by each Python that has this folder on its path: takes away what Windows does not have.

`WITHOUT_POSIX=calls` takes the modules and calls; `WITHOUT_POSIX=files` also lets no file be
deleted or replaced that some process of the same test has open, as on Windows, and opens a file by
its name in any case, as Windows and most Macs do. What Windows has in
their place, and Linux has not, is imitated as thinly as can be: `msvcrt` by locks on byte ranges
that belong to the open file, `_winapi` by descriptors of processes.
"""

import os
import sys
import types

_WANTED = os.environ.get("WITHOUT_POSIX", "")

_MODULES = ("fcntl", "resource", "grp", "pwd")
_BY_NAME = ("mcp.", "anyio.", "whoosh.")
"""Libraries that ask for the name of the system, which is still Linux, and not for its modules."""
_OF_OS = (
    "O_CLOEXEC",
    "O_DIRECTORY",
    "O_NOCTTY",
    "O_NOFOLLOW",
    "O_NONBLOCK",
    "chown",
    "fchmod",
    "fchown",
    "fork",
    "forkpty",
    "getegid",
    "geteuid",
    "getgid",
    "pread",
    "preadv",
    "pwrite",
    "pwritev",
    "register_at_fork",
)
_OF_SIGNAL = ("ITIMER_REAL", "SIGALRM", "SIGHUP", "alarm", "pthread_kill", "setitimer", "sigwait")
_OF_SELECT = ("epoll", "poll")
_OF_TIME = ("CLOCK_MONOTONIC", "clock_gettime", "tzset")


def _take_away():
    # Python's own library runs on Linux here: what it asks for at its import, it still gets.
    import asyncio
    import multiprocessing.util
    import select
    import selectors
    import shutil
    import signal
    import subprocess
    import tempfile
    import time

    shutil._use_fd_functions = False  # it asked when it was imported
    del asyncio, multiprocessing, selectors, subprocess, tempfile
    _imitate_msvcrt()
    _imitate_winapi()
    _take_modules()
    taken = ((os, _OF_OS), (signal, _OF_SIGNAL), (select, _OF_SELECT), (time, _OF_TIME))
    for module, names in taken:
        for name in names:
            if hasattr(module, name):
                delattr(module, name)
    _refuse_descriptors_of_folders()
    # The layer below watchdog's observer is Linux's; the observer itself is on every system.
    sys.modules["ragdocs.indexing.inotify"] = None


def _take_modules():
    import builtins
    import importlib

    kept = {name: importlib.import_module(name) for name in _MODULES}
    sys.modules.update(dict.fromkeys(_MODULES))
    ordinary = builtins.__import__

    def imported(name, globals=None, *arguments, **options):
        asking = (globals or {}).get("__name__", "")
        if name in kept and asking.startswith(_BY_NAME):
            return kept[name]
        return ordinary(name, globals, *arguments, **options)

    builtins.__import__ = imported


def _refuse_descriptors_of_folders():
    for name in ("open", "stat", "unlink", "mkdir", "rmdir", "rename", "link", "lstat"):
        setattr(os, name, _without_folder(getattr(os, name)))
    scandir, utime, link = os.scandir, os.utime, os.link

    def plain_scandir(path="."):
        if isinstance(path, int):
            raise TypeError("scandir: path should be string, bytes, os.PathLike or None, not int")
        return scandir(path)

    def plain_utime(path, *arguments, **options):
        if isinstance(path, int):
            raise TypeError("utime: path should be string, bytes or os.PathLike, not int")
        return utime(path, *arguments, **options)

    def plain_link(source, target, *, follow_symlinks=True):
        if not follow_symlinks:
            raise NotImplementedError("link: follow_symlinks unavailable on this platform")
        return link(source, target)

    os.scandir, os.utime, os.link = plain_scandir, plain_utime, plain_link
    os.supports_dir_fd = set()
    os.supports_fd = {os.stat}
    os.supports_follow_symlinks = {os.stat}


def _without_folder(call):
    def plain(*arguments, **options):
        for name in ("dir_fd", "src_dir_fd", "dst_dir_fd"):
            if options.get(name) is not None:
                raise NotImplementedError(f"{name} unavailable on this platform")
        return call(*arguments, **options)

    return plain


def _imitate_msvcrt():
    import errno
    import fcntl
    import struct

    made = types.ModuleType("msvcrt")
    made.LK_UNLCK, made.LK_LOCK, made.LK_NBLCK = 0, 1, 2

    def locking(descriptor, mode, size):
        kind = fcntl.F_UNLCK if mode == made.LK_UNLCK else fcntl.F_WRLCK
        start = os.lseek(descriptor, 0, os.SEEK_CUR)
        if kind == fcntl.F_WRLCK and fcntl.fcntl(descriptor, fcntl.F_GETFL) & 3 == os.O_RDONLY:
            kind = fcntl.F_RDLCK  # Linux lets no other be taken by who only reads
        asked = struct.pack("hhqqi4x", kind, os.SEEK_SET, start, size, 0)
        try:
            fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, asked)
        except BlockingIOError:
            raise PermissionError(errno.EACCES, "Permission denied") from None

    made.locking = locking
    made.setmode = lambda descriptor, flags: flags
    made.get_osfhandle = lambda descriptor: descriptor
    sys.modules["msvcrt"] = made


def _imitate_winapi():
    import select

    made = types.ModuleType("_winapi")
    made.SYNCHRONIZE, made.WAIT_OBJECT_0, made.WAIT_TIMEOUT = 0x100000, 0, 258
    made.INFINITE = 0xFFFFFFFF
    poll = select.poll

    def wait(handle, milliseconds):
        waiting = poll()
        waiting.register(handle, select.POLLIN)
        found = waiting.poll(None if milliseconds == made.INFINITE else milliseconds)
        return made.WAIT_OBJECT_0 if found else made.WAIT_TIMEOUT

    made.OpenProcess = lambda access, inherit, pid: os.pidfd_open(pid)
    made.WaitForSingleObject = wait
    made.CloseHandle = os.close
    sys.modules["_winapi"] = made


def _keep_open_files():
    """A delete or replace of what is open fails, whichever process of the test has it."""
    import errno

    def guarded(call, places):
        def careful(*arguments, **options):
            for place in places:
                if place < len(arguments) and _is_open(arguments[place]):
                    raise PermissionError(errno.EACCES, "it is open", os.fspath(arguments[place]))
            return call(*arguments, **options)

        return careful

    os.unlink = os.remove = guarded(os.unlink, (0,))
    os.rename = guarded(os.rename, (0, 1))
    os.replace = guarded(os.replace, (0, 1))


def _fold_case():
    """What is looked for by another case is found; a folder lists the names as they were given."""
    for name, places in (
        ("open", (0,)),
        ("stat", (0,)),
        ("lstat", (0,)),
        ("unlink", (0,)),
        ("remove", (0,)),
        ("rename", (0,)),
        ("replace", (0,)),
        ("scandir", (0,)),
        ("listdir", (0,)),
        ("readlink", (0,)),
        ("utime", (0,)),
    ):
        setattr(os, name, _folding(getattr(os, name), places))


def _folding(call, places):
    def folding(*arguments, **options):
        given = list(arguments)
        for place in places:
            if place < len(given) and isinstance(given[place], (str, os.PathLike)):
                given[place] = _as_named(os.fspath(given[place]))
        return call(*given, **options)

    return folding


def _as_named(path, listed=os.listdir):
    """The path as the folders have it, as far as it is there."""
    if not isinstance(path, str) or _exists(path):
        return path
    head, tail = os.path.split(path)
    if not tail or head == path:
        return path
    head = _as_named(head)
    try:
        alike = [name for name in listed(head or ".") if name.casefold() == tail.casefold()]
    except OSError:
        return path
    return os.path.join(head, alike[0] if alike else tail)


def _exists(path, lstat=os.lstat):
    try:
        lstat(path)
    except (OSError, ValueError):
        return False
    return True


def _is_open(path):
    try:
        wanted = os.lstat(path)
    except OSError:
        return False
    mark = f"WITHOUT_POSIX={_WANTED}\0".encode()
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                if mark not in file.read():
                    continue
            for number in os.listdir(f"/proc/{pid}/fd"):
                if os.path.samestat(os.stat(f"/proc/{pid}/fd/{number}"), wanted):
                    return True
        except OSError:
            continue
    return False


if _WANTED:
    _take_away()
    if _WANTED == "files":
        _keep_open_files()
        _fold_case()
