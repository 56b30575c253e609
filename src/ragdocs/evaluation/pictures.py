"""Figures as a picture: groups of bars, each with its interval; as SVG or PNG."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from ragdocs.errors import EvaluationError
from ragdocs.evaluation.drawing import LETTER, Anchor, Box, Drawing, Line, Shape, Text
from ragdocs.evaluation.intervals import Estimate
from ragdocs.evaluation.measuring import Report
from ragdocs.evaluation.metrics import METRICS
from ragdocs.evaluation.png import to_png
from ragdocs.evaluation.reliability_picture import reliability_chart
from ragdocs.evaluation.svg import to_svg

_COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#999999", "#f0e442")
"""Told apart by the colour-blind too; bars beyond these repeat them, in the legend's order."""
_RULE, _DARK = "#dddddd", "#333333"
_HEIGHT, _TOP, _LEFT, _BAR, _GAP, _LINE = 220, 40, 46, 14, 26, 18
_KINDS = (".svg", ".png")


def check_name(file: Path) -> None:
    """Raises EvaluationError for a picture that cannot be drawn."""
    if file.suffix.lower() not in _KINDS:
        raise EvaluationError(f"{file}: a picture's name ends in {' or '.join(_KINDS)}")


def write_picture(file: Path, drawing: Drawing) -> None:
    """As its name says. Raises EvaluationError when it cannot be written."""
    is_svg = file.suffix.lower() == ".svg"
    content = to_svg(drawing).encode(errors="backslashreplace") if is_svg else to_png(drawing)
    try:
        file.write_bytes(content)
    except OSError as error:
        raise EvaluationError(f"{file} cannot be written: {error.strerror or error}") from error


def picture(report: Report) -> Drawing:
    """Every metric a group, with a bar for each setting; or, where it was asked for, confidence
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
    groups = {metric: [one.metrics[metric] for one in series] for metric in METRICS}
    title = f"{report.name}: {report.queries} queries"
    return bar_chart(title, [one.label for one in series], groups)


def bars(title: str, labels: Sequence[str], groups: Mapping[str, Sequence[Estimate]]) -> str:
    """A whole SVG document: in each group a bar for each label, from 0 to 1."""
    return to_svg(bar_chart(title, labels, groups))


def bar_chart(
    title: str, labels: Sequence[str], groups: Mapping[str, Sequence[Estimate]]
) -> Drawing:
    step = max(len(labels) * _BAR, LETTER * max(map(len, groups))) + _GAP
    width = max(420, _LEFT + step * len(groups) + 10)
    height = _TOP + _HEIGHT + 30 + _LINE * len(labels) + 10
    shapes: list[Shape] = [Text(_LEFT, 22, title), *_axis(width)]
    for at, (name, values) in enumerate(groups.items()):
        middle = _LEFT + (at + 0.5) * step
        shapes.extend(_group(middle, labels, values))
        shapes.append(Text(middle, _TOP + _HEIGHT + 18, name, Anchor.MIDDLE))
    shapes += [line for at, label in enumerate(labels) for line in _legend(label, at)]
    return Drawing(width, height, tuple(shapes))


def _axis(width: int) -> Iterator[Shape]:
    for tenths in range(0, 11, 2):
        y = _y(tenths / 10)
        yield Line(x1=_LEFT, y1=y, x2=width - 10, y2=y, colour=_RULE)
        yield Text(_LEFT - 6, y + 4, f"{tenths / 10:.1f}", Anchor.END)


def _group(middle: float, labels: Sequence[str], values: Sequence[Estimate]) -> Iterator[Shape]:
    left = middle - len(values) * _BAR / 2
    for place, (label, found) in enumerate(zip(labels, values, strict=True)):
        x, y = left + place * _BAR, _y(found.mean)
        centre = x + _BAR / 2 - 1
        title = f"{label}: {found.mean:.4f}"
        colour = _colour(place)
        yield Box(x=x, y=y, width=_BAR - 2, height=_y(0) - y, colour=colour, title=title)
        yield Line(x1=centre, y1=_y(found.low), x2=centre, y2=_y(found.high), colour=_DARK)


def _legend(label: str, at: int) -> Iterator[Shape]:
    y = _TOP + _HEIGHT + 30 + at * _LINE
    yield Box(x=_LEFT, y=y, width=12, height=12, colour=_colour(at))
    yield Text(_LEFT + 18, y + 11, label)


def _y(value: float) -> float:
    return _TOP + _HEIGHT * (1.0 - min(1.0, max(0.0, value)))


def _colour(place: int) -> str:
    return _COLOURS[place % len(_COLOURS)]
