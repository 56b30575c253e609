"""Cross-encoders score how well passages answer a query. A model is loaded at the first query."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

from ragdocs.embedding.base import BatchLimits, batches, run_all, usable_cores
from ragdocs.errors import EmbeddingError, ModelCorrupt, ModelMissing
from ragdocs.text import advised, without_surrogates

if TYPE_CHECKING:
    from numpy import float32, float64
    from numpy.typing import NDArray

    from ragdocs.embedding.hub import CrossEncoderFiles
    from ragdocs.embedding.runtime import Encoded

# The configuration takes these for a folder; a model's name looks like a relative path.
_FOLDER_BEGINNINGS = ("/", "./", "../", "~")


class CrossEncoder(Protocol):
    """A model that reads a query and a passage together; safe to call from several threads."""

    @property
    def name(self) -> str:
        """The model's name for people."""
        ...

    def load(self) -> None:
        """Loads the model before the first passage. Raises ModelMissing or ModelCorrupt."""
        ...

    def score(self, query: str, passages: Sequence[str]) -> Sequence[float]:
        """How well each passage answers, from 0 to 1, in the given order. Raises EmbeddingError."""
        ...


def open_cross_encoder(model: str, threads: int = 0, cache: Path | None = None) -> CrossEncoder:
    """The cross-encoder that `rerank_model` names. Any problem is reported at its first use.

    A folder with an ONNX model needs nothing else; all others need the extra with torch.
    """
    from ragdocs.embedding.hub import MODELS

    has_extra = find_spec("sentence_transformers") is not None
    if model.startswith(_FOLDER_BEGINNINGS):
        # Not Path.expanduser, which raises for an unknown user.
        folder = Path(os.path.expanduser(model))
        if has_extra and not any((folder / name).is_file() for name in MODELS):
            return TorchCrossEncoder(os.path.abspath(folder), cache, threads)
        return OnnxCrossEncoder(folder, threads)
    return TorchCrossEncoder(model, cache, threads) if has_extra else _Unavailable(model)


class _Unavailable:
    """A model that is given by name, without the extra that could load it."""

    def __init__(self, name: str) -> None:
        self.name = name

    def load(self) -> None:
        self._refuse()

    def score(self, query: str, passages: Sequence[str]) -> list[float]:
        del query
        return self._refuse() if passages else []

    def _refuse(self) -> NoReturn:
        from ragdocs.embedding.hub import NEEDED_FILES

        raise ModelMissing(
            f"the cross-encoder {self.name} is only a name, and no cross-encoder is installed."
            f"\nEither put its files ({NEEDED_FILES}) into a folder and set rerank_model to its "
            f"path, which must begin with {', '.join(_FOLDER_BEGINNINGS)};"
            "\nor install the extra: pip install 'mcp-markdown-ragdocs[huggingface]'."
            "\nUntil then results keep their original order; rerank_enabled = false turns this "
            "note off."
        )


# On onnxruntime, without torch: a folder with an ONNX model.

# As in base.py: four times the length of a token in English prose, so that only the beginning of a
# text of megabytes is tokenised.
_CHARACTERS_PER_TOKEN = 16


class OnnxCrossEncoder:
    """A cross-encoder in a local folder: one label (sigmoid) or two (softmax of the second).

    `threads` is how many batches run at once; 0 means every core this process may use.
    """

    def __init__(self, folder: Path, threads: int = 0, limits: BatchLimits | None = None) -> None:
        if threads < 0:
            raise ValueError(f"threads must be 0 (every core) or more, not {threads}")
        self._folder = folder
        self._threads = threads or usable_cores()
        self._limits = limits or BatchLimits()
        self._lock = threading.Lock()
        self._loaded: _PairModel | None = None

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
            found = model.run([pairs[position] for position in group])
            for position, score in zip(group, found.tolist(), strict=True):
                scores[position] = score

        run_all(run, batches([len(pair.ids) for pair in pairs], self._limits), self._threads)
        return scores

    def _model(self) -> _PairModel:
        # A failure is not kept: the files may be put in place while the program runs.
        if self._loaded is None:
            with self._lock:
                if self._loaded is None:
                    from ragdocs.embedding.hub import find_files

                    self._loaded = _PairModel(find_files(self._folder))
        return self._loaded


