"""Candidates of real documents: parsed, chunked and numbered as the store would number them."""

from dataclasses import replace
from itertools import count

import numpy as np

from ragdocs.chunking.chunker import ChunkSizes, chunk_document
from ragdocs.chunking.splitting import Limits
from ragdocs.models import NodeKind, TreeName
from ragdocs.search.candidates import Candidate
from ragdocs.store.records import ChunkKey, StoredChunk, StoredDocument
from tests.parsing import parse

SMALL = ChunkSizes(leaf=Limits(1, 400), small_document=0, overlap=0)
"""Every section is a leaf of its own."""


class Corpus:
    """Documents by path; what is asked of it is what a snapshot of the store would answer."""

    def __init__(self, sizes=SMALL):
        self._sizes = sizes
        self._keys = count(1)
        self._nodes = {}
        self.documents = {}

    def add(self, path, text, tree="docs", mtime_ns=0):
        document = replace(parse(text, path, mtime_ns), tree=TreeName(tree))
        self.documents[path] = stored_document(document)
        self._nodes[document.id] = [
            StoredChunk(ChunkKey(next(self._keys)), chunk, None)
            for chunk in chunk_document(document, self._sizes)
        ]
        return self

    def nodes_of(self, doc_id, _found=(), **_reach):
        return self._nodes[doc_id]

    def leaves(self, path):
        nodes = self._nodes[self.documents[path].id]
        return [node for node in nodes if node.chunk.text is not None]

    def node(self, place):
        """`path#slug`, with `~2` for a part; a document is its path."""
        path = place.partition("#")[0]
        nodes = self._nodes[self.documents[path].id]
        return next(node for node in nodes if node.chunk.id == f"docs:{place}")

    def leaf(self, place):
        """The one that a section is, or in which it begins."""
        own = self.node(place)
        if own.chunk.text is not None:
            return own
        at = own.chunk.span.byte_start
        spans = [(leaf, leaf.chunk.span) for leaf in self.leaves(place.partition("#")[0])]
        found = (leaf for leaf, span in spans if span.byte_start <= at < span.byte_end)
        return next(found, own)

    def candidate(self, place, score=0.5, vector=None, **given):
        """What an index finds is a leaf; a section without text of its own has a passage."""
        found = self.node(place) if "passage" in given else self.leaf(place)
        return Candidate(
            stored=found,
            document=self.documents[place.partition("#")[0].partition("~")[0]],
            score=score,
            relevance=given.pop("relevance", score),
            confidence=given.pop("confidence", score),
            vector=None if vector is None else np.array(vector, dtype=np.float32),
            **given,
        )


def stored_document(document):
    return StoredDocument(
        id=document.id,
        tree=document.tree,
        path=document.path,
        title=document.title,
        front_matter=document.front_matter,
        tags=document.tags,
        date=document.date,
        date_source=document.date_source,
        encoding=document.source.encoding,
        size=document.source.size,
        lines=len(document.source.line_starts),
        body_start=document.body_start,
        warnings=document.warnings,
    )


def candidates(*texts, scores=(), vectors=()):
    """One for each text, every text a document without headings: `0.md`, `1.md`, …"""
    corpus = Corpus(ChunkSizes(leaf=Limits(0, 100_000), small_document=0, overlap=0))
    given_scores = scores or [1.0 - place / 100 for place in range(len(texts))]
    given_vectors = vectors or [None] * len(texts)
    found = []
    for place, text in enumerate(texts):
        corpus.add(f"{place}.md", text)
        found.append(corpus.candidate(f"{place}.md", given_scores[place], given_vectors[place]))
    return found


def places(found):
    """Which of `candidates(...)` these are."""
    return [int(item.document.path.removesuffix(".md")) for item in found]


def slugs(found):
    return [name_of(item.stored) or item.document.path for item in found]


def name_of(stored):
    """The section that a leaf is embedded under, as a slug; a part of one by its number."""
    chunk = stored.chunk
    if chunk.kind is NodeKind.PART and chunk.headings:
        return chunk.title.lower().replace(" ", "-")
    return chunk.id.partition("#")[2]


def scores(found):
    return [item.score for item in found]


def nobody(_title):
    """No title says what the query asks for."""
    return False
