"""Where words begin and end in a text, and what each is made of.

A word is letters, digits and marks, with `_` inside; names joined by `.` or `::` (`Node.js`,
`std::vector`, `3.11`), with a leading dot (`.NET`), and a few with marks of their own (`C++`, `C#`)
are one word too. Text of scripts without spaces comes in runs. Every pattern is linear.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from re import Pattern
from typing import NamedTuple

from ragdocs.indices.identifiers import Range, identifier_parts
from ragdocs.indices.scripts import HANGUL_TAILS, UNSPACED, marks

MAX_WORD_CHARS = 200
"""A longer word is dropped unread (a long chain: read name by name). Marks count here, so this is
more than the longest term; normalising takes quadratic time in the marks on one letter."""

_MARKED = r"(?<!\w)(?i:(?:(?:lib(?:std)?)?c|g|clang|notepad)\+\+|[cfjq]\#)(?![^\W\d]|[+\#])"
_JOINT = r"(?:\.|::)"
_IS_MARKED = re.compile(_MARKED)
_MARKS_PER_LETTER = 8


class Piece(NamedTuple):
    """One token of a word: its range within the word, and its place among the word's own places.

    A whole is made of the pieces that follow it, and stands at the first one's place. A tuple,
    because a file may have a million words of its own.
    """

    start: int
    end: int
    position: int
    is_whole: bool = False


@dataclass(frozen=True, slots=True)
class WordPatterns:
    """How to find words and runs (group `run`) in text, and names in a word."""

    word: Pattern[str]
    name: Pattern[str]


@cache
def word_patterns(*, is_ascii: bool, is_code: bool) -> WordPatterns:
    """Code keeps the underscores around a name; in prose they are emphasis."""
    letter = "[A-Za-z0-9]" if is_ascii else rf"[^\W_{UNSPACED}]"
    joined = "_" if is_ascii else f"_{marks()}"
    before, after = ("_*", f"[{joined}]*") if is_code else ("", _trailing(is_ascii))
    name = rf"{before}{letter}+(?:[{joined}]+{letter}+)*{after}"
    word = rf"{_MARKED}|(?:(?<![\w.])\.)?{name}(?:{_JOINT}{name})*"
    if not is_ascii:
        word = rf"(?P<run>[{UNSPACED}][{UNSPACED}{marks()}]*)|{word}"
    return WordPatterns(re.compile(word), re.compile(name))


def _trailing(is_ascii: bool) -> str:
    return "" if is_ascii else f"[{marks()}]*"


def is_spaced(text: str) -> bool:
    """Whether `\\w+` finds the words of a text: it has no marks, and no scripts without spaces."""
    return text.isascii() or all(map(_is_spaced_character, set(text)))


@lru_cache(4096)
def _is_spaced_character(character: str) -> bool:
    return not re.match(f"[{UNSPACED}{marks()}]", character)


def is_simple(word: str) -> bool:
    """Most words: letters only, with no capital after the first."""
    return word.isalpha() and word[1:].islower()


def _is_marked(name: str) -> bool:
    return name[-1] in "+#" and _IS_MARKED.fullmatch(name) is not None


def names(word: str, pattern: Pattern[str]) -> list[Range]:
    """The names of a chain; a marked name is one of its own."""
    if _is_marked(word):
        return [(0, len(word))]
    return [match.span() for match in pattern.finditer(word)]


def pieces(word: str, found: list[Range]) -> list[Piece]:
    """The word, its names, their parts: each whole before what it is made of."""
    cut: list[Piece] = []
    if found != [(0, len(word))]:
        cut.append(Piece(0, len(word), 0, is_whole=True))
    position = 0
    for start, end in found:
        name = word[start:end]
        parts = [(0, len(name))] if _is_marked(name) else identifier_parts(name)
        if parts != [(0, end - start)]:
            cut.append(Piece(start, end, position, is_whole=True))
        for first, last in parts:
            cut.append(Piece(start + first, start + last, position))
            position += 1
    return cut


def clusters(run: str) -> list[Range]:
    """The characters of a run as readers see them: with their marks, syllables put together."""
    return [match.span() for match in _cluster().finditer(run)]


def cluster_texts(run: str) -> Sequence[str]:
    """As `clusters`, their texts; most runs have a character for each."""
    return _cluster().findall(run) if _joined().search(run) else run


def is_pair(word: str) -> bool:
    """Whether it is two characters of a script without spaces, as `cluster_texts` has them."""
    return _pair().fullmatch(word) is not None


@cache
def _pair() -> Pattern[str]:
    return re.compile(f"(?:{_cluster().pattern}){{2}}")


@cache
def _joined() -> Pattern[str]:
    return re.compile(f"[{HANGUL_TAILS}{marks()}]")


@cache
def _cluster() -> Pattern[str]:
    return re.compile(f"[{UNSPACED}][{HANGUL_TAILS}{marks()}]{{0,{_MARKS_PER_LETTER}}}")
