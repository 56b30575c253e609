"""The keyword engine by tantivy, for very large folders: files that are mapped, not read."""

from collections.abc import Mapping, Set
from pathlib import Path
from typing import TYPE_CHECKING

from ragdocs.indices.derived_index import DerivedIndex
from ragdocs.indices.hits import Hit, Scope
from ragdocs.indices.keyword import (
    Condition,
    InTree,
    KeywordHits,
    KeywordQuery,
    UnderPath,
    Unit,
)
from ragdocs.indices.keyword_entries import K1, Entries, Weights, existing, idf
from ragdocs.indices.tantivy_library import (
    KEY,
    TantivyIndex,
    TantivyLibrary,
    require_tantivy,
    scaled,
)
from ragdocs.indices.tantivy_queries import Queries
from ragdocs.models import DocId
from ragdocs.parsers.identity import encode_path
from ragdocs.store.records import ChunkKey, Position
from ragdocs.store.snapshot import Snapshot

if TYPE_CHECKING:
    from tantivy import Query

_GROWTH = 4
"""How much more is asked for when the last place is contested, or hits are gone already."""


class TantivyEngine:
    """Searches a folder of tantivy's files, which it keeps in step with the store."""

    def __init__(self, path: Path, entries: Entries, weights: Weights, analysis: str) -> None:
        require_tantivy()
        self._weights = scaled(weights)
        self._files = DerivedIndex(path, TantivyLibrary(weights, analysis), entries)

    @property
    def position(self) -> Position | None:
        return self._files.position

    def catch_up(self, snapshot: Snapshot) -> None:
        self._files.catch_up(snapshot)

    def forget(self) -> None:
        self._files.forget()

    def search(
        self, snapshot: Snapshot, query: KeywordQuery, limit: int, scope: Scope = None
    ) -> KeywordHits:
        index = self._files.opened(snapshot)
        queries = Queries(index, self._weights)
        frequencies = {unit: queries.frequency(unit) for unit in query.units}
        ideal = sum(
            unit.weight * idf(index.live, count) * (K1 + 1) for unit, count in frequencies.items()
        )
        hits: tuple[Hit, ...] = ()
        if limit > 0 and any(frequencies.values()):
            ranked = _restricted(queries, query, frequencies, (snapshot, scope))
            hits = _best(index, ranked, limit, snapshot)
        return KeywordHits(hits, ideal, frequencies)

    def matching(self, snapshot: Snapshot, condition: Condition) -> Set[int]:
        index = self._files.opened(snapshot)
        queries = Queries(index, self._weights)
        wanted = queries.condition(condition, lambda part: _documents(snapshot, part))
        found = index.searcher.search(wanted, max(index.live, 1), False, order_by_field=KEY)
        keys = {int(key) for key, _ in found.hits}
        return keys if self._files.position == snapshot.position else keys & existing(snapshot)


def _restricted(
    queries: Queries,
    query: KeywordQuery,
    frequencies: Mapping[Unit, int],
    where: tuple[Snapshot, Scope],
) -> "Query":
    """The units, within what the condition and the scope allow."""
    from tantivy import Occur, Query

    snapshot, scope = where
    units = [queries.scored(unit, count) for unit, count in frequencies.items() if count]
    ranked = Query.boolean_query([(Occur.Should, unit) for unit in units])
    limits: list[Query] = []
    if query.condition is not None:
        limits.append(queries.condition(query.condition, lambda part: _documents(snapshot, part)))
    if scope is not None:
        limits.append(queries.within(scope))
    if not limits:
        return ranked
    filters = [(Occur.Must, Query.const_score_query(part, 0.0)) for part in limits]
    return Query.boolean_query([(Occur.Must, ranked), *filters])


def _best(index: TantivyIndex, query: "Query", limit: int, snapshot: Snapshot) -> tuple[Hit, ...]:
    """Best first, equal scores by number; only what the snapshot has."""
    asked = limit + 1
    while True:
        found = index.searcher.search(query, min(asked, index.live), False).hits
        scores = [score for score, _ in found]
        keys = index.searcher.fast_field_values(KEY, [address for _, address in found])
        there = existing(snapshot, [int(key or 0) for key in keys])
        hits = [
            Hit(ChunkKey(int(key)), score)
            for key, score in zip(keys, scores, strict=True)
            if key in there
        ]
        # As long as the last one found could stand in the last place as well, there may be more.
        is_settled = len(hits) >= limit and scores[-1] < hits[limit - 1].score
        if is_settled or len(found) < asked:
            hits.sort(key=lambda hit: (-hit.score, hit.key))
            return tuple(hits[:limit])
        asked *= _GROWTH


def _documents(snapshot: Snapshot, part: InTree | UnderPath) -> frozenset[DocId]:
    if isinstance(part, InTree):
        rows = snapshot.select("SELECT id FROM documents WHERE tree = ?", (part.name,))
    else:
        rows = snapshot.select(
            "SELECT id FROM documents WHERE substr(path, 1, length(?1)) = ?1",
            (encode_path(part.prefix),),
        )
    return frozenset(doc_id for (doc_id,) in rows)
