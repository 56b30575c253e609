"""Whether there are models, and where: known by their files, without loading anything."""

import os
from pathlib import Path

from ragdocs.app import App
from ragdocs.config.notation import printable
from ragdocs.config.resolved import Config
from ragdocs.diagnosis.status import ModelStatus
from ragdocs.embedding.base import Embedder, EmbeddingCounts
from ragdocs.embedding.builtin import BuiltinEmbedder
from ragdocs.embedding.cross_encoder import OnnxCrossEncoder, open_cross_encoder
from ragdocs.embedding.cross_encoder_files import EXPECTED, MODELS
from ragdocs.embedding.cross_encoder_torch import TorchCrossEncoder
from ragdocs.embedding.onnx import OnnxEmbedder
from ragdocs.errors import RagdocsError
from ragdocs.wording import advised

_BY_NAME = "is known by its name only: name a folder in rerank_model, or install `huggingface`"


def look_at_model(app: App) -> ModelStatus:
    """The embedder's; an identity is there whenever there is an embedder."""
    try:
        embedder = app.embedder
    except RagdocsError as error:
        return ModelStatus(name=str(app.config.embedding.model), problem=str(error))
    place = folder = problem = ""
    notes = embedder.notes
    if isinstance(embedder, BuiltinEmbedder):
        try:
            files = embedder.find()
            place, folder = files.place, printable(str(files.weights.parent))
            notes = tuple(dict.fromkeys((*files.notes, *notes)))
        except (RagdocsError, OSError) as error:
            problem = str(error)
    elif isinstance(embedder, OnnxEmbedder):
        try:
            export = embedder.find()
            place, folder = export.model.path.name, printable(str(export.folder))
            notes = embedder.notes
        except (RagdocsError, OSError) as error:
            problem = str(error)
    dimension = embedder.dimension
    if not dimension:  # it is not there, or its server does not answer
        problem = problem or f"the model cannot be used now: {advised('doctor')} says why"
    return ModelStatus(
        name=embedder.name,
        identity=embedder.identity,
        dimension=dimension,
        place=place,
        folder=folder,
        problem=problem,
        notes=notes,
        counts=_counts(embedder),
    )


def look_at_reranker(app: App) -> ModelStatus:
    settings = app.config.search
    name = printable(str(settings.rerank_model))
    if not settings.rerank_enabled:
        return ModelStatus(name=name, is_on=False)
    problem = missing_reranker(app.config)
    if not isinstance(open_cross_encoder(str(settings.rerank_model), 1), OnnxCrossEncoder):
        return ModelStatus(name=name, problem=problem)
    folder = _folder(settings.rerank_model)
    return ModelStatus(
        name=printable(folder.name),
        place="the configured folder",
        folder=printable(str(folder)),
        problem=problem,
    )


def missing_reranker(config: Config) -> str:
    """What is missing of the model that is to re-rank; empty when it is there. Only whether its
    files are there: what is in them is for `doctor`."""
    model = str(config.search.rerank_model)
    encoder = open_cross_encoder(model, 1, config.embedding.cache_folder)
    if isinstance(encoder, OnnxCrossEncoder):
        is_there = _is_complete(_folder(config.search.rerank_model))
        return "" if is_there else f"its folder does not have {EXPECTED}"
    if not isinstance(encoder, TorchCrossEncoder):
        return _BY_NAME
    try:
        encoder.find()
    except RagdocsError as error:
        return str(error)
    return ""


def _folder(model: object) -> Path:
    # Not Path.expanduser, which raises for a user that is not known.
    return Path(os.path.expanduser(str(model)))


def _counts(embedder: Embedder) -> EmbeddingCounts | None:
    return embedder.counts if embedder.counts.texts else None


def _is_complete(folder: Path) -> bool:
    try:
        has_model = any((folder / name).is_file() for name in MODELS)
        return has_model and all(
            (folder / name).is_file() for name in ("config.json", "tokenizer.json")
        )
    except OSError:
        return False
