"""The answer to a request: results, the state of the index, and the explanation."""

import threading
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from itertools import islice
from typing import Protocol

from ragdocs.indices.view import View
from ragdocs.limits import (
    LAST_HOPE,
    LOW_CONFIDENCE,
    MAX_LINKS_SHOWN,
    MAX_PROPERTY_VALUES_SHOWN,
    MAX_TAGS_SHOWN,
)
from ragdocs.models import CANVAS_SUFFIX, Chunk, ChunkId, DateSource, DocId, Slug, TreeName
from ragdocs.places import shown_path
from ragdocs.search.budget import Extent, LeftOut
from ragdocs.search.candidates import Candidate, Evidence, Grounds, Strategy
from ragdocs.search.confidence import Question
from ragdocs.search.passages import MatchRange
from ragdocs.search.requests import QueryType
from ragdocs.search.snippets import Snippet
from ragdocs.search.stages import CompressionStats, StageCount
from ragdocs.search.understanding import AddedWord, Wish
from ragdocs.store.records import Position, ResolvedLink, StoredDocument
from ragdocs.text import number_of

# The explanation of an answer: each query, each result, each stage.


@dataclass(frozen=True, slots=True)
class WishExplanation:
    """A quotation: how many passages contain it (None: unknown), and how far it raises them, in [0,
    1].
    """

    phrase: str
    passages: int | None = None
    strength: float = 0.0

    @classmethod
    def from_wish(cls, wish: Wish) -> "WishExplanation":
        return cls(" ".join(wish.unit.terms), wish.passages, wish.strength)

    def in_words(self) -> str:
        if self.passages is None:
            return self.phrase
        counted = f"{self.passages} passage{'' if self.passages == 1 else 's'}"
        return f"{self.phrase} (in {counted}; raised by {self.strength:.2f})"


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryExplanation:
    """How one query was understood, and the weight and number of hits of each index."""

    text: str
    hypothesis: str
    is_strict: bool
    why: str
    """Why it is strict, or plain."""
    wishes: tuple[WishExplanation, ...]
    """What a plain question quotes."""
    as_text: tuple[str, ...]
    """Marks of the query language, and words such as `status:active`, that were read as text."""
    query_type: QueryType
    terms: tuple[str, ...]
    left_out: tuple[str, ...]
    """Terms of the query that were not searched, because rarer ones were enough."""
    added: tuple[AddedWord, ...]
    notes: tuple[str, ...]
    weights: Mapping[Strategy, float]
    hits: Mapping[Strategy, int]
    candidates: int
    """How many of all hits, best first, went through the stages."""
    question: Question
    """What the question itself adds to the evidence of every result."""
    filters: tuple[str, ...] = ()
    """The conditions in the query's text that were read as filters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultExplanation:
    """Which indices found a result, at what rank and score; what each contributed to its fused
    score, and the factors that raised it; and the evidence for its confidence, with its grounds.
    """

    id: ChunkId
    matched_id: ChunkId
    evidence: Mapping[Strategy, Evidence]
    contributions: Mapping[Strategy, float]
    boosts: Mapping[str, float]
    relevance: float
    grounds: Grounds

    @classmethod
    def from_candidate(cls, candidate: Candidate) -> "ResultExplanation":
        return cls(
            id=candidate.id,
            matched_id=candidate.best.chunk.id,
            evidence=candidate.evidence,
            contributions=candidate.contributions,
            boosts=candidate.boosts,
            relevance=candidate.relevance,
            grounds=candidate.grounds,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Everything that led to the answer; `stages` name the chunks that were dropped, and why."""

    confidence_from: str
    """The basis of the confidence: the evidence, or the rank sum and its consequences."""
    queries: tuple[QueryExplanation, ...]
    results: tuple[ResultExplanation, ...]
    stages: tuple[StageCount, ...]


# The state of the index at this moment: an empty list always has an explanation.


class Readiness(StrEnum):
    """How complete the answers are."""

    READY = "ready"
    BUILDING = "building"
    """Files or vectors are still to come: waiting helps."""
    DEGRADED = "degraded"
    """Something that should be searchable is not, and waiting does not help."""
    UNAVAILABLE = "unavailable"
    """There is nothing to search yet, or it cannot be used."""


