"""Vectors of the documents' most frequent words, in memory.

The store caches the vectors by word and model, like those of texts, so that they are computed once
and survive rebuilds. After a commit the list of words is read again, but only new vectors are.
"""

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ragdocs.indices.applied_commit import AppliedCommit
from ragdocs.indices.hits import NearTerm
from ragdocs.indices.vocabulary import KnownWord, Vocabulary, term_hash
from ragdocs.store.records import PendingText
from ragdocs.store.snapshot import Snapshot

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ragdocs.indices.vector import VectorModel

    Vector = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class _Terms:
    """The words that have a vector, and their vectors, row by row."""

    words: tuple[tuple[str, str], ...]
    matrix: "NDArray[np.float32] | None"


_NONE = _Terms((), None)


class TermVectors:
    """The vectors of one model for at most `limit` words; safe to use from several threads."""

    def __init__(self, model: "VectorModel", vocabulary: Vocabulary, limit: int) -> None:
        self._model = model
        self._vocabulary = vocabulary
        self._limit = limit
        self._identity = ""
        self._terms = _NONE
        self._embeddings = 0
        self._progress = AppliedCommit()
        self._catching_up = threading.Lock()

    def __len__(self) -> int:
        """How many words have a vector here."""
        return len(self._terms.words)

    def catch_up(self, snapshot: Snapshot) -> None:
        with self._catching_up:
            if self._model.identity != self._identity:
                self._identity = self._model.identity
                self._terms = _NONE
                self._progress.forget()
            if not self._progress.is_behind(snapshot):
                return
            count = snapshot.ledger.count("embeddings")
            # Vectors were removed without an entry in the change log: read all again.
            held = self._terms if count >= self._embeddings else _NONE
            self._terms = self._follow(snapshot, held)
            self._embeddings = count
            self._progress.reach(snapshot.position)

    def nearest(self, vector: "Vector", least: float, count: int) -> list[NearTerm]:
        """The words with at least this cosine with the vector, nearest first."""
        import numpy as np

        terms = self._terms
        if terms.matrix is None:
            return []
        similarities = terms.matrix @ vector
        enough = np.flatnonzero(similarities >= least)
        order = enough[np.argsort(-similarities[enough], kind="stable")][:count]
        found: list[NearTerm] = []
        for at in map(int, order):
            word, term = terms.words[at]
            found.append(NearTerm(word, term, float(similarities[at]), terms.matrix[at]))
        return found

    def missing(self, snapshot: Snapshot, limit: int | None = None) -> tuple[PendingText, ...]:
        """Words without a vector of this model, the most frequent first, to be embedded as
        documents and stored with `Transaction.put_embeddings`.
        """
        words = {term_hash(known.word): known.word for known in self._wanted(snapshot)}
        stored = {text for text, _ in snapshot.vectors_of(self._model.identity, words.keys())}
        pending = [PendingText(text, word) for text, word in words.items() if text not in stored]
        return tuple(pending[:limit])

    def _wanted(self, snapshot: Snapshot) -> list[KnownWord]:
        return self._vocabulary.most_frequent(snapshot, self._limit)

    def _follow(self, snapshot: Snapshot, held: _Terms) -> _Terms:
        if self._identity not in snapshot.models():
            return _NONE
        import numpy as np

        places = {word: at for at, (word, _) in enumerate(held.words)}
        wanted = self._wanted(snapshot)
        new = self._fetch(snapshot, [each.word for each in wanted if each.word not in places])
        places.update((word, len(held.words) + at) for at, word in enumerate(new))
        # In alphabetical order, so that a change of frequencies does not reorder them.
        words = tuple(sorted((each.word, each.term) for each in wanted if each.word in places))
        if words == held.words:
            return held
        parts = [] if held.matrix is None else [held.matrix]
        parts += [np.stack(list(new.values()))] if new else []
        if not words:
            return _NONE
        return _Terms(words, np.concatenate(parts)[[places[word] for word, _ in words]])

    def _fetch(self, snapshot: Snapshot, words: Sequence[str]) -> "dict[str, Vector]":
        import numpy as np

        names = {term_hash(word): word for word in words}
        found = snapshot.vectors_of(self._identity, names.keys())
        return {names[text]: np.frombuffer(vector, dtype="<f4") for text, vector in found}
