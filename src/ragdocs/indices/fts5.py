"""The default keyword engine: FTS5 inside the store, in step with it by the same commit.

FTS5 counts weighted occurrences, lengths and averages exactly as BM25F wants them; only its idf
is wrong for us: a word in more than half of the chunks counts for nothing, and a folder of five
files ranks at random. Its own idf is known, so each unit's score is divided by it and multiplied
by ln(1 + (N - n + 0.5) / (n + 0.5)).
"""

import json
from collections.abc import Mapping
from math import log

from ragdocs.indices.analysis import Analyzer, Streams
from ragdocs.indices.hits import Hit, Scope
from ragdocs.indices.keyword import (
    FIELDS,
    KeywordHits,
    KeywordQuery,
    Unit,
    field_texts,
)
from ragdocs.indices.keyword_conditions import Conditions
from ragdocs.models import QueryField
from ragdocs.store.chunk_rows import SELECT_CHUNKS, read_chunk
from ragdocs.store.connection import Database
from ragdocs.store.document_rows import SELECT_DOCUMENTS, read_document
from ragdocs.store.records import ChunkKey
from ragdocs.store.snapshot import Snapshot

TABLE = "keyword"
VOCABULARY = "keyword_vocabulary"
K1, B = 1.2, 0.75
"""Fixed inside FTS5's bm25()."""
_LEAST_IDF = 1e-6
"""What FTS5 uses in place of an idf that is not above zero."""
_GAP = "\u241f"
"""Between a text's words and the wholes behind them, so that no phrase reaches across."""
_LAYOUT_VERSION = 1
_COLUMNS = ", ".join(FIELDS)


class Fts5Index:
    """The tables: one row for every leaf, and for a document without text its own node."""

    name = TABLE

    def __init__(self, analyzer: Analyzer, analysis: str) -> None:
        self._analyzer = analyzer
        self.version = f"{_LAYOUT_VERSION};{analysis}"

    def create(self, database: Database) -> None:
        # The ascii tokenizer takes every character beyond ASCII as part of a word, and our terms
        # hold no others of ASCII's marks than these: a term goes in and comes out as it is.
        database.run(
            f"""CREATE VIRTUAL TABLE {TABLE} USING fts5({_COLUMNS},
            tokenize = "ascii tokenchars '_.+#-:''/@&'")"""
        )
        database.run(f"CREATE VIRTUAL TABLE {VOCABULARY} USING fts5vocab({TABLE}, row)")

    def drop(self, database: Database) -> None:
        database.run(f"DROP TABLE IF EXISTS {VOCABULARY}")
        database.run(f"DROP TABLE IF EXISTS {TABLE}")

    def put(self, database: Database, doc: int) -> None:
        row = database.one(f"{SELECT_DOCUMENTS} WHERE key = ?", (doc,))
        if row is None:
            return
        document = read_document(row)
        chunks = [
            read_chunk(row) for row in database.all(f"{SELECT_CHUNKS} WHERE c.doc = ?", (doc,))
        ]
        leaves = [stored for stored in chunks if stored.chunk.text is not None] or chunks[:1]
        marks = ", ".join("?" * len(FIELDS))
        database.many(
            f"INSERT INTO {TABLE} (rowid, {_COLUMNS}) VALUES (?, {marks})",
            [
                (stored.key, *self._columns(field_texts(document, stored.chunk)))
                for stored in leaves
            ],
        )

    def remove(self, database: Database, doc: int) -> None:
        database.run(
            f"DELETE FROM {TABLE} WHERE rowid IN (SELECT key FROM chunks WHERE doc = ?)", (doc,)
        )

    def _columns(self, texts: Mapping[QueryField, str]) -> list[str]:
        return [_written(self._analyzer.streams(texts[field])) for field in FIELDS]


def _written(streams: Streams) -> str:
    gap = [_GAP] if streams.wholes else []
    return " ".join([*streams.plain, *gap, *streams.wholes])


