"""Any sentence-transformers model, by its name or from a folder, through LlamaIndex's embedding.

Needs the extra `huggingface`. The model is loaded from a folder on this disk, and downloaded only
if that is allowed.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragdocs.config.values import AUTO
from ragdocs.embedding.base import (
    EmbeddingCounts,
    Pieces,
    Prefixes,
    choose_prefixes,
    combine,
    cut_to_fit,
    known_prefixes,
)
from ragdocs.embedding.download import find_or_fetch
from ragdocs.embedding.foreign_code import check_folder
from ragdocs.embedding.hub import (
    declared_dimension,
    declared_prefixes,
    digest,
    find_folder,
    find_model,
)
from ragdocs.errors import EmbeddingError, ModelCorrupt
from ragdocs.text import without_surrogates

if TYPE_CHECKING:
    from ragdocs.config.settings import EmbeddingConfig
    from ragdocs.embedding.base import Vectors

_LEAST_ROOM = 16
"""With a smaller window, in tokens, texts are not split."""


@dataclass(frozen=True, slots=True)
class _Loaded:
    """The model for passages, a copy for queries, and `room`, the most tokens in a piece."""

    bulk: Any
    query: Any
    dimension: int
    max_tokens: int
    room: int


class HuggingFaceEmbedder:
    """A model in a folder or in the Hub's cache; its files describe it."""

    def __init__(self, settings: EmbeddingConfig) -> None:
        self._settings = settings
        self._loading = threading.Lock()
        self._bulk = threading.Lock()
        self._query = threading.Lock()
        self._loaded: _Loaded | None = None
        self._used_folder: Path | None = None
        self._counts = EmbeddingCounts()

    @property
    def name(self) -> str:
        return str(self._settings.model)

    @property
    def identity(self) -> str:
        """From the model's files, so that the model need not be loaded."""
        folder = self._folder
        if folder is None:
            return f"huggingface:{self.name}:absent"
        return f"huggingface:{self._digest}:{self._prefixes(folder).identity}"

    @property
    def dimension(self) -> int:
        """The model's, or before it is loaded that in its files; 0 without a model."""
        if self._loaded is None and self._folder is not None:
            told = declared_dimension(self._folder)
            if told:
                return told
        try:
            return self._model().dimension
        except EmbeddingError:
            return 0

    @property
    def max_tokens(self) -> int:
        return self._loaded.max_tokens if self._loaded else 0

    @property
    def counts(self) -> EmbeddingCounts:
        return self._counts

    @property
    def notes(self) -> tuple[str, ...]:
        return ()

    def load(self) -> None:
        self._model()

    def find(self) -> Path:
        """The folder that `load` would use without fetching. Raises ModelMissing."""
        return find_model(self.name, self._settings.cache_folder)

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        import numpy as np

        model = self._model()
        if not texts:
            return np.empty((0, model.dimension), dtype=np.float32)
        # One at a time: two threads must not use one tokenizer.
        with self._bulk:
            pieces = [_pieces(model, without_surrogates(text)) for text in texts]
            flat = [text for one in pieces for text in one.texts]
            rows: list[list[float]] = model.bulk.get_text_embedding_batch(flat)
            self._counts = sum((one.counts for one in pieces), self._counts)
        return combine(np.array(rows, dtype=np.float32), pieces)

    def embed_query(self, text: str) -> Vectors:
        import numpy as np

        model = self._model()
        with self._query:
            row: list[float] = model.query.get_query_embedding(without_surrogates(text))
        return np.array(row, dtype=np.float32)

    @property
    def _folder(self) -> Path | None:
        """The folder that was loaded, if any: another may have been downloaded since."""
        if self._used_folder is not None or not has_extra():
            return self._used_folder
        return find_folder(self.name, self._settings.cache_folder)

    @cached_property
    def _digest(self) -> str:
        folder = self._folder
        assert folder is not None
        return digest(folder)

    def _prefixes(self, folder: Path) -> Prefixes:
        settings = self._settings
        known = declared_prefixes(folder) or known_prefixes(self.name)
        return choose_prefixes(settings.query_prefix, settings.passage_prefix, known)

    def _model(self) -> _Loaded:
        # A failure is not kept: the model may be fetched while the program runs.
        if self._loaded is None:
            with self._loading:
                if self._loaded is None:
                    settings = self._settings
                    may_fetch = not settings.local_files_only
                    folder = find_or_fetch(self.name, settings.cache_folder, fetch=may_fetch)
                    loaded = _load(folder, self._prefixes(folder), settings)
                    vars(self).pop("_digest", None)  # it may be that of another folder
                    self._used_folder, self._loaded = folder, loaded
        return self._loaded


