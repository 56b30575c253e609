"""Figures as a picture: groups of bars, each with its interval, in plain SVG."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from xml.sax.saxutils import escape

from ragdocs.errors import EvaluationError
from ragdocs.evaluation.intervals import Estimate
from ragdocs.evaluation.measuring import Report
from ragdocs.evaluation.metrics import METRICS

_COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#999999", "#f0e442")
"""Told apart by the colour-blind too; bars beyond these repeat them, in the legend's order."""
_HEIGHT, _TOP, _LEFT, _BAR, _GAP, _LINE = 220, 40, 46, 14, 26, 18
_LETTER = 7
"""About the width of one, so that the names of neighbouring groups do not meet."""


def check_name(file: Path) -> None:
    """Raises EvaluationError for a picture that cannot be drawn."""
    if file.suffix.lower() != ".svg":
        raise EvaluationError(
            f"{file}: only SVG is drawn; name it {file.with_suffix('.svg').name}, "
            "which browsers show and can be turned into a PNG"
        )


def picture(report: Report) -> str:
    """Every metric a group, with a bar for each setting."""
    series = [report.run]
    if report.compared:
        series.append(report.compared.other)
    series += [difference.other for difference in report.ablated]
    groups = {metric: [one.metrics[metric] for one in series] for metric in METRICS}
    title = f"{report.name}: {report.queries} queries"
    return bars(title, [one.label for one in series], groups)


def bars(title: str, labels: Sequence[str], groups: Mapping[str, Sequence[Estimate]]) -> str:
    """A whole SVG document: in each group a bar for each label, from 0 to 1."""
    step = max(len(labels) * _BAR, _LETTER * max(map(len, groups))) + _GAP
    width = max(420, _LEFT + step * len(groups) + 10)
    height = _TOP + _HEIGHT + 30 + _LINE * len(labels) + 10
    drawn = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">',
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
        _text(_LEFT, 22, title, "start"),
        *_axis(width),
    ]
    for at, (name, values) in enumerate(groups.items()):
        middle = _LEFT + (at + 0.5) * step
        drawn.extend(_group(middle, labels, values))
        drawn.append(_text(middle, _TOP + _HEIGHT + 18, name, "middle"))
    drawn.extend(line for at, label in enumerate(labels) for line in _legend(label, at))
    return "\n".join([*drawn, "</svg>"]) + "\n"


def _axis(width: int) -> Iterator[str]:
    for tenths in range(0, 11, 2):
        y = _y(tenths / 10)
        yield f'<line x1="{_LEFT}" y1="{y:.1f}" x2="{width - 10}" y2="{y:.1f}" stroke="#dddddd"/>'
        yield _text(_LEFT - 6, y + 4, f"{tenths / 10:.1f}", "end")


def _group(middle: float, labels: Sequence[str], values: Sequence[Estimate]) -> Iterator[str]:
    left = middle - len(values) * _BAR / 2
    for place, (label, found) in enumerate(zip(labels, values, strict=True)):
        x, y = left + place * _BAR, _y(found.mean)
        centre = x + _BAR / 2 - 1
        yield (
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{_BAR - 2}" height="{_y(0) - y:.1f}" '
            f'fill="{_colour(place)}"><title>{escape(label)}: {found.mean:.4f}</title></rect>'
        )
        yield (
            f'<line x1="{centre:.1f}" y1="{_y(found.low):.1f}" x2="{centre:.1f}" '
            f'y2="{_y(found.high):.1f}" stroke="#333333"/>'
        )


def _legend(label: str, at: int) -> Iterator[str]:
    y = _TOP + _HEIGHT + 30 + at * _LINE
    yield f'<rect x="{_LEFT}" y="{y}" width="12" height="12" fill="{_colour(at)}"/>'
    yield _text(_LEFT + 18, y + 11, label, "start")


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _y(value: float) -> float:
    return _TOP + _HEIGHT * (1.0 - min(1.0, max(0.0, value)))


def _colour(place: int) -> str:
    return _COLOURS[place % len(_COLOURS)]
