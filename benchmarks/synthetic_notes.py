"""Folders of synthetic notes and an app over them, for the benchmarks of indexing.

The words are those of the built-in model's own vocabulary, drawn by Zipf's law and seeded; each
note has a heading and a passage for each of its chunks, and links to some others. Ninety words on
average make a chunk of 550 characters. Where vectors are said to be synthetic, they are seeded
random unit vectors: the model would need hours for 100,000 passages.
"""

import random
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ragdocs.config.loading import load_config
from ragdocs.config.resolved import Config
from ragdocs.embedding.base import EmbeddingCounts
from ragdocs.embedding.builtin import DIMENSION, BuiltinEmbedder

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

PASSAGES = 10
OWN_WORDS, OWN_SHARE = 40, 0.25
LINKS = 4
FOLDERS = 50


class NoteWriter:
    """Writes notes of words by Zipf's law; the vocabulary has them in order of frequency."""

    def __init__(self, embedder: BuiltinEmbedder, seed: int) -> None:
        pieces = embedder._model().pieces._tokenizer.get_vocab()
        ordered = sorted(pieces, key=lambda piece: pieces[piece])
        self._words = [w for w in ordered if w.isascii() and w.isalpha() and len(w) > 1]
        self._weights = [0.0]
        for rank in range(len(self._words)):
            self._weights.append(self._weights[-1] + 1.0 / (rank + 2.7))
        self._weights = self._weights[1:]
        self._random = random.Random(seed)

    def words(self, count: int) -> list[str]:
        return self._random.choices(self._words, cum_weights=self._weights, k=count)

    def note(self, notes: int, lengths: tuple[int, int]) -> str:
        """One of so many notes; passages have between so many words."""
        own = self.words(OWN_WORDS)
        parts = [f"# {' '.join(own[:3])}"]
        for _ in range(PASSAGES):
            passage = self.words(self._random.randint(*lengths))
            for at in range(len(passage)):
                if self._random.random() < OWN_SHARE:
                    passage[at] = self._random.choice(own)
            parts += [f"## {' '.join(self.words(3))}", f"{' '.join(passage)}."]
        parts.append(" ".join(f"[[{self._random.randrange(notes)}]]" for _ in range(LINKS)))
        return "\n\n".join(parts) + "\n"

    def write(self, folder: Path, chunks: int, lengths: tuple[int, int] = (60, 120)) -> None:
        notes = chunks // PASSAGES
        for number in range(notes):
            file = folder / str(number % FOLDERS) / f"{number}.md"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(self.note(notes, lengths), encoding="utf-8")


class SyntheticVectors:
    """The built-in model for queries; seeded unit vectors for documents.

    Each `real_every`th piece of work goes through the model all the same, so that the memory of
    a process holds what the model needs to work.
    """

    def __init__(self, model: BuiltinEmbedder, real_every: int = 0) -> None:
        self._model = model
        self._real_every = real_every
        self._calls = 0
        self._generator: np.random.Generator | None = None
        self.name, self.dimension, self.max_tokens = model.name, DIMENSION, model.max_tokens
        self.counts, self.notes = EmbeddingCounts(), ("the vectors are synthetic",)

    @property
    def identity(self) -> str:
        return self._model.identity

    def load(self) -> None:
        self._model.load()

    def embed_documents(self, texts: Sequence[str]) -> "NDArray[np.float32]":
        import numpy as np

        self._calls += 1
        if self._real_every and self._calls % self._real_every == 0:
            return self._model.embed_documents(texts)
        self._generator = self._generator or np.random.default_rng(1)
        rows = self._generator.standard_normal((len(texts), DIMENSION), dtype=np.float32)
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)

    def embed_query(self, text: str) -> "NDArray[np.float32]":
        return self._model.embed_query(text)


def config_of(folder: Path, **sections: dict[str, object]) -> Config:
    """Over `folder`/docs, with the index beside it; all else by default."""
    place: dict[str, object] = {
        "documents_path": str(folder / "docs"),
        "index_path": str(folder / "index"),
    }
    flags = {"indexing": place | sections.pop("indexing", {}), **sections}
    return load_config(cwd=folder, environ={"HOME": str(folder / "home")}, flags=flags)