class PairTokenizer:
    """The model's own tokenizer and pair template, within the model's maximum."""

    def __init__(self, path: Path, max_tokens: int) -> None:
        from ragdocs.embedding.runtime import load_tokenizer

        self._tokenizer: Any = load_tokenizer(path)
        self._room: int = max_tokens - self._tokenizer.num_special_tokens_to_add(True)
        if self._room < 2:
            raise ModelCorrupt(f"{path}: {max_tokens} tokens leave no room for a query and a text")

    def pairs(self, query: str, passages: Sequence[str]) -> list[Encoded]:
        """Cuts each passage to the room that is left, and the query to half of it."""
        first = self._encode(query)
        first.truncate(self._room // 2)
        return [self._pair(first, passage) for passage in passages]

    def _pair(self, first: Any, passage: str) -> Encoded:  # noqa: ANN401  the library has no types
        from ragdocs.embedding.runtime import Encoded

        second = self._encode(passage)
        second.truncate(self._room - len(first.ids))
        joined = self._tokenizer.post_process(first, second)
        return Encoded(joined.ids, joined.type_ids)

    def _encode(self, text: str) -> Any:  # noqa: ANN401  the library has no types
        # One at a time: `encode_batch` starts a thread pool that does not survive fork.
        shown = without_surrogates(text[: self._room * _CHARACTERS_PER_TOKEN])
        return self._tokenizer.encode(shown, add_special_tokens=False)


class _PairModel:
    """A loaded model with its tokenizer. Each run uses only the calling thread.

    Raises ModelCorrupt, also for a model that cannot score two ordinary pairs.
    """

    def __init__(self, files: CrossEncoderFiles) -> None:
        from ragdocs.embedding.runtime import ExportedModel

        self.tokenizer = PairTokenizer(files.tokenizer, files.max_tokens)
        self._model = ExportedModel(files.model, "cross-encoder", "text classification")
        self._output = next(iter(self._model.outputs))
        try:
            self.run(self.tokenizer.pairs("question", ["answer", "answer"]))
        except EmbeddingError as error:
            raise ModelCorrupt(f"{files.model} cannot be used for re-ranking: {error}") from error

    def run(self, pairs: Sequence[Encoded]) -> NDArray[float64]:
        """Scores from 0 to 1 of pairs with the same number of tokens. Raises EmbeddingError."""
        import numpy as np

        logits = self._model.run(self._output, pairs)
        return probabilities(np.asarray(logits, dtype=np.float64), len(pairs))


def probabilities(logits: NDArray[float64], pairs: int) -> NDArray[float64]:
    """One label: its sigmoid. Two: the softmax of the second, which is the sigmoid of its
    difference from the first."""
    import numpy as np

    if logits.shape in ((pairs,), (pairs, 1)):
        margins = logits.reshape(pairs)
    elif logits.shape == (pairs, 2):
        margins = logits[:, 1] - logits[:, 0]
    else:
        raise EmbeddingError(
            f"for {pairs} pairs the model returned an array of shape {logits.shape}, "
            f"not {(pairs, 1)} or {(pairs, 2)}: it is not a cross-encoder for relevance"
        )
    if not np.isfinite(margins).all():
        raise EmbeddingError("the cross-encoder returned values that are not numbers")
    # In this form nothing overflows, and the smallest keep their order.
    return np.exp(-np.logaddexp(0.0, -margins))


# On torch, through sentence-transformers: a model by name, or a folder without an ONNX model. It
# needs the extra `huggingface`; a query never downloads a model.

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
            self._load()

    def score(self, query: str, passages: Sequence[str]) -> list[float]:
        if not passages:
            return []
        pairs = [(without_surrogates(query), without_surrogates(passage)) for passage in passages]
        # One at a time: two threads must not use one tokenizer.
        with self._lock:
            model = self._load()
            try:
                logits = _logits(model, pairs)
            except RuntimeError as error:
                raise EmbeddingError(f"{self.name} failed on these passages: {error}") from error
        return _torch_probabilities(logits)

    def _load(self) -> Any:  # noqa: ANN401  a library without types
        # A failure is not kept: the model may be fetched while the program runs.
        if self._model is None:
            self._model = _load_with_torch(self.find(), self._threads)
        return self._model

    def find(self) -> Path:
        """The folder that `load` would use. Raises ModelMissing."""
        from ragdocs.embedding.hub import find_folder, repo

        folder = find_folder(self._name, self._cache)
        if folder is not None:
            return folder
        if Path(self._name).is_absolute():
            raise ModelMissing(
                f"the cross-encoder's folder {self._name} does not exist, or has no config.json; "
                "set rerank_model to another folder, or to the name of a model"
            )
        raise ModelMissing(
            f"the cross-encoder {self._name} is not on this disk. Either fetch it: "
            f"{advised(f'models fetch {repo(self._name)}')}; or set rerank_model to a folder that "
            "contains it; or set rerank_enabled = false"
        )


def _load_with_torch(folder: Path, threads: int) -> Any:  # noqa: ANN401
    from ragdocs.embedding.foreign_code import check_folder

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
            f"the cross-encoder in {folder} cannot be loaded ({said}). Fetch it again, or set "
            "rerank_model to another"
        ) from error
    if labels not in (1, 2):
        raise ModelCorrupt(
            f"the model in {folder} has {labels} labels: a cross-encoder for ranking has 1 or 2"
        )
    return model


def _logits(model: Any, pairs: Sequence[tuple[str, str]]) -> NDArray[float32]:  # noqa: ANN401
    import numpy as np

    found = model.predict(
        pairs,
        batch_size=_BATCH,
        show_progress_bar=False,
        activation_fn=import_module("torch").nn.Identity(),  # not the model's own
    )
    return np.asarray(found, dtype=np.float32).reshape(len(pairs), -1)


def _torch_probabilities(logits: NDArray[float32]) -> list[float]:
    import numpy as np

    # A softmax of two is the sigmoid of their difference.
    lead = logits[:, 0] if logits.shape[1] == 1 else logits[:, 1] - logits[:, 0]
    scores: list[float] = (1.0 / (1.0 + np.exp(-np.clip(lead, -60.0, 60.0)))).tolist()
    return scores
