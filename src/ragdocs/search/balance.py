"""How much of a query's answer is left to meaning, and how much to words (score fusion).

Where the best passage is near in meaning, meaning is to be trusted; a long query says much in its
words, and a short one little. Chosen so that no development set loses by fusing (specs/
calibration.md); the configured weights are where it starts from.
"""

import math

from ragdocs.search.candidates import Strategy, Weights

SHIFT = 0.1
"""Towards meaning, for a query of usual length whose best passage is as near as usual."""
USUAL_SIMILARITY = 0.6
SIMILARITY_SLOPE = 2.0
USUAL_WORDS = 5
WORDS_SLOPE = 0.2
SMALLEST_SHARE, LARGEST_SHARE = 0.15, 0.9
"""Both always have a say."""


def balanced(weights: Weights, best_similarity: float, words: int) -> Weights:
    """The weights of meaning and words, their sum unchanged, shifted for this query."""
    semantic, keyword = weights[Strategy.SEMANTIC], weights[Strategy.KEYWORD]
    if semantic <= 0 or keyword <= 0:
        return weights
    total = semantic + keyword
    share = semantic_share(semantic / total, best_similarity, words)
    return {**weights, Strategy.SEMANTIC: share * total, Strategy.KEYWORD: (1.0 - share) * total}


def semantic_share(configured: float, best_similarity: float, words: int) -> float:
    nearness = SIMILARITY_SLOPE * (best_similarity - USUAL_SIMILARITY)
    length = WORDS_SLOPE * math.log(max(1, words) / USUAL_WORDS)
    return min(LARGEST_SHARE, max(SMALLEST_SHARE, configured + SHIFT + nearness - length))
