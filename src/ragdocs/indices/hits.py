"""The values in which an index answers, for search and library."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from ragdocs.indices.conditions import Unit
from ragdocs.models import DocId
from ragdocs.store.records import ChunkKey, StoredChunk, StoredDocument

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vector = NDArray[np.float32]


class Hit(NamedTuple):
    """A chunk with the score that one index gave it. Lists of hits are best first.

    A tuple, because every query makes hundreds.
    """

    key: ChunkKey
    score: float


ScoresOf = Callable[[Collection[ChunkKey]], Mapping[ChunkKey, float]]
"""The scores that a query gives these chunks, as long as its view is open; a chunk that does not
match may be left out."""


@dataclass(frozen=True, slots=True)
class KeywordHits:
    """Hits, best first; the maximum score of this query; how many chunks have each unit; and the
    scores of chunks that are not among the hits.
    """

    hits: tuple[Hit, ...]
    ideal: float
    frequencies: Mapping[Unit, int]
    scores_of: ScoresOf = field(compare=False)


@dataclass(frozen=True, slots=True)
class CodeHits:
    """The chunks with the best code blocks, best first; the maximum score of the query; and the
    score of the best block of other chunks, None if no other chunk matches.
    """

    hits: tuple[Hit, ...]
    ideal: float
    scores_of: ScoresOf | None = None


class Neighbour(NamedTuple):
    """A document linked with some hits: its share of their scores, and the number of links.

    A tuple, because every query makes hundreds.
    """

    doc_id: DocId
    weight: float
    depth: int


@dataclass(frozen=True, slots=True)
class PassageRecord:
    """A chunk with everything that a stage needs; `ngrams` is 0 if no signature is stored."""

    stored: StoredChunk
    document: StoredDocument
    vector: "Vector | None"
    ngrams: int


class PassageSignature(NamedTuple):
    """Where a passage stands, and the bitmap of its n-grams (`indices/ngrams.py`), little-endian.
    A tuple: there is one for every passage of the index."""

    doc_id: DocId
    line_start: int
    line_end: int
    text_hash: bytes | None
    ngrams: bytes


# Words of the documents that are near a typed word or a vector.

SHORT, MIDDLE = 3, 4
"""Under SHORT letters no word is near; under MIDDLE only one of the same length and first letter.
"""


@dataclass(frozen=True, slots=True)
class NearWord:
    """A word of the documents that a misspelt word may have meant."""

    word: str
    term: str
    documents: int
    distance: int


@dataclass(frozen=True, slots=True)
class NearTerm:
    """A word of the documents, its term, and its cosine with a query."""

    word: str
    term: str
    similarity: float
    vector: "Vector"


# A common scale for the cosines of all models.

USUAL_MEAN, USUAL_DEVIATION = 0.165, 0.14
"""Of the built-in model's cosines between passages of different documents, over seven sets."""
USUAL_SPREAD = 0.1
"""The usual standard deviation of the cosines between a query and any passages."""


class CosineScale(NamedTuple):
    """Maps one model's cosines to those of the built-in model, for which all thresholds are set:
    it assumes that two passages are about equally similar by every model."""

    mean: float = USUAL_MEAN
    deviation: float = USUAL_DEVIATION

    def of(self, cosine: float) -> float:
        return min(1.0, USUAL_MEAN + (cosine - self.mean) * self.factor)

    def inverse(self, value: float) -> float:
        return self.mean + (value - USUAL_MEAN) / self.factor

    @property
    def factor(self) -> float:
        return USUAL_DEVIATION / self.deviation
