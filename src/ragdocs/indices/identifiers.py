"""What an identifier is made of: `getUserById` → get, User, By, Id."""

import re

Range = tuple[int, int]

_SEGMENT = re.compile("[^_]+")
# Shapes: U upper, l lower or caseless, s the letter s, d digit.
_PART = re.compile(
    r"U{2,}s(?![ls])"  # APIs, IDs: a plural, not I + Ds
    r"|U+(?![ls])"  # HTTP of HTTPResponse
    r"|U?[ls]+"
    r"|d+"
)
MIN_MEAN_PART = 2
"""Shorter parts on average are crumbs (a hash, `h2`, `x86`): noise to every other query."""

# Names of one thing, written like two: who looks for Java does not mean JavaScript.
_ONE_WORD = frozenset(
    {
        "applescript",
        "coffeescript",
        "github",
        "gitlab",
        "icloud",
        "javascript",
        "latex",
        "linkedin",
        "mathjax",
        "onedrive",
        "onenote",
        "paypal",
        "powerpoint",
        "typescript",
        "wordpress",
        "youtube",
    }
)


def identifier_parts(name: str) -> list[Range]:
    """The ranges of the parts, in order: of one word, the word itself."""
    return [
        (match.start() + start, match.start() + end)
        for match in _SEGMENT.finditer(name)
        for start, end in _humps(match.group())
    ]


def _humps(segment: str) -> list[Range]:
    if segment.isascii() and segment.isalnum():
        return _ascii_humps(segment)
    shapes = [(index, shape) for index, char in enumerate(segment) if (shape := _shape_of(char))]
    parts = [match.span() for match in _PART.finditer("".join(shape for _, shape in shapes))]
    is_crumbled = len(shapes) < MIN_MEAN_PART * len(parts)
    if not parts or is_crumbled or segment.casefold() in _ONE_WORD:
        return [(0, len(segment))]
    # A part ends where the next character that has a shape begins: marks go with their letter.
    at = [index for index, _ in shapes] + [len(segment)]
    return [(at[start], at[end]) for start, end in parts]


def _ascii_humps(segment: str) -> list[Range]:
    """The same where every character has a shape, in a fraction of the time: a file may have a
    million names of its own."""
    parts = [match.span() for match in _PART.finditer(segment.translate(_ASCII_SHAPES))]
    is_crumbled = len(segment) < MIN_MEAN_PART * len(parts)
    if not parts or is_crumbled or segment.lower() in _ONE_WORD:
        return [(0, len(segment))]
    return parts


def _shape_of(char: str) -> str:
    """Empty for marks and invisible controls, which belong to the character before."""
    if char == "s":
        return "s"
    if char.isupper() or char.istitle():
        return "U"
    if char.isdecimal():
        return "d"
    return "l" if char.isalnum() else ""


_ASCII_SHAPES = {code: _shape_of(chr(code)) for code in range(128) if chr(code).isalnum()}
