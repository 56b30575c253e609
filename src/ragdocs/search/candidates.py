"""A candidate: a chunk with everything that a stage needs to judge it; the order of candidates, and
the tree of their chunks.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from enum import Enum, StrEnum
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, Self

from ragdocs.models import ChunkId, DocId, Span
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
"""The weight of each index; an index that is missing here has 1."""


class Evidence(NamedTuple):
    """Where one index placed a chunk, from 1, and the score it gave."""

    rank: int
    score: float


TELLING = (1.0, 1.0, 0.5)
"""How much an exact token says that no, one or two documents have; in more, it says nothing."""


CODE_LACK = 2.0
"""A passage about another ticket does not answer, however well its words fit."""


class TokenKind(Enum):
    """`TKT-90931` is a code, `parse_query` a name. A year or a price is a number: it leads to the
    only passage with it, but does not show that the passage answers."""

    CODE = "code"
    NAME = "name"
    NUMBER = "number"


class ExactToken(NamedTuple):
    """A name, code or file name in the question: the chunks with it that may be found, and how many
    different documents have it; copies count once."""

    keys: frozenset[ChunkKey]
    documents: int
    kind: TokenKind = TokenKind.NAME

    @property
    def is_telling(self) -> bool:
        """Whether its passages come first."""
        return self.documents <= 1

    @property
    def strength(self) -> float:
        """How much it says that a passage has it."""
        if self.kind is TokenKind.NUMBER or self.documents >= len(TELLING):
            return 0.0
        return TELLING[self.documents]

    @property
    def lack(self) -> float:
        """How much it says that a passage lacks it."""
        return self.strength * (CODE_LACK if self.kind is TokenKind.CODE else 1.0)


class Grounds(NamedTuple):
    """The parts of a passage's evidence: its similarity in meaning and its share of the highest
    possible word score, both in [0, 1] (None: not asked); whether its heading is what was asked
    for; `token`: whether it has a rare code or name of the question (up to 1) or lacks it (down to
    -1), 0 if the question has none; and how rare the quotation is that it contains.
    """

    similarity: float | None = None
    coverage: float | None = None
    is_named: bool = False
    token: float = 0.0
    wish: float = 0.0


NO_GROUNDS = Grounds()


@dataclass(kw_only=True)
class Candidate:
    """A fused hit. `relevance` is computed from the `grounds` alone; `score` also has the `boosts`
    and is in [0, 1] once calibrated. `confidence` is computed from `relevance` only and orders the
    results; `score` orders those of about the same confidence. `content_hash` and `ngrams` may be
    empty: dedup then computes them.

    `stored` is a leaf, or has a `passage`: the leaves with its text, in order. `constituents` are
    the chunks found in it, and `matched` is the best of them. The passage is shown with the last
    `lead` characters of the leaf `before` it. `sections` are those that overlap it, and `around`
    are its leaves with those beside them, which its text may be widened by.

    It is neither frozen nor slotted, because that makes a copy four times slower, and several
    stages of every query make forty copies each. `Final` tells the type checker the same.
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
    """Returned in place of a chunk found in it (parent retrieval)."""
    before: Final[StoredChunk | None] = None
    lead: Final[int] = 0
    sections: Final[tuple[StoredChunk, ...]] = ()
    around: Final[tuple[StoredChunk, ...]] = ()
    is_over_limit: Final[bool] = False
    """Kept although its document has enough results, because nothing else was found."""
    ceiling: Final[float] = 1.0
    """No later stage may raise the score above this: candidates that a re-ranker did not read stay
    behind those that it did."""

    def with_changes(self, **changes: object) -> Self:
        """Like `dataclasses.replace`, but more than twice as fast."""
        copy = object.__new__(type(self))
        copy.__dict__.update(self.__dict__, **changes)
        return copy

    @property
    def id(self) -> ChunkId:
        return self.stored.chunk.id

    @property
    def found(self) -> tuple[StoredChunk, ...]:
        """The chunks that the indices found, before any merging."""
        return self.constituents or (self.stored,)

    @property
    def best(self) -> StoredChunk:
        """The best leaf that was found."""
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
    """A named step of the pipeline, from candidates to candidates, best first."""

    name: str
    apply: Callable[[Sequence[Candidate]], Sequence[Candidate]]
    reason: Callable[[Candidate, Sequence[Candidate]], str] = lambda _item, _left: ""
    """Why it dropped a candidate, given those that it left."""


# The order of results: by score, by confidence, with a second opinion, and with a limit.

RERANK = "rerank"
"""The boost by which a second opinion changed a score."""
FLOOR_PLACE = 10
"""The only document with the rare words of a question is placed here at the latest."""
ALIKE = 0.05
"""Confidences this close count as equal: something else may order them."""


def best_first(candidates: Sequence[Candidate]) -> list[Candidate]:
    """By score; equal ones keep their order."""
    return sorted(candidates, key=lambda candidate: -candidate.score)


