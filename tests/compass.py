"""A tiny real model with four meanings, each of which has several words."""

import re

import numpy as np

from tests.engine import WordEmbedder
from tests.managed_index import CountingEmbedder
from tests.word_vectors import DIMENSION

MEANINGS = (("dawn", "sunrise"), ("noon", "midday"), ("dusk", "sunset"), ("storm", "tempest"))
_AXES = {word: axis for axis, words in enumerate(MEANINGS) for word in words}
_NOTHING = DIMENSION - 1


class Compass(WordEmbedder):
    """A text's direction is that of its words with a meaning; so cosines can be chosen, and a
    passage can be near a query without sharing a word with it.
    """

    def embed(self, text):
        axes = [_AXES[word] for word in re.findall("[a-z]+", text.lower()) if word in _AXES]
        total = np.bincount(axes or [_NOTHING], minlength=DIMENSION).astype(np.float32)
        return total / np.linalg.norm(total)


class CompassModel(Compass, CountingEmbedder):
    """The same with all that a whole application asks of a model."""
