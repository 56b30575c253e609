"""From a word as written to the term that is compared: NFC, casefold, Snowball stem.

The stems are Snowball's own C code (PyStemmer): 28 times as fast as its pure Python twin
(507,000 against 18,000 English words a second), with wheels for every platform we support.
"""

import re
import unicodedata
from collections.abc import Callable
from functools import cache
from importlib import import_module
from threading import Lock
from types import ModuleType
from typing import Protocol

from ragdocs.config.choices import Stemmer
from ragdocs.indices.scripts import INVISIBLE

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
