"""Removing results that repeat one another: the first of a group, which is the best, stays.

From cheap to dear: the same text (hash), nearly the same wording (trigrams, P12), nearly the same
meaning (vectors, P8). A result is compared with those that stay, never with those that fell, so
that a second run removes nothing more.
"""

from collections.abc import Sequence
from dataclasses import replace
from hashlib import blake2b
from typing import TYPE_CHECKING, NamedTuple

from ragdocs.indices.signatures import (
    MAX_BITS_SET,
    MIN_BITS_SET,
    estimated_jaccard,
    jaccard,
    ngram_counts,
    ngram_signature,
    ngrams,
)
from ragdocs.models import DocId
from ragdocs.search.candidates import Candidate
from ragdocs.store.records import StoredChunk

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

HASH_BYTES = 16
# Bitmaps are this far off at most (five standard deviations): nearer to the threshold than that,
# the sets themselves decide.
DOUBT = 0.1
# A vector's cosine with itself may come out this much below 1.
ROUNDING = 1e-6


def content_hash(text: str) -> bytes:
    """Stands for a text; blank lines around it belong to its neighbours."""
    return blake2b(text.strip().encode("utf-8", "replace"), digest_size=HASH_BYTES).digest()


def drop_identical(candidates: Sequence[Candidate]) -> list[Candidate]:
    first: dict[bytes, Candidate] = {}
    for item in candidates:
        first.setdefault(item.content_hash or content_hash(item.text), item)
    return list(first.values())


def drop_near_copies(candidates: Sequence[Candidate], threshold: float) -> list[Candidate]:
    """Those whose trigrams have a Jaccard similarity of `threshold` or more with a better one's."""
    kept: list[_Wording] = []
    for item in candidates:
        signature = item.ngrams or ngram_signature(item.text)
        wording = _Wording(item, signature, ngram_counts()[signature.bit_count()])
        if not _is_copy(wording, kept, threshold):
            kept.append(wording)
    return [wording.item for wording in kept]


def drop_similar(candidates: Sequence[Candidate], threshold: float) -> list[Candidate]:
    """Those whose vectors have a cosine of `threshold` or more with a better one's. What has no
    vector yet is like nothing.
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
    """The first `limit` of each document; its best one remembers which others were found."""
    kept: dict[DocId, list[Candidate]] = {}
    left_out: dict[DocId, list[StoredChunk]] = {}
    for item in candidates:
        own = kept.setdefault(item.document.id, [])
        if len(own) < limit:
            own.append(item)
        else:
            left_out.setdefault(item.document.id, []).extend(item.found)
    stays = {item.id for own in kept.values() for item in own}
    bearers = {own[0].id: tuple(left_out.get(doc_id, ())) for doc_id, own in kept.items()}
    return [
        replace(item, left_out=item.left_out + bearers[item.id]) if bearers.get(item.id) else item
        for item in candidates
        if item.id in stays
    ]


def cosines(candidates: Sequence[Candidate]) -> "NDArray[np.float32]":
    """Of every pair, by one matrix product; 0 where there is no vector."""
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
        # What two sets have in common is at most the smaller one.
        if size_of_other < smallest or size < least * size_of_other:
            continue
        together = sizes[(signature | signature_of_other).bit_count()]
        if size + size_of_other >= factor * together and _is_near(wording, other, threshold):
            return True
    return False


def _is_near(one: _Wording, other: _Wording, threshold: float) -> bool:
    """By the bitmaps where they are clear, by the sets themselves where they are not."""
    estimate = estimated_jaccard(one.signature, other.signature)
    together = (one.signature | other.signature).bit_count()
    # A few trigrams may share their bits by chance, and of a full bitmap nothing can be told.
    if estimate - threshold > DOUBT and MIN_BITS_SET <= together <= MAX_BITS_SET:
        return True
    return jaccard(ngrams(one.item.text), ngrams(other.item.text)) >= threshold
