"""Confidence against the share that was right: on the diagonal, it means what it says."""

from collections.abc import Iterator, Mapping, Sequence

from ragdocs.evaluation.drawing import Anchor, Box, Drawing, Line, Shape, Text
from ragdocs.evaluation.reliability import Bin

_COLOURS = (
    "#000000",
    *("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#999999", "#f0e442"),
)
_SIDE, _TOP, _LEFT, _DOT, _LINE, _LEGEND = 320, 40, 52, 7, 18, 190


def reliability_chart(title: str, series: Mapping[str, Sequence[Bin]]) -> Drawing:
    """A dot for each bin, a line of dots for each name; the first is drawn large, on top."""
    width = _LEFT + _SIDE + 24 + _LEGEND
    height = max(_TOP + _SIDE + 56, _TOP + _LINE * len(series) + 10)
    drawn = [list(_dots(at, name, bins)) for at, (name, bins) in enumerate(series.items())]
    shapes: list[Shape] = [Text(_LEFT, 22, title), *_axes(), *_words()]
    for dots in reversed(drawn):
        shapes += dots
    shapes += [shape for at, name in enumerate(series) for shape in _legend(at, name)]
    return Drawing(width, height, tuple(shapes))


def _axes() -> Iterator[Shape]:
    for tenths in range(0, 11, 2):
        x, y = _place(tenths / 10, tenths / 10)
        yield Line(x1=_LEFT, y1=y, x2=_LEFT + _SIDE, y2=y, colour="#dddddd")
        yield Line(x1=x, y1=_TOP, x2=x, y2=_TOP + _SIDE, colour="#dddddd")
        yield Text(_LEFT - 6, y + 4, f"{tenths / 10:.1f}", Anchor.END)
        yield Text(x, _TOP + _SIDE + 18, f"{tenths / 10:.1f}", Anchor.MIDDLE)
    (x1, y1), (x2, y2) = _place(0, 0), _place(1, 1)
    yield Line(x1=x1, y1=y1, x2=x2, y2=y2, colour="#333333")


def _words() -> Iterator[Shape]:
    yield Text(
        _LEFT + _SIDE / 2, _TOP + _SIDE + 40, "confidence of the first result", Anchor.MIDDLE
    )
    yield Text(_LEFT, _TOP - 6, "share that was right")


def _dots(at: int, name: str, bins: Sequence[Bin]) -> Iterator[Shape]:
    size = _DOT if at else _DOT + 3
    for each in bins:
        x, y = _place(each.confidence, each.right)
        title = f"{name}: {each.cases} cases, {each.confidence:.2f} said, {each.right:.2f} right"
        corner = {"x": x - size / 2, "y": y - size / 2}
        yield Box(**corner, width=size, height=size, colour=_colour(at), title=title)


def _legend(at: int, name: str) -> Iterator[Shape]:
    x, y = _LEFT + _SIDE + 24, _TOP + at * _LINE
    yield Box(x=x, y=y, width=12, height=12, colour=_colour(at))
    yield Text(x + 18, y + 11, name)


def _place(confidence: float, right: float) -> tuple[float, float]:
    return _LEFT + _SIDE * confidence, _TOP + _SIDE * (1.0 - right)


def _colour(at: int) -> str:
    return _COLOURS[at % len(_COLOURS)]
