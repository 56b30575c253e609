"""Any embedding class of LlamaIndex, named in the settings and made with their arguments.

Needs the extra `llama-index` and the package with the class.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from hashlib import blake2b
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragdocs.embedding.base import PROBE, Prefixes, ProbedEmbedder, choose_prefixes, unit
from ragdocs.embedding.download import find_or_fetch
from ragdocs.embedding.foreign_code import (
    check_arguments,
    check_folder,
    without_working_folder,
)
from ragdocs.errors import ConfigError, EmbeddingError, ModelMissing
from ragdocs.text import without_surrogates

if TYPE_CHECKING:
    from ragdocs.config.settings import EmbeddingConfig
    from ragdocs.embedding.base import Vectors

EXTRA = "pip install 'mcp-markdown-ragdocs[llama-index]'"


class LlamaIndexEmbedder(ProbedEmbedder):
    """A `BaseEmbedding` that `make` makes at the first text; `identity` has everything that decides
    its vectors except the dimension, which is read from the first one.
    """

    def __init__(
        self, make: Callable[[], Any], name: str, identity: str, prefixes: Prefixes | None = None
    ) -> None:
        super().__init__(prefixes or Prefixes())
        self._make = make
        self._name = name
        self._stem = identity
        self._embedding: Any = None

    @property
    def name(self) -> str:
        return self._name

    @property
    def identity(self) -> str:
        return f"llama-index:{self._stem}:{self.dimension}:{self._prefixes.identity}"

    def load(self) -> None:
        with self._lock:
            if self._embedding is None:
                embedding = self._make()
                row = self._run(lambda: embedding.get_text_embedding(PROBE))
                self._dimension, self._embedding = self._check_vectors([row]).shape[1], embedding

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        import numpy as np

        self.load()
        if not texts:
            return np.empty((0, self._dimension), dtype=np.float32)
        prefixed = [self._prefixes.passage + without_surrogates(text) for text in texts]
        rows = self._run(lambda: self._embedding.get_text_embedding_batch(prefixed))
        self._count(len(texts))
        return self._check_vectors(rows)

    def embed_query(self, text: str) -> Vectors:
        self.load()
        prefixed = self._prefixes.query + without_surrogates(text)
        return self._check_vectors(
            [self._run(lambda: self._embedding.get_query_embedding(prefixed))]
        )[0]

    def _run(self, work: Callable[[], Any]) -> Any:  # noqa: ANN401
        try:
            return work()
        # Only its authors know what an embedding may raise.
        except Exception as error:
            raise EmbeddingError(f"{self._name} failed: {error or type(error).__name__}") from error

    def _check_vectors(self, rows: Any) -> Vectors:  # noqa: ANN401
        import numpy as np

        try:
            vectors = np.array(rows, dtype=np.float32)
        except (TypeError, ValueError) as error:
            raise EmbeddingError(f"{self._name} did not return vectors: {error}") from error
        if vectors.ndim != 2 or not vectors.size or not np.isfinite(vectors).all():
            raise EmbeddingError(f"{self._name} did not return one vector for each text")
        return unit(vectors)


def from_settings(settings: EmbeddingConfig) -> LlamaIndexEmbedder:
    """An embedder of the class `class_name`. Raises ConfigError if that is not a class."""
    module, colon, name = settings.class_name.partition(":")
    if not (module and colon and name.isidentifier()):
        raise ConfigError(
            f'embedding.class_name = "{settings.class_name}" is not a class: write it as '
            '"module:Class", for example "llama_index.embeddings.ollama:OllamaEmbedding"'
        )
    arguments = dict(settings.arguments)
    check_arguments(arguments)

    def make() -> Any:  # noqa: ANN401
        check_arguments(arguments)  # a folder may have appeared since
        kind = _embedding_class(module, name)
        safe = _safe_arguments(kind, arguments)
        try:
            return kind(**{"embed_batch_size": settings.batch_size, **arguments, **safe})
        # Only its authors know what a class may raise.
        except Exception as error:
            raise ModelMissing(
                f"{settings.class_name} does not accept embedding.arguments: {error}"
            ) from error

    # Hashed, because the identity is stored and the arguments may contain a key.
    said = blake2b(json.dumps(arguments, sort_keys=True, default=str).encode(), digest_size=16)
    prefixes = choose_prefixes(settings.query_prefix, settings.passage_prefix, Prefixes())
    identity = f"{settings.class_name}:{said.hexdigest()}"
    return LlamaIndexEmbedder(make, settings.class_name, identity, prefixes)


def require_llama_index() -> None:
    """Raises ModelMissing without the extra."""
    with without_working_folder():  # finding the second imports the first
        is_there = find_spec("llama_index") and find_spec("llama_index.core")
    if not is_there:
        raise ModelMissing(f'provider = "llama-index" needs an extra: {EXTRA}')


def _safe_arguments(kind: Callable[..., Any], arguments: dict[str, Any]) -> dict[str, Any]:
    """Arguments for LlamaIndex's embedding of Hugging Face models: sets the libraries' switches.
    Downloads a model by name first, so that its files are checked."""
    if not kind.__module__.startswith("llama_index.embeddings.huggingface."):
        return {}
    inner: dict[str, Any] = arguments.get("model_kwargs") or {}
    safe = {"trust_remote_code": False, "model_kwargs": {**inner, "use_safetensors": True}}
    name, cache = arguments.get("model_name"), arguments.get("cache_folder")
    if not isinstance(name, str) or os.path.isdir(os.path.expanduser(name)):
        return safe
    cache = cache or import_module("llama_index.core.utils").get_cache_dir()
    fetch = not arguments.get("local_files_only")
    check_folder(find_or_fetch(name, Path(cache), fetch=fetch))
    return {**safe, "cache_folder": str(cache), "local_files_only": True}


def _embedding_class(module: str, name: str) -> Callable[..., Any]:
    """Imports an embedding class from an installed package, never from the working folder."""
    require_llama_index()
    try:
        with without_working_folder():
            base = import_module("llama_index.core.embeddings").BaseEmbedding
            found: Any = getattr(import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise ModelMissing(
            f"{module}:{name} cannot be imported ({error}): install its package into this "
            "environment, or correct embedding.class_name"
        ) from error
    if not (isinstance(found, type) and issubclass(found, base)):
        raise ModelMissing(
            f"{module}:{name} is not a LlamaIndex embedding: it must be a BaseEmbedding"
        )
    return found
