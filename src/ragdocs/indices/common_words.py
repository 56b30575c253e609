"""English words (`common_words.txt`) and their forms: who types one has not mistyped another,
whatever the documents have.

They are the whole words of the built-in model's own list, which is ordered by frequency; of the
rarer half those are left out that are a much commoner word with two letters exchanged (`mali`).
"""

from functools import cache
from importlib.resources import files

from ragdocs.config.choices import Stemmer
from ragdocs.indices.stemming import stem_for


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
