"""What the rest of the program knows of an embedding model: text in, unit vectors out.

Whatever stands behind the protocol is loaded on first use, so that holding an embedder costs
nothing; this module imports numpy only when it computes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias, runtime_checkable

if TYPE_CHECKING:
    from numpy import float32
    from numpy.typing import NDArray

    Vectors: TypeAlias = NDArray[float32]


@dataclass(frozen=True, slots=True)
class EmbeddingCounts:
    """How documents' texts met the model's window; only `cut_*` means that something was lost.

    `split_texts` were longer than the window and went through it in several pieces. `cut_texts`
    were longer than the model is given at all, by `cut_characters` altogether.
    """

    texts: int = 0
    split_texts: int = 0
    cut_texts: int = 0
    cut_characters: int = 0

    def __add__(self, other: EmbeddingCounts) -> EmbeddingCounts:
        return EmbeddingCounts(
            self.texts + other.texts,
            self.split_texts + other.split_texts,
            self.cut_texts + other.cut_texts,
            self.cut_characters + other.cut_characters,
        )


@dataclass(frozen=True, slots=True)
class QueryEmbedding:
    """A query's vector, and how many characters at its end the vector says nothing of."""

    vector: Vectors
    cut_characters: int = 0


class Embedder(Protocol):
    """A model that turns text into unit vectors; safe to call from several threads."""

    @property
    def name(self) -> str:
        """The model, as a person would say it."""
        ...

    @property
    def identity(self) -> str:
        """All that decides a vector: two embedders with one identity may share an index.

        Several models have 384 dimensions, so this is what an index remembers and compares. It is
        settled by `load`: a precision that this machine cannot run is replaced there.
        """
        ...

    @property
    def dimension(self) -> int: ...

    @property
    def max_tokens(self) -> int:
        """The model's window; longer texts are split, never silently cut."""
        ...

    @property
    def counts(self) -> EmbeddingCounts:
        """What `embed_documents` has met since this embedder was made."""
        ...

    @property
    def notes(self) -> tuple[str, ...]:
        """What a user should know about how the model was found and runs; usually nothing."""
        ...

    def load(self) -> None:
        """Make ready now instead of at the first text. Raises ModelMissing or ModelCorrupt."""
        ...

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """One row of unit length for each text, in the order given."""
        ...

    def embed_query(self, text: str) -> Vectors:
        """The vector to search with; never waits behind `embed_documents`."""
        ...


@runtime_checkable
class WindowedEmbedder(Protocol):
    """An embedder that reads a long query in several windows, each of them a run of the model;
    the others read one.
    """

    def embed_beginning(self, text: str, windows: int) -> QueryEmbedding:
        """The vector of as much of a query as so many windows hold."""
        ...


def unit(vectors: Vectors) -> Vectors:
    """Each row at length 1; a row of zeros stays as it is."""
    import numpy as np

    norms = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return (vectors / np.maximum(norms, np.float32(1e-12))).astype(np.float32)
