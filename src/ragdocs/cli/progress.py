"""Progress of an indexing command: bars on a terminal, occasional lines elsewhere."""

import os
import sys
import time
from collections.abc import Callable
from typing import Protocol

import click

from ragdocs.indexing.changes import Phase, Progress
from ragdocs.text import number_of

LINE_SECONDS = 5.0
"""Between two lines of one phase, so that a log stays short."""
UNITS = {
    Phase.CHECKING: "step",
    Phase.READING: "file",
    Phase.EMBEDDING: "chunk",
    Phase.TERMS: "word",
}
"""What each phase counts; only phases that take long are counted."""


class Display(Protocol):
    """Shows progress. For one thread."""

    def begin(self, phase: Phase) -> None:
        """The phase starts, or restarts, before there is anything to count."""
        ...

    def report(self, progress: Progress) -> None: ...

    def end(self) -> None:
        """The phase has ended, complete or not."""
        ...

    def close(self) -> None: ...


def display(*, quiet: bool) -> Display:
    if quiet:
        return Silence()
    if sys.stderr.isatty() and os.environ.get("TERM") != "dumb":
        from ragdocs.cli.rich_output import Bars

        return Bars()
    return ProgressLines(lambda line: click.echo(line, err=True))


class Silence:
    """No display."""

    def begin(self, phase: Phase) -> None:
        pass

    def report(self, progress: Progress) -> None:
        pass

    def end(self) -> None:
        pass

    def close(self) -> None:
        pass


class Pace:
    """The speed of a phase since its start."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._began = clock()

    def rate(self, progress: Progress) -> float:
        """Chunks, or whatever the phase counts, per second."""
        return progress.chunks / max(self._clock() - self._began, 0.001)

    def remaining(self, progress: Progress) -> float | None:
        """The remaining seconds, at the speed so far."""
        if not progress.done:
            return None
        left = progress.total - progress.done
        return (self._clock() - self._began) / progress.done * left


class ProgressLines:
    """For logs: a line every few seconds, and one at the end of a phase that did something."""

    def __init__(
        self, write: Callable[[str], None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._write = write
        self._clock = clock
        self._phase: Phase | None = None
        self._pace = Pace(clock)
        self._last: Progress | None = None
        self._is_shown = True
        self._shown_at = clock()

    def begin(self, phase: Phase) -> None:
        if phase is not self._phase:
            self.end()
        self._phase, self._pace, self._shown_at = phase, Pace(self._clock), self._clock()

    def report(self, progress: Progress) -> None:
        if progress.phase is not self._phase:
            self.begin(progress.phase)
        if progress.phase in UNITS and progress.total:
            self._last, self._is_shown = progress, False
            if progress.done and self._clock() - self._shown_at >= LINE_SECONDS:
                self._show(progress)

    def end(self) -> None:
        if self._last and not self._is_shown:
            self._show(self._last)
        self._phase = self._last = None

    def close(self) -> None:
        self.end()

    def _show(self, progress: Progress) -> None:
        self._is_shown, self._shown_at = True, self._clock()
        total = number_of(progress.total, UNITS[progress.phase])
        said = [f"{progress.phase.value}: {progress.done} of {total}"]
        if progress.chunks:  # files that are not text, or were only touched, have none
            if progress.phase is Phase.READING:
                said.append(number_of(progress.chunks, "chunk"))
            said.append(f"{self._pace.rate(progress):.0f}/s")
        remaining = self._pace.remaining(progress)
        if remaining and progress.done < progress.total:
            said.append(f"about {in_words(remaining)} left")
        self._write(", ".join(said))


def in_words(seconds: float) -> str:
    """A duration, for people."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 90 * 60:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
