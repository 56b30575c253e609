"""A tiny real model: a text's vector is the sum of its words' directions, which hashes give."""

from hashlib import blake2b

import numpy as np

DIMENSION = 16


class WordModel:
    """Deterministic, and texts that share words are near each other."""

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
    """Gives up to `limit` texts of the store that lack one a vector."""
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
