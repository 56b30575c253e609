"""A cross-encoder on torch, through sentence-transformers: by its name, or from a folder without
an ONNX model. The extra `huggingface`; never fetched by a query that happens to want it.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragdocs.embedding.foreign_code import check_folder
from ragdocs.embedding.model_hub import find_folder, repo
from ragdocs.embedding.windows import clean
from ragdocs.errors import EmbeddingError, ModelCorrupt, ModelMissing
from ragdocs.wording import advised

if TYPE_CHECKING:
    from numpy import float32
    from numpy.typing import NDArray

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
        pairs = [(clean(query), clean(passage)) for passage in passages]
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
            self._model = _load(self.find(), self._threads)
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


def _load(folder: Path, threads: int) -> Any:  # noqa: ANN401
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
