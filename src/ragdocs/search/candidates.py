"""A chunk on its way to being a result, with all that any stage needs to judge it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple, Self

from ragdocs.models import ChunkId, Span
from ragdocs.store.records import ChunkKey, StoredChunk, StoredDocument

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Strategy(StrEnum):
    """Which index proposed a chunk."""

    SEMANTIC = "semantic"
    KEYWORD = "keyword"
    CODE = "code"
    GRAPH = "graph"


Weights = Mapping[Strategy, float]
"""How much say each index has; one that is not named has 1."""


class Evidence(NamedTuple):
    """Where one index placed a chunk, from 1, and the score it gave."""

    rank: int
    score: float


TELLING = (1.0, 1.0, 0.5)
"""What an exact token tells that no document, one, or two have; that more have tells nothing."""


class ExactToken(NamedTuple):
    """A name, code or file name of the question: the chunks with it that may be found, and how many
    different documents have it, a copy not counted."""

    keys: frozenset[ChunkKey]
    documents: int

    @property
    def is_telling(self) -> bool:
        """Whether its passages come first."""
        return self.documents <= 1

    @property
    def strength(self) -> float:
        return TELLING[self.documents] if self.documents < len(TELLING) else 0.0


class Grounds(NamedTuple):
    """What a passage's evidence is made from: how near it is in meaning and how much of the most
    that its words could score it has (None: not asked), both in [0, 1]; whether its heading is what
    was asked; how much it tells that it has a rare code or name of the question (to 1) or lacks it
    (to -1), 0 where nothing such was asked; and how rare a quotation it has.
    """

    similarity: float | None = None
    coverage: float | None = None
    is_named: bool = False
    token: float = 0.0
    wish: float = 0.0


NO_GROUNDS = Grounds()


@dataclass(kw_only=True)
class Candidate:
    """A fused hit. `grounds` are what speaks for it, and `relevance` is what they alone are worth,
    `boosts` what raised it above that: `score` has both, and is in [0, 1] once calibrated;
    `confidence` is made from `relevance` only and orders the results, `score` those of about the
    same confidence. `content_hash` and `ngrams` may be empty: dedup makes them then.

    `stored` is a leaf, or has a `passage`: the leaves that have its text, in order. `constituents`
    are the chunks found in it, and `matched` the best of them. The passage is shown with the last
    `lead` characters of the leaf `before` it. `sections` are those that it has anything of.

    Neither `frozen` nor with slots, which make a copy four times as dear, and forty are made by
    several stages of every query: `Final` says the same to the type checker.
    """

    stored: Final[StoredChunk]
    document: Final[StoredDocument]
    score: Final[float]
    relevance: Final[float] = 0.0
    grounds: Final[Grounds] = NO_GROUNDS
    confidence: Final[float] = 0.0
    evidence: Final[Mapping[Strategy, Evidence]] = field(default_factory=dict[Strategy, Evidence])
    contributions: Final[Mapping[Strategy, float]] = field(default_factory=dict[Strategy, float])
    boosts: Final[Mapping[str, float]] = field(default_factory=dict[str, float])
    vector: Final["NDArray[np.float32] | None"] = field(default=None, compare=False)
    content_hash: Final[bytes] = b""
    ngrams: Final[int] = 0
    constituents: Final[tuple[StoredChunk, ...]] = ()
    passage: Final[tuple[StoredChunk, ...]] = ()
    matched: Final[StoredChunk | None] = None
    is_parent: Final[bool] = False
    """Returned for what was found in it (parent retrieval)."""
    before: Final[StoredChunk | None] = None
    lead: Final[int] = 0
    sections: Final[tuple[StoredChunk, ...]] = ()
    is_over_limit: Final[bool] = False
    """Here although its document has enough others, because nothing else was found."""
    ceiling: Final[float] = 1.0
    """No later stage may raise the score above this: what a re-ranker did not read stays behind
    what it did."""

    def changed(self, **changes: object) -> Self:
        """As `dataclasses.replace`, which takes more than twice as long."""
        copy = object.__new__(type(self))
        copy.__dict__.update(self.__dict__, **changes)
        return copy

    @property
    def id(self) -> ChunkId:
        return self.stored.chunk.id

    @property
    def found(self) -> tuple[StoredChunk, ...]:
        """The chunks that the indices found, whatever was made of them since."""
        return self.constituents or (self.stored,)

    @property
    def best(self) -> StoredChunk:
        """The leaf that was found, and of several the best."""
        return self.matched or self.stored

    @property
    def leaves(self) -> tuple[StoredChunk, ...]:
        return self.passage or (self.stored,)

    @property
    def text(self) -> str:
        return "".join(leaf.chunk.text or "" for leaf in self.leaves)

    @property
    def span(self) -> Span:
        first, last = self.leaves[0].chunk.span, self.leaves[-1].chunk.span
        return Span(first.byte_start, last.byte_end, first.line_start, last.line_end)


@dataclass(frozen=True, slots=True)
class Stage:
    """A named step of the pipeline: candidates in, best first, and those that are left out."""

    name: str
    apply: Callable[[Sequence[Candidate]], Sequence[Candidate]]
    reason: Callable[[Candidate, Sequence[Candidate]], str] = lambda _item, _left: ""
    """Why it let a candidate fall, given those it left."""
