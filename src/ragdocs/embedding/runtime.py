"""onnxruntime and tokenizers behind typed classes; loads the built-in model and checks it."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ragdocs.embedding.base import Tokens, unit
from ragdocs.embedding.minilm import (
    INPUT,
    Fp32Products,
    Int8Products,
    Products,
    Tensor,
    Weights,
    build_graph,
    read_weights,
)
from ragdocs.embedding.model_files import ModelFiles
from ragdocs.errors import EmbeddingError, ModelCorrupt

# The two native libraries, with the types that we need.

_ERRORS_ONLY = 3
_REQUIRED = "input_ids"
_OPTIONAL = ("attention_mask", "token_type_ids")
_ELEMENTS = {"tensor(int64)": np.int64, "tensor(int32)": np.int32}


class ModelSession:
    """The loaded built-in model. Each run uses only the calling thread, and runs do not wait for
    each other: bulk work calls it from several threads, a query from its own."""

    def __init__(self, weights: Weights, products: Products) -> None:
        onnxruntime = load_onnxruntime()
        model, graph = build_graph(weights, products)
        options = _one_thread(onnxruntime)
        # A higher level would replace LayerNormalization with a slower fused operator.
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
        outside = graph.outside
        # The session reads these arrays in place, so they must live as long as it does.
        self._constants = (
            outside,
            [onnxruntime.OrtValue.ortvalue_from_numpy(array) for array in outside.values()],
        )
        options.add_external_initializers(list(outside), self._constants[1])
        self._session: Any = onnxruntime.InferenceSession(
            model, options, providers=["CPUExecutionProvider"]
        )

    def run(self, token_ids: Sequence[Sequence[int]]) -> Tensor:
        """Unit vectors of texts with the same number of tokens, including special tokens."""
        ids = np.array(token_ids, dtype=np.int32)
        (means,) = self._session.run(None, {INPUT: ids})
        return unit(means)


@dataclass(frozen=True, slots=True)
class Encoded:
    """The tokens of a text or of a pair; `segments` says which token belongs to which text."""

    ids: Sequence[int]
    segments: Sequence[int]


class ExportedModel:
    """A model loaded from a file. Each run uses only the calling thread, as in `ModelSession`.

    Errors mention its `kind` and the `task` it should have been exported for; `also` are inputs
    that it may have besides those of every model.
    """

    def __init__(self, path: Path, kind: str, task: str, *also: str) -> None:
        onnxruntime = load_onnxruntime()
        options = _one_thread(onnxruntime)
        # Whatever the file's name: `ModelFolder` does not check the other format.
        options.add_session_config_entry("session.load_model_format", "ONNX")
        try:
            self._session: Any = onnxruntime.InferenceSession(
                str(path), options, providers=["CPUExecutionProvider"]
            )
        # onnxruntime raises its own unrelated classes.
        except Exception as error:
            raise ModelCorrupt(
                f"{path} cannot be loaded: {error}; download it again, "
                f"or try a version of onnxruntime other than {onnxruntime.__version__}"
            ) from error
        self._kind = kind
        found = {each.name: each.type for each in self._session.get_inputs()}
        wrong = [name for name, type_ in found.items() if type_ not in _ELEMENTS]
        optional = (*_OPTIONAL, *also)
        wrong += [name for name in found if name not in (_REQUIRED, *optional)]
        if _REQUIRED not in found or wrong:
            raise ModelCorrupt(
                f"{path} has the inputs {', '.join(found) or 'none'}; a {kind} has {_REQUIRED}, "
                f"optionally {' and '.join(optional)}, as integers: export it for {task}"
            )
        self._inputs = {name: _ELEMENTS[type_] for name, type_ in found.items()}

    @property
    def outputs(self) -> Mapping[str, int]:
        """Each output's name with its number of dimensions, in the file's order."""
        return {each.name: len(each.shape or ()) for each in self._session.get_outputs()}

    def run(self, output: str, texts: Sequence[Encoded]) -> NDArray[Any]:
        """One output for texts with the same number of tokens. Raises EmbeddingError."""
        ids = np.array([text.ids for text in texts])
        values = {
            "input_ids": ids,
            "attention_mask": np.ones_like(ids),
            "token_type_ids": np.array([text.segments for text in texts]),
            "position_ids": np.broadcast_to(
                np.arange(len(texts[0].ids), dtype=np.int64), ids.shape
            ),
        }
        given = {name: values[name].astype(element) for name, element in self._inputs.items()}
        try:
            (found,) = self._session.run([output], given)
        except Exception as error:
            raise EmbeddingError(f"the {self._kind} failed on a text: {error}") from error
        return np.asarray(found)


def load_tokenizer(path: Path) -> Any:  # noqa: ANN401  the library has no types
    """Loads a tokenizer, without the padding and truncation in its file. Raises ModelCorrupt."""
    tokenizers: Any = import_module("tokenizers")
    try:
        tokenizer: Any = tokenizers.Tokenizer.from_file(str(path))
    # The library raises plain Exception, whatever is wrong with the file.
    except Exception as error:
        raise ModelCorrupt(f"{path} is damaged ({error}); download it again") from error
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer


def _one_thread(onnxruntime: Any) -> Any:  # noqa: ANN401  the library has no types
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.log_severity_level = _ERRORS_ONLY
    return options


def load_onnxruntime() -> Any:  # noqa: ANN401  the library has no types
    """onnxruntime without its telemetry, which since 1.29 also runs on Linux and macOS.

    The variable must be set before the first import: then no uploader is started and no device
    identifier written. The call covers a program that has imported the library before us.
    """
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    onnxruntime: Any = import_module("onnxruntime")
    onnxruntime.disable_telemetry_events()
    return onnxruntime


class WordPieces:
    """The built-in model's tokenizer."""

    def __init__(self, path: Path) -> None:
        self._tokenizer: Any = load_tokenizer(path)
        self._start: int = self._tokenizer.token_to_id("[CLS]")
        self._end: int = self._tokenizer.token_to_id("[SEP]")

    def tokenise(self, text: str) -> Tokens:
        # One at a time: `encode_batch` starts a thread pool of its own that does not survive fork.
        encoding = self._tokenizer.encode(text, add_special_tokens=False)
        return Tokens(encoding.ids, [end for _, end in encoding.offsets])

    def framed(self, ids: Sequence[int]) -> list[int]:
        return [self._start, *ids, self._end]


