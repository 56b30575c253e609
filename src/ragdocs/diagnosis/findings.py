"""What a check finds, and what could be done about it: values."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum


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
