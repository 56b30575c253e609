"""A cross-encoder, loaded: pairs of texts → tokens → how well the second answers the first."""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ragdocs.embedding.cross_encoder_files import CrossEncoderFiles
from ragdocs.embedding.runtime import load_onnxruntime
from ragdocs.embedding.windows import clean
from ragdocs.errors import EmbeddingError, ModelCorrupt

Figures: TypeAlias = NDArray[np.float64]

_ERRORS_ONLY = 3
# As in windows.py: four times what English prose has for a token, so that a text of megabytes is
# not tokenised for its first page.
_CHARACTERS_PER_TOKEN = 16
_REQUIRED = "input_ids"
_OPTIONAL = ("attention_mask", "token_type_ids")
_ELEMENTS = {"tensor(int64)": np.int64, "tensor(int32)": np.int32}


@dataclass(frozen=True, slots=True)
class Pair:
    """Query and passage as one sequence; `segments` says which token belongs to which."""

    ids: Sequence[int]
    segments: Sequence[int]


class PairTokenizer:
    """The model's own tokenizer and pair template, within the model's maximum."""

    def __init__(self, path: Path, max_tokens: int) -> None:
        tokenizers: Any = import_module("tokenizers")
        try:
            self._tokenizer: Any = tokenizers.Tokenizer.from_file(str(path))
        # The library raises plain Exception, whatever is wrong with the file.
        except Exception as error:
            raise ModelCorrupt(f"{path} is damaged ({error}); download it again") from error
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        self._room: int = max_tokens - self._tokenizer.num_special_tokens_to_add(True)
        if self._room < 2:
            raise ModelCorrupt(f"{path}: {max_tokens} tokens leave no room for a query and a text")

    def pairs(self, query: str, passages: Sequence[str]) -> list[Pair]:
        """A passage is cut where the room ends; a query only where it would take over half."""
        first = self._encoded(query)
        first.truncate(self._room // 2)
        return [self._pair(first, passage) for passage in passages]

    def _pair(self, first: Any, passage: str) -> Pair:  # noqa: ANN401  the library has no types
        second = self._encoded(passage)
        second.truncate(self._room - len(first.ids))
        joined = self._tokenizer.post_process(first, second)
        return Pair(joined.ids, joined.type_ids)

    def _encoded(self, text: str) -> Any:  # noqa: ANN401  the library has no types
        # One at a time: `encode_batch` starts a thread pool of its own that does not survive fork.
        shown = clean(text[: self._room * _CHARACTERS_PER_TOKEN])
        return self._tokenizer.encode(shown, add_special_tokens=False)


class PairSession:
    """The graph, ready to run. Every run uses the calling thread alone; runs do not wait."""

    def __init__(self, path: Path) -> None:
        onnxruntime = load_onnxruntime()
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.inter_op_num_threads = 1
        options.log_severity_level = _ERRORS_ONLY
        try:
            self._session: Any = onnxruntime.InferenceSession(
                str(path), options, providers=["CPUExecutionProvider"]
            )
        # onnxruntime raises its own unrelated classes.
        except Exception as error:
            raise ModelCorrupt(
                f"{path} cannot be loaded: {error}; download it again, "
                f"or try another version of onnxruntime than {onnxruntime.__version__}"
            ) from error
        self._inputs = _inputs(path, {each.name: each.type for each in self._session.get_inputs()})
        self._output: str = self._session.get_outputs()[0].name

    def run(self, pairs: Sequence[Pair]) -> Figures:
        """Scores in [0, 1] of pairs with equally many tokens. Raises EmbeddingError."""
        ids = np.array([pair.ids for pair in pairs])
        values = {
            "input_ids": ids,
            "attention_mask": np.ones_like(ids),
            "token_type_ids": np.array([pair.segments for pair in pairs]),
        }
        given = {name: values[name].astype(element) for name, element in self._inputs.items()}
        try:
            (logits,) = self._session.run([self._output], given)
        except Exception as error:
            raise EmbeddingError(f"the cross-encoder fails on a text: {error}") from error
        return probabilities(np.asarray(logits, dtype=np.float64), len(pairs))


def probabilities(logits: Figures, pairs: int) -> Figures:
    """One label: its sigmoid. Two: the softmax of the second, which is the sigmoid of how far it
    lies above the first."""
    if logits.shape in ((pairs,), (pairs, 1)):
        margins = logits.reshape(pairs)
    elif logits.shape == (pairs, 2):
        margins = logits[:, 1] - logits[:, 0]
    else:
        raise EmbeddingError(
            f"for {pairs} pairs the model gives figures of shape {logits.shape}, "
            f"not {(pairs, 1)} or {(pairs, 2)}: it is no cross-encoder for relevance"
        )
    if not np.isfinite(margins).all():
        raise EmbeddingError("the cross-encoder gives figures that are no numbers")
    # In this form nothing overflows, and the smallest keep their order.
    return np.exp(-np.logaddexp(0.0, -margins))


def load_pair_model(files: CrossEncoderFiles) -> tuple[PairSession, PairTokenizer]:
    """Raises ModelCorrupt, also for a model that cannot score two ordinary pairs."""
    tokenizer = PairTokenizer(files.tokenizer, files.max_tokens)
    session = PairSession(files.model)
    try:
        session.run(tokenizer.pairs("question", ["answer", "answer"]))
    except EmbeddingError as error:
        raise ModelCorrupt(f"{files.model} cannot be used for re-ranking: {error}") from error
    return session, tokenizer


def _inputs(path: Path, found: dict[str, str]) -> dict[str, type[np.int64] | type[np.int32]]:
    wrong = [f"{name}: {kind}" for name, kind in found.items() if kind not in _ELEMENTS]
    wrong += [name for name in found if name not in (_REQUIRED, *_OPTIONAL)]
    if _REQUIRED not in found or wrong:
        raise ModelCorrupt(
            f"{path} takes {', '.join(found) or 'nothing'}; a cross-encoder takes {_REQUIRED} and "
            f"perhaps {' and '.join(_OPTIONAL)}, as integers: export it for text classification"
        )
    return {name: _ELEMENTS[kind] for name, kind in found.items()}
