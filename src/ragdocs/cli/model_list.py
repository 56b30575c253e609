"""The models that can be used now, judged by their files: nothing is loaded or fetched."""

import os
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from ragdocs.app import App
from ragdocs.config.choices import EmbeddingProvider
from ragdocs.config.resolved import Config
from ragdocs.embedding.base import Embedder
from ragdocs.embedding.builtin import DIMENSION, BuiltinEmbedder
from ragdocs.embedding.cross_encoder import OnnxCrossEncoder, TorchCrossEncoder, open_cross_encoder
from ragdocs.embedding.hub import NEEDED_FILES, fetched_models, find_files
from ragdocs.embedding.huggingface import HuggingFaceEmbedder
from ragdocs.embedding.llama_index import LlamaIndexEmbedder, require_llama_index
from ragdocs.embedding.model_files import MODEL_NAME
from ragdocs.embedding.onnx import OnnxEmbedder
from ragdocs.errors import RagdocsError
from ragdocs.text import printable

EXTRAS = {
    "huggingface": ("llama-index-embeddings-huggingface", "sentence-transformers"),
    "llama-index": ("llama-index-core",),
}
"""Extras with models, and the packages in each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InUse:
    """The configured embedding model; `problem` is why it cannot be used."""

    provider: str
    model: str
    problem: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Builtin:
    """The built-in model. `verified`: its files have the expected hashes.

    `notes` name places where other files were found instead.
    """

    name: str
    dimension: int
    verified: bool = False
    place: str = ""
    folder: str = ""
    bytes: int = 0
    problem: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Extra:
    """An optional part of the installation: package → version, None if it is missing."""

    name: str
    installed: bool
    packages: dict[str, str | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class RerankerModel:
    """The configured cross-encoder, used or not."""

    model: str
    enabled: bool
    folder: str
    problem: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Models:
    """All models. `fetched` are models of the Hugging Face Hub on this disk."""

    embedding: InUse
    builtin: Builtin
    extras: tuple[Extra, ...]
    fetched: tuple[str, ...]
    cross_encoder: RerankerModel


def list_models(config: Config) -> Models:
    builtin = _builtin(config)
    return Models(
        embedding=_in_use(config, builtin),
        builtin=builtin,
        extras=tuple(_extra(name, packages) for name, packages in EXTRAS.items()),
        fetched=tuple(map(printable, fetched_models(config.embedding.cache_folder))),
        cross_encoder=_reranker(config),
    )


def _in_use(config: Config, builtin: Builtin) -> InUse:
    settings = config.embedding
    problem = ""
    try:
        with App(config) as app:
            problem = _problem(app.embedder, builtin)
    except RagdocsError as error:
        problem = str(error)
    name = printable(str(settings.model))
    return InUse(provider=settings.provider.value, model=name, problem=problem)


def _problem(embedder: Embedder, builtin: Builtin) -> str:
    """What can be found without loading the model or calling an endpoint."""
    if isinstance(embedder, HuggingFaceEmbedder | OnnxEmbedder):
        embedder.find()
    if isinstance(embedder, LlamaIndexEmbedder):
        require_llama_index()
    return builtin.problem if isinstance(embedder, BuiltinEmbedder) else ""


def _builtin(config: Config) -> Builtin:
    settings = config.embedding
    model = Path(settings.model)
    is_named = settings.provider is EmbeddingProvider.BUILTIN and model.is_absolute()
    folder = model if is_named else None
    try:
        files = BuiltinEmbedder(folder, settings.cache_folder).find()
        size = files.weights.stat().st_size + files.tokenizer.stat().st_size
    except (RagdocsError, OSError) as error:
        return Builtin(name=MODEL_NAME, dimension=DIMENSION, problem=str(error))
    return Builtin(
        name=MODEL_NAME,
        dimension=DIMENSION,
        verified=True,
        place=files.place,
        folder=printable(os.fspath(files.weights.parent)),
        bytes=size,
        notes=files.rejected,
    )


def _extra(name: str, packages: tuple[str, ...]) -> Extra:
    found = {package: _version(package) for package in packages}
    return Extra(name=name, installed=None not in found.values(), packages=found)


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _reranker(config: Config) -> RerankerModel:
    settings = config.search
    model = str(settings.rerank_model)
    folder = problem = ""
    encoder = open_cross_encoder(model, 1, config.embedding.cache_folder)
    try:
        if isinstance(encoder, OnnxCrossEncoder):
            folder = os.path.expanduser(model)
            find_files(Path(folder))
        elif isinstance(encoder, TorchCrossEncoder):
            folder = model if Path(model).is_absolute() else ""
            folder = os.fspath(encoder.find())
        else:
            problem = f"only its name is set: set rerank_model to a folder with {NEEDED_FILES}"
    except RagdocsError as error:
        problem = str(error)
    return RerankerModel(
        model=printable(model),
        enabled=settings.rerank_enabled,
        folder=printable(folder),
        problem=problem,
    )
