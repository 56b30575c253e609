"""How far an indexing command is: bars on a terminal, now and then a line anywhere else."""

import os
import sys
import time
from collections.abc import Callable
from typing import Protocol

import click

from ragdocs.indexing.changes import Phase, Progress
from ragdocs.text import number_of

LINE_SECONDS = 5.0
"""Between two lines of one phase: a log that someone reads later should stay short."""
UNITS = {
    Phase.CHECKING: "step",
    Phase.READING: "file",
    Phase.EMBEDDING: "chunk",
    Phase.TERMS: "word",
}
"""What a phase counts, for those that take long enough to be counted."""


class Display(Protocol):
    """What is told of the work while it goes on. For one thread."""

    def begin(self, phase: Phase) -> None:
        """The phase begins now, or again, though there is nothing to count yet."""
        ...

    def report(self, progress: Progress) -> None: ...

    def end(self) -> None:
        """The phase is over, complete or not."""
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
    """How fast a phase goes, from its beginning."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._began = clock()

    def rate(self, progress: Progress) -> float:
        """Chunks, or whatever the phase counts, in a second."""
        return progress.chunks / max(self._clock() - self._began, 0.001)

    def remaining(self, progress: Progress) -> float | None:
        """In seconds, if it goes on as it did."""
        if not progress.done:
            return None
        left = progress.total - progress.done
        return (self._clock() - self._began) / progress.done * left


class ProgressLines:
    """For logs: a line every few seconds, and one when a phase ends that had something to do."""

    def __init__(
        self, write: Callable[[str], None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._write = write
        self._clock = clock
        self._phase: Phase | None = None
        self._pace = Pace(clock)
        self._last: Progress | None = None
        self._is_told = True
        self._told_at = clock()

    def begin(self, phase: Phase) -> None:
        if phase is not self._phase:
            self.end()
        self._phase, self._pace, self._told_at = phase, Pace(self._clock), self._clock()

    def report(self, progress: Progress) -> None:
        if progress.phase is not self._phase:
            self.begin(progress.phase)
        if progress.phase in UNITS and progress.total:
            self._last, self._is_told = progress, False
            if progress.done and self._clock() - self._told_at >= LINE_SECONDS:
                self._tell(progress)

    def end(self) -> None:
        if self._last and not self._is_told:
            self._tell(self._last)
        self._phase = self._last = None

    def close(self) -> None:
        self.end()

    def _tell(self, progress: Progress) -> None:
        self._is_told, self._told_at = True, self._clock()
        total = number_of(progress.total, UNITS[progress.phase])
        said = [f"{progress.phase.value}: {progress.done} of {total}"]
        if progress.chunks:  # files that are no text, or only touched, give none
            if progress.phase is Phase.READING:
                said.append(number_of(progress.chunks, "chunk"))
            said.append(f"{self._pace.rate(progress):.0f}/s")
        remaining = self._pace.remaining(progress)
        if remaining and progress.done < progress.total:
            said.append(f"about {in_words(remaining)} left")
        self._write(", ".join(said))


def in_words(seconds: float) -> str:
    """A length of time as a person says it."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 90 * 60:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
