"""Cross-encoders: a question and passages in, scores out. The model is loaded at the first
question.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

from ragdocs.embedding.base import BatchLimits, batches, run_all, usable_cores
from ragdocs.embedding.foreign_code import check_folder
from ragdocs.embedding.hub import MODELS, NEEDED_FILES, find_files, find_folder, repo
from ragdocs.errors import EmbeddingError, ModelCorrupt, ModelMissing
from ragdocs.text import advised, without_surrogates

if TYPE_CHECKING:
    from numpy import float32
    from numpy.typing import NDArray

    from ragdocs.embedding.cross_encoder_session import PairSession, PairTokenizer

# A cross-encoder on torch, through sentence-transformers: by its name, or from a folder without
# an ONNX model. The extra `huggingface`; never fetched by a query that happens to want it.

_BATCH = 32


class TorchCrossEncoder:
    """One label (sigmoid) or two (softmax of the second), loaded at the first passage."""

    def __init__(self, model: str, cache: Path | None = None, threads: int = 0) -> None:
        self._name = model
        self._cache = cache
        self._threads = threads
        self._lock = threading.Lock()
        self._model: Any = None

    @property
    def name(self) -> str:
        path = Path(self._name)
        return path.name if path.is_absolute() else self._name

    def load(self) -> None:
        with self._lock:
            self._loaded()

    def score(self, query: str, passages: Sequence[str]) -> list[float]:
        if not passages:
            return []
        pairs = [(without_surrogates(query), without_surrogates(passage)) for passage in passages]
        # One at a time: a tokenizer must not be used by two threads.
        with self._lock:
            model = self._loaded()
            try:
                logits = _logits(model, pairs)
            except RuntimeError as error:
                raise EmbeddingError(f"{self.name} failed on these passages: {error}") from error
        return _probabilities(logits)

    def _loaded(self) -> Any:  # noqa: ANN401  a library without types
        # A failure is not remembered: the model may be fetched while the program runs.
        if self._model is None:
            self._model = _load_with_torch(self.find(), self._threads)
        return self._model

    def find(self) -> Path:
        """The folder that `load` would use. Raises ModelMissing."""
        folder = find_folder(self._name, self._cache)
        if folder is not None:
            return folder
        if Path(self._name).is_absolute():
            raise ModelMissing(
                f"the cross-encoder's folder {self._name} does not exist, or has no config.json; "
                "name another folder, or a model, in rerank_model"
            )
        raise ModelMissing(
            f"the cross-encoder {self._name} is not on this disk. Either fetch it: "
            f"{advised(f'models fetch {repo(self._name)}')}; or name a folder that holds it in "
            "rerank_model; or set rerank_enabled = false"
        )


def _load_with_torch(folder: Path, threads: int) -> Any:  # noqa: ANN401
    from importlib import import_module

    check_folder(folder)
    try:
        torch = import_module("torch")
        import_module("transformers.utils.logging").disable_progress_bar()
        if threads:
            torch.set_num_threads(threads)
        library = import_module("sentence_transformers")
        model = library.CrossEncoder(
            str(folder),
            local_files_only=True,
            trust_remote_code=False,
            model_kwargs={"use_safetensors": True},
        )
        labels = int(model.config.num_labels)
    # Torch, transformers and safetensors each raise their own unrelated classes.
    except Exception as error:
        said = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise ModelCorrupt(
            f"the cross-encoder in {folder} cannot be loaded ({said}). Fetch it again, or name "
            "another in rerank_model"
        ) from error
    if labels not in (1, 2):
        raise ModelCorrupt(
            f"the model in {folder} has {labels} labels: a cross-encoder that ranks has 1 or 2"
        )
    return model


def _logits(model: Any, pairs: Sequence[tuple[str, str]]) -> NDArray[float32]:  # noqa: ANN401
    from importlib import import_module

    import numpy as np

    found = model.predict(
        pairs,
        batch_size=_BATCH,
        show_progress_bar=False,
        activation_fn=import_module("torch").nn.Identity(),  # whatever the model's own would be
    )
    return np.asarray(found, dtype=np.float32).reshape(len(pairs), -1)


def _probabilities(logits: NDArray[float32]) -> list[float]:
    """In [0, 1], growing with how well a passage answers."""
    import numpy as np

    # A softmax of two is the sigmoid of their difference.
    lead = logits[:, 0] if logits.shape[1] == 1 else logits[:, 1] - logits[:, 0]
    scores: list[float] = (1.0 / (1.0 + np.exp(-np.clip(lead, -60.0, 60.0)))).tolist()
    return scores


# What the rest of the program knows of a cross-encoder: a question and passages in, scores out.
#
# None comes with the install. One in a local folder runs here on onnxruntime, without torch; it is
# loaded at the first passage, so that holding it costs nothing.

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
            f"\nEither put its files ({NEEDED_FILES}) into a folder and name that in rerank_model, "
            f"beginning with {', '.join(_FOLDER_BEGINNINGS)};"
            "\nor install the extra: pip install 'mcp-markdown-ragdocs[huggingface]'."
            "\nUntil then results keep their first order; rerank_enabled = false ends this note."
        )


def _load(folder: Path) -> _Loaded:
    files = find_files(folder)
    # Imported here: numpy and the two native libraries come with it.
    from ragdocs.embedding.cross_encoder_session import load_pair_model

    return _Loaded(*load_pair_model(files))
