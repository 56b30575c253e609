"""Texts as pieces within a model's window, cut where its tokens end, and one vector from theirs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from ragdocs.embedding.base import EmbeddingCounts, unit
from ragdocs.embedding.windows import MAX_WINDOWS

if TYPE_CHECKING:
    from ragdocs.embedding.base import Vectors


@dataclass(frozen=True, slots=True)
class Pieces:
    """The pieces of one text, and the characters that were beyond the last."""

    texts: tuple[str, ...]
    cut_characters: int = 0

    @property
    def counts(self) -> EmbeddingCounts:
        is_cut = self.cut_characters > 0
        return EmbeddingCounts(1, int(len(self.texts) > 1), int(is_cut), self.cut_characters)


def cut_to_fit(text: str, ends: Sequence[int], room: int, windows: int = MAX_WINDOWS) -> Pieces:
    """`ends` are where the text's tokens end, `room` how many tokens a piece may have, `windows`
    how many pieces there may be."""
    if len(ends) <= room:
        return Pieces((text,))
    kept = ends[: room * windows]
    number = -(-len(kept) // room)
    bounds = [0, *(kept[len(kept) * at // number - 1] for at in range(1, number + 1))]
    texts = tuple(text[start:end] for start, end in pairwise(bounds))
    return Pieces(texts, len(text[bounds[-1] :].strip()))


def combined(vectors: Vectors, pieces: Sequence[Pieces]) -> Vectors:
    """One vector of unit length for each text: the mean of its pieces', weighted by length."""
    import numpy as np

    rows = np.empty((len(pieces), vectors.shape[1]), dtype=np.float32)
    start = 0
    for row, one in enumerate(pieces):
        end = start + len(one.texts)
        lengths = np.array([max(1, len(text)) for text in one.texts], dtype=np.float32)
        rows[row] = lengths @ vectors[start:end]
        start = end
    return unit(rows)
