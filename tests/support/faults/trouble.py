"""Something that a server needs and lacks for a while: room on the disk, the right to write,
descriptors. Begun and ended from outside, while the server runs."""

import errno
import os
import shutil
import subprocess
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Protocol

from tests.support.faults.damage import PAGE
from tests.support.faults.shim import FULL_DISK, Kind, Shim, What, compiled
from tests.support.program import ServedProcess
from tests.support.systems.needs import resource

_TICKS = os.sysconf("SC_CLK_TCK")


class Trouble(Protocol):
    """Of the server that is given, if one runs already, or of its files."""

    def begin(self, server: ServedProcess | None) -> None: ...

    def end(self, server: ServedProcess) -> None: ...


def shim_for(folder: Path, index: Path) -> Shim:
    index.mkdir(exist_ok=True)
    return Shim(compiled(folder), index, folder / "control")


class Failing:
    """Calls fail with an error, as long as it lasts, in processes that have the shim."""

    def __init__(self, shim: Shim, error: int, kinds: Kind) -> None:
        self._shim = shim
        self._fault = error, kinds

    def begin(self, server: ServedProcess | None) -> None:
        self._shim.set(What.FROM_THERE_ON, 1, *self._fault)

    def end(self, server: ServedProcess) -> None:
        assert self._shim.faults
        self._shim.clear()


def full_disk(shim: Shim) -> Failing:
    return Failing(shim, errno.ENOSPC, FULL_DISK)


def read_only(shim: Shim) -> Failing:
    return Failing(shim, errno.EROFS, Kind.ALL)


class Limited:
    """A limit of the kernel for the process, lowered and raised again."""

    def __init__(self, which: int) -> None:
        self._which = which
        self._before = resource.getrlimit(which)

    def begin(self, server: ServedProcess | None) -> None:
        assert server
        pid = server.process.pid
        self._before = resource.prlimit(pid, self._which)
        resource.prlimit(pid, self._which, (self._least(pid), self._before[1]))

    def end(self, server: ServedProcess) -> None:
        resource.prlimit(server.process.pid, self._which, self._before)

    def _least(self, pid: int) -> int:
        if self._which == resource.RLIMIT_NOFILE:
            return len(os.listdir(f"/proc/{pid}/fd"))
        return 1000


def few_descriptors() -> Limited:
    return Limited(resource.RLIMIT_NOFILE)


def small_files() -> Limited:
    """Python ignores the signal, so that writing on fails with EFBIG."""
    return Limited(resource.RLIMIT_FSIZE)


class Forbidden:
    """Modes without the right to write; nothing to someone who may do anything."""

    def __init__(self, index: Path) -> None:
        self._index = index

    def begin(self, server: ServedProcess | None) -> None:
        self._set(0o400, 0o500)

    def end(self, server: ServedProcess) -> None:
        self._set(0o600, 0o700)

    def _set(self, file: int, folder: int) -> None:
        self._index.chmod(0o700)
        for path in self._index.iterdir():
            path.chmod(file)
        self._index.chmod(folder)


class Remounted:
    """A real file system that is read-only; the index must be on a mount of its own."""

    def __init__(self, mount: Path) -> None:
        self._mount = mount

    def begin(self, server: ServedProcess | None) -> None:
        self._remount("ro")

    def end(self, server: ServedProcess) -> None:
        self._remount("rw")

    def _remount(self, how: str) -> None:
        command = ["mount", "-o", f"remount,{how}", str(self._mount)]
        subprocess.run(command, check=True, capture_output=True)


class Filled:
    """A real disk, small and full."""

    def __init__(self, index: Path) -> None:
        self._filler = index / "filler"

    def begin(self, server: ServedProcess | None) -> None:
        with self._filler.open("wb", buffering=0) as opened, suppress(OSError):
            while opened.write(bytes(4096)):
                pass
        assert shutil.disk_usage(self._filler).free < PAGE

    def end(self, server: ServedProcess) -> None:
        self._filler.unlink()


@contextmanager
def small_disk(folder: Path, size: str = "3m") -> Generator[Path | None]:
    """None where nothing can be mounted."""
    folder.mkdir(parents=True, exist_ok=True)
    mount = shutil.which("mount")
    made = mount and os.geteuid() == 0
    command = [str(mount), "-t", "tmpfs", "-o", f"size={size}", "none", str(folder)]
    if not made or subprocess.run(command, capture_output=True, check=False).returncode:
        yield None
        return
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def cpu_seconds(server: ServedProcess) -> float:
    stat = Path(f"/proc/{server.process.pid}/stat").read_text(encoding="utf-8")
    fields = stat.rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS
