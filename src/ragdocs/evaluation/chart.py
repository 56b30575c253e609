"""Charts as SVG: bars in groups, and confidence against the share that was right.

A chart has its own background and a style sheet that follows the reader's colour scheme, so it does
not depend on the page around it. Colour-blind readers can distinguish the series.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import escape

from ragdocs.errors import EvaluationError
from ragdocs.evaluation.metrics import METRICS
from ragdocs.evaluation.reliability import Bin
from ragdocs.evaluation.run import Report

LETTER = 7.0
"""The approximate width of a letter at the usual size."""
_SUFFIX = ".svg"
_SERIES = (
    ("#0072b2", "#56b4e9"),
    ("#d55e00", "#f0924c"),
    ("#009e73", "#3fc8a0"),
    ("#a64d8f", "#e08fc4"),
    ("#8a6d00", "#e6c84a"),
    ("#5c6670", "#a7b1bb"),
    ("#4b3fae", "#b3aaff"),
    ("#8f1d2c", "#ff9aa5"),
)
"""On light and on dark ground; further series repeat them, in the legend's order."""
_SCHEMES = (("#ffffff", "#1f2328", "#d8dee4"), ("#0d1117", "#e6edf3", "#30363d"))
"""Ground, ink and grid, for light and dark."""
_HEIGHT, _LEFT, _TOP, _BAR, _GAP, _LEGEND_LINE, _TICKS = 220.0, 62.0, 44.0, 15.0, 28.0, 18.0, 5
_SIDE, _DOT = 320.0, 7.0


@dataclass(frozen=True, slots=True)
class Picture:
    """Shapes and their size."""

    width: float
    height: float
    shapes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """A value and its interval."""

    value: float
    low: float | None = None
    high: float | None = None


Groups = Mapping[str, Mapping[str, Bar]]
"""Group → series → bar; a series need not be in every group."""


def check_name(file: Path) -> None:
    """Raises EvaluationError for a file name that is not SVG."""
    if file.suffix.lower() != _SUFFIX:
        raise EvaluationError(f"{file}: charts are drawn as SVG, so the name must end in {_SUFFIX}")


def write_chart(file: Path, svg: str) -> None:
    """Raises EvaluationError when it cannot be written."""
    try:
        file.write_bytes(svg.encode(errors="backslashreplace"))
    except OSError as error:
        raise EvaluationError(f"{file} cannot be written: {error.strerror or error}") from error


def report_chart(report: Report) -> str:
    """A group for each metric, with a bar for each setting; or, if it was measured, confidence
    against the share that was right."""
    if report.honesty:
        title = (
            f"{report.name}: {report.honesty.questions} questions with and without their answers"
        )
        return reliability_chart(title, {report.name: report.honesty.bins})
    series = [report.run]
    if report.compared:
        series.append(report.compared.other)
    series += [difference.other for difference in report.ablated]
    groups = {
        metric: {
            one.label: Bar(value=found.mean, low=found.low, high=found.high)
            for one in series
            for found in [one.metrics[metric]]
        }
        for metric in METRICS
    }
    title = f"{report.name}: {report.queries} queries"
    return document(standing(title, "value", groups), title, in_words(groups))


def reliability_chart(title: str, series: Mapping[str, Sequence[Bin]]) -> str:
    """A square for each bin, on the diagonal if the confidence is right. The first series is
    larger, on top, and in the colour of the text."""
    names = list(series)
    drawn = [shape for name in reversed(names) for shape in _squares(names, name, series[name])]
    x = _LEFT + _SIDE + 24
    legend: list[str] = []
    for at, name in enumerate(names):
        y = _TOP + at * _LEGEND_LINE
        legend += [box(x, y, 12, 12, _colour(at)), text(x + 18, y + 11, name)]
    picture = Picture(
        x + 190,
        max(_TOP + _SIDE + 56, _TOP + _LEGEND_LINE * len(names) + 10),
        (text(_LEFT, 22, title, "title"), *_square_axes(), *drawn, *legend),
    )
    described = (
        f"{name}: " + ", ".join(f"{one.confidence:.2f} said, {one.right:.2f} right" for one in bins)
        for name, bins in series.items()
    )
    return document(picture, title, "; ".join(described))


def standing(title: str, up: str, groups: Groups) -> Picture:
    """Values from 0 to 1, groups from left to right."""
    series = series_names(groups)
    width = _LEFT
    shapes: list[str] = []
    for name, bars in groups.items():
        label = _halves(name)
        step = max(len(bars) * _BAR, LETTER * max(map(len, label))) + _GAP
        shapes.extend(_standing_group(width + step / 2, series, bars))
        for at, part in enumerate(label):
            shapes.append(text(width + step / 2, _TOP + _HEIGHT + 18 + at * 14, part, "middle"))
        width += step
    width = max(width, _LEFT + LETTER * 1.2 * len(title)) + 10
    below = _TOP + _HEIGHT + 58
    shapes = [text(_LEFT, 24, title, "title"), *_levels(width - 10), *shapes]
    shapes.append(upright(16, _TOP + _HEIGHT / 2, up))
    explained, height = legend(_LEFT, below, width - _LEFT, series)
    return Picture(width, below + height, (*shapes, *explained))


def document(picture: Picture, title: str, description: str, style: str = "") -> str:
    """A whole SVG file; title and description are for readers who cannot see it. `style` is added
    to the style sheet of charts."""
    size = f'width="{picture.width:.0f}" height="{picture.height:.0f}"'
    box = f'viewBox="0 0 {picture.width:.0f} {picture.height:.0f}"'
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} {box} role="img" '
        'aria-labelledby="title description">',
        f'<title id="title">{escape(title)}</title>',
        f'<desc id="description">{escape(description)}</desc>',
        f"<style>{_style()}{style}</style>",
        f'<rect class="ground" {size}/>',
        *picture.shapes,
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def stack(pictures: Iterable[Picture]) -> Picture:
    """One below the other."""
    width = height = 0.0
    shapes: list[str] = []
    for picture in pictures:
        shapes += [f'<g transform="translate(0 {height:.0f})">', *picture.shapes, "</g>"]
        width, height = max(width, picture.width), height + picture.height
    return Picture(width, height, tuple(shapes))


def series_names(groups: Groups) -> list[str]:
    """Every series once, in the order of the groups."""
    return list(dict.fromkeys(name for bars in groups.values() for name in bars))


def in_words(groups: Groups) -> str:
    """The figures of a bar chart, for its description."""
    return "; ".join(
        f"{group}: " + ", ".join(f"{name} {bar.value:.3g}".strip() for name, bar in bars.items())
        for group, bars in groups.items()
    )


def legend(left: float, top: float, room: float, series: Sequence[str]) -> tuple[list[str], float]:
    """As many entries per line as fit. Returns the shapes and their height."""
    x, y = left, top
    shapes: list[str] = []
    for number, name in enumerate(series):
        width = 18 + LETTER * len(name) + 20
        if x > left and x + width > left + room:
            x, y = left, y + _LEGEND_LINE
        shapes += [box(x, y - 10, 12, 12, fill(number)), text(x + 18, y, name)]
        x += width
    return shapes, y - top + _LEGEND_LINE


def text(x: float, y: float, words: str, kind: str = "start") -> str:
    """`kind`: classes of the style sheet, `start`, `middle`, `end`, `title`, `small`."""
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{kind}">{escape(words)}</text>'


def upright(x: float, y: float, words: str) -> str:
    """Rotated to read upwards, centred at the point."""
    turned = f'transform="rotate(-90 {x:.1f} {y:.1f})"'
    return f'<text x="{x:.1f}" y="{y:.1f}" class="middle" {turned}>{escape(words)}</text>'


def line(x1: float, y1: float, x2: float, y2: float, kind: str = "grid") -> str:
    ends = f'x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"'
    return f'<line {ends} class="{kind}"/>'


def box(x: float, y: float, width: float, height: float, kind: str, title: str = "") -> str:
    """`title` is shown when the pointer rests on the box."""
    size = f'width="{max(0.0, width):.1f}" height="{max(0.0, height):.1f}"'
    shown = f"<title>{escape(title)}</title>" if title else ""
    return f'<rect x="{x:.1f}" y="{y:.1f}" {size} class="{kind}">{shown}</rect>'


