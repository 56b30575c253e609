"""Everything that depends on a language: scripts, stemmers, stop words, common English words."""

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

# Character classes that the standard library's `\w` does not know.
#
# `\w` leaves out combining marks, so it would split Tamil words and decomposed accents; and it does
# not separate words in scripts without spaces. Each constant is the inside of a regular
# expression's `[…]`. The marks are listed at the first text that is not ASCII (about 10 ms).

# The blocks with combining marks; between them are ideographs, Hangul and unassigned planes.
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
"""Vowels and final consonants, which follow the first letter of a decomposed syllable."""

UNSPACED = (
    "\u2e80-\u2fdf\u3005\u3007\u3021-\u3029\u3038-\u303b\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003ffff"  # Han
    "\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\uff66-\uff9f"  # kana
    "\u3105-\u312f\u31a0-\u31bf"  # bopomofo
    "\u1100-\u11ff\u3131-\u318e\ua960-\ua97f\uac00-\ud7a3\ud7b0-\ud7fb"  # Hangul
    "\u0e01-\u0e3a\u0e40-\u0e4e\u0e81-\u0ebd\u0ec0-\u0ecd"  # Thai, Lao
    "\u1000-\u103f\u1050-\u108f\u1780-\u17d3"  # Myanmar, Khmer
)
"""Scripts without spaces between words, and Korean, which has none before particles."""


@cache
def marks() -> str:
    """Every combining mark (M*) in this Python's Unicode version, and the invisible controls."""
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


# From a written word to its term: NFC, casefold, Snowball stem.
#
# Stems come from Snowball's C code (PyStemmer), 28 times as fast as the pure Python version
# (507,000 against 18,000 English words a second), with wheels for every platform we support.

MAX_TERM_CHARS = 40
"""Seed 004 drops longer tokens: nobody types them, and they are mostly data."""

# `node.js` and `parse_json_data` are names: only their parts are stemmed.
_NAME_MARK = re.compile(r"[._:+#]")
_INVISIBLE = re.compile(f"[{INVISIBLE}]+")
DOTLESS_I = "\u0131"
_TURKISH_CAPITALS = str.maketrans({"I": DOTLESS_I, "\u0130": "i"})

Fold = Callable[[str], str]


class _Snowball(Protocol):
    """The part of PyStemmer that we use; it has no type stubs."""

    def stemWord(self, word: str, /) -> str: ...


def fold(word: str) -> str:
    """Removes case, decomposition and invisible characters. NFC twice: casefolding undoes it."""
    if word.isascii():
        return word.lower()
    visible = unicodedata.normalize("NFC", _INVISIBLE.sub("", word))
    return unicodedata.normalize("NFC", visible.casefold())


def fold_turkish(word: str) -> str:
    """Like `fold`, with Turkish capitals: I is a dotless i. Not in ASCII words: API, CLI, ID."""
    if word.isascii():
        return fold(word)
    return fold(unicodedata.normalize("NFC", word).translate(_TURKISH_CAPITALS))


def fold_for(stemmer: Stemmer) -> Fold:
    return fold_turkish if stemmer is Stemmer.TURKISH else fold


@cache
def stem_for(stemmer: Stemmer) -> Fold:
    """Stems folded words; safe to call from any thread, which a Snowball stemmer is not."""
    snowball, lock = _snowball(stemmer), Lock()

    def stem(word: str) -> str:
        if _NAME_MARK.search(word):
            return word
        with lock:
            return snowball.stemWord(word) or word

    def stem_turkish(word: str) -> str:
        # Both kinds of i become one: ASCII capitals do not distinguish them.
        return stem(word).replace(DOTLESS_I, "i")

    return stem_turkish if stemmer is Stemmer.TURKISH else stem


def snowball_version() -> str:
    """Part of an index's fingerprint: stems may change between versions."""
    return str(_module().version())


def _snowball(stemmer: Stemmer) -> _Snowball:
    # Without PyStemmer's cache: `Analyzer` caches whole words.
    return _module().Stemmer(stemmer.value, 0)


def _module() -> ModuleType:
    return import_module("Stemmer")


# English words (`common_words.txt`) and their forms: they are never taken for a misspelling,
# whatever words the documents have.
#
# They are the whole words of the built-in model's vocabulary, which is ordered by frequency. Of the
# rarer half, words are left out that are a much more common word with two letters swapped (`mali`).


def is_english(word: str) -> bool:
    """Whether a folded word is listed, or has the stem of a listed one: `caching`, for `cache`."""
    return word in common_words() or stem_for(Stemmer.ENGLISH)(word) in _stems()


@cache
def common_words() -> frozenset[str]:
    text = (files("ragdocs.indices") / "common_words.txt").read_text(encoding="utf-8")
    return frozenset(text.split())


@cache
def _stems() -> frozenset[str]:
    return frozenset(map(stem_for(Stemmer.ENGLISH), common_words()))


# Stop words of each language (`stop_words.toml`).
#
# Text keeps them, so that phrases stay exact; a query drops them if it has other words.


@cache
def stop_words(stemmer: Stemmer) -> frozenset[str]:
    """The language's stop words, casefolded and in NFC like terms."""
    words = unicodedata.normalize("NFC", _lists()[stemmer.value]).casefold().split()
    return frozenset(unicodedata.normalize("NFC", word) for word in words)


@cache
def _lists() -> dict[str, str]:
    return tomllib.loads((files("ragdocs.indices") / "stop_words.toml").read_text(encoding="utf-8"))