# Loads the built-in model, and checks on one sentence that it gives correct vectors.

# The file beside this one has its vector, by sentence-transformers
# (scripts/make_reference_vectors.py).
PROBE_TEXT = "Point it at a folder of Markdown files and ask: which note explains the setup?"
PROBE_FILE = Path(__file__).parent / "probe.npy"
# Below the 0.99 that the tests require for 200 texts: this only detects a broken model.
_LEAST_COSINE = 0.98


def load_session(
    files: ModelFiles, precision: Literal["fp32", "int8"]
) -> tuple[ModelSession, WordPieces, Literal["fp32", "int8"], tuple[str, ...]]:
    """The model in the given precision, or in fp32 with a note that gives the reason."""
    weights = read_weights(files.weights, files.layout)
    pieces = WordPieces(files.tokenizer)
    notes: tuple[str, ...] = ()
    if precision == "int8":
        try:
            return _build_session(weights, pieces, precision), pieces, precision, notes
        # onnxruntime raises its own unrelated classes; in any case fp32 may work.
        except Exception as error:
            notes = (f"int8 cannot be used here, so the slower fp32 is used: {error}",)
    return _build_session(weights, pieces, "fp32"), pieces, "fp32", notes


def _build_session(
    weights: Weights, pieces: WordPieces, precision: Literal["fp32", "int8"]
) -> ModelSession:
    products = Int8Products() if precision == "int8" else Fp32Products()
    session = ModelSession(weights, products)
    vector = session.run([pieces.framed(pieces.tokenise(PROBE_TEXT).ids)])[0]
    cosine = float(vector @ np.load(PROBE_FILE, allow_pickle=False))
    # Written so that a NaN fails as well.
    if not cosine >= _LEAST_COSINE:
        raise EmbeddingError(
            f"onnxruntime computes wrong {precision} vectors on this machine "
            f"(cosine {cosine:.3f} to the reference); try another version of onnxruntime"
        )
    return session
