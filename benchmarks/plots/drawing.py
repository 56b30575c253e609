"""SVG by hand: shapes, words and colours that can be read on a light and on a dark page.

A picture has its own background and follows the reader's colour scheme by a style sheet inside
it, so that nothing depends on the page around it. Colours of series are told apart by the
colour-blind, and darker or lighter with the scheme.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from xml.sax.saxutils import escape

SERIES = (
    ("#0072b2", "#56b4e9"),
    ("#d55e00", "#f0924c"),
    ("#009e73", "#3fc8a0"),
    ("#a64d8f", "#e08fc4"),
    ("#8a6d00", "#e6c84a"),
    ("#5c6670", "#a7b1bb"),
)
"""On light, on dark."""
LETTER = 7.0
"""About the width of one at the usual size."""


@dataclass(frozen=True, slots=True)
class Picture:
    """What is drawn, and how much room it takes."""

    width: float
    height: float
    shapes: tuple[str, ...]


def document(picture: Picture, title: str, description: str) -> str:
    """A whole SVG file; title and description are for those who cannot see it."""
    size = f'width="{picture.width:.0f}" height="{picture.height:.0f}"'
    box = f'viewBox="0 0 {picture.width:.0f} {picture.height:.0f}"'
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} {box} role="img" '
        'aria-labelledby="title description">'
    )
    return (
        "\n".join(
            [
                head,
                f'<title id="title">{escape(title)}</title>',
                f'<desc id="description">{escape(description)}</desc>',
                f"<style>{_style()}</style>",
                f'<rect class="ground" {size}/>',
                *picture.shapes,
                "</svg>",
            ]
        )
        + "\n"
    )


def stacked(pictures: Iterable[Picture]) -> Picture:
    """One below the other."""
    width = height = 0.0
    shapes: list[str] = []
    for picture in pictures:
        shapes += [f'<g transform="translate(0 {height:.0f})">', *picture.shapes, "</g>"]
        width, height = max(width, picture.width), height + picture.height
    return Picture(width, height, tuple(shapes))


def text(x: float, y: float, words: str, kind: str = "start") -> str:
    """`kind`: classes of the style sheet, `start`, `middle`, `end`, `title`, `small`."""
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{kind}">{escape(words)}</text>'


def upright(x: float, y: float, words: str) -> str:
    """Turned to read upwards, centred at the point."""
    turned = f'transform="rotate(-90 {x:.1f} {y:.1f})"'
    return f'<text x="{x:.1f}" y="{y:.1f}" class="middle" {turned}>{escape(words)}</text>'


def line(x1: float, y1: float, x2: float, y2: float, kind: str = "grid") -> str:
    ends = f'x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"'
    return f'<line {ends} class="{kind}"/>'


def box(x: float, y: float, width: float, height: float, series: int) -> str:
    size = f'width="{max(0.0, width):.1f}" height="{max(0.0, height):.1f}"'
    return f'<rect x="{x:.1f}" y="{y:.1f}" {size} class="fill{series % len(SERIES)}"/>'


def track(points: Iterable[tuple[float, float]], series: int, *, dashed: bool = False) -> str:
    joined = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    kind = f"track{series % len(SERIES)}" + (" dashed" if dashed else "")
    return f'<polyline points="{joined}" class="{kind}"/>'


def dot(x: float, y: float, series: int) -> str:
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" class="fill{series % len(SERIES)}"/>'


def _style() -> str:
    fixed = (
        "text{font:12px sans-serif}.title{font-size:14px;font-weight:bold}.small{font-size:11px}"
        ".middle{text-anchor:middle}.end{text-anchor:end}polyline{fill:none;stroke-width:2}"
        ".dashed{stroke-dasharray:5 4}"
    )
    return f"{fixed}{_scheme(0)}@media(prefers-color-scheme:dark){{{_scheme(1)}}}"


def _scheme(dark: int) -> str:
    ground, ink, grid = (("#ffffff", "#1f2328", "#d8dee4"), ("#0d1117", "#e6edf3", "#30363d"))[dark]
    rules = [
        f".ground{{fill:{ground}}}text{{fill:{ink}}}",
        f".grid{{stroke:{grid}}}.axis,.interval{{stroke:{ink}}}",
    ]
    for number, colours in enumerate(SERIES):
        rules.append(f".fill{number}{{fill:{colours[dark]}}}")
        rules.append(f".track{number}{{stroke:{colours[dark]}}}")
    return "".join(rules)
