"""Every performance target (`asked.toml`), and whether a reading meets it."""

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

from readings import Reading

FILE = Path(__file__).with_name("asked.toml")
ANY = "*"
"""On every set: the worst of them counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One target and its reading; `cpu` is the same by CPU time. Without a size, any counts."""

    issue: int
    words: str
    benchmark: str
    what: str
    of: str
    at: str = ""
    cpu: str = ""
    where: str = ""
    size: int = 0
    at_most: float | None = None
    at_least: float | None = None
    unit: str = ""

    def __post_init__(self) -> None:
        if (self.at_most is None) == (self.at_least is None):
            raise ValueError(f"{self.words}: needs one of at_most and at_least")

    @property
    def by_cpu(self) -> "Asked | None":
        return replace(self, at=self.cpu, cpu="") if self.cpu else None

    @property
    def needs_sets(self) -> bool:
        """Whether it needs files that a clone does not have."""
        return bool(self.where)

    @property
    def limit(self) -> str:
        if self.at_most is not None:
            return f"≤ {self.at_most:,g}{self.unit}"
        return f"≥ {self.at_least:g}{self.unit}"

    def met_by(self, value: float) -> bool:
        if self.at_most is not None:
            return value <= self.at_most
        assert self.at_least is not None
        return value >= self.at_least

    def reading(self, benchmark: str, readings: Iterable[Reading]) -> Reading | None:
        """The worst of the readings that match."""
        found = sorted((r for r in readings if self._fits(benchmark, r)), key=lambda r: r.value)
        if not found:
            return None
        return found[-1] if self.at_most is not None else found[0]

    def _fits(self, benchmark: str, reading: Reading) -> bool:
        return (
            (self.benchmark, self.what, self.of, self.at)
            == (benchmark, reading.what, reading.of, reading.at)
            and self.where in (ANY, reading.where)
            and self.size in (0, reading.size)
        )


class Verdict(StrEnum):
    """Whether a measurement meets a target."""

    MET = "met"
    MISSED = "**missed**"
    MET_BY_CLOCK = "met; **missed** by CPU"
    MET_BY_CPU = "**missed**; met by CPU"
    UNKNOWN = "not measured"


def figures(file: Path = FILE) -> tuple[Asked, ...]:
    tables = tomllib.loads(file.read_text(encoding="utf-8"))["figure"]
    return tuple(Asked(**table) for table in tables)


def verdict(asked: Asked, found: Reading | None, cpu: Reading | None) -> Verdict:
    if found is None:
        return Verdict.UNKNOWN
    is_met = asked.met_by(found.value)
    if cpu is None or asked.met_by(cpu.value) == is_met:
        return Verdict.MET if is_met else Verdict.MISSED
    return Verdict.MET_BY_CLOCK if is_met else Verdict.MET_BY_CPU
