"""What the checks examine: a configuration as it was read, and the machine around it."""

import os
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ragdocs.app import App
from ragdocs.config.loading import Reading
from ragdocs.config.notation import printable


def _home() -> Path:
    return Path(os.path.expanduser("~"))


def _here() -> Path:
    try:
        return Path.cwd()
    except OSError:  # deleted under us; the configuration's check says so
        return _home()


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """The surroundings; tests give others."""

    environ: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    home: Path = field(default_factory=_home)
    folder: Path = field(default_factory=_here)
    platform: str = sys.platform
    proc: Path = Path("/proc")
    temporary: Path = field(default_factory=lambda: Path(tempfile.gettempdir()))


@dataclass(frozen=True, slots=True)
class Case:
    """One examination. Without a usable configuration there is no application."""

    reading: Reading
    machine: Machine
    opened: App | None

    @property
    def app(self) -> App:
        """For checks that are not run without one."""
        assert self.opened is not None
        return self.opened

    @property
    def directory(self) -> Path:
        return self.app.directory


def at(path: Path) -> str:
    """A path as it can be shown."""
    return printable(os.fspath(path))