_USUAL_REASONS = {
    Readiness.DEGRADED: "search uses keywords only",
    Readiness.UNAVAILABLE: "there is nothing to search yet",
}


@dataclass(frozen=True, slots=True)
class IndexState:
    """The state of one commit. `complete` is false whenever something that should be searchable is
    not.

    `files_waiting` have changed and are not stored yet; None: not all files have been looked at
    since the index was created. `reason` is given if the figures do not explain the state.
    `notices` are about settings that are ignored.
    """

    state: Readiness
    complete: bool
    generation: int
    documents: int
    passages: int
    vectors_pending: int
    failed_files: int
    files_waiting: int | None
    reason: str = ""
    notices: tuple[str, ...] = ()

    @property
    def is_there(self) -> bool:
        """Whether there was an index to search: every store has had its first commit."""
        return self.generation > 0

    def in_words(self) -> str:
        """One line for people: `building: 120 files to be read`."""
        said = [self._progress()]
        if self.failed_files:
            said.append(f"{number_of(self.failed_files, 'file')} could not be indexed")
        return f"{self.state.value}: {'; '.join(said)}"

    def unsure(self, reason: str) -> "IndexState":
        """For an index that is not yet compared with the files."""
        if self.state is not Readiness.READY:
            return self
        return replace(self, state=Readiness.BUILDING, complete=False, reason=reason)

    def behind(self, reason: str) -> "IndexState":
        """For an index that is not kept up to date."""
        if self.state is Readiness.UNAVAILABLE:
            return self
        return replace(self, state=Readiness.DEGRADED, complete=False, reason=reason)

    def _progress(self) -> str:
        passages = number_of(self.passages, "passage")
        if self.state is Readiness.READY:
            return f"{number_of(self.documents, 'document')}, {passages}"
        if self.state is not Readiness.BUILDING:
            return self.reason or _USUAL_REASONS[self.state]
        if self.reason:
            return self.reason
        if self.files_waiting is None:
            return "not all files have been read yet"
        if self.files_waiting:
            return f"{number_of(self.files_waiting, 'file')} to be read"
        return f"{self.passages - self.vectors_pending:,} of {passages} have vectors"


class IndexStates:
    """Computes the state once for each commit, because counting costs more than a query."""

    def __init__(self) -> None:
        self._known: tuple[Position, int, IndexState] | None = None
        self._lock = threading.Lock()

    def of(self, view: View, *, has_vectors: bool) -> IndexState:
        """`has_vectors`: whether this request could search by meaning at all."""
        present = view.vector_count if view.has_vectors and has_vectors else -1
        with self._lock:
            known = self._known
        if known and known[:2] == (view.position, present):
            return known[2]
        state = _state(view, present)
        with self._lock:
            self._known = (view.position, present, state)
        return state


def _state(view: View, present: int) -> IndexState:
    passages = view.count_passages()
    return state_of(
        generation=view.position.generation,
        documents=view.count_documents(),
        passages=passages,
        vectors_pending=max(0, passages - max(0, present)),
        failed_files=view.count_failures(),
        files_waiting=view.waiting,
        has_vectors=present >= 0,
    )


def state_of(
    *,
    generation: int,
    documents: int,
    passages: int,
    vectors_pending: int,
    failed_files: int,
    files_waiting: int | None,
    has_vectors: bool,
) -> IndexState:
    """The state by the contents of the store, for answers and for `status`. `has_vectors`: whether
    meaning can be searched at all.
    """
    readiness = readiness_of(files_waiting, vectors_pending, has_vectors=has_vectors)
    return IndexState(
        state=readiness,
        complete=readiness is Readiness.READY and not failed_files,
        generation=generation,
        documents=documents,
        passages=passages,
        vectors_pending=vectors_pending,
        failed_files=failed_files,
        files_waiting=files_waiting,
    )


def readiness_of(waiting: int | None, pending: int, *, has_vectors: bool) -> Readiness:
    if waiting != 0:
        return Readiness.BUILDING
    if not has_vectors:
        return Readiness.DEGRADED
    return Readiness.BUILDING if pending else Readiness.READY


