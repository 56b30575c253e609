"""The two native libraries behind the built-in model, as typed as we need them."""

import os
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from ragdocs.embedding.minilm_graph import INPUT, build_graph
from ragdocs.embedding.precision import Products
from ragdocs.embedding.weights import Tensor, Weights
from ragdocs.embedding.windows import Tokens

_ERRORS_ONLY = 3


class ModelSession:
    """The model, ready to run. Every run uses the calling thread alone, and runs do not wait
    for each other: bulk work calls it from several threads, a query from its own."""

    def __init__(self, weights: Weights, products: Products) -> None:
        onnxruntime = load_onnxruntime()
        model, graph = build_graph(weights, products)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.inter_op_num_threads = 1
        options.log_severity_level = _ERRORS_ONLY
        # More would replace LayerNormalization by a slower fused operator.
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
        outside = graph.outside
        # The session reads these arrays where they are, so they live as long as it does.
        self._constants = (
            outside,
            [onnxruntime.OrtValue.ortvalue_from_numpy(array) for array in outside.values()],
        )
        options.add_external_initializers(list(outside), self._constants[1])
        self._session: Any = onnxruntime.InferenceSession(
            model, options, providers=["CPUExecutionProvider"]
        )

    def run(self, token_ids: Sequence[Sequence[int]]) -> Tensor:
        """Unit vectors of texts with equally many tokens, special tokens included."""
        ids = np.array(token_ids, dtype=np.int32)
        (means,) = self._session.run(None, {INPUT: ids})
        return unit(means)


def load_onnxruntime() -> Any:  # noqa: ANN401  the library has no types
    """onnxruntime without its telemetry: since 1.29 it would call home from Linux and macOS too.

    The variable must be set before the first import: then no uploader is started and no device
    identifier written. The call covers a program that had imported the library before us.
    """
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    onnxruntime: Any = import_module("onnxruntime")
    onnxruntime.disable_telemetry_events()
    return onnxruntime


class WordPieces:
    """The tokenizer, without the padding and truncation its file asks for."""

    def __init__(self, path: Path) -> None:
        tokenizers: Any = import_module("tokenizers")
        self._tokenizer: Any = tokenizers.Tokenizer.from_file(str(path))
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        self._start: int = self._tokenizer.token_to_id("[CLS]")
        self._end: int = self._tokenizer.token_to_id("[SEP]")

    def tokenise(self, text: str) -> Tokens:
        # One at a time: `encode_batch` starts a thread pool of its own that does not survive fork.
        encoding = self._tokenizer.encode(text, add_special_tokens=False)
        return Tokens(encoding.ids, [end for _, end in encoding.offsets])

    def framed(self, ids: Sequence[int]) -> list[int]:
        return [self._start, *ids, self._end]


def unit(vectors: Tensor) -> Tensor:
    """Each row at length 1; a row of zeros stays as it is."""
    norms = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return (vectors / np.maximum(norms, np.float32(1e-12))).astype(np.float32)