def track(points: Iterable[tuple[float, float]], series: int, *, dashed: bool = False) -> str:
    joined = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    kind = f"track{series % len(_SERIES)}" + (" dashed" if dashed else "")
    return f'<polyline points="{joined}" class="{kind}"/>'


def dot(x: float, y: float, series: int) -> str:
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" class="{fill(series)}"/>'


def fill(series: int) -> str:
    """The style sheet's class for the colour of a series."""
    return f"fill{series % len(_SERIES)}"


def _style() -> str:
    fixed = (
        "text{font:12px sans-serif}.title{font-size:14px;font-weight:bold}.small{font-size:11px}"
        ".middle{text-anchor:middle}.end{text-anchor:end}polyline{fill:none;stroke-width:2}"
        ".dashed{stroke-dasharray:5 4}"
    )
    return f"{fixed}{_scheme(0)}@media(prefers-color-scheme:dark){{{_scheme(1)}}}"


def _scheme(dark: int) -> str:
    ground, ink, grid = _SCHEMES[dark]
    rules = [
        f".ground{{fill:{ground}}}text,.ink{{fill:{ink}}}",
        f".grid{{stroke:{grid}}}.axis,.interval{{stroke:{ink}}}",
    ]
    for number, colours in enumerate(_SERIES):
        rules.append(f".fill{number}{{fill:{colours[dark]}}}")
        rules.append(f".track{number}{{stroke:{colours[dark]}}}")
    return "".join(rules)


def _halves(name: str) -> list[str]:
    """A long name on two lines."""
    head, dash, tail = name.rpartition("-")
    return [head + dash, tail] if dash and len(name) > 2 * LETTER else [name]


def _standing_group(middle: float, series: Sequence[str], bars: Mapping[str, Bar]) -> Iterator[str]:
    left = middle - len(bars) * _BAR / 2
    for place, (name, bar) in enumerate(bars.items()):
        x, y = left + place * _BAR, _level(bar.value)
        colour = fill(series.index(name))
        yield box(x, y, _BAR - 2, _level(0) - y, colour, f"{name}: {bar.value:.4f}")
        if bar.low is not None and bar.high is not None:
            centre = x + _BAR / 2 - 1
            yield line(centre, _level(bar.low), centre, _level(bar.high), "interval")
        if not place:
            reach = max(bar.value, bar.high or 0.0)
            yield text(x + _BAR - 2, _level(reach) - 4, f"{bar.value:.2f}", "small end")


def _levels(right: float) -> Iterator[str]:
    for number in range(_TICKS + 1):
        y = _level(number / _TICKS)
        yield line(_LEFT, y, right, y)
        yield text(_LEFT - 6, y + 4, f"{number / _TICKS:.1f}", "end")


def _level(value: float) -> float:
    return _TOP + _HEIGHT * (1.0 - min(1.0, max(0.0, value)))


def _square_axes() -> Iterator[str]:
    for number in range(_TICKS + 1):
        share = number / _TICKS
        x, y = _point(share, share)
        yield line(_LEFT, y, _LEFT + _SIDE, y)
        yield line(x, _TOP, x, _TOP + _SIDE)
        yield text(_LEFT - 6, y + 4, f"{share:.1f}", "end")
        yield text(x, _TOP + _SIDE + 18, f"{share:.1f}", "middle")
    yield line(*_point(0, 0), *_point(1, 1), "axis")
    yield text(_LEFT + _SIDE / 2, _TOP + _SIDE + 40, "confidence of the first result", "middle")
    yield text(_LEFT, _TOP - 6, "share that was right")


def _squares(names: Sequence[str], name: str, bins: Sequence[Bin]) -> Iterator[str]:
    at = names.index(name)
    size = _DOT if at else _DOT + 3
    for each in bins:
        x, y = _point(each.confidence, each.right)
        title = f"{name}: {each.cases} cases, {each.confidence:.2f} said, {each.right:.2f} right"
        yield box(x - size / 2, y - size / 2, size, size, _colour(at), title)


def _colour(at: int) -> str:
    return fill(at - 1) if at else "ink"


def _point(confidence: float, right: float) -> tuple[float, float]:
    return _LEFT + _SIDE * confidence, _TOP + _SIDE * (1.0 - right)
