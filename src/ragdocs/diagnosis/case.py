"""Values of `doctor`: the case that its checks examine, and the findings they return."""

import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from ragdocs.app import App
from ragdocs.config.loading import ConfigReading
from ragdocs.text import printable

# The case: a configuration as it was read, and the machine.


def _home() -> Path:
    return Path(os.path.expanduser("~"))


def _here() -> Path:
    try:
        return Path.cwd()
    except OSError:  # it was deleted, which the configuration check reports
        return _home()


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """The environment; tests pass another one."""

    environ: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    home: Path = field(default_factory=_home)
    folder: Path = field(default_factory=_here)
    platform: str = sys.platform
    proc: Path = Path("/proc")
    temporary: Path = field(default_factory=lambda: Path(tempfile.gettempdir()))


@dataclass(frozen=True, slots=True)
class Case:
    """One examination. Without a usable configuration there is no application."""

    reading: ConfigReading
    machine: Machine
    opened: App | None

    @property
    def app(self) -> App:
        """For checks that need a configuration."""
        assert self.opened is not None
        return self.opened

    @property
    def directory(self) -> Path:
        return self.app.directory


def at(path: Path) -> str:
    """The path in a printable form."""
    return printable(os.fspath(path))


# The findings of a check, and the repairs it offers.


class Level(StrEnum):
    """How much a finding matters, least first."""

    OK = "ok"
    NOTE = "note"
    """Worth knowing; nothing is wrong."""
    WARNING = "warning"
    """Something does not work as it should."""
    ERROR = "error"
    """Something does not work at all."""


@dataclass(frozen=True, slots=True)
class Repair:
    """What `--fix` can do. Repairs with the same name are made once.

    `run` returns what it did, and raises RagdocsError or OSError if it failed.
    """

    name: str
    run: Callable[[], str]


@dataclass(frozen=True, slots=True)
class Finding:
    """What was found, what to do about it (`advice`), and `details`."""

    level: Level
    message: str
    advice: str = ""
    details: tuple[str, ...] = ()
    repair: Repair | None = None
    check: str = ""
    """The name of the check, added by `examine`."""


@dataclass(frozen=True, slots=True)
class Repaired:
    """What `--fix` did, or why it failed."""

    name: str
    done: bool
    message: str


def is_fine(findings: Iterable[Finding]) -> bool:
    """Whether there are no warnings and no errors."""
    return all(found.level in (Level.OK, Level.NOTE) for found in findings)
