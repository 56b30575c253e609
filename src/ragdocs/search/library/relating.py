"""`related`: what goes with a document or section, each kind of nearness by itself."""

from collections.abc import Iterator, Sequence
from itertools import chain

from ragdocs.models import DocId, TreeName
from ragdocs.search.library.cards import short, shown_path
from ragdocs.search.library.link_relations import Lines, link_entries, links_in, links_out
from ragdocs.search.library.relations import NeighbourEntry, Related, SimilarEntry
from ragdocs.search.library.requests import RelatedRequest
from ragdocs.search.library.resolution import Resolver
from ragdocs.search.library.selection import place_of
from ragdocs.search.library.similarity import Similarity
from ragdocs.search.retrieval import Indices
from ragdocs.store.records import ChunkKey, StoredDocument
from ragdocs.store.snapshot import ChunkPlace, Snapshot
from ragdocs.wording import advised

MAX_LINKED = 1_000
"""Neighbours that are looked at: a hub may have tens of thousands."""
_READ_AT_ONCE = 64
_NO_VECTORS = "this text has no vectors yet: what is similar in meaning cannot be told"
_NO_COMMUNITIES = "communities are not computed yet: a server or {command} does that"


class Relations:
    """Answers from one snapshot, which the indices have caught up with."""

    def __init__(self, snapshot: Snapshot, indices: Indices, trees: Sequence[TreeName]) -> None:
        self._snapshot = snapshot
        self._indices = indices
        self._resolver = Resolver(snapshot, trees)

    def of(self, request: RelatedRequest) -> Related:
        """Raises QueryError when there is no such document or heading."""
        target = self._resolver.find(request.reference)
        document, limit = target.document, request.limit
        place = place_of(self._snapshot, target)
        nodes = self._snapshot.outline_of_chunks(document.id)
        part = self._snapshot.chunk(place.chunk_id) if place.chunk_id is not None else None
        lines = (part.chunk.span.line_start, part.chunk.span.line_end) if part else place.lines
        leaves = _below(part.key, nodes) if part else _within(lines, nodes)
        outgoing = links_out(self._snapshot, document, lines)
        incoming = links_in(self._snapshot, document, lines)
        neighbours, size = self._community(document.id, limit)
        passages = sum(node.is_leaf for node in nodes)
        similarity = Similarity(self._snapshot, self._indices, document.id, passages)
        near = self._by_meaning(similarity, leaves, limit)
        texts = chain(place.heading_path, self._texts(leaves))
        no_communities = _NO_COMMUNITIES.format(command=advised("update"))
        notes = [no_communities] * (size is None) + [_NO_VECTORS] * (near is None)
        return Related(
            id=place.id,
            doc_id=document.id,
            path=shown_path(document),
            title=short(document.title),
            heading_path=place.heading_path,
            links=link_entries(self._snapshot, outgoing[:limit], is_back=False),
            links_total=len(outgoing),
            backlinks=link_entries(self._snapshot, incoming[:limit], is_back=True),
            backlinks_total=len(incoming),
            community=neighbours,
            community_size=size,
            similar_by_meaning=near or (),
            similar_by_words=similarity.by_words(texts, limit),
            notes=tuple(notes),
        )

    def _texts(self, leaves: Sequence[ChunkKey]) -> Iterator[str]:
        """As they are asked for: of a long document only the beginning is."""
        for start in range(0, len(leaves), _READ_AT_ONCE):
            keys = leaves[start : start + _READ_AT_ONCE]
            for stored in self._snapshot.chunks_by_key(keys).values():
                yield stored.chunk.text or ""

    def _by_meaning(
        self, similarity: Similarity, leaves: Sequence[ChunkKey], limit: int
    ) -> tuple[SimilarEntry, ...] | None:
        index = self._indices.vector
        return None if index is None else similarity.by_meaning(index, leaves, limit)

    def _community(
        self, doc_id: DocId, limit: int
    ) -> tuple[tuple[NeighbourEntry, ...], int | None]:
        """Others of the same community, those that are linked first; and how many there are."""
        graph = self._indices.graph
        if graph is None or (len(graph) and self._snapshot.communities_origin is None):
            return (), None
        others = [each for each in self._snapshot.members_with(doc_id) if each != doc_id]
        linked = {near.doc_id for near in graph.neighbours({doc_id: 1.0}, limit=MAX_LINKED)}
        chosen = sorted(others, key=lambda each: (each not in linked, each))[:limit]
        documents = self._snapshot.documents_by_id(chosen)
        found = [
            _neighbour(documents[each], is_linked=each in linked)
            for each in chosen
            if each in documents
        ]
        return tuple(found), len(others)


def _neighbour(document: StoredDocument, *, is_linked: bool) -> NeighbourEntry:
    return NeighbourEntry(
        doc_id=document.id,
        path=shown_path(document),
        title=short(document.title),
        is_linked=is_linked,
    )


def _within(lines: Lines | None, nodes: Sequence[ChunkPlace]) -> list[ChunkKey]:
    """The passages that have a part in these lines; None is all of them."""
    return [
        node.key
        for node in nodes
        if node.is_leaf and (lines is None or _overlap(lines, (node.line_start, node.line_end)))
    ]


def _below(key: ChunkKey, nodes: Sequence[ChunkPlace]) -> list[ChunkKey]:
    """The passages of a node: every parent stands before its children."""
    inside = {key}
    for node in nodes:
        if node.parent in inside:
            inside.add(node.key)
    return [node.key for node in nodes if node.is_leaf and node.key in inside]


def _overlap(one: Lines, other: Lines) -> bool:
    return one[0] <= other[1] and other[0] <= one[1]
