"""Words too common to look for, per language (`stop_words.toml`).

Text keeps them, so that phrases stay exact; a query drops them when it has anything else.
"""

import tomllib
import unicodedata
from functools import cache
from importlib.resources import files

from ragdocs.config.choices import Stemmer


@cache
def stop_words(stemmer: Stemmer) -> frozenset[str]:
    """The language's stop words, casefolded and NFC as the analysis compares them."""
    words = unicodedata.normalize("NFC", _lists()[stemmer.value]).casefold().split()
    return frozenset(unicodedata.normalize("NFC", word) for word in words)


@cache
def _lists() -> dict[str, str]:
    return tomllib.loads((files("ragdocs.indices") / "stop_words.toml").read_text(encoding="utf-8"))
