"""Any embedding model exported to ONNX, on onnxruntime, without torch.

From a folder, or by name after `ragdocs models fetch`; never downloaded automatically.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ragdocs.config.choices import Pooling
from ragdocs.embedding.base import (
    BATCH_TOKENS,
    MAX_WINDOWS,
    BatchLimits,
    EmbeddingCounts,
    Pieces,
    QueryEmbedding,
    batches,
    combine,
    cut_to_fit,
    run_all,
    unit,
    usable_cores,
)
from ragdocs.embedding.hub import OnnxExport, find_export_folder, read_export
from ragdocs.embedding.model_files import FileVerifier, cache_folder
from ragdocs.errors import EmbeddingError, ModelCorrupt
from ragdocs.text import without_surrogates

if TYPE_CHECKING:
    from ragdocs.config.settings import EmbeddingConfig
    from ragdocs.embedding.base import Vectors
    from ragdocs.embedding.runtime import Encoded, ExportedModel

_WHOLE = ("sentence_embedding", "sentence_embeddings", "text_embeds")
_BY_TOKEN = ("last_hidden_state", "token_embeddings")
_MAX_DIMENSION = 16_384
# As in base.py: four times the length of a token in English prose.
_CHARACTERS_PER_TOKEN = 16


@dataclass(frozen=True, slots=True)
class _Found:
    export: OnnxExport
    identity: str


@dataclass(frozen=True, slots=True)
class _Loaded:
    """`room` is the window without the special tokens that every text gets."""

    found: _Found
    model: ExportedModel
    tokenizer: Any
    room: int
    output: str
    pooling: Pooling | None
    dimension: int


class OnnxEmbedder:
    """A model in a folder or in the Hub's cache; its files describe it."""

    def __init__(self, settings: EmbeddingConfig) -> None:
        self._settings = settings
        self._threads = settings.threads or usable_cores()
        self._lock = threading.Lock()
        self._found: _Found | None = None
        self._loaded: _Loaded | None = None
        self._counts = EmbeddingCounts()

    @property
    def name(self) -> str:
        return str(self._settings.model)

    @property
    def identity(self) -> str:
        """From the model's files, so that the model need not be loaded."""
        try:
            return self._files().identity
        except EmbeddingError:
            return f"onnx:{self.name}:absent"

    @property
    def dimension(self) -> int:
        """The model's, or before it is loaded that in its files; 0 without a model."""
        try:
            told = self._loaded.dimension if self._loaded else self._files().export.dimension
            return told or self._model().dimension
        except EmbeddingError:
            return 0

    @property
    def max_tokens(self) -> int:
        return self._loaded.found.export.max_tokens if self._loaded else 0

    @property
    def counts(self) -> EmbeddingCounts:
        return self._counts

    @property
    def notes(self) -> tuple[str, ...]:
        export = self._found.export if self._found else None
        is_used = self._loaded is None or self._loaded.pooling is not None
        if export is None or not export.guessed or not is_used:
            return ()
        return (
            "the model's files do not say how to combine its token vectors, so "
            f'embedding.pooling = "{export.pooling}" is used; set it if that is wrong',
        )

    def load(self) -> None:
        self._model()

    def find(self) -> OnnxExport:
        """The export that `load` would use. Raises ModelMissing, ModelCorrupt or ModelRefused."""
        return self._files().export

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        model = self._model()
        prefix = model.found.export.prefixes.passage
        pieces = [self._pieces(model, text, prefix, MAX_WINDOWS) for text in texts]
        vectors = self._embed(model, pieces, prefix, self._threads, nice=True)
        with self._lock:
            self._counts = sum((one.counts for one in pieces), self._counts)
        return vectors

    def embed_query(self, text: str) -> Vectors:
        return self.embed_beginning(text, MAX_WINDOWS).vector

    def embed_beginning(self, text: str, windows: int) -> QueryEmbedding:
        model = self._model()
        prefix = model.found.export.prefixes.query
        pieces = self._pieces(model, text, prefix, windows)
        vector = self._embed(model, [pieces], prefix, threads=1, nice=False)[0]
        return QueryEmbedding(vector, pieces.cut_characters)

    def _pieces(self, model: _Loaded, text: str, prefix: str, windows: int) -> Pieces:
        room = model.room - len(_encode(model, prefix).ids)
        most = windows * room * _CHARACTERS_PER_TOKEN
        shown = without_surrogates(text[:most])
        ends = [end for _, end in _encode(model, shown).offsets]
        pieces = cut_to_fit(shown, ends, room, windows)
        return Pieces(pieces.texts, pieces.cut_characters + len(text[most:].strip()))

    def _embed(
        self, model: _Loaded, texts: Sequence[Pieces], prefix: str, threads: int, *, nice: bool
    ) -> Vectors:
        import numpy as np

        framed = [_frame(model, prefix + piece) for text in texts for piece in text.texts]
        vectors = np.empty((len(framed), model.dimension), dtype=np.float32)

        def run(group: list[int]) -> None:
            vectors[group] = _vectors(model, [framed[position] for position in group])

        lengths = [len(each.ids) for each in framed]
        run_all(run, batches(lengths, self._limits(model)), threads, nice)
        return combine(vectors, texts)

    def _limits(self, model: _Loaded) -> BatchLimits:
        """One text at a time if its vector would depend on the others in a batch."""
        is_alone = model.found.export.model.has_batch_scales
        return BatchLimits(BATCH_TOKENS, 1 if is_alone else self._settings.batch_size)

    def _files(self) -> _Found:
        # A failure is not kept: the model may be installed while the program runs.
        found = self._found
        if found is None:
            found = self._found = _find(self._settings)
        return found

    def _model(self) -> _Loaded:
        if self._loaded is None:
            with self._lock:
                if self._loaded is None:
                    self._found = _find(self._settings)  # the files may have changed
                    self._loaded = _load(self._found)
        return self._loaded


