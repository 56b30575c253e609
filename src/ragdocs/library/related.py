"""Finds what is related to a document: links, backlinks, its community, similar passages."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, TypeAlias

from ragdocs.errors import EmbeddingError, QueryError, SourceError
from ragdocs.indices.analysis import Analyzer
from ragdocs.indices.conditions import Filter, Unit, except_documents
from ragdocs.indices.hits import Hit
from ragdocs.indices.keyword import KeywordQuery, field_texts
from ragdocs.indices.view import View
from ragdocs.library.answers import (
    LinkEntry,
    NeighbourEntry,
    Related,
    SimilarEntry,
    short,
)
from ragdocs.library.documents import headed_sections, place_of, refuse_lines_beyond
from ragdocs.library.requests import RelatedRequest
from ragdocs.library.source_code import plain_text
from ragdocs.library.terms import TellingTerm, TermCounter, TermFrequencies, telling_terms
from ragdocs.models import DocId
from ragdocs.places import Places, printable_name, shown_path
from ragdocs.references import Resolver
from ragdocs.store.records import ChunkKey, ChunkPlace, ResolvedLink, StoredChunk, StoredDocument
from ragdocs.text import advised

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ragdocs.embedding.base import Vectors

# Links out of a document or section, and links to it.

Lines = tuple[int, int]


def links_out(view: View, document: StoredDocument, lines: Lines | None) -> list[ResolvedLink]:
    """In their order in the text, without links within the document."""
    return [
        link
        for link in view.links(document.id)
        if link.target != document.id and _is_within(link.link.span.line_start, lines)
    ]


def links_in(view: View, document: StoredDocument, lines: Lines | None) -> list[ResolvedLink]:
    """From other documents; for a section, those to one of its headings."""
    found = [link for link in view.backlinks(document.id) if link.source != document.id]
    if lines is None or not found:
        return found
    slugs = {
        section.heading.slug
        for section in headed_sections(view, document)
        if _is_within(section.span.line_start, lines)
    }
    return [link for link in found if link.slug in slugs]


def link_entries(
    view: View, links: Iterable[ResolvedLink], *, is_back: bool
) -> tuple[LinkEntry, ...]:
    """Adds the documents at the other end."""
    ends = [(link, link.source if is_back else link.target) for link in links]
    documents = view.documents_by_id({end for _, end in ends if end is not None})
    return tuple(_link_entry(link, end, documents) for link, end in ends)


def _link_entry(
    link: ResolvedLink, end: DocId | None, documents: Mapping[DocId, StoredDocument]
) -> LinkEntry:
    other = documents.get(end) if end is not None else None
    written = link.link
    anchor = f"#{written.anchor}" if written.anchor else ""
    return LinkEntry(
        doc_id=other.id if other else None,
        tree=other.tree if other else None,
        path=shown_path(other.path) if other else "",
        title=short(other.title) if other else "",
        slug=link.slug,
        kind=written.kind.value,
        text=short(written.text),
        target=short(f"{written.target}{anchor}"),
        line=written.span.line_start,
    )


def _is_within(line: int, lines: Lines | None) -> bool:
    return lines is None or lines[0] <= line <= lines[1]


# Similar passages of other documents, by meaning and by words.
#
# No model runs: meaning is compared by the stored vectors. Only the best passage of each document
# counts, so that a long one does not fill the list.

MAX_TERMS = 25
"""As in Lucene's MoreLikeThis; more would add only common words."""
MAX_CHARS = 30_000
"""How much of a text is counted: this much shows what it is about."""
SNIPPET_CHARS = 200
MAX_PASSED_OVER = 100
_PASSAGES_PER_RESULT = 3
_GROWTH = 4

Find = Callable[[int], Sequence[Hit]]
Embed: TypeAlias = "Callable[[Sequence[str]], Vectors]"


