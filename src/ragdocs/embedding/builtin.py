"""The built-in embedder: all-MiniLM-L6-v2 on onnxruntime, found in an installed package.

Loaded at the first text. One session, one thread per run: `embed_documents` makes several runs at
once, `embed_query` one in the caller's thread, so that a query never waits for bulk work.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

from ragdocs.embedding.base import (
    MAX_TOKENS,
    MAX_WINDOWS,
    BatchLimits,
    EmbeddingCounts,
    QueryEmbedding,
    WindowedText,
    batches,
    run_all,
    split_text,
    unit,
    usable_cores,
)
from ragdocs.embedding.model_files import (
    MODEL_NAME,
    WEIGHTS_SHA256,
    FileVerifier,
    ModelFiles,
    cache_folder,
    find_model,
)

if TYPE_CHECKING:
    from ragdocs.embedding.base import Vectors
    from ragdocs.embedding.runtime import ModelSession, WordPieces

Precision: TypeAlias = Literal["auto", "fp32", "int8"]

DIMENSION = 384
# Raise it when the same weights give other vectors: windows, pooling, quantisation.
_SCHEME = 1


@dataclass(frozen=True, slots=True)
class _Loaded:
    session: ModelSession
    pieces: WordPieces
    precision: Literal["fp32", "int8"]
    place: str
    rejected: tuple[str, ...]
    notes: tuple[str, ...]


_Runner: TypeAlias = "Callable[[Callable[[list[int]], None], Sequence[list[int]]], None]"


class BuiltinEmbedder:
    """all-MiniLM-L6-v2: mean pooling, no prefixes, unit vectors of 384 numbers.

    `threads` is for bulk work; 0 means every core this process may use. The precision `auto` is
    int8 if it gives correct vectors on this machine, else fp32.
    """

    def __init__(
        self,
        folder: Path | None = None,
        cache_dir: Path | None = None,
        threads: int = 0,
        precision: Precision = "auto",
        limits: BatchLimits | None = None,
    ) -> None:
        if precision not in get_args(Precision):
            raise ValueError(f"precision must be one of {get_args(Precision)}, not {precision!r}")
        if threads < 0:
            raise ValueError(f"threads must be 0 (every core) or more, not {threads}")
        self._folder = folder
        self._cache_dir = cache_dir or cache_folder()
        self._threads = threads or usable_cores()
        self._precision: Literal["fp32", "int8"] = "int8" if precision == "auto" else precision
        self._limits = limits or BatchLimits()
        self._lock = threading.Lock()
        self._loaded: _Loaded | None = None
        self._counts = EmbeddingCounts()

    @property
    def name(self) -> str:
        return MODEL_NAME

    @property
    def precision(self) -> Literal["fp32", "int8"]:
        return self._loaded.precision if self._loaded else self._precision

    @property
    def identity(self) -> str:
        return (
            f"{MODEL_NAME};weights=sha256:{WEIGHTS_SHA256};dimension={DIMENSION};"
            f"query_prefix=;passage_prefix=;precision={self.precision};scheme={_SCHEME}"
        )

    @property
    def dimension(self) -> int:
        return DIMENSION

    @property
    def max_tokens(self) -> int:
        return MAX_TOKENS

    @property
    def counts(self) -> EmbeddingCounts:
        return self._counts

    @property
    def notes(self) -> tuple[str, ...]:
        return (*self.rejected, *self._loaded.notes) if self._loaded else ()

    @property
    def rejected(self) -> tuple[str, ...]:
        """Why expected files were not used; empty before the model is loaded."""
        return self._loaded.rejected if self._loaded else ()

    @property
    def place(self) -> str:
        """Where the model's files were found; empty before the model is loaded."""
        return self._loaded.place if self._loaded else ""

    def load(self) -> None:
        self._model()

    def find(self) -> ModelFiles:
        """The verified files that `load` would use. Raises the same errors as `load`."""
        return find_model(self._folder, FileVerifier(self._cache_dir))

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        model = self._model()
        windowed = [split_text(text, model.pieces.tokenise) for text in texts]
        vectors = self._embed(model, windowed, partial(run_all, threads=self._threads, nice=True))
        with self._lock:
            self._counts = sum((each.counts for each in windowed), self._counts)
        return vectors

    def embed_query(self, text: str) -> Vectors:
        return self.embed_beginning(text, MAX_WINDOWS).vector

    def embed_beginning(self, text: str, windows: int) -> QueryEmbedding:
        model = self._model()
        windowed = split_text(text, model.pieces.tokenise, windows)
        vector = self._embed(model, [windowed], partial(run_all, threads=1))[0]
        return QueryEmbedding(vector, windowed.cut_characters)

    def _embed(self, model: _Loaded, texts: Sequence[WindowedText], run_each: _Runner) -> Vectors:
        import numpy as np

        pieces = [model.pieces.framed(piece) for text in texts for piece in text.pieces]
        vectors = np.empty((len(pieces), DIMENSION), dtype=np.float32)

        def run(group: list[int]) -> None:
            vectors[group] = model.session.run([pieces[position] for position in group])

        run_each(run, batches([len(piece) for piece in pieces], self._limits))
        return _combine(vectors, texts)

    def _model(self) -> _Loaded:
        # A failure is not kept: the model may be installed while the program runs.
        if self._loaded is None:
            with self._lock:
                if self._loaded is None:
                    self._loaded = _load(self.find(), self._precision)
        return self._loaded


def _combine(vectors: Vectors, texts: Sequence[WindowedText]) -> Vectors:
    """One vector for each text: that of its only piece, or the mean of its pieces by length."""
    if len(vectors) == len(texts):
        return vectors
    import numpy as np

    combined = np.empty((len(texts), DIMENSION), dtype=np.float32)
    start = 0
    for row, text in enumerate(texts):
        end = start + len(text.pieces)
        lengths = np.array([len(piece) for piece in text.pieces], dtype=np.float32)
        combined[row] = vectors[start] if end == start + 1 else lengths @ vectors[start:end]
        start = end
    return unit(combined)


def _load(files: ModelFiles, precision: Literal["fp32", "int8"]) -> _Loaded:
    from ragdocs.embedding.runtime import load_session

    session, pieces, used, notes = load_session(files, precision)
    return _Loaded(session, pieces, used, files.place, files.rejected, notes)