def has_extra() -> bool:
    from importlib.util import find_spec

    return find_spec("huggingface_hub") is not None


def _pieces(model: _Loaded, text: str) -> Pieces:
    # A text with no more characters than tokens allowed fits.
    if model.room < _LEAST_ROOM or len(text) <= model.room:
        return Pieces((text,))
    tokens = model.bulk._model.tokenizer(
        text, add_special_tokens=False, return_offsets_mapping=True, truncation=False, verbose=False
    )
    return cut_to_fit(text, [end for _, end in tokens["offset_mapping"]], model.room)


def _load(folder: Path, prefixes: Prefixes, settings: EmbeddingConfig) -> _Loaded:
    check_folder(folder)
    try:
        return _load_model(folder, prefixes, settings)
    # Torch, transformers and safetensors each raise their own unrelated classes.
    except Exception as error:
        said = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise ModelCorrupt(
            f"the model in {folder} cannot be loaded ({said}). {_advice(settings)}"
        ) from error


def _advice(settings: EmbeddingConfig) -> str:
    if settings.device not in (AUTO, "cpu"):
        return f'Is there a device "{settings.device}"? device = "auto" uses what is available'
    return "Fetch it again, or set another model"


def _load_model(folder: Path, prefixes: Prefixes, settings: EmbeddingConfig) -> _Loaded:
    from importlib import import_module

    torch = import_module("torch")
    import_module("transformers.utils.logging").disable_progress_bar()
    embedding = import_module("llama_index.embeddings.huggingface")
    if settings.threads:
        torch.set_num_threads(settings.threads)
    bulk = embedding.HuggingFaceEmbedding(
        model_name=str(folder),
        embed_batch_size=settings.batch_size,
        device=None if settings.device == AUTO else settings.device,
        local_files_only=True,
        trust_remote_code=False,
        model_kwargs={"use_safetensors": True},
    )
    model = bulk._model
    # Not passed above: LlamaIndex would replace an empty prefix with its own default.
    model.prompts = {"query": prefixes.query, "text": prefixes.passage}
    max_tokens = int(model.max_seq_length or 0)
    return _Loaded(
        bulk=bulk,
        query=_copy_sharing_weights(bulk),
        dimension=len(bulk.get_text_embedding("one text")),
        max_tokens=max_tokens,
        room=_room(model.tokenizer, max_tokens, prefixes),
    )


def _copy_sharing_weights(embedding: Any) -> Any:  # noqa: ANN401  a library without types
    """The same model with its own tokenizer, so that a query need not wait."""
    from copy import deepcopy
    from itertools import chain

    weights = chain(embedding._model.parameters(), embedding._model.buffers())
    return deepcopy(embedding, {id(one): one for one in weights})


def _room(tokenizer: Any, max_tokens: int, prefixes: Prefixes) -> int:  # noqa: ANN401
    """How many tokens are left for a piece; 0 if unknown."""
    if not max_tokens or not getattr(tokenizer, "is_fast", False):
        return 0
    return max_tokens - len(tokenizer(prefixes.passage)["input_ids"])
