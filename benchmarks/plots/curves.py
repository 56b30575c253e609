"""Lines over sizes, both axes logarithmic."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ragdocs.evaluation.chart import Picture, dot, line, text, track, upright

WIDTH, HEIGHT, LEFT, TOP, BOTTOM = 560.0, 260.0, 62.0, 44.0, 44.0
LEGEND_LINE = 18.0
ROOM = 0.12
"""Of a power of ten, left and right of the outermost points."""
_TICKS = tuple(digit * 10.0**power for power in range(-4, 7) for digit in (1, 2, 5))


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """One line: value by size. What belongs together has one colour."""

    name: str
    colour: int
    points: Mapping[int, float]
    dashed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Axes:
    """What the picture and its axes are called, units included."""

    title: str
    across: str
    up: str


def curves(axes: Axes, shown: Sequence[Curve]) -> Picture:
    """Curves without points are left out; there must be one with a point."""
    shown = [curve for curve in shown if curve.points]
    scale = _Scale(shown)
    right = LEFT + WIDTH
    shapes = [text(LEFT, 24, axes.title, "title"), *scale.grid()]
    for curve in shown:
        places = [(scale.x(size), scale.y(value)) for size, value in sorted(curve.points.items())]
        shapes.append(track(places, curve.colour, dashed=curve.dashed))
        shapes += [dot(x, y, curve.colour) for x, y in places]
    below = TOP + HEIGHT
    shapes.append(text(LEFT + WIDTH / 2, below + 38, axes.across, "middle"))
    shapes.append(upright(16, TOP + HEIGHT / 2, axes.up))
    for number, curve in enumerate(shown):
        y = below + BOTTOM + 12 + number * LEGEND_LINE
        sample = ((LEFT, y - 4), (LEFT + 26, y - 4))
        shapes.append(track(sample, curve.colour, dashed=curve.dashed))
        shapes.append(text(LEFT + 34, y, curve.name))
    height = below + BOTTOM + 12 + LEGEND_LINE * len(shown)
    return Picture(right + 20, height, tuple(shapes))


class _Scale:
    """From sizes and values to places."""

    def __init__(self, shown: Sequence[Curve]) -> None:
        self._sizes = sorted({size for curve in shown for size in curve.points})
        values = [value for curve in shown for value in curve.points.values()]
        self._x = math.log10(self._sizes[0]) - ROOM, math.log10(self._sizes[-1]) + ROOM
        low = max(tick for tick in _TICKS if tick <= min(values))
        high = min(tick for tick in _TICKS if tick >= max(values))
        self._ticks = [tick for tick in _TICKS if low <= tick <= high]
        self._y = math.log10(low), math.log10(high) if high > low else math.log10(low) + 1

    def x(self, size: float) -> float:
        low, high = self._x
        return LEFT + WIDTH * (math.log10(size) - low) / (high - low)

    def y(self, value: float) -> float:
        low, high = self._y
        return TOP + HEIGHT * (1 - (math.log10(value) - low) / (high - low))

    def grid(self) -> Iterator[str]:
        for tick in self._ticks:
            yield line(LEFT, self.y(tick), LEFT + WIDTH, self.y(tick))
            yield text(LEFT - 6, self.y(tick) + 4, f"{tick:,g}", "end")
        for size in self._sizes:
            yield line(self.x(size), TOP, self.x(size), TOP + HEIGHT)
            yield text(self.x(size), TOP + HEIGHT + 18, f"{size:,}", "middle")
