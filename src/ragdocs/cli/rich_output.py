"""Progress bars and tables: the only module that imports rich, loaded when one of them is shown."""

import sys

from rich.console import Console
from rich.progress import BarColumn, TaskID, TextColumn
from rich.progress import Progress as BarSet
from rich.table import Table
from rich.text import Text

from ragdocs.cli.progress import UNITS, Pace, in_words
from ragdocs.indexing.changes import Phase, Progress
from ragdocs.search.candidates import Strategy
from ragdocs.search.responses import Explanation, QueryExplanation
from ragdocs.search.stages import StageCount
from ragdocs.text import escaped, escaped_line

# Progress bars; they disappear when the work is done.

_TITLES = {
    Phase.CHECKING: "Checking",
    Phase.SCANNING: "Looking",
    Phase.READING: "Reading",
    Phase.EMBEDDING: "Embedding",
    Phase.TERMS: "Vocabulary",
}


class Bars:
    """One bar for each phase; scanning and reading share one."""

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
        """The bar stays beside the next one until all is done."""

    def close(self) -> None:
        self._bars.stop()

    def _count(self, progress: Progress) -> str:
        # Not rich's own estimate, which restarts whenever the total changes.
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


# The explanation of an answer: queries, results, stages. Ids are on lines of their own, which are
# never cut, because a user copies them.

_MAX_FALLEN = 5


def tables(explanation: Explanation) -> None:
    """Prints it on stdout, after the answer."""
    console = Console(highlight=False, soft_wrap=False)
    for query in explanation.queries:
        console.print(_query(query))
    if explanation.results:
        _print_results(console, explanation)
    console.print(_stages(explanation))
    for stage in explanation.stages:
        _print_fallen(console, stage)


def _query(query: QueryExplanation) -> Table:
    table = Table("index", "weight", "hits", title=_plain(f"query: {query.text or '(hypothesis)'}"))
    for strategy, hits in query.hits.items():
        table.add_row(strategy.value, f"{query.weights.get(strategy, 0):.2f}", str(hits))
    read = f"{'strict' if query.is_strict else 'plain words'}, because {query.why}"
    said = [f"{query.query_type.value}; {read}"]
    said += [f"preferred: {one.in_words()}" for one in query.wishes]
    if query.filters:
        said.append(f"read as a filter: {' '.join(query.filters)}")
    if query.as_text:
        said.append(f"read as text: {' '.join(query.as_text)}")
    said.append(f"searched for: {', '.join(query.terms) or 'nothing'}")
    if query.added:
        said.append("added: " + ", ".join(f"{one.word} ({one.weight:.2f})" for one in query.added))
    said.append(f"{query.candidates} candidates entered the stages")
    words, rarity, spread, passages = query.question
    said.append(
        f"for confidence: {words} words of rarity {rarity:.2f}, "
        f"cosines spread by {spread:.3f}, {passages:,} passages"
    )
    table.caption = _plain("\n".join([*said, *query.notes]))
    return table


def _print_results(console: Console, explanation: Explanation) -> None:
    title = "results: rank (score) in each index; confidence is made from the "
    _print_line(console, f"{title}{explanation.confidence_from}", "bold")
    for number, result in enumerate(explanation.results, 1):
        _print_line(console, f"{number}. {result.id}")
        found = (
            f"{strategy.value} {one.rank} ({one.score:.3f})"
            for strategy in Strategy
            if (one := result.evidence.get(strategy))
        )
        boosts = (f"{name} by {by:.2f}" for name, by in result.boosts.items())
        said = [", ".join(found), f"evidence {result.relevance:.3f}", ", ".join(boosts)]
        _print_line(console, "   " + "; ".join(part for part in said if part))


def _stages(explanation: Explanation) -> Table:
    table = Table("stage", "in", "out", title="stages")
    for stage in explanation.stages:
        table.add_row(stage.name, str(stage.before), str(stage.after))
    return table


def _print_fallen(console: Console, stage: StageCount) -> None:
    if not stage.fallen:
        return
    _print_line(console, f"dropped by {stage.name}", "bold")
    for one in stage.fallen[:_MAX_FALLEN]:
        _print_line(console, f"   {one.id}: {one.reason}")
    if len(stage.fallen) > _MAX_FALLEN:
        _print_line(console, f"   and {len(stage.fallen) - _MAX_FALLEN} more")


def _print_line(console: Console, text: str, style: str = "") -> None:
    console.print(Text(escaped_line(text), style), soft_wrap=True)


def _plain(text: str) -> Text:
    """Without markup or control characters: the text may come from a document."""
    return Text(escaped(text))
