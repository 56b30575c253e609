"""Near-copies: passages of different documents with nearly the same wording.

Compares the stored n-gram signatures. A signature is cut into 64 words of 64 bits, and from each
word its rarest bit is taken, which two similar passages share with about the probability of their
similarity (one-permutation hashing, Li et al. 2012). Passages that share eight of these bits in a
row are compared, each with a few neighbours of similar length: the work grows with the number of
passages, never with its square.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ragdocs.config.choices import LintRule
from ragdocs.indices.hits import PassageSignature
from ragdocs.indices.ngrams import MAX_BITS_SET, SIGNATURE_BITS, estimated_jaccard
from ragdocs.lint.findings import Documents, LintFinding, LintPlace, find_at
from ragdocs.models import DocId
from ragdocs.text import number_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

WORDS = SIGNATURE_BITS // 64
BAND = 8
"""Words of a band. Eight bands of eight find 99 % of the pairs with a similarity of 0.9, 77 % with
0.8 and 0.05 % with 0.3, which any two passages in one language have."""
NEIGHBOURS = 8
"""Passages of a band's bucket that each is compared with: the next ones by length."""
MIN_BITS_SET = 150
"""Some two lines of text: shorter passages are often the same by nature, such as `See also`."""


@dataclass(frozen=True, slots=True)
class _Passage:
    doc_id: DocId
    line_start: int
    line_end: int
    text_hash: bytes | None
    ngrams: int

    @property
    def place(self) -> tuple[DocId, int]:
        return self.doc_id, self.line_start


@dataclass(frozen=True, slots=True)
class _Copy:
    """A passage, the first passage that it nearly repeats, and how similar they are."""

    passage: _Passage
    original: _Passage
    similarity: float


def find_copies(
    signatures: Iterable[PassageSignature], documents: Documents, threshold: float
) -> Iterator[LintFinding]:
    """One finding for each pair of documents, at the later one."""
    passages = sorted(_read(signatures, documents), key=lambda one: one.place)
    totals: defaultdict[DocId, int] = defaultdict(int)
    for passage in passages:
        totals[passage.doc_id] += 1
    together: defaultdict[tuple[DocId, DocId], list[_Copy]] = defaultdict(list)
    for copy in _copies(passages, threshold):
        together[copy.passage.doc_id, copy.original.doc_id].append(copy)
    for (doc_id, original), copies in together.items():
        yield _finding(documents, doc_id, original, copies, totals[doc_id])


def _read(signatures: Iterable[PassageSignature], documents: Documents) -> Iterator[_Passage]:
    for doc_id, first, last, text_hash, ngrams in signatures:
        bits = int.from_bytes(ngrams, "little")
        if MIN_BITS_SET <= bits.bit_count() <= MAX_BITS_SET and doc_id in documents:
            yield _Passage(doc_id, first, last, text_hash, bits)


def _copies(passages: list[_Passage], threshold: float) -> Iterator[_Copy]:
    """Each passage with the first one that it repeats: a cluster of n gives n - 1."""
    best: dict[int, tuple[int, float]] = {}
    for one, other in _alike(passages):
        first, second = sorted((one, other))
        if passages[first].doc_id == passages[second].doc_id:
            continue
        if second in best and best[second][0] <= first:
            continue
        similarity = _similarity(passages[first], passages[second])
        if similarity >= threshold:
            best[second] = first, similarity
    for second, (first, similarity) in sorted(best.items()):
        yield _Copy(passages[second], passages[first], similarity)


def _similarity(one: _Passage, other: _Passage) -> float:
    if one.ngrams == other.ngrams:
        return 1.0
    return estimated_jaccard(one.ngrams, other.ngrams)


def _alike(passages: list[_Passage]) -> Iterator[tuple[int, int]]:
    """Pairs that may be near-copies, by their numbers."""
    if len(passages) < 2:
        return
    lengths = [passage.ngrams.bit_count() for passage in passages]
    for band in _bands(passages):
        buckets: defaultdict[bytes, list[int]] = defaultdict(list)
        for number, key in enumerate(band):
            buckets[key].append(number)
        for members in buckets.values():
            members.sort(key=lambda number: (lengths[number], number))
            for at, one in enumerate(members):
                for other in members[at + 1 : at + 1 + NEIGHBOURS]:
                    yield one, other
                if at > NEIGHBOURS:  # a large cluster has one original
                    yield members[0], one


def _bands(passages: list[_Passage]) -> Iterator[list[bytes]]:
    """For each band, the key of every passage."""
    rarest = _rarest_bits(passages)
    for start in range(0, WORDS, BAND):
        part = rarest[:, start : start + BAND].tobytes()
        yield [part[at : at + BAND] for at in range(0, len(part), BAND)]


def _rarest_bits(passages: list[_Passage]) -> "NDArray[np.uint8]":
    """For each passage and word, the number of the word's set bit that fewest passages have."""
    import numpy as np

    size = SIGNATURE_BITS // 8
    packed = np.frombuffer(
        b"".join(passage.ngrams.to_bytes(size, "little") for passage in passages), dtype=np.uint8
    ).reshape(len(passages), size)
    counts = np.zeros(SIGNATURE_BITS, dtype=np.int64)
    pieces = range(0, len(passages), 1_024)
    for start in pieces:
        bits = np.unpackbits(packed[start : start + 1_024], axis=1, bitorder="little")
        counts += bits.sum(axis=0, dtype=np.int64)
    # The rank of each bit within its word, rarest first; an unset bit comes after all others.
    order = counts.reshape(WORDS, 64).argsort(axis=1, kind="stable")
    ranks = np.empty((WORDS, 64), dtype=np.uint8)
    np.put_along_axis(ranks, order, np.arange(64, dtype=np.uint8)[None, :].repeat(WORDS, 0), axis=1)
    found = np.empty((len(passages), WORDS), dtype=np.uint8)
    for start in pieces:
        bits = np.unpackbits(packed[start : start + 1_024], axis=1, bitorder="little")
        words = bits.reshape(-1, WORDS, 64)
        found[start : start + 1_024] = np.where(words, ranks, np.uint8(64)).min(axis=2)
    return found


def _finding(
    documents: Documents, doc_id: DocId, original: DocId, copies: list[_Copy], total: int
) -> LintFinding:
    at, of = copies[0].passage, copies[0].original
    document, other = documents[doc_id], documents[original]
    similarity = sum(copy.similarity for copy in copies) / len(copies)
    is_same = similarity == 1.0
    how = "the same wording" if is_same else f"{min(99, round(similarity * 100))}% the same wording"
    named = other.path if other.tree == document.tree else f"{other.tree}:{other.path}"
    place = f"{named}:{of.line_start}-{of.line_end}"
    if len(copies) == 1:
        message = f"{'repeats' if is_same else 'nearly repeats'} {place} ({how})"
    else:
        share = f"{len(copies):,} of {number_of(total, 'passage')}"
        verb = "repeat" if is_same else "nearly repeat"
        message = (
            f"{share} {verb} {named}, the first one lines {of.line_start}-{of.line_end} ({how})"
        )
    return find_at(
        LintRule.NEAR_COPY,
        document,
        message,
        line_start=at.line_start,
        line_end=at.line_end,
        related=tuple(
            LintPlace(other.tree, other.path, copy.original.line_start, copy.original.line_end)
            for copy in copies
        ),
    )
