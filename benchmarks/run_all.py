"""Runs every benchmark in turn and keeps the results as one dated run: `make bench`.

The run's folder has a page (command, versions, machine, raw output, figures, pictures) and the
numbers as data; the index of all runs and the pictures beside it are rewritten. What a benchmark
fails with is kept too, and the rest goes on. `--full` takes longer, `--tiny` is over in a minute
or two and says nothing about speed: it is there to try the benchmarks themselves.

    python benchmarks/run_all.py [--only NAME ...] [--full | --tiny] [--to docs/benchmarks]
"""

import argparse
import os
import resource
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import machine
from asked import figures
from pages import index_page, run_page
from places import PROJECT, placeless, shared_set
from plots.gallery import gallery
from printed import readings_in
from readings import VARIABLE, Reading, read
from runs import Outcome, Run, load_all, save, silent
from suite import STORES, SUITE, Benchmark, Extent

HERE = Path(__file__).resolve().parent
DOCS = PROJECT / "docs" / "benchmarks"
TRIED = PROJECT / "build" / "benchmarks"
"""The default folder of a tiny run, whose numbers are not worth keeping."""
DEADLINE_SECONDS = {Extent.TINY: 600, Extent.USUAL: 900, Extent.FULL: 7200}


def main() -> int:
    names = [benchmark.name for benchmark in SUITE]
    parser = argparse.ArgumentParser(description="Every benchmark, kept as a dated run.")
    parser.add_argument("--only", nargs="+", choices=names)
    extents = parser.add_mutually_exclusive_group()
    extents.add_argument("--full", dest="extent", action="store_const", const=Extent.FULL)
    extents.add_argument("--tiny", dest="extent", action="store_const", const=Extent.TINY)
    parser.add_argument("--to", type=Path)
    given = parser.parse_args()
    extent = given.extent or Extent.USUAL
    to: Path = given.to or (TRIED if extent is Extent.TINY else DOCS)
    run = run_suite(chosen_of(given.only, extent), extent, to)
    failed = [outcome.name for outcome in run.outcomes if outcome.problem]
    print(f"kept in {to / run.name}" + (f"; failed: {', '.join(failed)}" if failed else ""))
    unsaid = silent(run, figures())
    for asked in unsaid:
        print(f"{asked.benchmark} did not tell: {asked.words}")
    return 1 if failed or unsaid else 0


def chosen_of(only: Sequence[str] | None, extent: Extent) -> list[Benchmark]:
    if only:
        return [benchmark for benchmark in SUITE if benchmark.name in only]
    return [each for each in SUITE if extent is Extent.FULL or not each.only_full]


def run_suite(chosen: Sequence[Benchmark], extent: Extent, to: Path) -> Run:
    """Writes after each benchmark, so that an interrupted run is kept up to there."""
    name = datetime.now(UTC).strftime("%Y-%m-%d-%H%M")
    folder = to / name
    folder.mkdir(parents=True, exist_ok=True)
    start = machine.load()
    run = Run(
        name=name,
        extent=extent,
        machine=machine.description(),
        versions=machine.versions(),
        load=(start, start),
    )
    with tempfile.TemporaryDirectory() as stores:
        for benchmark in chosen:
            print(f"{benchmark.name} …", end=" ", flush=True)
            outcome = measure(benchmark, extent, Path(stores))
            took = f"{outcome.seconds:.0f} s, {outcome.cpu_seconds:.0f} s of CPU"
            print(outcome.problem or outcome.left_out or took, flush=True)
            load = (start, machine.load())
            run = replace(run, load=load, outcomes=(*run.outcomes, outcome))
            write(run, folder)
            write_index(to)
    return run


def measure(benchmark: Benchmark, extent: Extent, stores: Path) -> Outcome:
    sets = " ".join(f"../shared/eval/{name}" for name in benchmark.needs)
    arguments = f"{sets} {benchmark.arguments(extent)}".strip()
    command = f"python {shown(benchmark.program)} {arguments}".rstrip()
    left_out = why_left_out(benchmark, extent)
    if left_out:
        return Outcome(name=benchmark.name, command=command, left_out=left_out)
    began, used = time.perf_counter(), cpu_of_children()
    with tempfile.TemporaryDirectory() as folder:
        kept = Path(folder) / "readings.jsonl"
        words = shlex.split(arguments.replace(STORES, shlex.quote(str(stores))))
        problem, output = run_program(HERE / benchmark.program, words, kept, extent)
        readings = [*read(kept), *readings_in(output)]
    return Outcome(
        name=benchmark.name,
        command=command.replace(STORES, "DIR"),
        seconds=time.perf_counter() - began,
        cpu_seconds=cpu_of_children() - used,
        problem=problem,
        output=output,
        readings=tuple(sized(readings, benchmark.size_at(extent))),
    )


def why_left_out(benchmark: Benchmark, extent: Extent) -> str:
    if benchmark.needs and extent is Extent.TINY:
        return "Left out: it needs large sets."
    lacking = [name for name in benchmark.needs if not shared_set(name)]
    return f"Left out: not beside this clone: {', '.join(lacking)}." if lacking else ""


def shown(program: str) -> str:
    return (HERE / program).resolve().relative_to(PROJECT).as_posix()


def run_program(program: Path, words: Sequence[str], kept: Path, extent: Extent) -> tuple[str, str]:
    """What went wrong, if anything did, and what was printed."""
    seconds = DEADLINE_SECONDS[extent]
    try:
        done = subprocess.run(
            [sys.executable, str(program), *words],
            cwd=PROJECT,
            env=os.environ | {VARIABLE: str(kept)},
            capture_output=True,
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        printed = (error.stdout or b"").decode(errors="replace")
        return f"It was stopped after {seconds} s.", printed
    printed = done.stdout.decode(errors="replace")
    if not done.returncode:
        return "", printed
    said = done.stderr.decode(errors="replace")
    return f"It failed with exit status {done.returncode}.", printed + placeless(said)[-4000:]


def cpu_of_children() -> float:
    """Seconds, of all that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def sized(readings: Sequence[Reading], size: int) -> list[Reading]:
    return [replace(one, size=one.size or size) for one in readings]


def write(run: Run, folder: Path) -> None:
    plots = gallery(run.readings)
    for plot in plots:
        (folder / plot.name).write_text(plot.svg, encoding="utf-8")
    (folder / "README.md").write_text(run_page(run, plots, figures()), encoding="utf-8")
    save(run, folder)


def write_index(to: Path) -> None:
    """Of all runs that are kept there; each picture by the newest run that has its benchmarks."""
    runs = load_all(to)

    def taken(*benchmarks: str) -> list[Reading]:
        none: list[Reading] = []
        return next((found for run in runs if (found := run.readings(*benchmarks))), none)

    plots = gallery(taken)
    for plot in plots:
        (to / plot.name).write_text(plot.svg, encoding="utf-8")
    page = index_page(runs, plots, figures(), to)
    (to / "README.md").write_text(page, encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
