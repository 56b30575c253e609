"""Files → a model that has shown, on one sentence, that it gives the vectors it should."""

from pathlib import Path
from typing import Literal

import numpy as np

from ragdocs.embedding.model_files import ModelFiles
from ragdocs.embedding.precision import Fp32Products, Int8Products
from ragdocs.embedding.runtime import ModelSession, WordPieces
from ragdocs.embedding.weights import Weights, read_weights
from ragdocs.errors import EmbeddingError

# Its vector, by sentence-transformers (scripts/make_reference_vectors.py), lies beside this file.
PROBE_TEXT = "Point it at a folder of Markdown files and ask: which note explains the setup?"
PROBE_FILE = Path(__file__).parent / "probe.npy"
# Below the 0.99 that the tests ask of 200 texts: this only tells working from broken.
_LEAST_COSINE = 0.98


def load_session(
    files: ModelFiles, precision: Literal["fp32", "int8"]
) -> tuple[ModelSession, WordPieces, Literal["fp32", "int8"], tuple[str, ...]]:
    """The model in the precision asked for, or in fp32 with a note that says why."""
    weights = read_weights(files.weights, files.layout)
    pieces = WordPieces(files.tokenizer)
    notes: tuple[str, ...] = ()
    if precision == "int8":
        try:
            return _checked(weights, pieces, precision), pieces, precision, notes
        # onnxruntime raises its own unrelated classes; whatever it was, fp32 is the way out.
        except Exception as error:
            notes = (f"int8 cannot be used here, so the slower fp32 is: {error}",)
    return _checked(weights, pieces, "fp32"), pieces, "fp32", notes


def _checked(
    weights: Weights, pieces: WordPieces, precision: Literal["fp32", "int8"]
) -> ModelSession:
    products = Int8Products() if precision == "int8" else Fp32Products()
    session = ModelSession(weights, products)
    vector = session.run([pieces.framed(pieces.tokenise(PROBE_TEXT).ids)])[0]
    cosine = float(vector @ np.load(PROBE_FILE, allow_pickle=False))
    # Written so that a NaN fails as well.
    if not cosine >= _LEAST_COSINE:
        raise EmbeddingError(
            f"onnxruntime gives wrong {precision} vectors on this machine "
            f"(cosine {cosine:.3f} to the reference); try another version of onnxruntime"
        )
    return session
