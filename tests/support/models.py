"""Tiny real embedding models whose vectors a test can compute, and the built-in model with a cache
of its vectors that survives the run.
"""

import os
import re
import tempfile
from collections.abc import Sequence
from hashlib import blake2b
from importlib.metadata import version
from pathlib import Path
from typing import TypeAlias
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from ragdocs.embedding import builtin
from ragdocs.embedding.base import EmbeddingCounts
from ragdocs.embedding.builtin import BuiltinEmbedder
from ragdocs.errors import EmbeddingError

DIMENSION = 16


class WordModel:
    """Deterministic; texts that share words are near each other."""

    dimension = DIMENSION

    def __init__(self, identity="words@1"):
        self.identity = identity

    def embed(self, text):
        words = text.lower().replace(".", " ").split()
        total = sum((self._word(word) for word in words), np.zeros(DIMENSION))
        length = np.linalg.norm(total)
        unit = total / length if length else np.eye(DIMENSION)[0]
        return unit.astype(np.float32)

    def _word(self, word):
        digest = blake2b(f"{self.identity} {word}".encode(), digest_size=DIMENSION).digest()
        return np.frombuffer(digest, dtype=np.uint8).astype(np.float64) - 127.5


def embed_missing(writer, reader, model, limit=1000):
    """Embeds up to `limit` texts of the store that have no vector."""
    with reader.snapshot() as snapshot:
        texts = snapshot.missing_embeddings(model.identity, limit=limit)
    with writer.transaction() as transaction:
        transaction.put_embeddings(
            model.identity, [(text.text_hash, model.embed(text.text).tobytes()) for text in texts]
        )


def catch_up(view, reader):
    with reader.snapshot() as snapshot:
        view.catch_up(snapshot)
    return view


def stored_vectors(reader, model):
    """Every chunk's vector as the store has it, for naive comparisons."""
    with reader.snapshot() as snapshot:
        return {
            key: row
            for batch in snapshot.vectors(model.identity)
            for key, row in zip(batch.keys, batch.array(), strict=True)
        }


class WordEmbedder(WordModel):
    """WordModel behind the seam that the engine knows."""

    name = "words"

    def embed_query(self, text):
        return self.embed(text)

    def embed_documents(self, texts):
        return np.stack([self.embed(text) for text in texts])


class CountingEmbedder(WordModel):
    """Records the texts that it embeds; fails while `is_broken` is set."""

    name = "words"
    max_tokens = 1000
    notes: tuple[str, ...] = ()

    def __init__(self, identity: str = "words@1") -> None:
        super().__init__(identity)
        self.texts: list[str] = []
        self.is_broken = False

    @property
    def passages(self) -> list[str]:
        """The embedded texts of more than one word; single words belong to the vocabulary."""
        return [text for text in self.texts if len(text.split()) > 1]

    @property
    def counts(self) -> EmbeddingCounts:
        return EmbeddingCounts(len(self.texts))

    def load(self) -> None:
        pass

    def embed_documents(self, texts: Sequence[str]):
        if self.is_broken:
            raise EmbeddingError("the model is broken")
        self.texts += texts
        return np.stack([self.embed(text) for text in texts]).reshape(-1, DIMENSION)

    def embed_query(self, text: str):
        return self.embed(text)


MEANINGS = (("dawn", "sunrise"), ("noon", "midday"), ("dusk", "sunset"), ("storm", "tempest"))
_AXES = {word: axis for axis, words in enumerate(MEANINGS) for word in words}
_NOTHING = DIMENSION - 1


class MeaningEmbedder(WordEmbedder):
    """A text's direction is that of its words with a meaning; so cosines can be chosen, and a
    passage can be near a query without sharing a word with it.
    """

    def embed(self, text):
        axes = [_AXES[word] for word in re.findall("[a-z]+", text.lower()) if word in _AXES]
        total = np.bincount(axes or [_NOTHING], minlength=DIMENSION).astype(np.float32)
        return total / np.linalg.norm(total)


class MeaningModel(MeaningEmbedder, CountingEmbedder):
    """The same with all that a whole application asks of a model."""


GROUPS = (
    ("auth", "authentication", "login", "credentials"),
    ("picture", "image", "photo"),
    ("delete", "remove", "erase"),
)


class ConceptEmbedder(WordEmbedder):
    """WordModel with a strong part in common for the words of a group."""

    def _word(self, word):
        own = super()._word(word)
        own /= np.linalg.norm(own)
        for number, group in enumerate(GROUPS):
            if word in group:
                return 0.5 * own + 2.0 * np.eye(DIMENSION)[number]
        return own


Vectors: TypeAlias = NDArray[np.float32]

FOLDER = Path(__file__).parents[2] / ".pytest_cache" / "vectors"


class RememberingEmbedder(BuiltinEmbedder):
    """`name` is the folder's that is embedded: each has a file of its own."""

    def __init__(self, name: str) -> None:
        super().__init__()
        # Vectors of another kernel are others, if only by a bit.
        self._corpus = name + os.environ.get("OPENBLAS_CORETYPE", "")

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        self.load()  # only then is it known which precision it has
        file = FOLDER / f"{self._corpus}-{_maker(self.identity)}.npz"
        known = _read(file)
        keys = [_hash(text.encode()) for text in texts]
        new = {key: text for key, text in zip(keys, texts, strict=True) if key not in known}
        if new:
            known |= zip(new, super().embed_documents(list(new.values())), strict=True)
            _write(file, known)
        return np.stack([known[key] for key in keys])


def _maker(identity: str) -> str:
    """Differs whenever the vectors could differ."""
    code = sorted(Path(builtin.__file__).parent.rglob("*.py"))
    libraries = [version(name) for name in ("numpy", "onnxruntime", "tokenizers")]
    parts = [identity.encode(), repr(libraries).encode(), *(path.read_bytes() for path in code)]
    return _hash(b"\0".join(parts))


def _hash(text: bytes) -> str:
    return blake2b(text, digest_size=16).hexdigest()


def _read(file: Path) -> dict[str, Vectors]:
    try:
        with np.load(file, allow_pickle=False) as found:
            return dict(zip(found["keys"].tolist(), found["vectors"], strict=True))
    except (OSError, ValueError, KeyError, BadZipFile):
        return {}


def _write(file: Path, known: dict[str, Vectors]) -> None:
    """Atomically, because another worker may read the file."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=file.parent, suffix=".npz", delete=False) as made:
        np.savez(made, keys=np.array(list(known)), vectors=np.stack(list(known.values())))
    os.replace(made.name, file)
    for older in file.parent.glob(f"{file.stem.rpartition('-')[0]}-*.npz"):
        if older != file:
            older.unlink(missing_ok=True)
