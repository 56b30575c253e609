"""The keyword engine by tantivy, for very large folders: files that are mapped, not read."""

import json
from collections.abc import Collection, Mapping, Sequence, Set
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ragdocs.indices.bm25 import MOST, idf
from ragdocs.indices.derived_index import DerivedIndex
from ragdocs.indices.hits import Hit, Scope, few_left_out
from ragdocs.indices.keyword import (
    Condition,
    InTree,
    KeywordHits,
    KeywordQuery,
    UnderPath,
    Unit,
)
from ragdocs.indices.keyword_entries import Entries, Weights, existing
from ragdocs.indices.tantivy_library import (
    KEY,
    TEXT,
    TantivyIndex,
    TantivyLibrary,
    require_tantivy,
    scaled,
)
from ragdocs.indices.tantivy_queries import Queries
from ragdocs.models import DocId
from ragdocs.parsers.identity import encode_path
from ragdocs.store.records import ChunkKey
from ragdocs.store.snapshot import Snapshot

if TYPE_CHECKING:
    from tantivy import Query

_GROWTH = 4
"""How many times as much is asked for, and again when the last place is contested."""


class TantivyEngine(DerivedIndex[TantivyIndex]):
    """Searches a folder of tantivy's files, which it keeps in step with the store."""

    def __init__(self, path: Path, entries: Entries, weights: Weights, analysis: str) -> None:
        require_tantivy()
        super().__init__(path, TantivyLibrary(weights, analysis), entries)
        self._weights = scaled(weights)

    def search(
        self, snapshot: Snapshot, query: KeywordQuery, limit: int, scope: Scope = None
    ) -> KeywordHits:
        index = self.opened(snapshot)
        queries = Queries(index, self._weights)
        frequencies = {unit: queries.frequency(unit) for unit in query.units}
        ideal = sum(
            unit.weight * idf(index.live, count) * MOST for unit, count in frequencies.items()
        )
        hits: tuple[Hit, ...] = ()
        if limit > 0 and any(frequencies.values()):
            ranked = _restricted(queries, query, frequencies, (snapshot, scope))
            is_of_it = self.position == snapshot.position
            hits = _best(index, ranked, limit, None if is_of_it else snapshot)
        scores_of = partial(_scores, snapshot, index, queries, frequencies)
        return KeywordHits(hits, ideal, frequencies, scores_of)

    def matching(self, snapshot: Snapshot, condition: Condition) -> Set[int]:
        index = self.opened(snapshot)
        queries = Queries(index, self._weights)
        wanted = queries.condition(condition, lambda part: _documents(snapshot, part))
        found = index.searcher.search(wanted, max(index.live, 1), False, order_by_field=KEY)
        keys = {int(key) for key, _ in found.hits}
        return keys if self.position == snapshot.position else keys & existing(snapshot)

    def frequencies(self, snapshot: Snapshot, terms: Sequence[str]) -> dict[str, int]:
        searcher = self.opened(snapshot).searcher
        return {term: searcher.doc_freq(TEXT, term) for term in terms}

    def count(self, snapshot: Snapshot) -> int:
        return self.opened(snapshot).live


def _restricted(
    queries: Queries,
    query: KeywordQuery,
    frequencies: Mapping[Unit, int],
    where: tuple[Snapshot, Scope],
) -> "Query":
    """The units, within what the condition and the scope allow."""
    from tantivy import Occur, Query

    snapshot, scope = where
    ranked = _any_of(queries, frequencies)
    left_out = few_left_out(scope)
    limits: list[Query] = []
    if query.condition is not None:
        limits.append(queries.condition(query.condition, lambda part: _documents(snapshot, part)))
    if scope is not None and left_out is None:
        limits.append(queries.within(scope))
    filters = [(Occur.Must, Query.const_score_query(part, 0.0)) for part in limits]
    if left_out:
        filters.append((Occur.MustNot, queries.within(left_out)))
    return Query.boolean_query([(Occur.Must, ranked), *filters]) if filters else ranked


def _any_of(queries: Queries, frequencies: Mapping[Unit, int]) -> "Query":
    """Those of the units that any chunk has, scored."""
    from tantivy import Occur, Query

    units = [queries.scored(unit, count) for unit, count in frequencies.items() if count]
    return Query.boolean_query([(Occur.Should, unit) for unit in units])


def _scores(
    snapshot: Snapshot,
    index: TantivyIndex,
    queries: Queries,
    frequencies: Mapping[Unit, int],
    keys: Collection[ChunkKey],
) -> dict[ChunkKey, float]:
    """Within the documents of these chunks: tantivy cannot look for a chunk by its number."""
    from tantivy import Occur, Query

    rows = snapshot.select(
        """SELECT DISTINCT d.id, (SELECT count(*) FROM chunks WHERE doc = d.key)
        FROM chunks c JOIN documents d ON d.key = c.doc
        WHERE c.key IN (SELECT value FROM json_each(?))""",
        (json.dumps(list(keys)),),
    )
    most = min(index.live, sum(count for _, count in rows))
    if not most or not any(frequencies.values()):
        return {}
    within = Query.const_score_query(queries.within(DocId(doc_id) for doc_id, _ in rows), 0.0)
    ranked = _any_of(queries, frequencies)
    wanted = Query.boolean_query([(Occur.Must, ranked), (Occur.Must, within)])
    found = index.searcher.search(wanted, most, False).hits
    numbers = index.searcher.fast_field_values(KEY, [address for _, address in found])
    scores = {int(key or 0): score for (score, _), key in zip(found, numbers, strict=True)}
    return {key: scores[key] for key in keys if key in scores}


def _best(
    index: TantivyIndex, query: "Query", limit: int, ahead_of: Snapshot | None
) -> tuple[Hit, ...]:
    """Best first, equal scores by number; only what the snapshot has, if the files are not of it.

    Much more is asked for than is wanted: equal scores are common, and tantivy takes no longer.
    """
    asked = limit * _GROWTH
    while True:
        found = index.searcher.search(query, min(asked, index.live), False).hits
        keys = index.searcher.fast_field_values(KEY, [address for _, address in found])
        hits = [(score, int(key or 0)) for (score, _), key in zip(found, keys, strict=True)]
        if ahead_of is not None:
            there = existing(ahead_of, [key for _, key in hits])
            hits = [hit for hit in hits if hit[1] in there]
        least = hits[limit - 1][0] if len(hits) >= limit else None
        # As long as the last one found could stand in the last place as well, there may be more.
        if len(found) < asked or (least is not None and found[-1][0] < least):
            kept = [hit for hit in hits if least is None or hit[0] >= least]
            kept.sort(key=lambda hit: (-hit[0], hit[1]))
            return tuple(Hit(ChunkKey(key), score) for score, key in kept[:limit])
        asked *= _GROWTH


def _documents(snapshot: Snapshot, part: InTree | UnderPath) -> frozenset[DocId]:
    if isinstance(part, InTree):
        rows = snapshot.select("SELECT id FROM documents WHERE tree = ?", (part.name,))
    else:
        rows = snapshot.select(
            "SELECT id FROM documents WHERE substr(path, 1, length(?)) = ?",
            (encode_path(part.prefix),) * 2,
        )
    return frozenset(doc_id for (doc_id,) in rows)
