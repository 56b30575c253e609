"""The models: found, the ones we know by their hashes, and giving sensible answers."""

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ragdocs.app import App
from ragdocs.diagnosis.case import Case
from ragdocs.diagnosis.findings import Finding, Level
from ragdocs.embedding.base import Embedder
from ragdocs.embedding.builtin import BuiltinEmbedder
from ragdocs.embedding.cross_encoder import open_cross_encoder
from ragdocs.errors import EmbeddingError, RagdocsError

if TYPE_CHECKING:
    from ragdocs.embedding.base import Vectors

QUESTION = "how do I reset my password"
NEAR = "reset my password"
FAR = "tomatoes need a lot of sun"
_UNIT = 0.01
"""How far from 1 a vector's length may be: int8 models round."""
_NOT_USED = "not used:"
"""How the embedder begins a note on files that should have served and could not."""


def check_model(case: Case) -> Iterator[Finding]:
    """Loads it and embeds three sentences; a model is loaded and verified only by use."""
    try:
        embedder = case.app.embedder
        embedder.load()
        wrong = _wrong_with(embedder)
    except RagdocsError as error:
        what = "until then passages are found by their words only"
        yield Finding(Level.ERROR, str(error), what)
        return
    for note in embedder.notes:
        level = Level.WARNING if note.startswith(_NOT_USED) else Level.NOTE
        yield Finding(level, note)
    if wrong:
        advice = "try another version of onnxruntime, or another model"
        yield Finding(Level.ERROR, f"{embedder.name} {wrong}", advice)
        return
    place = f" from {embedder.place}" if isinstance(embedder, BuiltinEmbedder) else ""
    works = f"loaded, {embedder.dimension} dimensions, tells passwords from tomatoes"
    yield Finding(Level.OK, f"{embedder.name}{place}: {works}")


def check_reranker(case: Case) -> Iterator[Finding]:
    settings = case.app.config.search
    if not settings.rerank_enabled:
        yield Finding(Level.OK, "off (search.rerank_enabled)")
        return
    try:
        yield Finding(Level.OK, _reranked(case.app))
    except EmbeddingError as error:
        yield Finding(Level.WARNING, str(error), "until then results keep their first order")


def _reranked(app: App) -> str:
    encoder = open_cross_encoder(str(app.config.search.rerank_model), app.config.embedding.threads)
    encoder.load()
    near, far = encoder.score(QUESTION, [NEAR, FAR])
    if not (0 <= far <= 1 and 0 <= near <= 1):  # so that a NaN fails as well
        raise EmbeddingError(f"{encoder.name} gives scores outside [0, 1]: use another model")
    return f"{encoder.name} is loaded and gives scores"


def _wrong_with(embedder: Embedder) -> str:
    """What is not as it should be with its vectors; empty when all is."""
    question = _values(embedder.embed_query(QUESTION))
    near, far = (_values(row) for row in embedder.embed_documents([NEAR, FAR]))
    if len(question) != embedder.dimension:
        return f"gives vectors of {len(question)} numbers, not of {embedder.dimension}"
    lengths = [math.sqrt(_dot(row, row)) for row in (question, near, far)]
    if not all(abs(length - 1) <= _UNIT for length in lengths):
        return "gives vectors that are not of unit length"
    if not _dot(question, near) >= _dot(question, far):
        return "finds tomatoes nearer to a password than a password"
    return ""


def _values(row: "Vectors") -> list[float]:
    return [float(value) for value in row]


def _dot(one: list[float], other: list[float]) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True))
