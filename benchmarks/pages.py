"""Results as Markdown: the page of a run, and the index of all runs."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from asked import ANY, Asked, Verdict, verdict
from plots.bars import figure
from plots.gallery import Plot
from runs import Found, Outcome, Run, newest, silent

HEAD = """# Benchmarks

Written by `make bench` from the data in the folders of its runs: what is changed here by hand is
lost. `make bench` takes about a quarter of an hour on two quiet cores (a run's page says what each
benchmark took); `make bench BENCH=--full` takes longer and asks the large sets too,
`make bench BENCH="--only NAME"` runs one. A benchmark by itself keeps its numbers, one JSON object
on a line, in the file that the variable `BENCHMARK_READINGS` names. Reliability has figures of its
own, which `make stress` measures: see [reliability](../reliability.md).

A figure is that of the newest run that has it. Ratios compare two things within one run, so that
they hold on other machines too: by the clock, and by CPU time, which other work on the machine
disturbs less.
"""


def run_page(run: Run, plots: Sequence[Plot], asked: Sequence[Asked]) -> str:
    return "\n".join(_run_lines(run, plots, asked)) + "\n"


def _run_lines(run: Run, plots: Sequence[Plot], asked: Sequence[Asked]) -> Iterator[str]:
    yield f"# Benchmarks, {run.name}"
    yield ""
    yield _circumstances(run)
    yield ""
    yield from _verdicts([run], asked)
    unsaid = silent(run, asked)
    if unsaid:
        yield f"**Not told by benchmarks that ran**: {'; '.join(each.words for each in unsaid)}."
        yield ""
    yield "## Pictures"
    yield ""
    yield from _pictures(plots)
    yield "## Raw output"
    for outcome in run.outcomes:
        yield ""
        yield from _section(outcome)


def _circumstances(run: Run) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in run.versions.items())
    took = sum(outcome.seconds for outcome in run.outcomes)
    before, after = run.load
    return (
        f"{run.machine}. {versions}. Load {before:.1f} at the start, {after:.1f} at the end; "
        f"extent: {run.extent}; {took / 60:.1f} minutes in all. "
        "The numbers are in [run.json](run.json)."
    )


def _section(outcome: Outcome) -> Iterator[str]:
    yield f"### {outcome.name}"
    yield ""
    yield f"    {outcome.command}"
    yield ""
    if outcome.left_out:
        yield outcome.left_out
        return
    if outcome.problem:
        yield f"**{outcome.problem}**"
        yield ""
    yield f"It took {outcome.seconds:.0f} s, {outcome.cpu_seconds:.0f} s of CPU."
    if outcome.output.strip():
        yield ""
        yield from ("```text", outcome.output.strip().replace("```", "'''"), "```")


def index_page(runs: Sequence[Run], plots: Sequence[Plot], asked: Sequence[Asked], at: Path) -> str:
    """`runs`: newest first; `at`: the folder of the page, which may have further pages."""
    lines = [HEAD, *_verdicts(runs, asked, at), "## Pictures", ""]
    lines += [*_pictures(plots), "## Runs", ""]
    for run in runs:
        if run.outcomes and not all(outcome.page for outcome in run.outcomes):
            lines.append(f"- [{run.name}]({run.name}/README.md): {_in_short(run)}")
    lines += [
        f"- [{_title(page)}]({page.name})"
        for page in sorted(at.glob("*.md"), reverse=True)
        if page.name != "README.md"
    ]
    return "\n".join(lines) + "\n"


def _in_short(run: Run) -> str:
    failed = [outcome.name for outcome in run.outcomes if outcome.problem]
    count = f"{len(run.outcomes)} benchmarks, {run.extent}, load {run.load[0]:.1f} at the start"
    return count + (f"; failed: {', '.join(failed)}" if failed else "")


def _title(page: Path) -> str:
    return page.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")


def _verdicts(runs: Sequence[Run], asked: Sequence[Asked], at: Path | None = None) -> Iterator[str]:
    """Every figure with a link from the folder `at` to where it is told; or only those of a run."""
    yield "## Figures asked for"
    yield ""
    yield "| issue | figure | asked | measured | by CPU | | where |"
    yield "|--:|---|--:|--:|--:|---|---|"
    for each in asked:
        found = newest(runs, each)
        if found:
            yield _row(each, found, _place(found, at) if at else each.benchmark)
        elif at:
            yield f"| {each.issue} | {each.words} | {each.limit} | | | {Verdict.UNKNOWN} | |"
    yield ""


def _row(asked: Asked, found: Found, place: str) -> str:
    value = figure(found.reading.value) + asked.unit
    if asked.where == ANY:
        value += f" ({found.reading.where})"
    by_cpu = figure(found.cpu.value) if found.cpu else ""
    said = verdict(asked, found.reading, found.cpu)
    cells = (asked.issue, asked.words, asked.limit, value, by_cpu, said, place)
    return f"| {' | '.join(map(str, cells))} |"


def _place(found: Found, at: Path) -> str:
    """The page that describes it; it may have been moved since."""
    page = found.outcome.page or f"{found.run.name}/README.md#{found.outcome.name}"
    is_there = (at / page.partition("#")[0]).exists()
    return f"[{found.outcome.name}]({page})" if is_there else found.outcome.name


def _pictures(plots: Sequence[Plot]) -> Iterator[str]:
    for plot in plots:
        yield f"![{plot.words.replace('[', '(').replace(']', ')')}]({plot.name})"
        yield ""