def _find(settings: EmbeddingConfig) -> _Found:
    folder = find_export_folder(settings.model, settings.cache_folder)
    export = read_export(folder, settings)
    verifier = FileVerifier(settings.cache_folder or cache_folder())
    try:
        return _Found(export, export.identity(verifier))
    except OSError as error:
        raise ModelCorrupt(f"the files in {folder} cannot be read: {error.strerror}") from error


def _load(found: _Found) -> _Loaded:
    from ragdocs.embedding.runtime import ExportedModel, load_tokenizer

    export = found.export
    path = export.model.path
    tokenizer = load_tokenizer(export.tokenizer)
    room = export.max_tokens - int(tokenizer.num_special_tokens_to_add(False))
    model = ExportedModel(path, "embedding model", "feature extraction", "position_ids")
    output, pooling = _output(export, model)
    loaded = _Loaded(found, model, tokenizer, room, output, pooling, dimension=0)
    prefixes = (export.prefixes.query, export.prefixes.passage)
    if room - max(len(_encode(loaded, without_surrogates(prefix)).ids) for prefix in prefixes) < 1:
        raise ModelCorrupt(
            f"{export.folder}: a window of {export.max_tokens} tokens and its prefixes leave no "
            "room for a text"
        )
    try:
        dimension = _vectors(loaded, [_frame(loaded, "one text")]).shape[1]
    except EmbeddingError as error:
        raise ModelCorrupt(f"{path} cannot be used for embedding: {error}") from error
    return _Loaded(found, model, tokenizer, room, output, pooling, dimension)


def _output(export: OnnxExport, model: ExportedModel) -> tuple[str, Pooling | None]:
    """The graph's output to use, and its pooling; None if the output is pooled already."""
    outputs = model.outputs
    whole = next((name for name in _WHOLE if name in outputs), None)
    if whole and not export.is_pooling_set:
        return whole, None
    by_token = next((name for name in _BY_TOKEN if name in outputs), None)
    # Other programs export it under other names.
    by_token = by_token or next((name for name, rank in outputs.items() if rank == 3), None)
    if by_token is None:
        raise ModelCorrupt(
            f"{export.model.path} has the outputs {', '.join(outputs)}; an embedding model has "
            f"one of {', '.join((*_WHOLE, *_BY_TOKEN))}: export it for feature extraction"
        )
    if export.later_layers:
        raise ModelCorrupt(
            f"{export.folder / 'modules.json'} lists {', '.join(export.later_layers)}, which "
            f"{export.model.path.name} does not contain: export it with sentence-transformers, so "
            f"that it has the output {_WHOLE[0]}"
        )
    return by_token, export.pooling


def _encode(model: _Loaded, text: str) -> Any:  # noqa: ANN401  the library has no types
    # One at a time: `encode_batch` starts a thread pool that does not survive fork.
    shown = text.lower() if model.found.export.lower_case else text
    return model.tokenizer.encode(shown, add_special_tokens=False)


def _frame(model: _Loaded, text: str) -> Encoded:
    """Adds the special tokens; cuts a piece that has more tokens alone than within its text."""
    from ragdocs.embedding.runtime import Encoded

    encoded = _encode(model, without_surrogates(text))
    encoded.truncate(model.room)
    framed = model.tokenizer.post_process(encoded)
    return Encoded(framed.ids, framed.type_ids)


def _vectors(model: _Loaded, texts: Sequence[Encoded]) -> Vectors:
    """Unit vectors of texts with the same number of tokens. Raises EmbeddingError."""
    import numpy as np

    # In half precision the sum over a few hundred tokens may overflow.
    found = np.asarray(model.model.run(model.output, texts), dtype=np.float32)
    is_right = found.ndim == (2 if model.pooling is None else 3) and found.shape[0] == len(texts)
    if not is_right or not 1 <= found.shape[-1] <= _MAX_DIMENSION or 0 in found.shape:
        raise EmbeddingError(
            f"for {len(texts)} texts the model returned {model.output} of shape {found.shape}"
        )
    if model.dimension and found.shape[-1] != model.dimension:
        raise EmbeddingError(
            f"the model returned vectors of {found.shape[-1]} numbers instead of {model.dimension}"
        )
    match model.pooling:
        case Pooling.CLS:
            found = found[:, 0]
        case Pooling.MAX:
            found = found.max(axis=1)
        case Pooling.LAST:
            found = found[:, -1]
        case None:
            pass
        case _:
            found = found.mean(axis=1)
    if not np.isfinite(found).all():
        raise EmbeddingError("the embedding model returned values that are not numbers")
    return unit(found)