# The results.


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A section or a chunk, and its place in the file."""

    id: ChunkId
    heading_path: tuple[str, ...]
    line_start: int
    line_end: int
    byte_start: int
    byte_end: int

    @classmethod
    def of(cls, chunk: Chunk) -> "Place":
        span = chunk.span
        return cls(
            id=chunk.id,
            heading_path=chunk.breadcrumb,
            line_start=span.line_start,
            line_end=span.line_end,
            byte_start=span.byte_start,
            byte_end=span.byte_end,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Metadata:
    """The metadata of a result's document, except its title. `links` are the documents that the
    cited section links to, each once, up to a maximum.
    """

    description: str
    keywords: tuple[str, ...]
    tags: tuple[str, ...]
    aliases: tuple[str, ...]
    author: str
    category: str
    date: datetime
    date_source: DateSource
    links: tuple[DocId, ...]

    @classmethod
    def of(
        cls, document: StoredDocument, links: Iterable[ResolvedLink], start: int, end: int
    ) -> "Metadata":
        """For the section with these bytes of the file."""
        front_matter = document.front_matter
        targets = (
            one.target
            for one in links
            if one.target is not None and start <= one.link.span.byte_start < end
        )
        return cls(
            description=front_matter.description,
            keywords=front_matter.keywords,
            tags=document.tags,
            aliases=front_matter.aliases,
            author=front_matter.author,
            category=front_matter.category,
            date=document.date,
            date_source=document.date_source,
            links=tuple(islice(dict.fromkeys(targets), MAX_LINKS_SHOWN)),
        )


MetadataMaker = Callable[[int, int], Metadata]
"""Makes the metadata of one document for the section with these bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResult:
    """One passage, cited under the narrowest section that contains its best match: `id`,
    `heading_path`, `slug`, lines and bytes are those of the section, and `position` is its place
    among the sections and passages of its document, from 0. `confidence` is how likely it answers
    and orders the results; `score` orders those of about the same confidence.

    `text` is the file's text at `text_lines` (first, last) and `text_bytes` [start, end), and
    `answer_lines` (first, last) are the lines that answer. `within` is the wider section around the
    text, if there is one. `matched` is the chunk that the indices found, the best of `parts`; with
    parent retrieval, `parent_chunk_id` is the chunk that was returned instead.
    """

    id: ChunkId
    doc_id: DocId
    tree: TreeName
    path: str
    file: str | None = None
    """Added by the edges."""
    title: str
    heading_path: tuple[str, ...]
    slug: Slug
    position: int
    line_start: int
    line_end: int
    byte_start: int
    byte_end: int
    within: Place | None = None
    text: str
    text_lines: tuple[int, int]
    text_bytes: tuple[int, int]
    extent: Extent = Extent.WHOLE
    answer_lines: tuple[int, int] | None = None
    snippet: Snippet
    matches: tuple[MatchRange, ...]
    score: float
    confidence: float
    found_by: tuple[Strategy, ...]
    matched: Place
    parent_chunk_id: ChunkId | None = None
    parts: tuple[Place, ...] = ()
    metadata: Metadata | None = None
    """If the request asks for it."""

    @property
    def is_card(self) -> bool:
        """Of a canvas, whose cards may all be on one line: the slug, not the lines, tells where."""
        return bool(self.slug) and self.path.lower().endswith(CANVAS_SUFFIX)

    @property
    def where(self) -> str:
        """The place in its tree, for people: `path:lines`, or `path#card`."""
        if self.is_card:
            return f"{self.path}#{self.slug}"
        return f"{self.path}:{self.line_start}-{self.line_end}"

    @property
    def shown_confidence(self) -> float:
        """As a reader sees it; limits apply to this figure."""
        return round(self.confidence, 2)

    @classmethod
    def from_candidate(
        cls, candidate: Candidate, section: Chunk, within: Place | None
    ) -> "SearchResult":
        """With all of its text, cited under `section`."""
        document, best, span = candidate.document, candidate.best.chunk, candidate.span
        is_parent = candidate.is_parent
        return cls(
            id=section.id,
            heading_path=section.breadcrumb,
            slug=section.slug,
            position=section.position,
            line_start=section.span.line_start,
            line_end=section.span.line_end,
            byte_start=section.span.byte_start,
            byte_end=section.span.byte_end,
            doc_id=document.id,
            tree=document.tree,
            path=shown_path(document.path),
            title=document.title,
            within=within,
            text=candidate.text,
            text_lines=(span.line_start, span.line_end),
            text_bytes=(span.byte_start, span.byte_end),
            snippet=Snippet("", ""),
            matches=(),
            score=candidate.score,
            confidence=candidate.confidence,
            found_by=tuple(s for s in Strategy if s in candidate.evidence),
            matched=Place.of(best),
            parent_chunk_id=(within.id if within else section.id) if is_parent else None,
            parts=tuple(Place.of(part.chunk) for part in candidate.constituents),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundDocument:
    """A document that satisfies the filters of a request without a question. `properties` are those
    that the filter names."""

    id: DocId
    tree: TreeName
    path: str
    title: str
    tags: tuple[str, ...]
    modified: datetime
    lines: int
    properties: Mapping[str, tuple[str, ...]]
    file: str | None = None

    @classmethod
    def of(cls, document: StoredDocument, keys: Collection[str]) -> "FoundDocument":
        return cls(
            id=document.id,
            tree=document.tree,
            path=shown_path(document.path),
            title=document.title,
            tags=document.tags[:MAX_TAGS_SHOWN],
            modified=document.date,
            lines=document.lines,
            properties={
                key: values[:MAX_PROPERTY_VALUES_SHOWN]
                for key, values in document.properties
                if key in keys
            },
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentList:
    """A page of the documents that satisfy a filter; `next_offset` begins the next page, and is
    None on the last."""

    total: int
    offset: int
    next_offset: int | None
    documents: tuple[FoundDocument, ...]

    def first(self, count: int) -> "DocumentList":
        """A shorter page; the next one follows it."""
        if count >= len(self.documents):
            return self
        return replace(self, documents=self.documents[:count], next_offset=self.offset + count)


@dataclass(frozen=True, slots=True)
class Presented:
    """The results within a budget, and what did not fit."""

    results: tuple[SearchResult, ...]
    left_out: tuple[LeftOut, ...] = ()


class Packer(Protocol):
    """Packs the results of one search into a number of tokens. With `text_from`, it keeps only the
    place of those with less confidence but for the first, and of those whose answer is in a text
    before."""

    def __call__(self, max_tokens: int | None, text_from: float = 0.0) -> Presented: ...


def least_to_read(confidences: Iterable[float]) -> float:
    """The confidence from which the text of a result is worth its room. Where one is sure, the
    unsure ones hold no further answers; where none is, one of several may (specs/0116)."""
    return LOW_CONFIDENCE if max(confidences, default=0.0) >= LOW_CONFIDENCE else LAST_HOPE


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResponse:
    """The results, best first, with the state of their index and the counts of every stage;
    `explanation` is given if the request asks for it.
    """

    results: tuple[SearchResult, ...]
    query_types: tuple[QueryType, ...]
    index: IndexState
    stats: CompressionStats
    stages: tuple[StageCount, ...]
    seconds: Mapping[str, float] = field(compare=False)
    notes: tuple[str, ...] = ()
    did_you_mean: str | None = None
    nearest_terms: tuple[str, ...] = ()
    """Similar words of the documents, if no document has any word of a query."""
    left_out: tuple[LeftOut, ...] = ()
    """The results that did not fit into `max_tokens`, and how to get them."""
    explanation: Explanation | None = None
    listing: DocumentList | None = None
    """For a request without a question, in place of results."""
    pack: Packer | None = field(default=None, compare=False, repr=False)
    """None if there are no results."""

    def within(self, max_tokens: int | None, text_from: float = 0.0) -> "SearchResponse":
        """The same answer in another budget: packed again, never searched again."""
        if self.pack is None:
            return self
        shown = self.pack(max_tokens, text_from)
        return replace(self, results=shown.results, left_out=shown.left_out)