class Similarity:
    """Searches one snapshot in all documents but one, which has this many passages."""

    def __init__(self, view: View, analyzer: Analyzer, doc_id: DocId, passages: int) -> None:
        self._view = view
        self._analyzer = analyzer
        self._doc_id = doc_id
        # Skipping a few hits is faster than a filter: ten times, by words.
        self._passed_over = passages if passages <= MAX_PASSED_OVER else 0
        self._others: Filter = except_documents([doc_id]) if passages > MAX_PASSED_OVER else None

    def by_meaning(self, leaves: Sequence[ChunkKey], limit: int) -> tuple[SimilarEntry, ...] | None:
        """By the mean of the passages' vectors; None if none of them has a vector yet."""
        vector = _mean(list(self._view.passage_vectors(leaves).values()))
        return None if vector is None else self.by_vector(vector, limit)

    def by_vector(self, vector: "Vectors", limit: int) -> tuple[SimilarEntry, ...]:
        found = self._best(
            lambda count: self._view.vector_recall(count, self._others)(vector), limit
        )
        return tuple(_similar_entry(stored, document, score) for stored, document, score in found)

    def by_words(self, texts: Iterable[str], limit: int) -> tuple[SimilarEntry, ...]:
        """By the most telling words."""
        terms = self._choose_terms(texts)
        units = tuple(Unit((each.term,), None, each.emphasis) for each in terms)
        if not units:
            return ()
        ideal = 0.0

        def find(count: int) -> Sequence[Hit]:
            nonlocal ideal
            hits = self._view.search_words(KeywordQuery(units), count, self._others)
            ideal = hits.ideal
            return hits.hits

        found = self._best(find, limit)
        return tuple(
            _similar_entry(
                stored,
                document,
                score / ideal if ideal else 0.0,
                self._shared_words(terms, stored, document),
            )
            for stored, document, score in found
        )

    def _choose_terms(self, texts: Iterable[str]) -> list[TellingTerm]:
        counter = TermCounter(self._analyzer)
        room = MAX_CHARS
        for text in texts:
            counter.add(text[:room])
            room -= len(text[:room])
            if not room:
                break
        counter.analyse()
        frequencies = TermFrequencies(self._view)
        known = frequencies.of(counter.rank(counter.frequencies))
        return telling_terms(counter, known, frequencies, MAX_TERMS)

    def _best(self, find: Find, limit: int) -> list[tuple[StoredChunk, StoredDocument, float]]:
        """The best hit of each document, until there are enough documents or no more hits."""
        asked = limit * _PASSAGES_PER_RESULT + self._passed_over
        while True:
            hits = find(asked)
            chunks = self._view.chunks_by_key([hit.key for hit in hits])
            best: dict[DocId, tuple[StoredChunk, float]] = {}
            for key, score in hits:
                if key in chunks and score > 0 and chunks[key].chunk.doc_id != self._doc_id:
                    best.setdefault(chunks[key].chunk.doc_id, (chunks[key], score))
            if len(best) >= limit or len(hits) < asked:
                break
            asked *= _GROWTH
        owners = self._view.documents_by_id(best)
        found = [
            (stored, owners[doc_id], score)
            for doc_id, (stored, score) in best.items()
            if doc_id in owners
        ]
        return found[:limit]

    def _shared_words(
        self, terms: Sequence[TellingTerm], stored: StoredChunk, document: StoredDocument
    ) -> tuple[str, ...]:
        texts = field_texts(document, stored.chunk).values()
        own = {term for text in texts for term in self._analyzer.terms(text)}
        return tuple(each.word for each in terms if each.term in own)


def _mean(vectors: "Sequence[NDArray[np.float32]]") -> "NDArray[np.float32] | None":
    import numpy as np

    if not vectors:
        return None
    mean = np.mean(np.stack(vectors), axis=0)
    length = float(np.linalg.norm(mean))
    return mean / length if length > 0 else None


def _similar_entry(
    stored: StoredChunk, document: StoredDocument, score: float, terms: tuple[str, ...] = ()
) -> SimilarEntry:
    chunk = stored.chunk
    return SimilarEntry(
        id=chunk.id,
        doc_id=document.id,
        tree=document.tree,
        path=shown_path(document.path),
        title=short(document.title),
        heading_path=chunk.breadcrumb,
        line_start=chunk.span.line_start,
        line_end=chunk.span.line_end,
        score=min(max(score, 0.0), 1.0),
        snippet=_opening(chunk.text or ""),
        terms=terms,
    )


def _opening(text: str) -> str:
    words = " ".join(text[: SNIPPET_CHARS * 4].split())
    return words if len(words) <= SNIPPET_CHARS else f"{words[: SNIPPET_CHARS - 1]}…"


# `related`: everything related to a document or section, each kind by itself.

MAX_LINKED = 1_000
"""How many neighbours are looked at: a hub may have tens of thousands."""
_READ_AT_ONCE = 64
_NO_VECTORS = "this text has no vectors yet, so similar text cannot be found by meaning"
_NO_TEXT = "there is no text here that could be compared with others"
_NO_COMMUNITIES = "clusters of linked notes are not computed yet: a server or {command} does that"


_NOT_INDEXED = "{name} is not indexed: compared by its text"
_NO_MEANING = "not compared by meaning"
_PIECE_CHARS = 1_000
_PARAGRAPH_END = re.compile(r"\n\s*\n")


def _pieces(text: str) -> list[str]:
    """Of about the size of a passage, whole paragraphs where possible."""
    pieces: list[str] = []
    for paragraph in filter(str.strip, _PARAGRAPH_END.split(text)):
        if pieces and len(pieces[-1]) + len(paragraph) < _PIECE_CHARS:
            pieces[-1] += f"\n\n{paragraph}"
        else:
            starts = range(0, len(paragraph), _PIECE_CHARS)
            pieces += [paragraph[at : at + _PIECE_CHARS] for at in starts]
    return pieces


