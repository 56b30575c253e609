"""What the checks of `doctor` examine and what they return: values."""

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

# What the checks examine: a configuration as it was read, and the machine around it.


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

    reading: ConfigReading
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


# What a check finds, and what could be done about it: values.


class Level(StrEnum):
    """How much it matters, the least first."""

    OK = "ok"
    NOTE = "note"
    """Worth knowing; nothing is wrong."""
    WARNING = "warning"
    """Something does not work as it should."""
    ERROR = "error"
    """Something does not work at all."""


@dataclass(frozen=True, slots=True)
class Repair:
    """What `--fix` can do. Those with the same name are one, and done once.

    `run` says what it did; it raises RagdocsError or OSError when it could not.
    """

    name: str
    run: Callable[[], str]


@dataclass(frozen=True, slots=True)
class Finding:
    """What was found, what to do about it (`advice`), and particulars (`details`)."""

    level: Level
    message: str
    advice: str = ""
    details: tuple[str, ...] = ()
    repair: Repair | None = None
    check: str = ""
    """The name of the check; whoever runs it fills it in."""


@dataclass(frozen=True, slots=True)
class Repaired:
    """What `--fix` did, or why it could not."""

    name: str
    done: bool
    message: str


def is_fine(findings: Iterable[Finding]) -> bool:
    """Whether nothing is above a note."""
    return all(found.level in (Level.OK, Level.NOTE) for found in findings)
