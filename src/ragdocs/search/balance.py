"""How much of a query's answer is left to meaning, and how much to words (score fusion).

A long query says much in its words, and a short one little. Where the best passage is near in
meaning, meaning is to be trusted; where one has most of the words, words are: a name, a title. That
nothing is near speaks for nothing: such a query may have words of its own, and those that stand
somewhere stand in the wrong place. Chosen over all development sets alike (specs/0052);
the configured weights are where it starts from.
"""

import math
from collections.abc import Mapping
from typing import NamedTuple

from ragdocs.indices.bm25 import idf
from ragdocs.indices.keyword import Unit
from ragdocs.search.candidates import Strategy, Weights

SHIFT = 0.10
"""Towards meaning, for a query of usual length."""
NEAR_SIMILARITY, SIMILARITY_SLOPE = 0.5, 1.0
"""From here on a passage is near, and meaning counts for more."""
HIGH_COVERAGE, COVERAGE_SLOPE = 0.5, 0.5
"""From here on a passage has most of the words, and they count for more."""
USUAL_WORDS, FEWEST_WORDS, WORDS_SLOPE = 5, 4, 0.4
SMALLEST_SHARE, LARGEST_SHARE = 0.15, 0.9
"""Both always have a say."""
NAME_SHARE, NAME_SIMILARITY, NAME_SLOPE = 0.3, 0.4, 3.0
"""Who types one word wants what has it, and a model knows no identifier: meaning has at most this
share, more only as something really is near."""

FULL_COVERAGE = 0.7
"""From here on prose has all that was asked for, and blocks of code have nothing to add."""


FAIRLY_PROMINENT, PROMINENT = 5.0, 7.0
"""Deviations above the mean of the nearest passages. From the second on meaning is sure of its best
passage, and rare words take nothing from it; up to the first they count in full."""
LEAST_RARE = 0.1
"""Rare words with less of the weight change nothing: both always have a say."""
FEW_CHUNKS = 60
"""A word that more chunks have is not rare: in which documents it stands is not looked up."""


FLOOR = 0.5
"""A document that has rare words of this weight, more than any other, is in the answer."""
FEW_FORMS = 2
"""So many words that one document alone has in the form that was typed are no chance."""
FORM_CHUNKS = 1_000
"""The forms of a word that more chunks have are not looked up."""


class Signs(NamedTuple):
    """What a query and its best hits show: the best cosine, the best part of the most that its
    words could score in prose and in code, how many words it has, and whether one name was typed,
    whatever its parts, whose own meaning was looked for; what part of the words' weight the rare
    ones have that one document has together; and how far the nearest passage stands out."""

    similarity: float
    prose: float
    code: float
    words: int
    is_name: bool = False
    rare: float = 0.0
    prominence: float = 0.0


def balanced(weights: Weights, signs: Signs) -> Weights:
    """Shifted for this query: the weights of meaning and words, their sum unchanged, and that of
    code, which counts less where prose has the words."""
    weights = {**weights, Strategy.CODE: weights[Strategy.CODE] * code_part(signs.prose)}
    semantic, keyword = weights[Strategy.SEMANTIC], weights[Strategy.KEYWORD]
    if semantic <= 0 or keyword <= 0:
        return weights
    total = semantic + keyword
    share = semantic_share(semantic / total, signs)
    return {**weights, Strategy.SEMANTIC: share * total, Strategy.KEYWORD: (1.0 - share) * total}


def semantic_share(configured: float, signs: Signs) -> float:
    nearness = SIMILARITY_SLOPE * max(0.0, signs.similarity - NEAR_SIMILARITY)
    # A name found whole in a block of code is as good as one found in prose.
    covered = max(signs.prose, signs.code)
    coverage = COVERAGE_SLOPE * max(0.0, covered - HIGH_COVERAGE)
    length = WORDS_SLOPE * math.log(max(FEWEST_WORDS, signs.words) / USUAL_WORDS)
    share = configured + SHIFT + nearness - coverage - length
    if signs.is_name and covered > 0:
        share = min(share, share_of_a_name(signs.similarity))
    share = min(share, max(NAME_SHARE, 1.0 - signs.rare * unsure(signs.prominence)))
    return min(LARGEST_SHARE, max(SMALLEST_SHARE, share))


def unsure(prominence: float) -> float:
    """1 where no passage stands out by its meaning, 0 where one does clearly."""
    return min(1.0, max(0.0, (PROMINENT - prominence) / (PROMINENT - FAIRLY_PROMINENT)))


def rare_weights(total: int, frequencies: Mapping[Unit, int]) -> dict[Unit, float]:
    """What part of the words' weight (idf) each rare one has, the rarer the more: a word that one
    chunk alone has counts in full."""
    weights = {unit: idf(total, min(total, count)) for unit, count in frequencies.items()}
    whole, most = sum(weights.values()), idf(total, 1)
    return {
        unit: weight / whole * (weight / most) ** 2
        for unit, weight in weights.items()
        if 0 < frequencies[unit] <= FEW_CHUNKS
    }


def share_of_a_name(similarity: float) -> float:
    return NAME_SHARE + NAME_SLOPE * max(0.0, similarity - NAME_SIMILARITY)


def code_part(prose: float) -> float:
    return min(1.0, max(0.0, (FULL_COVERAGE - prose) / (FULL_COVERAGE - HIGH_COVERAGE)))
