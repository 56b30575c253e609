"""The keyword engine by whoosh: its posting lists in memory, ranked as the default engine ranks.

whoosh's own ranking adds up the fields' scores and keeps lengths in a byte; ours is BM25F over one
weighted count, with exact lengths, and agrees with FTS5.
"""

from collections.abc import Callable, Collection, Mapping, Sequence, Set
from pathlib import Path
from typing import TYPE_CHECKING

from ragdocs.indices.bm25 import K1, MOST, B, idf
from ragdocs.indices.derived_index import DerivedIndex
from ragdocs.indices.hits import Hit, Scope
from ragdocs.indices.keyword import FIELDS, Condition, KeywordHits, KeywordQuery, Unit
from ragdocs.indices.keyword_conditions import Conditions
from ragdocs.indices.keyword_entries import Entries, Weights, existing
from ragdocs.indices.whoosh_library import WhooshIndex, WhooshLibrary
from ragdocs.indices.whoosh_postings import Postings, postings
from ragdocs.store.records import ChunkKey
from ragdocs.store.snapshot import Snapshot

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Found = Mapping[Unit, list[Postings]]


class WhooshEngine(DerivedIndex[WhooshIndex]):
    """Searches a folder of whoosh's files, which it keeps in step with the store."""

    def __init__(self, path: Path, entries: Entries, weights: Weights, analysis: str) -> None:
        super().__init__(path, WhooshLibrary(weights, analysis), entries)
        self._weights = [weights[field] for field in FIELDS]

    def search(
        self, snapshot: Snapshot, query: KeywordQuery, limit: int, scope: Scope = None
    ) -> KeywordHits:
        index = self.opened(snapshot)
        found = {unit: self._postings(index, unit) for unit in query.units}
        frequencies = {unit: _frequency(parts) for unit, parts in found.items()}
        factors = {
            unit: unit.weight * idf(index.live, count) * MOST for unit, count in frequencies.items()
        }
        hits: tuple[Hit, ...] = ()
        ranking = _Ranking(index, found, factors)
        if limit > 0 and any(frequencies.values()):
            hits = ranking.best(limit, self._allowed(snapshot, index, query, scope))
            if len(existing(snapshot, [hit.key for hit in hits])) < len(hits):
                # The files are ahead of this snapshot, or behind it.
                allowed = self._allowed(snapshot, index, query, scope)
                everything = existing(snapshot)
                hits = ranking.best(limit, everything if allowed is None else allowed & everything)
        return KeywordHits(hits, sum(factors.values()), frequencies, ranking.scores_of)

    def matching(self, snapshot: Snapshot, condition: Condition) -> Set[int]:
        index = self.opened(snapshot)
        found = self._conditions(snapshot, index).matching(condition)
        return found if self.position == snapshot.position else found & existing(snapshot)

    def frequencies(self, snapshot: Snapshot, terms: Sequence[str]) -> dict[str, int]:
        index = self.opened(snapshot)
        with index.lock:
            return {
                term: sum(
                    segment.reader.doc_frequency("text", term.encode())
                    for segment in index.segments
                )
                for term in terms
            }

    def count(self, snapshot: Snapshot) -> int:
        return self.opened(snapshot).live

    def _postings(self, index: WhooshIndex, unit: Unit) -> list[Postings]:
        with index.lock:
            return [postings(segment, unit, self._weights) for segment in index.segments]

    def _conditions(self, snapshot: Snapshot, index: WhooshIndex) -> "_WhooshConditions":
        return _WhooshConditions(snapshot, index, lambda unit: self._postings(index, unit))

    def _allowed(
        self, snapshot: Snapshot, index: WhooshIndex, query: KeywordQuery, scope: Scope
    ) -> set[int] | None:
        """The chunks that may be ranked, or None when all may."""
        if scope is None and query.condition is None:
            return None
        conditions = self._conditions(snapshot, index)
        allowed = conditions.within(scope)
        if query.allowed is not None:
            return allowed & query.allowed
        if query.condition is not None:
            allowed &= conditions.matching(query.condition)
        return allowed


class _WhooshConditions(Conditions):
    """Sets of chunks by whoosh's postings; what is said of documents is asked of the store."""

    def __init__(
        self, snapshot: Snapshot, index: WhooshIndex, find: Callable[[Unit], list[Postings]]
    ) -> None:
        super().__init__(snapshot, "", repr)
        self._index = index
        self._find = find

    def having(self, unit: Unit) -> set[int]:
        parts = zip(self._index.segments, self._find(unit), strict=True)
        return {key for segment, found in parts for key in segment.keys[found.numbers].tolist()}

    def everything(self) -> set[int]:
        segments = self._index.segments
        return {key for segment in segments for key in segment.keys[segment.is_live].tolist()}


class _Ranking:
    """The scores of all chunks that have any of a query's units."""

    def __init__(self, index: WhooshIndex, found: Found, factors: Mapping[Unit, float]) -> None:
        import numpy as np

        parts = [
            self._segment(index, number, found, factors) for number in range(len(index.segments))
        ] or [(np.zeros(0, np.int64), np.zeros(0))]
        self._keys = np.concatenate([keys for keys, _ in parts])
        self._scores = np.concatenate([scores for _, scores in parts])

    def best(self, limit: int, allowed: Set[int] | None) -> tuple[Hit, ...]:
        """Best first; equal scores by number."""
        import numpy as np

        keys, scores = self._keys, self._scores
        if allowed is not None:
            chosen = np.isin(keys, np.fromiter(allowed, np.int64, len(allowed)))
            keys, scores = keys[chosen], scores[chosen]
        order = np.lexsort((keys, -scores))[:limit]
        pairs = zip(keys[order].tolist(), scores[order].tolist(), strict=True)
        return tuple(Hit(ChunkKey(key), score) for key, score in pairs)

    def scores_of(self, keys: Collection[ChunkKey]) -> dict[ChunkKey, float]:
        """Of those of the chunks that have any of the units."""
        import numpy as np

        chosen = np.isin(self._keys, np.fromiter(keys, np.int64, len(keys)))
        pairs = zip(self._keys[chosen].tolist(), self._scores[chosen].tolist(), strict=True)
        return {ChunkKey(key): score for key, score in pairs}

    def _segment(
        self, index: WhooshIndex, number: int, found: Found, factors: Mapping[Unit, float]
    ) -> "tuple[NDArray[np.int64], NDArray[np.float64]]":
        import numpy as np

        segment = index.segments[number]
        norms = K1 * (1 - B + B * segment.sizes / index.average_size)
        scores = np.zeros(len(segment.keys))
        is_found = np.zeros(len(segment.keys), np.bool_)
        for unit, parts in found.items():
            numbers, counts = parts[number].numbers, parts[number].counts
            scores[numbers] += factors[unit] * counts / (counts + norms[numbers])
            is_found[numbers] = True
        return segment.keys[is_found], scores[is_found]


def _frequency(parts: list[Postings]) -> int:
    return sum(len(found.numbers) for found in parts)
