"""What the rest of the program knows of a cross-encoder: a question and passages in, scores out.

None comes with the install. One in a local folder runs here on onnxruntime, without torch; it is
loaded at the first passage, so that holding it costs nothing.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, Protocol

from ragdocs.embedding.batches import BatchLimits, batches
from ragdocs.embedding.cross_encoder_files import EXPECTED, MODELS, find_files
from ragdocs.embedding.cross_encoder_torch import TorchCrossEncoder
from ragdocs.embedding.runs import run_all, usable_cores
from ragdocs.errors import ModelMissing

if TYPE_CHECKING:
    from ragdocs.embedding.cross_encoder_session import PairSession, PairTokenizer

# What the configuration takes for a folder; a model's name looks like a relative path.
_FOLDER_BEGINNINGS = ("/", "./", "../", "~")


class CrossEncoder(Protocol):
    """A model that reads a question and a passage together; safe to call from several threads."""

    @property
    def name(self) -> str:
        """The model, as a person would say it."""
        ...

    def load(self) -> None:
        """Make ready now instead of at the first passage. Raises ModelMissing or ModelCorrupt."""
        ...

    def score(self, query: str, passages: Sequence[str]) -> Sequence[float]:
        """How well each passage answers, in [0, 1], in the order given. Raises EmbeddingError."""
        ...


def open_cross_encoder(model: str, threads: int = 0, cache: Path | None = None) -> CrossEncoder:
    """The one that `rerank_model` names. Whatever is wrong with it is said at its first use.

    A folder with an ONNX model needs nothing else; all others need the extra, with torch.
    """
    has_extra = find_spec("sentence_transformers") is not None
    if model.startswith(_FOLDER_BEGINNINGS):
        # Not Path.expanduser, which raises for a user that is not known.
        folder = Path(os.path.expanduser(model))
        if has_extra and not any((folder / name).is_file() for name in MODELS):
            return TorchCrossEncoder(os.path.abspath(folder), cache, threads)
        return OnnxCrossEncoder(folder, threads)
    return TorchCrossEncoder(model, cache, threads) if has_extra else _Unavailable(model)


@dataclass(frozen=True, slots=True)
class _Loaded:
    session: PairSession
    tokenizer: PairTokenizer


class OnnxCrossEncoder:
    """A cross-encoder in a local folder: one label (sigmoid) or two (softmax of the second).

    `threads` are how many passages are read at once, 0 meaning every core this process may use.
    """

    def __init__(self, folder: Path, threads: int = 0, limits: BatchLimits | None = None) -> None:
        if threads < 0:
            raise ValueError(f"threads is {threads}; it may be 0 (every core) or more")
        self._folder = folder
        self._threads = threads or usable_cores()
        self._limits = limits or BatchLimits()
        self._lock = threading.Lock()
        self._loaded: _Loaded | None = None

    @property
    def name(self) -> str:
        return self._folder.name

    def load(self) -> None:
        self._model()

    def score(self, query: str, passages: Sequence[str]) -> list[float]:
        if not passages:
            return []
        model = self._model()
        pairs = model.tokenizer.pairs(query, passages)
        scores = [0.0] * len(pairs)

        def run(group: list[int]) -> None:
            found = model.session.run([pairs[position] for position in group])
            for position, score in zip(group, found.tolist(), strict=True):
                scores[position] = score

        run_all(run, batches([len(pair.ids) for pair in pairs], self._limits), self._threads)
        return scores

    def _model(self) -> _Loaded:
        # A failure is not remembered: the files may be put in place while the program runs.
        if self._loaded is None:
            with self._lock:
                if self._loaded is None:
                    self._loaded = _load(self._folder)
        return self._loaded


class _Unavailable:
    """A model that only has a name, and nothing here that could turn the name into a model."""

    def __init__(self, name: str) -> None:
        self.name = name

    def load(self) -> None:
        self._refuse()

    def score(self, query: str, passages: Sequence[str]) -> list[float]:
        del query
        return self._refuse() if passages else []

    def _refuse(self) -> NoReturn:
        raise ModelMissing(
            f"the cross-encoder {self.name} is known by name only, and none comes with the install."
            f"\nEither put its files ({EXPECTED}) into a folder and name that in rerank_model, "
            f"beginning with {', '.join(_FOLDER_BEGINNINGS)};"
            "\nor install the extra: pip install 'mcp-markdown-ragdocs[huggingface]'."
            "\nUntil then results keep their first order; rerank_enabled = false ends this note."
        )


def _load(folder: Path) -> _Loaded:
    files = find_files(folder)
    # Imported here: numpy and the two native libraries come with it.
    from ragdocs.embedding.cross_encoder_session import load_pair_model

    return _Loaded(*load_pair_model(files))
