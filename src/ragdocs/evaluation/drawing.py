"""A picture as a list of shapes, whatever it is written as (`svg.py`, `png.py`).

Coordinates are those of SVG: from the upper left, y downwards, in units that PNG doubles.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

LETTER = 7
"""About the width of one, so that neighbouring words do not meet."""


class Anchor(StrEnum):
    """Which part of a text its x belongs to."""

    START = "start"
    MIDDLE = "middle"
    END = "end"


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """A filled rectangle; `title` is shown where the pointer rests on it, if it can be."""

    x: float
    y: float
    width: float
    height: float
    colour: str
    title: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A thin line between two points."""

    x1: float
    y1: float
    x2: float
    y2: float
    colour: str


@dataclass(frozen=True, slots=True)
class Text:
    """A few words on one line, whose foot is at y."""

    x: float
    y: float
    words: str
    anchor: Anchor = Anchor.START


Shape: TypeAlias = Box | Line | Text


@dataclass(frozen=True, slots=True)
class Drawing:
    """Shapes on white, later ones over earlier ones."""

    width: int
    height: int
    shapes: tuple[Shape, ...]
