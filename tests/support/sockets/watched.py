"""Processes whose sockets are all seen: Python's own by an audit hook, those of native libraries by
a small one that is loaded before them (shim.c), where there is a C compiler.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
_UNIX = "1"
"""The family of what never leaves the machine: an event loop wakes itself by a pair of these."""


class WatchedSockets:
    """Start processes with `environment`, then ask what was `seen`."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "sockets-seen"
        self.has_native = _has_compiler()
        paths = [str(HERE), *filter(None, [os.environ.get("PYTHONPATH")])]
        self.environment = {"SOCKETS_SEEN": str(self._file), "PYTHONPATH": os.pathsep.join(paths)}
        if self.has_native:
            self.environment["LD_PRELOAD"] = str(_compiled(folder))

    def seen(self) -> list[str]:
        """What was opened, bound, connected or looked up, except pairs within a process."""
        if not self._file.exists():
            return []
        lines = self._file.read_text(encoding="utf-8").splitlines()
        return [line.strip() for line in lines if line != f"python __new__ {_UNIX}"]

    def run(self, *words: str, cwd: Path) -> str:
        done = subprocess.run(
            [sys.executable, *words],
            cwd=cwd,
            env={**os.environ, **self.environment},
            capture_output=True,
            encoding="utf-8",
            check=False,
            timeout=120,
        )
        assert done.returncode == 0, (words, done.stdout, done.stderr)
        return done.stdout


def _compiler() -> str | None:
    return shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")


def _has_compiler() -> bool:
    return sys.platform.startswith("linux") and _compiler() is not None


def _compiled(folder: Path) -> Path:
    library = folder / "sockets.so"
    command = [str(_compiler()), "-shared", "-fPIC", "-O1", "-o", str(library)]
    subprocess.run(
        [*command, str(HERE / "shim.c"), "-ldl"], check=True, capture_output=True, timeout=60
    )
    return library
