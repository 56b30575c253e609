"""What the engines beside the store index of it: one entry for a chunk, as terms in places.

The terms of a field follow one another, so that phrases match; each of the wholes behind them
stands alone, and so no phrase reaches them, or from one field into the next.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from ragdocs.indices.analysis import Analyzer, Streams
from ragdocs.indices.keyword import FIELDS, field_texts
from ragdocs.models import DocId, QueryField
from ragdocs.store.records import ChunkKey, StoredDocument
from ragdocs.store.snapshot import Snapshot

Weights = Mapping[QueryField, float]


@dataclass(frozen=True, slots=True)
class Entry:
    """A chunk, ready to be indexed: the terms of each of its fields, in the order of FIELDS."""

    key: ChunkKey
    doc_id: DocId
    fields: tuple[Streams, ...]


class Entries:
    """Reads entries from the store. The same chunks as in `Fts5Index`."""

    def __init__(self, analyzer: Analyzer) -> None:
        self._analyzer = analyzer

    def of_all(self, snapshot: Snapshot) -> Iterator[Entry]:
        return self._entries(snapshot, snapshot.documents())

    def of(self, snapshot: Snapshot, doc_ids: Collection[DocId]) -> Iterator[Entry]:
        """Those of these documents that the store still has."""
        found = map(snapshot.document, sorted(doc_ids))
        return self._entries(snapshot, (document for document in found if document is not None))

    def _entries(self, snapshot: Snapshot, documents: Iterable[StoredDocument]) -> Iterator[Entry]:
        for document in documents:
            chunks = snapshot.chunks(document.id)
            leaves = [stored for stored in chunks if stored.chunk.text is not None] or chunks[:1]
            # What belongs to the document is the same in each of its chunks.
            known: dict[str, Streams] = {}
            for stored in leaves:
                texts = field_texts(document, stored.chunk)
                streams = tuple(self._streams(texts[field], known) for field in FIELDS)
                yield Entry(stored.key, document.id, streams)

    def _streams(self, text: str, known: dict[str, Streams]) -> Streams:
        if text not in known:
            known[text] = self._analyzer.streams(text)
        return known[text]


def places(streams: Streams) -> Iterator[tuple[int, str]]:
    """The terms of a field, each with its place there, in order."""
    yield from enumerate(streams.plain)
    behind = len(streams.plain) + 1
    for number, term in enumerate(streams.wholes):
        yield behind + 2 * number, term


def extent(streams: Streams) -> int:
    """The first place that nothing of a field can be next to."""
    return len(streams.plain) + 1 + 2 * len(streams.wholes)


def weights_version(weights: Weights) -> str:
    return ",".join(f"{weights[field]:.6g}" for field in FIELDS)
