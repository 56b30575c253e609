"""Texts as pieces that fit the model's window, and what did not fit anywhere.

A text over the window is split into as few, equally long pieces as fit; its vector is the mean of
theirs, weighted by length. So its end counts as much as its beginning. A cap on the pieces bounds
the work for one text, and what lies beyond it is counted.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from ragdocs.embedding.base import EmbeddingCounts

MAX_TOKENS = 256
SPECIAL_TOKENS = 2
MAX_WINDOWS = 16
# Tokenising costs time too: no more of a text is looked at than 16 windows of natural language
# could hold (16 characters for a token is four times what English prose has).
MAX_CHARACTERS = MAX_WINDOWS * (MAX_TOKENS - SPECIAL_TOKENS) * 16

_SURROGATES = re.compile("[\ud800-\udfff]")
_ROOM = MAX_TOKENS - SPECIAL_TOKENS


@dataclass(frozen=True, slots=True)
class Tokens:
    """A text as the tokenizer sees it, without special tokens; `ends` are character offsets."""

    ids: Sequence[int]
    ends: Sequence[int]


@dataclass(frozen=True, slots=True)
class WindowedText:
    """The pieces of one text, each within the window, and the characters beyond the cap."""

    pieces: tuple[Sequence[int], ...]
    cut_characters: int

    @property
    def counts(self) -> EmbeddingCounts:
        cut = self.cut_characters > 0
        return EmbeddingCounts(1, int(len(self.pieces) > 1), int(cut), self.cut_characters)


def split_text(
    text: str, tokenise: Callable[[str], Tokens], windows: int = MAX_WINDOWS
) -> WindowedText:
    """An empty text has one empty piece: the model has a vector for it too."""
    tokens = tokenise(clean(text[:MAX_CHARACTERS]))
    most = windows * _ROOM
    end = tokens.ends[most - 1] if len(tokens.ids) > most else MAX_CHARACTERS
    return WindowedText(_pieces(tokens.ids[:most]), len(text[end:].strip()))


def clean(text: str) -> str:
    """Text that can be encoded: a lone surrogate (half a character) becomes U+FFFD."""
    return _SURROGATES.sub("\ufffd", text)


def _pieces(ids: Sequence[int]) -> tuple[Sequence[int], ...]:
    number = max(1, -(-len(ids) // _ROOM))
    bounds = [len(ids) * index // number for index in range(number + 1)]
    return tuple(ids[start:end] for start, end in pairwise(bounds))
