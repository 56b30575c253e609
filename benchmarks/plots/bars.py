"""Bars: side by side in groups from zero up, or lying, with a number at the end of each."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from plots.drawing import LETTER, Picture, box, line, text, upright

HEIGHT, LEFT, TOP, BAR, GAP, LEGEND_LINE = 220.0, 62.0, 44.0, 15.0, 28.0, 18.0
LYING, ROW = 420.0, 20.0
TICKS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """A value, and between what it may lie."""

    value: float
    low: float | None = None
    high: float | None = None


Groups = Mapping[str, Mapping[str, Bar]]
"""Group → series → its bar; a series need not be in every group."""


def standing(title: str, up: str, groups: Groups) -> Picture:
    """Values from 0 to 1, groups from left to right."""
    series = names(groups)
    width = LEFT
    shapes: list[str] = []
    for name, bars in groups.items():
        label = halves(name)
        step = max(len(bars) * BAR, LETTER * max(map(len, label))) + GAP
        shapes.extend(_standing_group(width + step / 2, series, bars))
        for at, part in enumerate(label):
            shapes.append(text(width + step / 2, TOP + HEIGHT + 18 + at * 14, part, "middle"))
        width += step
    width = max(width, LEFT + LETTER * 1.2 * len(title)) + 10
    below = TOP + HEIGHT + 58
    shapes = [text(LEFT, 24, title, "title"), *_levels(width - 10), *shapes]
    shapes.append(upright(16, TOP + HEIGHT / 2, up))
    explained, height = legend((LEFT, below), width - LEFT, series)
    return Picture(width, below + height, (*shapes, *explained))


def lying(title: str, across: str, groups: Groups) -> Picture:
    """Values of any size, negative ones too; rows from top to bottom."""
    series = names(groups)
    left = LETTER * max(map(len, groups)) + 20
    low, high = _span([bar for bars in groups.values() for bar in bars.values()])
    scale = LYING / (high - low)
    zero = left - low * scale
    shapes: list[str] = []
    y = TOP
    for name, bars in groups.items():
        height = ROW * len(bars) if len(series) > 1 else ROW
        shapes.append(text(left - 8, y + height / 2 + 4, name, "end"))
        for place, (one, bar) in enumerate(bars.items()):
            row = y + place * ROW
            shapes.extend(_lying_bar((zero, row), scale, bar, series.index(one)))
        y += height + (8 if len(series) > 1 else 4)
    shapes.insert(0, text(8, 24, title, "title"))
    shapes.append(line(zero, TOP - 4, zero, y, "axis"))
    shapes.append(text(left + LYING / 2, y + 20, across, "middle"))
    width = max(left + LYING + 70, 8 + LETTER * 1.2 * len(title))
    below = y + 44
    if len(series) == 1:
        return Picture(width, below - 10, tuple(shapes))
    explained, height = legend((left, below), width - left, series)
    return Picture(width, below + height, (*shapes, *explained))


def names(groups: Groups) -> list[str]:
    """Every series once, in the order of the groups."""
    return list(dict.fromkeys(name for bars in groups.values() for name in bars))


def halves(name: str) -> list[str]:
    """A long name on two lines."""
    head, dash, tail = name.rpartition("-")
    return [head + dash, tail] if dash and len(name) > 2 * LETTER else [name]


def legend(
    start: tuple[float, float], room: float, series: Sequence[str]
) -> tuple[list[str], float]:
    """As many on a line as there is room for; the shapes, and how high they are."""
    left, y = start
    x = left
    shapes: list[str] = []
    for number, name in enumerate(series):
        width = 18 + LETTER * len(name) + 20
        if x > left and x + width > left + room:
            x, y = left, y + LEGEND_LINE
        shapes += [box(x, y - 10, 12, 12, number), text(x + 18, y, name)]
        x += width
    return shapes, y - start[1] + LEGEND_LINE


def _standing_group(middle: float, series: Sequence[str], bars: Mapping[str, Bar]) -> Iterator[str]:
    left = middle - len(bars) * BAR / 2
    for place, (name, bar) in enumerate(bars.items()):
        x, y = left + place * BAR, _level(bar.value)
        yield box(x, y, BAR - 2, _level(0) - y, series.index(name))
        if bar.low is not None and bar.high is not None:
            centre = x + BAR / 2 - 1
            yield line(centre, _level(bar.low), centre, _level(bar.high), "interval")
        if not place:
            reach = max(bar.value, bar.high or 0.0)
            yield text(x + BAR - 2, _level(reach) - 4, f"{bar.value:.2f}", "small end")


def _levels(right: float) -> Iterator[str]:
    for number in range(TICKS + 1):
        y = _level(number / TICKS)
        yield line(LEFT, y, right, y)
        yield text(LEFT - 6, y + 4, f"{number / TICKS:.1f}", "end")


def _level(value: float) -> float:
    return TOP + HEIGHT * (1.0 - min(1.0, max(0.0, value)))


def _lying_bar(start: tuple[float, float], scale: float, bar: Bar, series: int) -> Iterator[str]:
    zero, y = start
    end = zero + bar.value * scale
    yield box(min(zero, end), y + 2, abs(end - zero), ROW - 5, series)
    reach = max(end, zero)
    if bar.low is not None and bar.high is not None:
        middle = y + ROW / 2
        reach = max(reach, zero + bar.high * scale)
        yield line(zero + bar.low * scale, middle, zero + bar.high * scale, middle, "interval")
    yield text(reach + 5, y + ROW / 2 + 4, figure(bar.value), "small")


def _span(bars: Sequence[Bar]) -> tuple[float, float]:
    """With zero in it, and never empty."""
    values = [v for bar in bars for v in (bar.value, bar.low, bar.high) if v is not None]
    low, high = min(0.0, *values), max(0.0, *values)
    return (low, high) if high > low else (0.0, 1.0)


def figure(value: float) -> str:
    """Three digits that count."""
    if not value:
        return "0"
    places = max(0, 2 - math.floor(math.log10(abs(value))))
    return f"{value:,.{min(places, 3)}f}"
