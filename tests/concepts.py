"""A tiny real model that knows a few meanings: words of one group have nearly one direction."""

import numpy as np

from tests.engine import WordEmbedder
from tests.word_vectors import DIMENSION

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
