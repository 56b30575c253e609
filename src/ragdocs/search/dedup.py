"""Removes results that repeat others: identical, near duplicate, alike in meaning, or by MMR."""

from collections import Counter, deque
from collections.abc import Sequence
from hashlib import blake2b
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from ragdocs.indices.ngrams import (
    MAX_BITS_SET,
    MIN_BITS_SET,
    estimated_jaccard,
    jaccard,
    ngram_counts,
    ngram_signature,
    ngrams,
)
from ragdocs.models import ChunkId, DocId
from ragdocs.search.candidates import Candidate

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# Of results that repeat one another, the first, which is the best, stays.
#
# From cheap to expensive: the same text (hash), nearly the same wording (trigrams, P12), nearly the
# same meaning (vectors, P8). A result is compared only with those that stay, so a second run
# removes nothing more.

HASH_BYTES = 16
DOUBT = 0.1
"""The largest error of a bitmap (five standard deviations): closer to the threshold than this, the
sets themselves decide.
"""
GIVES_WAY = 0.5
"""The default limit per document gives way to a passage if its rival has less than this share of
its confidence.
"""
ROUNDING = 1e-6
"""A vector's cosine with itself may be this much below 1."""


def content_hash(text: str) -> bytes:
    """Identifies a text without the blank lines around it, which belong to its neighbours."""
    return blake2b(text.strip().encode("utf-8", "replace"), digest_size=HASH_BYTES).digest()


def drop_identical(candidates: Sequence[Candidate]) -> list[Candidate]:
    first: dict[bytes, Candidate] = {}
    for item in candidates:
        first.setdefault(item.content_hash or content_hash(item.text), item)
    return list(first.values())


def drop_near_copies(candidates: Sequence[Candidate], threshold: float) -> list[Candidate]:
    """Drops those whose trigrams have a Jaccard similarity of at least `threshold` with a better
    one.
    """
    kept: list[_Wording] = []
    for item in candidates:
        signature = item.ngrams or ngram_signature(item.text)
        wording = _Wording(item, signature, ngram_counts()[signature.bit_count()])
        if not _is_copy(wording, kept, threshold):
            kept.append(wording)
    return [wording.item for wording in kept]


def drop_similar(candidates: Sequence[Candidate], threshold: float) -> list[Candidate]:
    """Drops those whose vectors have a cosine of at least `threshold` with a better one. A
    candidate without a vector is similar to none.
    """
    import numpy as np

    if len(candidates) < 2:
        return list(candidates)
    is_similar = cosines(candidates) >= threshold - ROUNDING
    kept: list[int] = []
    covered = np.zeros(len(candidates), dtype=np.bool_)
    for place, item in enumerate(candidates):
        if item.vector is None or not covered[place]:
            kept.append(place)
            if item.vector is not None:
                covered |= is_similar[place]
    return [candidates[place] for place in kept]


def limit_per_document(candidates: Sequence[Candidate], limit: int) -> list[Candidate]:
    """The first `limit` of each document."""
    taken = Counter[DocId]()
    kept: list[Candidate] = []
    for item in candidates:
        taken[item.document.id] += 1
        if taken[item.document.id] <= limit:
            kept.append(item)
    return kept


def prefer_other_documents(
    candidates: Sequence[Candidate], limit: int, top_n: int
) -> list[Candidate]:
    """The first `limit` of each document, and more where the limit gives way: a passage is not
    dropped for one of less than half its confidence, nor if there are too few results. It then
    keeps its place, or comes before the one that would have taken it.
    """
    kept = {item.id for item in limit_per_document(candidates, limit)}
    # The surest first, wherever they are; of equal ones the earlier.
    over = deque(
        sorted((one for one in candidates if one.id not in kept), key=lambda one: -one.confidence)
    )
    places = top_n
    before: dict[ChunkId, list[Candidate]] = {}
    for item in candidates:
        while over and places > 0 and item.id in kept and _is_far_better(over[0], item):
            before.setdefault(item.id, []).append(over.popleft())
            places -= 1
        places -= item.id in kept
    wanting = {item.id for item in islice(over, max(0, places))}
    given_way = {item.id for items in before.values() for item in items}
    left: dict[ChunkId, Candidate] = {}
    for item in candidates:
        for surer in before.get(item.id, ()):
            left.setdefault(surer.id, surer)
        if item.id in kept or item.id in given_way:
            left.setdefault(item.id, item)
        elif item.id in wanting:
            left[item.id] = item.with_changes(is_over_limit=True)
    return list(left.values())


