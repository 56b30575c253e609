"""Which characters make words: the classes that the standard library's `\\w` does not know.

`\\w` leaves out combining marks, so that it would cut Tamil words and decomposed accents apart;
and it runs scripts without spaces together. Everything here is the inside of a regular
expression's `[…]`. The marks are counted out at the first text that is not ASCII (about 10 ms).
"""

import unicodedata
from collections.abc import Iterable
from functools import cache

# Where combining marks stand; what lies between is ideographs, Hangul and unassigned planes.
_MARK_BLOCKS = (
    (0x0300, 0x3100),
    (0xA66F, 0xAC00),
    (0xFB1E, 0x12000),
    (0x13430, 0x13460),
    (0x16000, 0x17000),
    (0x1B000, 0x1F000),
    (0xE0100, 0xE01F0),
)

INVISIBLE = (
    "\u00ad\u034f\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufeff"
    "\U000e0000-\U000e007f"
)
"""Soft hyphens, zero-width and bidi controls, tags: shown as nothing, so matched as nothing."""

HANGUL_TAILS = "\u1160-\u11ff\ud7b0-\ud7fb"
"""Vowels and final consonants: what follows the first letter of a decomposed syllable."""

UNSPACED = (
    "\u2e80-\u2fdf\u3005\u3007\u3021-\u3029\u3038-\u303b\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003ffff"  # Han
    "\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\uff66-\uff9f"  # kana
    "\u3105-\u312f\u31a0-\u31bf"  # bopomofo
    "\u1100-\u11ff\u3131-\u318e\ua960-\ua97f\uac00-\ud7a3\ud7b0-\ud7fb"  # Hangul
    "\u0e01-\u0e3a\u0e40-\u0e4e\u0e81-\u0ebd\u0ec0-\u0ecd"  # Thai, Lao
    "\u1000-\u103f\u1050-\u108f\u1780-\u17d3"  # Myanmar, Khmer
)
"""Scripts whose words no space tells apart, and Korean, whose particles none does."""


@cache
def marks() -> str:
    """Every combining mark (M*) that this Python's Unicode knows, and the invisible controls."""
    points = (
        point
        for first, end in _MARK_BLOCKS
        for point in range(first, end)
        if unicodedata.category(chr(point))[0] == "M"
    )
    return INVISIBLE + _ranges(points)


def _ranges(points: Iterable[int]) -> str:
    runs: list[tuple[int, int]] = []
    for point in points:
        if runs and runs[-1][1] == point - 1:
            runs[-1] = (runs[-1][0], point)
        else:
            runs.append((point, point))
    return "".join(f"{chr(first)}-{chr(last)}" for first, last in runs)
