"""A drawing as PNG, twice as large, with nothing but numpy and zlib: no drawing library is needed
for bars. Letters are of five by seven dots (`dot_letters.py`)."""

import math
import struct
import zlib
from typing import TYPE_CHECKING

from ragdocs.evaluation.dot_letters import COLUMNS, ROWS, dots
from ragdocs.evaluation.drawing import Anchor, Box, Drawing, Line, Shape, Text

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Pixels = NDArray[np.uint8]

SCALE = 2
_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_TRUE_COLOUR = 2
_INK = "#000000"


def to_png(drawing: Drawing) -> bytes:
    import numpy as np

    shape = (drawing.height * SCALE, drawing.width * SCALE, 3)
    pixels: Pixels = np.full(shape, 255, dtype=np.uint8)
    for each in drawing.shapes:
        _draw(pixels, each)
    return _encoded(pixels)


def _draw(pixels: "Pixels", shape: Shape) -> None:
    if isinstance(shape, Box):
        end = (shape.x + shape.width, shape.y + shape.height)
        _fill(pixels, (shape.x, shape.y), end, shape.colour)
    elif isinstance(shape, Line):
        _stroke(pixels, shape)
    else:
        _write(pixels, shape)


def _fill(
    pixels: "Pixels", start: tuple[float, float], end: tuple[float, float], colour: str
) -> None:
    left, top = (max(0, round(value * SCALE)) for value in start)
    right, bottom = (max(0, round(value * SCALE)) for value in end)
    pixels[top:bottom, left:right] = _rgb(colour)


def _stroke(pixels: "Pixels", line: Line) -> None:
    """A dot at each step: as many steps as the longer side has pixels."""
    across, down = line.x2 - line.x1, line.y2 - line.y1
    steps = max(1, math.ceil(max(abs(across), abs(down)) * SCALE))
    size = 1 / SCALE
    for step in range(steps + 1):
        x = line.x1 + across * step / steps
        y = line.y1 + down * step / steps
        _fill(pixels, (x, y), (x + size, y + size), line.colour)


def _write(pixels: "Pixels", text: Text) -> None:
    """Each dot is a pixel of the drawing; its foot is the last row."""
    step = COLUMNS + 1
    width = step * len(text.words)
    before = {Anchor.START: 0.0, Anchor.MIDDLE: width / 2, Anchor.END: float(width)}
    left = text.x - before[text.anchor]
    for place, letter in enumerate(text.words):
        for column, row in dots(letter):
            x = left + place * step + column
            y = text.y - ROWS + row
            _fill(pixels, (x, y), (x + 1, y + 1), _INK)


def _rgb(colour: str) -> tuple[int, int, int]:
    red, green, blue = bytes.fromhex(colour.removeprefix("#"))
    return red, green, blue


def _encoded(pixels: "Pixels") -> bytes:
    height, width, _ = pixels.shape
    head = struct.pack(">IIBBBBB", width, height, 8, _TRUE_COLOUR, 0, 0, 0)
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)
    chunks = ((b"IHDR", head), (b"IDAT", zlib.compress(rows, 9)), (b"IEND", b""))
    return _SIGNATURE + b"".join(_chunk(kind, content) for kind, content in chunks)


def _chunk(kind: bytes, content: bytes) -> bytes:
    check = zlib.crc32(kind + content)
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", check)