def bring_nearer(item: Candidate, part: float, reason: str) -> Candidate:
    """Moves the score by `part` of its distance to 1 and records the factor as a boost."""
    missing = 1.0 - item.score
    if item.score <= 0 or part <= 0 or missing <= 0:
        return item
    score = item.score + missing * min(1.0, part)
    return item.with_changes(score=score, boosts={**item.boosts, reason: score / item.score})


def surest_first(candidates: Sequence[Candidate]) -> list[Candidate]:
    """By confidence; those within ALIKE of one another keep their order, so no result is behind one
    that is clearly less likely."""
    places = sorted(range(len(candidates)), key=lambda place: -candidates[place].confidence)
    alike: list[int] = []  # a heap: the next one is the one that came in first
    taken: set[int] = set()
    ordered: list[Candidate] = []
    seen = 0
    for surest in places:
        # The surest one waits for those of about the same confidence that came in before it.
        while surest not in taken:
            least = candidates[surest].confidence - ALIKE
            while seen < len(places) and candidates[places[seen]].confidence >= least:
                heappush(alike, places[seen])
                seen += 1
            first = heappop(alike)
            taken.add(first)
            ordered.append(candidates[first])
    return ordered


def take_first(
    candidates: Sequence[Candidate],
    top_n: int,
    order: Callable[[Sequence[Candidate]], list[Candidate]] = best_first,
    floored: Set[DocId] = frozenset(),
) -> list[Candidate]:
    """The first `top_n`, then ordered, because MMR chooses without ordering. A floored document is
    guaranteed a place: at least the last one, or the last of the first ten."""
    ordered = order(candidates[: max(0, top_n)])
    for document in sorted(floored):
        own = next((item for item in candidates if item.document.id == document), None)
        place = min(top_n, FLOOR_PLACE) - 1
        if place < 1:  # the first place belongs to the surest result
            continue
        if own is not None and all(item.document.id != document for item in ordered[: place + 1]):
            others = [item for item in ordered if item is not own]
            ordered = [*others[:place], own, *others[place:]][:top_n]
    return ordered


def rescore(
    candidates: Sequence[Candidate], opinions: Sequence[float], weight: float
) -> list[Candidate]:
    """Mixes a second opinion of this weight into the score and confidence of the first candidates;
    the rest follow and never score above them. An opinion on one passage changes no other's
    numbers.
    """
    judged = best_first(
        [
            _judge(candidate, min(1.0, max(0.0, opinion)), weight)
            for candidate, opinion in zip(candidates, opinions, strict=False)
        ]
    )
    lowest = judged[-1].score if judged else 1.0
    rest = candidates[len(judged) :]
    return judged + [replace(item, score=min(item.score, lowest), ceiling=lowest) for item in rest]


def _judge(candidate: Candidate, opinion: float, weight: float) -> Candidate:
    score = _mix(candidate.score, opinion, weight)
    judged = candidate.with_changes(
        score=score, confidence=_mix(candidate.confidence, opinion, weight)
    )
    if candidate.score <= 0:
        return judged
    return judged.with_changes(boosts={**candidate.boosts, RERANK: score / candidate.score})


def _mix(own: float, opinion: float, weight: float) -> float:
    return (1.0 - weight) * own + weight * opinion


# One document's chunk tree, or a part of it: the ancestors of a node, and the leaves below it.
#
# Only `parent_id` decides what is above: a slug that begins like another says nothing.


class NodesOf(Protocol):
    """Reads a part of a document's chunk tree, like `View.chunks_near`. Reading more does no harm,
    but a tree may have a hundred thousand nodes.
    """

    def __call__(
        self, doc_id: DocId, found: Collection[ChunkKey], /, *, inside: int = 0, beside: int = 0
    ) -> Sequence[StoredChunk]: ...


class ChunkTree:
    """The nodes in reading order, so every parent comes before its children."""

    def __init__(self, nodes: Sequence[StoredChunk]) -> None:
        self.nodes = sorted(nodes, key=lambda node: node.chunk.position)
        self._by_id = {node.chunk.id: node for node in nodes}

    def __getitem__(self, node_id: ChunkId) -> StoredChunk:
        return self._by_id[node_id]

    def parent(self, node_id: ChunkId) -> StoredChunk | None:
        parent_id = self._by_id[node_id].chunk.parent_id
        return None if parent_id is None else self._by_id[parent_id]

    def ancestors(self, node_id: ChunkId) -> Iterator[StoredChunk]:
        """From the parent up to the document."""
        while (parent := self.parent(node_id)) is not None:
            yield parent
            node_id = parent.chunk.id

    def is_inside(self, node_id: ChunkId, other_id: ChunkId) -> bool:
        """Whether a node is another, or anywhere below it."""
        return node_id == other_id or any(
            node.chunk.id == other_id for node in self.ancestors(node_id)
        )

    def leaves(self, node_id: ChunkId) -> tuple[StoredChunk, ...]:
        """The leaves with a node's text, in order; the first and the last may extend beyond it."""
        own = self._by_id[node_id].chunk.span
        return tuple(
            node
            for node in self.nodes
            if node.chunk.text is not None
            and node.chunk.span.byte_start < own.byte_end
            and node.chunk.span.byte_end > own.byte_start
        )