def _is_far_better(item: Candidate, other: Candidate) -> bool:
    return other.confidence < GIVES_WAY * item.confidence


def cosines(candidates: Sequence[Candidate]) -> "NDArray[np.float32]":
    """The cosine of every pair, by one matrix product; 0 without a vector."""
    import numpy as np

    known = [place for place, item in enumerate(candidates) if item.vector is not None]
    result = np.zeros((len(candidates), len(candidates)), dtype=np.float32)
    if known:
        vectors = np.stack([item.vector for item in candidates if item.vector is not None])
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        unit = np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)
        result[np.ix_(known, known)] = unit @ unit.T
    return result


class _Wording(NamedTuple):
    """A candidate with the bitmap of its trigrams, and about how many there are."""

    item: Candidate
    signature: int
    size: float


def _is_copy(wording: _Wording, kept: Sequence[_Wording], threshold: float) -> bool:
    _, signature, size = wording
    sizes, least = ngram_counts(), threshold - DOUBT
    smallest, factor = least * size, 1.0 + least
    # The innermost loop of a query: sixty candidates are 1,770 pairs.
    for other in kept:
        _, signature_of_other, size_of_other = other
        # Two sets have at most the smaller one in common.
        if size_of_other < smallest or size < least * size_of_other:
            continue
        together = sizes[(signature | signature_of_other).bit_count()]
        if size + size_of_other >= factor * together and _is_near(wording, other, threshold):
            return True
    return False


def _is_near(one: _Wording, other: _Wording, threshold: float) -> bool:
    """By the bitmaps where they are clear, otherwise by the sets themselves."""
    estimate = estimated_jaccard(one.signature, other.signature)
    together = (one.signature | other.signature).bit_count()
    # A few trigrams may share their bits by chance, and a full bitmap shows nothing.
    if estimate - threshold > DOUBT and MIN_BITS_SET <= together <= MAX_BITS_SET:
        return True
    return jaccard(ngrams(one.item.text), ngrams(other.item.text)) >= threshold


# Maximal marginal relevance (P11): each next result is relevant, and unlike those before it.

MAX_CANDIDATES = 50
"""Seed 003, risk R1: candidates further down are not worth comparing."""


def select_mmr(
    candidates: Sequence[Candidate], mmr_lambda: float, top_n: int = MAX_CANDIDATES
) -> list[Candidate]:
    """`top_n` of the first candidates, in the order chosen, their scores as they were.

    Each choice has the greatest λ·relevance - (1-λ)·(cosine with the nearest chosen). Relevance is
    the score, scaled so that the best is 1 and the last 0: on its own scale λ would mean little.
    """
    import numpy as np

    items = candidates[:MAX_CANDIDATES]
    if len(items) < 2:
        return list(items[:top_n])
    relevance = np.array(_scale([item.score for item in items]))
    similarity = cosines(items)
    nearest = np.full(len(items), -np.inf)
    is_open = np.ones(len(items), dtype=np.bool_)
    chosen: list[int] = []
    while len(chosen) < min(top_n, len(items)):
        penalty = nearest if chosen else np.zeros(len(items))
        value = mmr_lambda * relevance - (1.0 - mmr_lambda) * penalty
        # Of equal ones the first, which is the better one.
        best = int(np.argmax(np.where(is_open, value, -np.inf)))
        chosen.append(best)
        is_open[best] = False
        nearest = np.maximum(nearest, similarity[best])
    return [items[place] for place in chosen]


def _scale(scores: Sequence[float]) -> list[float]:
    low, high = min(scores), max(scores)
    return [(score - low) / (high - low) if high > low else 1.0 for score in scores]
