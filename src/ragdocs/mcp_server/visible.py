"""Text on its way out: what a person would not see is left out and counted.

Bidi and tag characters, controls and zero-width characters can carry instructions that only a
model reads. A joiner between two visible characters is part of how they look, and stays.
"""

import re
from collections.abc import Iterable
from functools import cache
from re import Match, Pattern

_JOINERS = "\u200c\u200d"


class Cleaner:
    """Cleans the texts of one answer, and counts what it left out."""

    def __init__(self) -> None:
        self.removed = 0

    def clean(self, text: str) -> str:
        """Lines and tabs stay as they are. What no encoding can express becomes a mark."""
        if text.isascii() and text.isprintable():
            return text
        return _hidden().sub(self._drop, text).encode("utf-8", "replace").decode()

    def _drop(self, found: Match[str]) -> str:
        if _belongs(found):
            return found[0]
        self.removed += len(found[0])
        return ""


def moved(text: str, ranges: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Where stretches of a text are when it has been cleaned; those of which nothing is left are
    not among them.
    """
    ranges = tuple(ranges)
    if not ranges or (text.isascii() and text.isprintable()):
        return ranges
    dropped = [found.span() for found in _hidden().finditer(text) if not _belongs(found)]

    def at(place: int) -> int:
        return place - sum(min(end, place) - start for start, end in dropped if start < place)

    placed = ((at(start), at(end)) for start, end in ranges)
    return tuple((start, end) for start, end in placed if start < end)


def _belongs(found: Match[str]) -> bool:
    """To how its neighbours look."""
    text, start, end = found.string, found.start(), found.end()
    is_joiner = end - start == 1 and found[0] in _JOINERS
    return is_joiner and _is_visible(text[start - 1 : start]) and _is_visible(text[end : end + 1])


def _is_visible(character: str) -> bool:
    return bool(character) and not character.isspace()


@cache
def _hidden() -> Pattern[str]:
    from ragdocs.indices.scripts import INVISIBLE

    # Runs, so that a visible neighbour of a match is known not to be hidden itself. One selector
    # chooses how a character looks; several after another choose nothing, and can hide text.
    hidden = f"[{INVISIBLE}\ufff9-\ufffb\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f]+"
    return re.compile(f"{hidden}|[\ufe00-\ufe0f\U000e0100-\U000e01ef]{{2,}}")