class Fts5Engine:
    """Searches the tables of Fts5Index, with the weight of each field."""

    def __init__(self, weights: Mapping[QueryField, float]) -> None:
        self._weights = ", ".join(f"{weights[field]:.6g}" for field in FIELDS)

    def search(
        self, snapshot: Snapshot, query: KeywordQuery, limit: int, scope: Scope = None
    ) -> KeywordHits:
        total = _total(snapshot)
        frequencies = {unit: _frequency(snapshot, unit) for unit in query.units}
        present = [unit for unit, count in frequencies.items() if count]
        idf = {unit: _idf(total, frequencies[unit]) for unit in query.units}
        ideal = sum(unit.weight * idf[unit] * (K1 + 1) for unit in query.units)
        if not present or limit <= 0:
            return KeywordHits((), ideal, frequencies)
        factors = {
            unit: unit.weight * idf[unit] / _fts5_idf(total, frequencies[unit]) for unit in present
        }
        rows = self._ranked(snapshot, factors, limit, _allowed(snapshot, query, scope))
        hits = tuple(Hit(ChunkKey(key), score) for key, score in rows)
        return KeywordHits(hits, ideal, frequencies)

    def _ranked(
        self,
        snapshot: Snapshot,
        factors: Mapping[Unit, float],
        limit: int,
        allowed: frozenset[int] | None,
    ) -> list[tuple[int, float]]:
        """Each unit is asked for by itself, because only then can its idf be taken out again."""
        only = "" if allowed is None else " AND rowid IN (SELECT value FROM json_each(?))"
        one = (
            f"SELECT rowid AS key, -bm25({TABLE}, {self._weights}) * ? AS score "
            f"FROM {TABLE} WHERE {TABLE} MATCH ?{only}"
        )
        values: list[object] = []
        restriction = [] if allowed is None else [json.dumps(sorted(allowed))]
        for unit, factor in factors.items():
            values += [factor, match_expression(unit), *restriction]
        # Materialised, because bm25() works only where its own table is being searched.
        rows = snapshot.select(
            f"WITH scored AS MATERIALIZED ({' UNION ALL '.join([one] * len(factors))}) "
            "SELECT key, sum(score) AS total FROM scored GROUP BY key "
            "ORDER BY total DESC, key LIMIT ?",
            [*values, limit],
        )
        return [(key, score) for key, score in rows]


def match_expression(unit: Unit) -> str:
    quoted = '"' + " ".join(unit.terms).replace('"', '""') + '"'
    return quoted if unit.field is None else f"{unit.field.value} : {quoted}"


def _allowed(snapshot: Snapshot, query: KeywordQuery, scope: Scope) -> frozenset[int] | None:
    """The rows that may be ranked, or None when all may."""
    if scope is None and query.condition is None:
        return None
    conditions = Conditions(snapshot, TABLE, match_expression)
    allowed = conditions.everything() if scope is None else conditions.in_documents(scope)
    if query.condition is not None:
        allowed &= conditions.matching(query.condition)
    return frozenset(allowed)


def _total(snapshot: Snapshot) -> int:
    return snapshot.select(f"SELECT count(*) FROM {TABLE}_docsize")[0][0]


def _frequency(snapshot: Snapshot, unit: Unit) -> int:
    if len(unit.terms) == 1 and unit.field is None:
        rows = snapshot.select(f"SELECT doc FROM {VOCABULARY} WHERE term = ?", (unit.terms[0],))
        return rows[0][0] if rows else 0
    rows = snapshot.select(
        f"SELECT count(*) FROM {TABLE} WHERE {TABLE} MATCH ?", (match_expression(unit),)
    )
    return rows[0][0]


def _idf(total: int, frequency: int) -> float:
    return log(1 + (total - frequency + 0.5) / (frequency + 0.5))


def _fts5_idf(total: int, frequency: int) -> float:
    idf = log((total - frequency + 0.5) / (frequency + 0.5))
    return idf if idf > 0 else _LEAST_IDF
