"""How long it takes until all is well: measured, up to a deadline that nothing well takes."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from ragdocs.errors import IndexStoreError
from ragdocs.store.reader import Reader
from ragdocs.store.records import Position
from tests.support.machine import until
from tests.support.storms.oracle import PATIENCE_SECONDS, Gap, gap


@dataclass(frozen=True)
class Settled:
    """How long it took, and what was still wrong when nobody waited any longer."""

    seconds: float
    gap: Gap | None = None
    error: str = ""

    @property
    def figures(self) -> dict[str, int]:
        gap = self.gap
        return {
            "missing": len(gap.missing) if gap else 0,
            "ghosts": len(gap.ghosts) if gap else 0,
            "stale": len(gap.stale) if gap else 0,
        }


def seconds_until(
    condition: Callable[[], object], since: float, patience: float = PATIENCE_SECONDS
) -> float:
    """From that moment (monotonic) until it is true; fails when it never is."""
    until(condition, patience)
    return time.monotonic() - since


def settle(index: Path, expected: Mapping[str, str], since: float) -> Settled:
    """Until the index is in step with the files (`on_disk`)."""
    look = _Look(index, expected)
    try:
        return Settled(seconds_until(look.is_in_step, since))
    except AssertionError as error:
        return Settled(time.monotonic() - since, look.gap, f"not in step: {error}")


class _Look:
    """Looks closely only when there was a commit: whoever looks must not take the time of those
    who work.
    """

    def __init__(self, index: Path, expected: Mapping[str, str]) -> None:
        self._index = index
        self._expected = expected
        self._at: Position | None = None
        self.gap: Gap | None = None

    def is_in_step(self) -> bool:
        try:
            with Reader.open(self._index) as reader:
                position = reader.position()
            if position != self._at:
                self.gap = gap(self._index, self._expected)
                self._at = position
        except IndexStoreError:
            return False
        return self.gap is not None and not self.gap
