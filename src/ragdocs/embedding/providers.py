"""Makes the configured embedder. Nothing is loaded or downloaded before its first text."""

from pathlib import Path
from typing import TYPE_CHECKING

from ragdocs.config.choices import EmbeddingProvider
from ragdocs.config.settings import EmbeddingConfig
from ragdocs.errors import ConfigError

if TYPE_CHECKING:
    from ragdocs.embedding.base import Embedder

BUILTIN_NAMES = ("all-MiniLM-L6-v2", "sentence-transformers/all-MiniLM-L6-v2")


def make_embedder(settings: EmbeddingConfig) -> "Embedder":
    """Raises ConfigError if the settings do not describe a usable embedder."""
    makers = {
        EmbeddingProvider.BUILTIN: _builtin,
        EmbeddingProvider.HUGGINGFACE: _huggingface,
        EmbeddingProvider.LLAMA_INDEX: _llama_index,
        EmbeddingProvider.HTTP: _http,
        EmbeddingProvider.ONNX: _onnx,
    }
    return makers[settings.provider](settings)


def _builtin(settings: EmbeddingConfig) -> "Embedder":
    from ragdocs.embedding.builtin import BuiltinEmbedder

    model = Path(settings.model)
    folder = model if model.is_absolute() else None  # loading makes a folder's path absolute
    if folder is None and settings.model not in BUILTIN_NAMES:
        raise ConfigError(
            f'embedding.model = "{settings.model}" is not built in: leave it out, set it to a '
            f'folder that contains {BUILTIN_NAMES[0]}, or set provider = "onnx" or "huggingface"'
        )
    return BuiltinEmbedder(folder, settings.cache_folder, settings.threads)


def _huggingface(settings: EmbeddingConfig) -> "Embedder":
    from ragdocs.embedding.huggingface import HuggingFaceEmbedder

    return HuggingFaceEmbedder(settings)


def _onnx(settings: EmbeddingConfig) -> "Embedder":
    from ragdocs.embedding.onnx import OnnxEmbedder

    return OnnxEmbedder(settings)


def _llama_index(settings: EmbeddingConfig) -> "Embedder":
    from ragdocs.embedding.llama_index import from_settings

    return from_settings(settings)


def _http(settings: EmbeddingConfig) -> "Embedder":
    from ragdocs.embedding.base import choose_prefixes, known_prefixes
    from ragdocs.embedding.http import Endpoint, HttpEmbedder

    endpoint = Endpoint(
        settings.url, settings.allow_remote, settings.timeout_seconds, settings.retries
    )
    known = known_prefixes(settings.model)
    prefixes = choose_prefixes(settings.query_prefix, settings.passage_prefix, known)
    return HttpEmbedder(endpoint, settings.model, prefixes, settings.batch_size)
