"""A run of benchmarks as a value, and its folder under docs/benchmarks: `run.json` is the data."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from asked import Asked
from readings import Reading, as_json

DATA = "run.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What one benchmark did, or why it was skipped. `page`: where else it is described."""

    name: str
    command: str
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    problem: str = ""
    left_out: str = ""
    output: str = ""
    readings: tuple[Reading, ...] = ()
    page: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A whole run with its machine; `load` at the start and at the end."""

    name: str
    extent: str
    machine: str
    versions: Mapping[str, str]
    load: tuple[float, float] = (0.0, 0.0)
    outcomes: tuple[Outcome, ...] = ()

    def readings(self, *benchmarks: str) -> list[Reading]:
        return [
            reading
            for outcome in self.outcomes
            if outcome.name in benchmarks
            for reading in outcome.readings
        ]


@dataclass(frozen=True, slots=True)
class Found:
    """A reading, and which benchmark of which run gave it."""

    reading: Reading
    cpu: Reading | None
    run: Run
    outcome: Outcome


def newest(runs: Iterable[Run], asked: Asked) -> Found | None:
    """`runs`: the newest first."""
    for run in runs:
        for outcome in run.outcomes:
            reading = asked.reading(outcome.name, outcome.readings)
            if reading:
                by_cpu = asked.by_cpu
                cpu = by_cpu.reading(outcome.name, outcome.readings) if by_cpu else None
                return Found(reading, cpu, run, outcome)
    return None


def silent(run: Run, asked: Iterable[Asked]) -> list[Asked]:
    """Figures that a benchmark should have given, at any size, and did not."""
    ended = {
        outcome.name: outcome
        for outcome in run.outcomes
        if not (outcome.problem or outcome.left_out)
    }
    return [
        each
        for each in asked
        if each.benchmark in ended
        and not each.needs_sets
        and not replace(each, size=0).reading(each.benchmark, ended[each.benchmark].readings)
    ]


def save(run: Run, folder: Path) -> None:
    outcomes = [
        {
            "name": outcome.name,
            "command": outcome.command,
            "seconds": round(outcome.seconds, 1),
            "cpu_seconds": round(outcome.cpu_seconds, 1),
            "problem": outcome.problem,
            "left_out": outcome.left_out,
            "page": outcome.page,
            "readings": [as_json(reading) for reading in outcome.readings],
        }
        for outcome in run.outcomes
    ]
    data = {
        "name": run.name,
        "extent": run.extent,
        "machine": run.machine,
        "versions": dict(run.versions),
        "load": run.load,
        "outcomes": outcomes,
    }
    text = json.dumps(data, ensure_ascii=False, indent=1)
    (folder / DATA).write_text(text + "\n", encoding="utf-8")


def load(file: Path) -> Run:
    """Without what was printed: the page has that."""
    data: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    outcomes: list[Outcome] = []
    for each in data.pop("outcomes"):
        readings = tuple(Reading(**one) for one in each.pop("readings"))
        outcomes.append(Outcome(**each, readings=readings))
    before, after = data.pop("load")
    return Run(**data, load=(before, after), outcomes=tuple(outcomes))


def load_all(folder: Path) -> list[Run]:
    """The newest first: folders are named by their time."""
    return [load(file) for file in sorted(folder.glob(f"*/{DATA}"), reverse=True)]
