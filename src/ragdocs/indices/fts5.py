"""The default keyword engine: FTS5 inside the store, in step with it by the same commit."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial

from ragdocs.indices.analysis import Analyzer
from ragdocs.indices.fts5_counts import match_expression
from ragdocs.indices.fts5_ranking import Fts5Ranking, Restriction
from ragdocs.indices.fts5_tables import (
    check_table,
    compact_table,
    create_table,
    drop_table,
    holds_rows,
    written,
)
from ragdocs.indices.hits import Hit, Scope, few_left_out
from ragdocs.indices.keyword import FIELDS, Condition, KeywordHits, KeywordQuery, field_texts
from ragdocs.indices.keyword_conditions import Fts5Conditions
from ragdocs.models import DocId, QueryField
from ragdocs.store.chunk_rows import POSITION, SELECT_CHUNKS, read_chunk
from ragdocs.store.connection import Database, Row
from ragdocs.store.document_rows import SELECT_DOCUMENTS, read_document
from ragdocs.store.records import ChunkKey, StoredChunk
from ragdocs.store.snapshot import Snapshot

TABLE = "keyword"
LARGE = 1_000
_LAYOUT_VERSION = 2
_COLUMNS = ", ".join(FIELDS)


class Fts5Index:
    """The table: one row for every leaf, and for a document without text its own node."""

    name = TABLE

    def __init__(self, analyzer: Analyzer, analysis: str) -> None:
        self._analyzer = analyzer
        self.version = f"{_LAYOUT_VERSION};{analysis}"
        self._prepared: Mapping[str, str] = {}

    def prepare(self, texts: Iterable[str]) -> None:
        """Of a file that is all names, this takes most of the time."""
        self._prepared = {text: self._column(text) for text in texts}

    def create(self, database: Database) -> None:
        create_table(database, TABLE, _COLUMNS)

    def drop(self, database: Database) -> None:
        drop_table(database, TABLE)

    def check(self, database: Database) -> None:
        check_table(database, TABLE)

    def compact(self, database: Database, pages: int) -> bool:
        return compact_table(database, TABLE, pages)

    def put(self, database: Database, doc: int) -> None:
        marks = ", ".join("?" * len(FIELDS))
        statement = f"INSERT INTO {TABLE} (rowid, {_COLUMNS}) VALUES (?, {marks})"
        database.many(statement, self._rows(database, doc))

    def remove(self, database: Database, doc: int) -> None:
        database.run(
            f"DELETE FROM {TABLE} WHERE rowid IN (SELECT key FROM chunks WHERE doc = ?)", (doc,)
        )

    def holds(self, database: Database, docs: Iterable[int]) -> bool:
        rows = (list(self._rows(database, doc)) for doc in docs)
        return holds_rows(database, TABLE, _COLUMNS, rows)

    def _rows(self, database: Database, doc: int) -> Iterator[Row]:
        row = database.one(f"{SELECT_DOCUMENTS} WHERE key = ?", (doc,))
        if row is None:
            return
        document = read_document(row)
        # What belongs to the document is the same in each of its leaves.
        known: dict[str, str] = {}
        for stored in _leaves(database, doc):
            texts = field_texts(document, stored.chunk)
            yield stored.key, *(self._known(field, texts[field], known) for field in FIELDS)

    def _known(self, field: QueryField, text: str, known: dict[str, str]) -> str:
        if field is QueryField.CONTENT:
            found = self._prepared.get(text)
            return self._column(text) if found is None else found
        if field is QueryField.HEADERS:
            return self._column(text)
        if text not in known:
            known[text] = self._column(text)
        return known[text]

    def _column(self, text: str) -> str:
        return written(self._analyzer.streams(text))


def _leaves(database: Database, doc: int) -> Iterator[StoredChunk]:
    """Of a document without any, its own node."""
    select = f"{SELECT_CHUNKS} WHERE c.doc = ?"
    first: StoredChunk | None = None
    has_leaves = False
    for row in database.paged(select, (doc,), "c.position", POSITION):
        stored = read_chunk(row)
        first = first or stored
        if stored.chunk.text is not None:
            has_leaves = True
            yield stored
    if first is not None and not has_leaves:
        yield first


class Fts5Engine:
    """Searches the table of Fts5Index, with the weight of each field."""

    def __init__(self, weights: Mapping[QueryField, float]) -> None:
        self._ranking = Fts5Ranking(TABLE, [weights[field] for field in FIELDS])

    def catch_up(self, snapshot: Snapshot) -> None:
        """Nothing to do: the tables change in the same commit as the store."""

    def search(
        self, snapshot: Snapshot, query: KeywordQuery, limit: int, scope: Scope = None
    ) -> KeywordHits:
        only = _restriction(snapshot, query, scope)
        ranked = self._ranking.rank(snapshot, query.units, limit, only)
        hits = tuple(Hit(ChunkKey(key), score) for key, score in ranked.rows)
        scores_of = partial(self._ranking.scores, snapshot, query.units, ranked.scores)
        return KeywordHits(hits, ranked.ideal, ranked.frequencies, scores_of)

    def matching(self, snapshot: Snapshot, condition: Condition) -> set[int]:
        return Fts5Conditions(snapshot, TABLE, match_expression).matching(condition)

    def frequencies(self, snapshot: Snapshot, terms: Sequence[str]) -> Mapping[str, int]:
        return self._ranking.frequencies(snapshot, terms)

    def count(self, snapshot: Snapshot) -> int:
        return self._ranking.count_rows(snapshot)


def _restriction(snapshot: Snapshot, query: KeywordQuery, scope: Scope) -> Restriction | None:
    """The rows that may be ranked, or None when all may."""
    if query.condition is None:
        return None if scope is None else _within(snapshot, scope)
    conditions = Fts5Conditions(snapshot, TABLE, match_expression)
    allowed = query.allowed
    if allowed is None:
        allowed = conditions.matching(query.condition)
    if (left_out := few_left_out(scope)) is not None:
        allowed -= conditions.in_documents(left_out)
    elif scope is not None:
        allowed &= conditions.in_documents(scope)
    members = (json.dumps(list(allowed)),)
    is_large = len(allowed) > LARGE
    return Restriction("SELECT value FROM json_each(?)", members, is_large=is_large)


def _within(snapshot: Snapshot, scope: frozenset[DocId]) -> Restriction:
    """By the rows of the few documents that are left out, or by the documents that are not, of
    which there are fewer than rows.
    """
    if (left_out := few_left_out(scope)) is not None:
        return _passing_over(snapshot, left_out)
    return Restriction(
        "SELECT key FROM documents WHERE id IN (SELECT value FROM json_each(?))",
        (json.dumps(list(scope)),),
        "(SELECT doc FROM chunks WHERE key = {row}) IN members",
    )


def _passing_over(snapshot: Snapshot, left_out: frozenset[DocId]) -> Restriction:
    """SQLite makes a set of the members for each word. The rows of a document have consecutive
    numbers as a rule: of a long one, two numbers are enough.
    """
    documents = snapshot.select(
        """SELECT d.key, min(c.key), max(c.key), count(*)
        FROM documents d JOIN chunks c ON c.doc = d.key
        WHERE d.id IN (SELECT value FROM json_each(?)) GROUP BY d.key""",
        (json.dumps(list(left_out)),),
    )
    tests, short = ["{row} NOT IN members"], list[int]()
    for key, first, last, count in documents:
        if count > LARGE and last - first + 1 == count:
            tests.append(f"{{row}} NOT BETWEEN {first:d} AND {last:d}")
        else:
            short.append(key)
    return Restriction(
        "SELECT key FROM chunks WHERE doc IN (SELECT value FROM json_each(?))",
        (json.dumps(short),),
        " AND ".join(tests),
    )
