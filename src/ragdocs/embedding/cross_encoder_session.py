"""A cross-encoder, loaded: pairs of texts → tokens → how well the second answers the first."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ragdocs.embedding.hub import CrossEncoderFiles
from ragdocs.embedding.runtime import Encoded, ExportedModel, load_tokenizer
from ragdocs.errors import EmbeddingError, ModelCorrupt
from ragdocs.text import without_surrogates

Figures: TypeAlias = NDArray[np.float64]

# As in base.py: four times what English prose has for a token, so that a text of megabytes is
# not tokenised for its first page.
_CHARACTERS_PER_TOKEN = 16


class PairTokenizer:
    """The model's own tokenizer and pair template, within the model's maximum."""

    def __init__(self, path: Path, max_tokens: int) -> None:
        self._tokenizer: Any = load_tokenizer(path)
        self._room: int = max_tokens - self._tokenizer.num_special_tokens_to_add(True)
        if self._room < 2:
            raise ModelCorrupt(f"{path}: {max_tokens} tokens leave no room for a query and a text")

    def pairs(self, query: str, passages: Sequence[str]) -> list[Encoded]:
        """A passage is cut where the room ends; a query only where it would take over half."""
        first = self._encoded(query)
        first.truncate(self._room // 2)
        return [self._pair(first, passage) for passage in passages]

    def _pair(self, first: Any, passage: str) -> Encoded:  # noqa: ANN401  the library has no types
        second = self._encoded(passage)
        second.truncate(self._room - len(first.ids))
        joined = self._tokenizer.post_process(first, second)
        return Encoded(joined.ids, joined.type_ids)

    def _encoded(self, text: str) -> Any:  # noqa: ANN401  the library has no types
        # One at a time: `encode_batch` starts a thread pool of its own that does not survive fork.
        shown = without_surrogates(text[: self._room * _CHARACTERS_PER_TOKEN])
        return self._tokenizer.encode(shown, add_special_tokens=False)


class PairSession:
    """The graph, ready to run. Every run uses the calling thread alone; runs do not wait."""

    def __init__(self, path: Path) -> None:
        self._model = ExportedModel(path, "cross-encoder", "text classification")
        self._output = next(iter(self._model.outputs))

    def run(self, pairs: Sequence[Encoded]) -> Figures:
        """Scores in [0, 1] of pairs with equally many tokens. Raises EmbeddingError."""
        logits = self._model.run(self._output, pairs)
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
