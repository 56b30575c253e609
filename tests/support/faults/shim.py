"""Faults of the file system, made by a small library (shim.c) that is loaded before all others.

What a process that was started with `Shim.environment` does to files below one folder is counted,
and made to fail as `Shim.set` says; also later, while it runs.
"""

import errno
import mmap
import os
import shutil
import struct
import subprocess
import sys
from enum import IntEnum, IntFlag
from pathlib import Path

import pytest

SOURCE = Path(__file__).with_name("shim.c")
ENDED = 99
"""The exit code of a process that the shim has ended."""
_LAYOUT = struct.Struct("6i116sq")


class What(IntEnum):
    """What happens at the call in question."""

    NOTHING = 0
    ONCE = 1
    """It fails, and the next ones do not."""
    FROM_THERE_ON = 2
    END = 3
    """The process ends before it, as in a power cut."""
    TEAR = 4
    """The same, but half of what was to be written is."""


class Kind(IntFlag):
    """Which calls count."""

    WRITE = 1
    SYNC = 2
    CREATE = 4
    NAME = 8
    """To rename, delete, link; to make and remove folders."""
    OPEN = 16
    """To open for writing what is there."""
    ALL = WRITE | SYNC | CREATE | NAME | OPEN


FULL_DISK = Kind.WRITE | Kind.CREATE


def compiled(folder: Path) -> Path:
    """The library; skips the test where it cannot be made."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if not sys.platform.startswith("linux") or compiler is None:
        pytest.skip("the shim needs Linux and a C compiler (cc, gcc or clang)")
    library = folder / "shim.so"
    if not library.exists():
        command = [compiler, "-shared", "-fPIC", "-O1", "-o", str(library), str(SOURCE), "-ldl"]
        subprocess.run(command, check=True, capture_output=True, timeout=60)
    return library


class Shim:
    """Commands the processes that have the library, of one folder; the folder must exist."""

    def __init__(self, library: Path, root: Path, control: Path) -> None:
        control.write_bytes(bytes(_LAYOUT.size))
        with control.open("r+b") as opened:
            self._mapped = mmap.mmap(opened.fileno(), _LAYOUT.size)
        self.environment = {
            **os.environ,
            "LD_PRELOAD": str(library),
            "FAULT_ROOT": str(root),
            "FAULT_CONTROL": str(control),
        }
        self._clock = 0
        self.clear()

    def set_clock(self, seconds: int) -> None:
        """By how much the processes' clocks are wrong from now on; those of files are not."""
        self._clock = seconds
        self.clear()

    def set(self, what: What, nth: int = 1, error: int = errno.EIO, kinds: Kind = Kind.ALL) -> None:
        """From now on, and counted from now on."""
        self._mapped[:] = _LAYOUT.pack(what, nth, error, kinds, 0, 0, b"", self._clock)

    def clear(self) -> None:
        """Nothing fails; calls are counted from now on."""
        self.set(What.NOTHING)

    @property
    def calls(self) -> int:
        return _LAYOUT.unpack(self._mapped)[4]

    @property
    def faults(self) -> int:
        return _LAYOUT.unpack(self._mapped)[5]

    @property
    def last(self) -> str:
        """The call that was made to fail last."""
        return _LAYOUT.unpack(self._mapped)[6].split(b"\0")[0].decode(errors="replace")
