"""Embedders that say nothing of themselves: how many numbers a vector has is read from a first one.

What they share; how a text becomes a vector is for each to say.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from ragdocs.embedding.base import EmbeddingCounts
from ragdocs.errors import EmbeddingError

if TYPE_CHECKING:
    from ragdocs.embedding.prefixes import Prefixes

PROBE = "What is this model?"


class ProbedEmbedder(ABC):
    """A model known by its answers only."""

    def __init__(self, prefixes: Prefixes) -> None:
        self._prefixes = prefixes
        self._lock = threading.Lock()
        self._dimension = 0
        self._texts = 0

    @property
    def dimension(self) -> int:
        """0 while it cannot be used."""
        try:
            self._learn()
        except EmbeddingError:
            return 0
        return self._dimension

    @property
    def max_tokens(self) -> int:
        """Not told."""
        return 0

    @property
    def counts(self) -> EmbeddingCounts:
        return EmbeddingCounts(texts=self._texts)

    @property
    def notes(self) -> tuple[str, ...]:
        return ()

    @abstractmethod
    def load(self) -> None: ...

    def _learn(self) -> None:
        """For whoever asks what it is, and embeds nothing. Raises EmbeddingError."""
        self.load()

    def _count(self, texts: int) -> None:
        with self._lock:
            self._texts += texts
