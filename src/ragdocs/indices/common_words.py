"""English words (`common_words.txt`): who types one has not mistyped another, whatever the
documents have.

They are the whole words of the built-in model's own list, which is ordered by frequency; of the
rarer half those are left out that are a much commoner word with two letters exchanged (`mali`).
"""

from functools import cache
from importlib.resources import files


@cache
def common_words() -> frozenset[str]:
    text = (files("ragdocs.indices") / "common_words.txt").read_text(encoding="utf-8")
    return frozenset(text.split())
