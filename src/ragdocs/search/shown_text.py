"""Text as a reader is shown it: white space collapsed, what is invisible left out and counted.

Bidi and tag characters, controls and runs of zero-width characters can hide instructions from a
person that a model reads. One joiner between two visible characters is part of how they look.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from re import Pattern

from ragdocs.indices.scripts import INVISIBLE

Range = tuple[int, int]

_JOINERS = "\u200c\u200d"
_CONTROLS = "\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f"


@dataclass(frozen=True, slots=True)
class Shown:
    """A stretch of text for display, the ranges of it that were asked for, and how many invisible
    characters were left out.
    """

    text: str
    ranges: tuple[Range, ...]
    hidden: int


def shown(text: str, stretch: Range, marked: Iterable[Range]) -> Shown:
    """The stretch as it is shown; `marked` are ranges of the whole text, in order."""
    start, end = stretch
    if not _invisible().search(text, start, end):
        return _shown_whole(text, stretch, marked)
    kept: list[str] = []
    places: list[int] = []
    hidden = 0
    for at in range(start, end):
        places.append(len(kept))
        if text[at].isspace():
            if kept and kept[-1] != " ":
                kept.append(" ")
        elif _is_hidden(text, at, stretch):
            hidden += 1
        else:
            kept.append(text[at])
    places.append(len(kept))
    body = "".join(kept).rstrip(" ")
    ranges: list[Range] = []
    for first, last in marked:
        if first < end and last > start:
            _add(ranges, places[max(first, start) - start], places[min(last, end) - start])
    return Shown(body, tuple((a, min(b, len(body))) for a, b in ranges), hidden)


def _shown_whole(text: str, stretch: Range, marked: Iterable[Range]) -> Shown:
    """As `shown`, several times as fast: nothing is hidden, so words and the blanks between them
    are all there is.
    """
    start, end = stretch
    body = " ".join(text[start:end].split())
    ranges: list[Range] = []
    for first, last in marked:
        if first < end and last > start:
            before, inside = text[start:first], text[start : min(last, end)]
            _add(ranges, _length(before), _length(inside))
    return Shown(body, tuple((a, min(b, len(body))) for a, b in ranges), 0)


def _length(beginning: str) -> int:
    """How long it is when shown: blanks at its end are one, before its first word none."""
    words = beginning.split()
    return len(" ".join(words)) + beginning[-1:].isspace() if words else 0


def _add(ranges: list[Range], first: int, last: int) -> None:
    """What touches is one, also when only hidden characters stood between."""
    if first >= last:
        return
    if ranges and ranges[-1][1] >= first:
        first = ranges.pop()[0]
    ranges.append((first, last))


def _is_hidden(text: str, at: int, stretch: Range) -> bool:
    character = text[at]
    if character.isprintable() or not _invisible().match(character):
        return False
    if character not in _JOINERS:
        return True
    if at <= stretch[0] or at + 1 >= stretch[1]:
        return True
    return not (_is_visible(text[at - 1]) and _is_visible(text[at + 1]))


def _is_visible(character: str) -> bool:
    return not character.isspace() and not _invisible().match(character)


@cache
def _invisible() -> Pattern[str]:
    return re.compile(f"[{INVISIBLE}{_CONTROLS}]")
