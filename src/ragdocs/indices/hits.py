"""What an index answers with: values that search and library read."""

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
    """One index's opinion of one chunk. Lists of hits are best first; higher is better.

    A tuple, because hundreds are made for every query.
    """

    key: ChunkKey
    score: float


ScoresOf = Callable[[Collection[ChunkKey]], Mapping[ChunkKey, float]]
"""The scores that a query gives exactly these chunks, as long as its view is open; a chunk without
anything of the query may be left out."""


@dataclass(frozen=True, slots=True)
class KeywordHits:
    """Hits best first; the most that this query could score; how many chunks have each unit; and
    the scores of chunks that are not among the hits.
    """

    hits: tuple[Hit, ...]
    ideal: float
    frequencies: Mapping[Unit, int]
    scores_of: ScoresOf = field(compare=False)


@dataclass(frozen=True, slots=True)
class CodeHits:
    """The chunks that hold the best code blocks, best first; the most that the query could score;
    and the score of the best block of other chunks, None when no other has anything of it.
    """

    hits: tuple[Hit, ...]
    ideal: float
    scores_of: ScoresOf | None = None


class Neighbour(NamedTuple):
    """A document near some hits: how much of their scores reaches it, over how few links.

    A tuple, because hundreds are made for every query.
    """

    doc_id: DocId
    weight: float
    depth: int


@dataclass(frozen=True, slots=True)
class PassageRecord:
    """A chunk with all that a stage needs to judge it; `ngrams` is 0 where no signature is
    stored."""

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


# Words of the documents, near a word that was typed or near a vector.

SHORT, MIDDLE = 3, 4
"""Under SHORT letters no word is near; under MIDDLE only one of the same length and first
letter."""


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


# One scale for the cosines of every model.

USUAL_MEAN, USUAL_DEVIATION = 0.165, 0.14
"""Of the cosines between passages of different documents by the built-in model, over seven sets."""
USUAL_SPREAD = 0.1
"""The usual standard deviation of the cosines between a query and any passages."""


class CosineScale(NamedTuple):
    """Maps one model's cosines to those of the built-in model, by which everything is weighed: any
    two passages are about as near by every model, whatever number it has for that."""

    mean: float = USUAL_MEAN
    deviation: float = USUAL_DEVIATION

    def of(self, cosine: float) -> float:
        return min(1.0, USUAL_MEAN + (cosine - self.mean) * self.factor)

    def inverse(self, value: float) -> float:
        return self.mean + (value - USUAL_MEAN) / self.factor

    @property
    def factor(self) -> float:
        return USUAL_DEVIATION / self.deviation
