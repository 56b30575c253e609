"""The costs of two ways of doing the same, measured alternately.

Wall clock and CPU time (of all threads of this process). On a busy machine only ratios within one
round can be trusted, so a ratio is the median of the rounds' ratios.
"""

import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from readings import Reading, note

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Taken:
    """Seconds by the clock, and of CPU."""

    wall: float
    cpu: float


class Rounds:
    """What each contender took, round by round."""

    def __init__(self) -> None:
        self._taken: defaultdict[str, list[Taken]] = defaultdict(list)

    def measure(self, name: str, work: Callable[[], _T]) -> _T:
        cpu, wall = time.process_time(), time.perf_counter()
        result = work()
        taken = Taken(time.perf_counter() - wall, time.process_time() - cpu)
        self._taken[name].append(taken)
        return result

    def note(self, name: str, wall: float, cpu: float) -> None:
        self._taken[name].append(Taken(wall, cpu))

    def sum(self, name: str, *parts: str) -> None:
        """A contender that is the parts together, round by round."""
        for taken in zip(*(self._taken[part] for part in parts), strict=True):
            self.note(name, sum(t.wall for t in taken), sum(t.cpu for t in taken))

    def mean(self, name: str, *parts: str) -> None:
        """A contender that was measured several times in each round: before the other and after
        it, where the machine's own pace changes from second to second."""
        for taken in zip(*(self._taken.pop(part) for part in parts), strict=True):
            wall, cpu = sum(t.wall for t in taken), sum(t.cpu for t in taken)
            self.note(name, wall / len(taken), cpu / len(taken))

    def show(self) -> None:
        print("    milliseconds, medians                 clock       CPU   rounds")
        for name, taken in self._taken.items():
            wall = statistics.median(t.wall for t in taken) * 1000
            cpu = statistics.median(t.cpu for t in taken) * 1000
            print(f"    {name:32} {wall:10.2f} {cpu:9.2f} {len(taken):8}")
            note(Reading(what="time", of=name, value=wall, unit="ms", at="clock"))
            note(Reading(what="time", of=name, value=cpu, unit="ms", at="CPU"))

    def show_ratio(self, name: str, beside: str, target: str) -> None:
        pairs = list(zip(self._taken[name], self._taken[beside], strict=True))
        wall = [one.wall / other.wall for one, other in pairs]
        cpu = [one.cpu / other.cpu for one, other in pairs]
        print(
            f"  {name} / {beside}: {statistics.median(wall):.3f} ({target}); "
            f"CPU {statistics.median(cpu):.3f}; by rounds {min(wall):.3f} to {max(wall):.3f}"
        )
        for at, found in (("clock", wall), ("CPU", cpu)):
            note(_ratio(f"{name} / {beside}", at, found))


def _ratio(of: str, at: str, rounds: Sequence[float]) -> Reading:
    return Reading(
        what="ratio",
        of=of,
        at=at,
        value=statistics.median(rounds),
        unit="x",
        low=min(rounds),
        high=max(rounds),
    )
