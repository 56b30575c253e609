"""Vectors from an OpenAI-compatible endpoint: Ollama, LM Studio, llama.cpp's server and others.

Off unless configured. What the model is called, and how many numbers its vectors have, is all that
can be known of it; the number is read from its first answer.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from ragdocs.embedding.base import unit
from ragdocs.embedding.probed import PROBE, ProbedEmbedder
from ragdocs.errors import EmbeddingError

if TYPE_CHECKING:
    from ragdocs.embedding.base import Vectors
    from ragdocs.embedding.endpoint import Endpoint
    from ragdocs.embedding.prefixes import Prefixes

FORGET_FAILURE_SECONDS = 5.0
"""For so long a server that did not answer is not asked again only to learn what it is."""


class HttpEmbedder(ProbedEmbedder):
    """A model behind an endpoint; each call has a connection of its own."""

    def __init__(
        self, endpoint: Endpoint, model: str, prefixes: Prefixes, batch_size: int = 32
    ) -> None:
        super().__init__(prefixes)
        self._endpoint = endpoint
        self._model = model
        self._batch_size = batch_size
        self._failed_at = float("-inf")

    @property
    def name(self) -> str:
        return f"{self._model} at {self._endpoint.url}"

    @property
    def identity(self) -> str:
        """With the dimension: a server may serve another model under the same name."""
        return (
            f"http:{self._endpoint.url.rstrip('/')}:{self._model}:{self.dimension}:"
            f"{self._prefixes.identity}"
        )

    def load(self) -> None:
        with self._lock:
            self._probe()

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        import numpy as np

        self.load()
        prefixed = [self._prefixes.passage + text for text in texts]
        rows = [
            self._embed(prefixed[start : start + self._batch_size])
            for start in range(0, len(prefixed), self._batch_size)
        ]
        self._count(len(texts))
        empty = np.empty((0, self._dimension), dtype=np.float32)
        return np.concatenate([empty, *rows])

    def embed_query(self, text: str) -> Vectors:
        self.load()
        return self._embed([self._prefixes.query + text])[0]

    def _learn(self) -> None:
        with self._lock:
            has_failed = time.monotonic() - self._failed_at < FORGET_FAILURE_SECONDS
            if has_failed and not self._dimension:
                raise EmbeddingError(f"{self._endpoint.url} did not answer a moment ago")
            self._probe()

    def _probe(self) -> None:
        if not self._dimension:
            try:
                self._dimension = self._ask([PROBE]).shape[1]
            except EmbeddingError:
                self._failed_at = time.monotonic()
                raise

    def _embed(self, texts: Sequence[str]) -> Vectors:
        vectors = self._ask(texts)
        if vectors.shape[1] != self._dimension:
            was, self._dimension = self._dimension, 0
            raise EmbeddingError(
                f"{self.name} gave {was} numbers for a text before and {vectors.shape[1]} now: "
                "it is another model, and all texts are embedded again by it"
            )
        return vectors

    def _ask(self, texts: Sequence[str]) -> Vectors:
        answer = self._endpoint.post("/embeddings", {"model": self._model, "input": list(texts)})
        try:
            return _vectors(answer, len(texts))
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise EmbeddingError(
                f"{self.name} did not answer with one vector for each text ({error}). Is it an "
                "OpenAI-compatible endpoint, and an embedding model?"
            ) from error


def _vectors(answer: object, count: int) -> Vectors:
    """Of unit length, in the order of the texts. Raises for whatever else was answered."""
    import numpy as np

    entries = cast("list[dict[str, object]]", cast("dict[str, object]", answer)["data"])
    ordered = {int(cast("int", one["index"])): one["embedding"] for one in entries}
    if len(entries) != count or set(ordered) != set(range(count)):
        raise ValueError(f"{len(entries)} vectors for {count} texts")
    vectors = np.array([ordered[at] for at in range(count)], dtype=np.float32)
    if vectors.ndim != 2 or not vectors.shape[1]:
        raise ValueError("a vector is a list of numbers")
    if not np.isfinite(vectors).all() or not vectors.any(axis=1).all():
        raise ValueError("a vector of zeros, or with numbers that are none")
    return unit(vectors)
