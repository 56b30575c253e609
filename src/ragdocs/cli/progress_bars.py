"""Progress bars, the only module that knows rich. They go away when the work is done."""

import sys

from rich.console import Console
from rich.progress import BarColumn, TaskID, TextColumn
from rich.progress import Progress as BarSet

from ragdocs.cli.progress import UNITS, Pace, in_words
from ragdocs.indexing.outcome import Phase, Progress

_TITLES = {
    Phase.CHECKING: "Checking",
    Phase.SCANNING: "Looking",
    Phase.READING: "Reading",
    Phase.EMBEDDING: "Embedding",
    Phase.TERMS: "Vocabulary",
}


class Bars:
    """One bar for each phase; looking and reading share the first."""

    def __init__(self) -> None:
        self._bars = BarSet(
            TextColumn("{task.description:<10}"),
            BarColumn(bar_width=20),
            TextColumn("{task.fields[count]}"),
            console=Console(file=sys.stderr),
            transient=True,
        )
        self._tasks: dict[Phase, TaskID] = {}
        self._paces: dict[Phase, Pace] = {}
        self._bars.start()

    def begin(self, phase: Phase) -> None:
        bar = _bar(phase)
        if bar not in self._tasks:
            count = "loading the model" if phase is Phase.EMBEDDING else ""
            self._tasks[bar] = self._bars.add_task(_TITLES[phase], total=None, count=count)
        self._paces[phase] = Pace()

    def report(self, progress: Progress) -> None:
        if progress.phase not in self._paces:
            self.begin(progress.phase)
        is_counted = progress.phase in UNITS
        self._bars.update(
            self._tasks[_bar(progress.phase)],
            description=_TITLES[progress.phase],
            completed=progress.done,
            total=progress.total if is_counted else None,
            count=self._count(progress) if is_counted else "",
        )

    def end(self) -> None:
        """Its bar stays beside the next one, until all is done."""

    def close(self) -> None:
        self._bars.stop()

    def _count(self, progress: Progress) -> str:
        # Not by rich's own estimate: it starts over whenever the total changes.
        if not progress.total:
            return "nothing to read"
        pace = self._paces[progress.phase]
        said = [f"{progress.done}/{progress.total} {UNITS[progress.phase]}s"]
        if progress.phase is Phase.READING:
            said.append(f"{progress.chunks} chunks")
        if progress.chunks:
            said.append(f"{pace.rate(progress):.0f}/s")
        if remaining := pace.remaining(progress):
            said.append(f"{in_words(remaining)} left")
        return ", ".join(said)


def _bar(phase: Phase) -> Phase:
    return Phase.READING if phase is Phase.SCANNING else phase
