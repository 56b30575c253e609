"""What depends on the language: scripts, stemmers, stop words and the most common English words."""

import re
import tomllib
import unicodedata
from collections.abc import Callable, Iterable
from functools import cache
from importlib import import_module
from importlib.resources import files
from threading import Lock
from types import ModuleType
from typing import Protocol

from ragdocs.config.choices import Stemmer
from ragdocs.text import INVISIBLE

# Which characters make words: the classes that the standard library's `\w` does not know.
#
# `\w` leaves out combining marks, so that it would cut Tamil words and decomposed accents apart;
# and it runs scripts without spaces together. Everything here is the inside of a regular
# expression's `[…]`. The marks are counted out at the first text that is not ASCII (about 10 ms).

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


# From a word as written to the term that is compared: NFC, casefold, Snowball stem.
#
# The stems are Snowball's own C code (PyStemmer): 28 times as fast as its pure Python twin
# (507,000 against 18,000 English words a second), with wheels for every platform we support.

MAX_TERM_CHARS = 40
"""Seed 004 drops longer tokens: nobody types them, and they are mostly data."""

# `node.js` and `parse_json_data` are names: only their parts have endings.
_NAME_MARK = re.compile(r"[._:+#]")
_INVISIBLE = re.compile(f"[{INVISIBLE}]+")
DOTLESS_I = "\u0131"
_TURKISH_CAPITALS = str.maketrans({"I": DOTLESS_I, "\u0130": "i"})

Fold = Callable[[str], str]


class _Snowball(Protocol):
    """What PyStemmer, which has no type stubs, gives us."""

    def stemWord(self, word: str, /) -> str: ...


def fold(word: str) -> str:
    """Without case, composition or invisible characters. Twice NFC: casefolding undoes it."""
    if word.isascii():
        return word.lower()
    visible = unicodedata.normalize("NFC", _INVISIBLE.sub("", word))
    return unicodedata.normalize("NFC", visible.casefold())


def fold_turkish(word: str) -> str:
    """As `fold`, with Turkish capitals: I is a dotless i. Not in ASCII words: API, CLI, ID."""
    if word.isascii():
        return fold(word)
    return fold(unicodedata.normalize("NFC", word).translate(_TURKISH_CAPITALS))


def fold_for(stemmer: Stemmer) -> Fold:
    return fold_turkish if stemmer is Stemmer.TURKISH else fold


@cache
def stem_for(stemmer: Stemmer) -> Fold:
    """The stem of a folded word. For any thread: a stemmer's memory must not be shared."""
    snowball, lock = _snowball(stemmer), Lock()

    def stem(word: str) -> str:
        if _NAME_MARK.search(word):
            return word
        with lock:
            return snowball.stemWord(word) or word

    def stem_turkish(word: str) -> str:
        # Both kinds of i are one in the end: ASCII capitals do not tell them apart.
        return stem(word).replace(DOTLESS_I, "i")

    return stem_turkish if stemmer is Stemmer.TURKISH else stem


def snowball_version() -> str:
    """Stems may change between versions: part of what an index remembers of its making."""
    return str(_module().version())


def _snowball(stemmer: Stemmer) -> _Snowball:
    # Without PyStemmer's own cache: whole words are remembered one step higher.
    return _module().Stemmer(stemmer.value, 0)


def _module() -> ModuleType:
    return import_module("Stemmer")


# English words (`common_words.txt`) and their forms: who types one has not mistyped another,
# whatever the documents have.
#
# They are the whole words of the built-in model's own list, which is ordered by frequency; of the
# rarer half those are left out that are a much commoner word with two letters exchanged (`mali`).


def is_english(word: str) -> bool:
    """Whether a folded word is one of them, or has the stem of one: `caching` is right where only
    `cache` is listed."""
    return word in common_words() or stem_for(Stemmer.ENGLISH)(word) in _stems()


@cache
def common_words() -> frozenset[str]:
    text = (files("ragdocs.indices") / "common_words.txt").read_text(encoding="utf-8")
    return frozenset(text.split())


@cache
def _stems() -> frozenset[str]:
    return frozenset(map(stem_for(Stemmer.ENGLISH), common_words()))


# Words too common to look for, per language (`stop_words.toml`).
#
# Text keeps them, so that phrases stay exact; a query drops them when it has anything else.


@cache
def stop_words(stemmer: Stemmer) -> frozenset[str]:
    """The language's stop words, casefolded and NFC as the analysis compares them."""
    words = unicodedata.normalize("NFC", _lists()[stemmer.value]).casefold().split()
    return frozenset(unicodedata.normalize("NFC", word) for word in words)


@cache
def _lists() -> dict[str, str]:
    return tomllib.loads((files("ragdocs.indices") / "stop_words.toml").read_text(encoding="utf-8"))
