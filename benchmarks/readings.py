"""The numbers that a benchmark measured, as data beside its text.

Every benchmark notes them as it goes; they are kept where the variable BENCHMARK_READINGS names a
file, one JSON object on a line, so that what was measured before a failure is there too.
"""

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

VARIABLE = "BENCHMARK_READINGS"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """One number: `what` it is (`ratio`, `latency`), `of` whom, by which measure (`at`: `p50`,
    `CPU`), on which set (`where`), at how many chunks or files (`size`).
    """

    what: str
    of: str
    value: float
    unit: str = ""
    at: str = ""
    where: str = ""
    size: int = 0
    low: float | None = None
    high: float | None = None


def note(*readings: Reading) -> None:
    file = os.environ.get(VARIABLE)
    if not file:
        return
    with Path(file).open("a", encoding="utf-8") as written:
        for reading in readings:
            written.write(json.dumps(as_json(reading), ensure_ascii=False) + "\n")


def as_json(reading: Reading) -> dict[str, object]:
    """Without empty fields."""
    return {name: value for name, value in asdict(reading).items() if value not in ("", None)}


def read(file: Path) -> list[Reading]:
    """None if the benchmark wrote none."""
    if not file.exists():
        return []
    return [Reading(**json.loads(line)) for line in file.read_text(encoding="utf-8").splitlines()]
