"""Words of the documents near the whole query: `auth` also looks for `authentication`.

The query's own vector is compared with the vectors of words, which are stored: no second run of
the model. The nearest are mixed into the vector, and looked for as weaker words. A model that does
not know a word goes by its letters (`creds` is near `cron`), so what is near must also be a word of
its own, and either very near or in the passages that are nearest (specs/0084).
"""

from collections.abc import Collection, Mapping, Sequence
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

KNOWN_SHARE = 0.1
"""A word that more of the documents have is known: nothing is added to it."""
PASSAGES = 10
"""The nearest passages, in which a word that is meant is likely to stand."""
ENOUGH_PASSAGES = 2
CLOSE = 0.6
"""A word this near need not stand in them, unless it is short: codes are near one another."""
SHORTEST, SHORTEST_CLOSE = 4, 5
ALIKE_LETTERS = 0.6
"""The share of letters, in their order, from which two words may be near by these alone."""


def chosen_terms(
    near: Sequence[NearTerm],
    own_terms: frozenset[str],
    passages: Mapping[str, int] | None = None,
) -> list[NearTerm]:
    """The nearest that are not forms of a typed word, nor of one another. With `passages`, how many
    of the nearest passages have each term, only those that are near in more than their letters.
    """
    best: dict[str, NearTerm] = {}
    for each in near:
        if each.similarity < MIN_SIMILARITY or each.term in own_terms or each.term in best:
            continue
        if passages is None or _is_meant(each, own_terms, passages.get(each.term, 0)):
            best[each.term] = each
    return sorted(best.values(), key=lambda each: -each.similarity)[:MAX_TERMS]


def _is_meant(near: NearTerm, own_terms: Collection[str], passages: int) -> bool:
    word = near.word
    if not word.isalpha() or any(_is_alike_in_letters(term, near) for term in own_terms):
        return False
    is_supported = passages >= ENOUGH_PASSAGES and len(word) >= SHORTEST
    return is_supported or (near.similarity >= CLOSE and len(word) >= SHORTEST_CLOSE)


def _is_alike_in_letters(typed: str, near: NearTerm) -> bool:
    """Whether the two share letters, and the one is not short for the other. Compared without their
    endings, which many words have in common."""
    from rapidfuzz.distance import Indel

    if _is_short_for(typed, near.word):
        return False
    is_alike = Indel.normalized_similarity(typed, near.term) >= ALIKE_LETTERS
    return is_alike or typed[:2] == near.term[:2] or typed[-2:] == near.term[-2:]


def _is_short_for(typed: str, word: str) -> bool:
    """`config` for configuration, `img` for image: its letters in their order, from the first."""
    rest = iter(word)
    is_longer = len(word) >= len(typed) + 2 or word.startswith(typed)
    return is_longer and word[:1] == typed[:1] and all(letter in rest for letter in typed)


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
