"""Lying bars, with a number at the end of each."""

import math
from collections.abc import Iterator, Sequence

from ragdocs.evaluation.chart import (
    LETTER,
    Bar,
    Groups,
    Picture,
    box,
    fill,
    legend,
    line,
    series_names,
    text,
)

TOP, LYING, ROW = 44.0, 420.0, 20.0


def lying(title: str, across: str, groups: Groups) -> Picture:
    """Values of any size, negative ones too; rows from top to bottom."""
    series = series_names(groups)
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
    explained, height = legend(left, below, width - left, series)
    return Picture(width, below + height, (*shapes, *explained))


def _lying_bar(start: tuple[float, float], scale: float, bar: Bar, series: int) -> Iterator[str]:
    zero, y = start
    end = zero + bar.value * scale
    yield box(min(zero, end), y + 2, abs(end - zero), ROW - 5, fill(series))
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