class Relations:
    """Answers from one view."""

    def __init__(self, view: View, analyzer: Analyzer, places: Places) -> None:
        self._view = view
        self._analyzer = analyzer
        self._resolver = Resolver(view, places)

    def of(self, request: RelatedRequest) -> Related:
        """Raises QueryError if there is no such document or heading."""
        target = self._resolver.find(request.reference)
        document, limit = target.document, request.limit
        place = place_of(self._view, target)
        nodes = self._view.outline_of_chunks(document.id)
        part = self._view.chunk(place.chunk_id) if place.chunk_id is not None else None
        lines = (part.chunk.span.line_start, part.chunk.span.line_end) if part else place.lines
        refuse_lines_beyond(self._view, document, lines)
        leaves = _below(part.key, nodes) if part else _within(lines, nodes)
        outgoing = links_out(self._view, document, lines)
        incoming = links_in(self._view, document, lines)
        neighbours, size = self._community(document.id, limit)
        passages = sum(node.is_leaf for node in nodes)
        similarity = Similarity(self._view, self._analyzer, document.id, passages)
        near = similarity.by_meaning(leaves, limit)
        texts = chain(place.heading_path, self._texts(leaves))
        no_communities = _NO_COMMUNITIES.format(command=advised("update"))
        no_vectors = _NO_VECTORS if leaves else _NO_TEXT
        notes = [no_vectors] * (near is None) + [no_communities] * (size is None)
        return Related(
            id=place.id,
            doc_id=document.id,
            tree=document.tree,
            path=shown_path(document.path),
            title=short(document.title),
            heading_path=place.heading_path,
            links=link_entries(self._view, outgoing[:limit], is_back=False),
            links_total=len(outgoing),
            backlinks=link_entries(self._view, incoming[:limit], is_back=True),
            backlinks_total=len(incoming),
            community=neighbours,
            community_size=size,
            similar_by_meaning=near or (),
            similar_by_words=similarity.by_words(texts, limit),
            notes=tuple(notes),
        )

    def of_text(self, request: RelatedRequest, embed: "Embed | None") -> Related:
        """What is similar to a text that is not indexed. Raises QueryError if it is not text."""
        try:
            text = plain_text(request.content or "")[:MAX_CHARS]
        except SourceError as error:
            raise QueryError(f"{printable_name(request.reference)}: {error}") from error
        similarity = Similarity(self._view, self._analyzer, DocId(""), 0)
        near, note = self._near_text(similarity, text, request.limit, embed)
        name = printable_name(request.reference)
        return Related(
            id="",
            doc_id="",
            tree="",
            path=name,
            title=name.rpartition("/")[2],
            heading_path=(),
            links=(),
            links_total=0,
            backlinks=(),
            backlinks_total=0,
            community=(),
            community_size=None,
            similar_by_meaning=near,
            similar_by_words=similarity.by_words([text], request.limit),
            notes=tuple(filter(None, (_NOT_INDEXED.format(name=name), note))),
        )

    def _near_text(
        self, similarity: Similarity, text: str, limit: int, embed: "Embed | None"
    ) -> tuple[tuple[SimilarEntry, ...], str]:
        """By meaning, and why not."""
        pieces = _pieces(text)
        if not pieces or embed is None or not self._view.has_vectors:
            return (), _NO_MEANING
        try:
            vector = _mean(list(embed(pieces)))
        except EmbeddingError as error:
            return (), f"{_NO_MEANING}: {error}"
        return ((), _NO_MEANING) if vector is None else (similarity.by_vector(vector, limit), "")

    def _texts(self, leaves: Sequence[ChunkKey]) -> Iterator[str]:
        """Read as needed: of a long document only the beginning."""
        for start in range(0, len(leaves), _READ_AT_ONCE):
            keys = leaves[start : start + _READ_AT_ONCE]
            for stored in self._view.chunks_by_key(keys).values():
                yield stored.chunk.text or ""

    def _community(
        self, doc_id: DocId, limit: int
    ) -> tuple[tuple[NeighbourEntry, ...], int | None]:
        """Others in the same community, linked ones first; and how many there are."""
        members = self._view.community(doc_id)
        if members is None:
            return (), None
        others = [each for each in members if each != doc_id]
        linked = {near.doc_id for near in self._view.neighbours({doc_id: 1.0}, limit=MAX_LINKED)}
        chosen = sorted(others, key=lambda each: (each not in linked, each))[:limit]
        documents = self._view.documents_by_id(chosen)
        found = [
            _neighbour(documents[each], is_linked=each in linked)
            for each in chosen
            if each in documents
        ]
        return tuple(found), len(others)


def _neighbour(document: StoredDocument, *, is_linked: bool) -> NeighbourEntry:
    return NeighbourEntry(
        doc_id=document.id,
        tree=document.tree,
        path=shown_path(document.path),
        title=short(document.title),
        is_linked=is_linked,
    )


def _within(lines: Lines | None, nodes: Sequence[ChunkPlace]) -> list[ChunkKey]:
    """The passages that overlap these lines; None is all of them."""
    return [
        node.key
        for node in nodes
        if node.is_leaf and (lines is None or _overlap(lines, (node.line_start, node.line_end)))
    ]


def _below(key: ChunkKey, nodes: Sequence[ChunkPlace]) -> list[ChunkKey]:
    """The passages of a node; every parent comes before its children."""
    inside = {key}
    for node in nodes:
        if node.parent in inside:
            inside.add(node.key)
    return [node.key for node in nodes if node.is_leaf and node.key in inside]


def _overlap(one: Lines, other: Lines) -> bool:
    return one[0] <= other[1] and other[0] <= one[1]
