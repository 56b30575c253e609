"""Words of the documents near the whole query: `auth` also looks for `authentication`.

The query's own vector is compared with the vectors of words, which are stored: no second run of
the model. The nearest are mixed into the vector, and looked for as weaker words.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ragdocs.indices.term_vectors import NearTerm
from ragdocs.search.understanding import AddedWord, Origin

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vector = NDArray[np.float32]

MAX_TERMS = 3
MIN_SIMILARITY = 0.5
"""The seeds' figures."""
LOOKED_AT = 50
"""Forms of the query's own words come first, and are passed over."""
MIXED = 0.3
"""The part of the words in the mixed vector, against 1 for the query."""
WEIGHT = 0.3
"""What an added word counts against a typed one, times its similarity."""


def chosen_terms(near: Sequence[NearTerm], own_terms: frozenset[str]) -> list[NearTerm]:
    """The nearest that are not forms of a typed word, nor of one another."""
    best: dict[str, NearTerm] = {}
    for each in near:
        if each.similarity >= MIN_SIMILARITY and each.term not in own_terms:
            best.setdefault(each.term, each)
    return sorted(best.values(), key=lambda each: -each.similarity)[:MAX_TERMS]


def mixed(vector: "Vector", terms: Sequence[NearTerm]) -> "Vector":
    """The query's vector moved towards the words, by how near each is; of unit length again."""
    import numpy as np

    if not terms:
        return vector
    weights = np.array([each.similarity for each in terms], dtype=np.float32)
    direction = weights @ np.stack([each.vector for each in terms]) / weights.sum()
    moved = vector + MIXED * direction
    return (moved / np.linalg.norm(moved)).astype(np.float32)


def added_words(terms: Sequence[NearTerm]) -> list[AddedWord]:
    return [
        AddedWord(
            word=each.word,
            term=each.term,
            origin=Origin.EXPANSION,
            weight=WEIGHT * each.similarity,
            similarity=each.similarity,
        )
        for each in terms
    ]
