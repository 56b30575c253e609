"""A text's character trigrams as a small bitmap, so that many texts can be compared quickly.

Comparing sixty sets of trigrams takes several milliseconds, comparing their bitmaps less than one.
Bitmaps give the similarity to about 0.02; comparing the sets gives it exactly.
"""

import math
import unicodedata
from functools import cache

# Seed 000, P12.
NGRAM_CHARS = 3
# 512 bytes for each passage: twice as many bits as a leaf of 2,000 characters has trigrams.
SIGNATURE_BITS = 4096
# In a fuller bitmap the number of trigrams can no longer be estimated.
MAX_BITS_SET = SIGNATURE_BITS * 7 // 8
# In an emptier one a single shared bit would decide.
MIN_BITS_SET = 64

# Fibonacci hashing (Knuth, vol. 3, 6.4): the upper bits of the product spread well.
_MULTIPLIER = 0x9E3779B97F4A7C15
_SHIFT = 64 - SIGNATURE_BITS.bit_length() + 1
# Code points have 21 bits: three of them in one number, exactly.
_POINT_BITS = 21


def ngrams(text: str) -> frozenset[str]:
    """The distinct trigrams in lower case, with spaces collapsed, or a shorter text itself."""
    folded = _fold(text)
    if len(folded) <= NGRAM_CHARS:
        return frozenset([folded] if folded else [])
    parts = (folded[start:] for start in range(NGRAM_CHARS))
    return frozenset(map("".join, zip(*parts, strict=False)))


def jaccard(one: frozenset[str], other: frozenset[str]) -> float:
    """The size of the intersection divided by that of the union; 0 for an empty set."""
    common = len(one & other)
    return common / (len(one) + len(other) - common) if common else 0.0


def ngram_signature(text: str) -> int:
    """A bit for every trigram; 0 for a text without any."""
    import numpy as np

    folded = _fold(text)
    if not folded:
        return 0
    encoded = folded.ljust(NGRAM_CHARS, "\0").encode("utf-32-le", "replace")
    points = np.frombuffer(encoded, dtype="<u4").astype(np.uint64)
    size = len(points) - NGRAM_CHARS + 1
    packed = np.zeros(size, dtype=np.uint64)
    for start in range(NGRAM_CHARS):
        packed = (packed << np.uint64(_POINT_BITS)) | points[start : start + size]
    places = (packed * np.uint64(_MULTIPLIER)) >> np.uint64(_SHIFT)
    bits = np.zeros(SIGNATURE_BITS, dtype=np.bool_)
    bits[places.astype(np.intp)] = True
    return int.from_bytes(np.packbits(bits, bitorder="little").tobytes(), "little")


def estimated_jaccard(one: int, other: int) -> float:
    """The similarity of the sets behind two bitmaps, by linear counting (Whang et al. 1990)."""
    if not one or not other:
        return 0.0
    sizes = ngram_counts()
    apart = sizes[one.bit_count()] + sizes[other.bit_count()]
    return max(0.0, apart / sizes[(one | other).bit_count()] - 1.0)


@cache
def ngram_counts() -> tuple[float, ...]:
    """By the number of bits set, the average number of distinct trigrams: some share a bit."""
    unset = (max(1, SIGNATURE_BITS - bits) for bits in range(SIGNATURE_BITS + 1))
    return tuple(SIGNATURE_BITS * math.log(SIGNATURE_BITS / bits) for bits in unset)


def _fold(text: str) -> str:
    return " ".join(unicodedata.normalize("NFC", text).lower().split())
