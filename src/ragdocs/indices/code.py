"""The code index: code blocks by their identifiers and language, in a table of the store."""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial

from ragdocs.indices.analysis import Analyzer, analysis_version
from ragdocs.indices.conditions import Unit
from ragdocs.indices.fts5 import (
    Fts5Ranking,
    Restriction,
    check_table,
    compact_table,
    create_table,
    drop_table,
    holds_rows,
    join_terms,
)
from ragdocs.indices.hits import CodeHits, Hit
from ragdocs.indices.keyword import rarest
from ragdocs.indices.scopes import Scope, few_left_out, language_names
from ragdocs.store.database import Database, Row
from ragdocs.store.records import ChunkKey
from ragdocs.store.snapshot import Snapshot

# No stems and no stop words in code. Names are found whole and by their parts, so that
# `getUserById` also finds `get_user_by_id`.

TABLE = "code_terms"
_LAYOUT_VERSION = 1
_BLOCKS_PER_CHUNK = 4
"""A chunk may have several blocks, so more blocks are ranked than chunks are wanted."""


class CodeIndex:
    """The table: one row for every code block, by the block's number."""

    name = TABLE

    def __init__(self, analyzer: Analyzer) -> None:
        self._analyzer = analyzer
        self.version = f"{_LAYOUT_VERSION};{analysis_version()}"

    def create(self, database: Database) -> None:
        create_table(database, TABLE, "code")

    def drop(self, database: Database) -> None:
        drop_table(database, TABLE)

    def check(self, database: Database) -> None:
        check_table(database, TABLE)

    def compact(self, database: Database, pages: int) -> bool:
        return compact_table(database, TABLE, pages)

    def put(self, database: Database, doc: int) -> None:
        rows = self._rows(database, doc)
        database.many(f"INSERT INTO {TABLE} (rowid, code) VALUES (?, ?)", rows)

    def remove(self, database: Database, doc: int) -> None:
        database.run(
            f"DELETE FROM {TABLE} WHERE rowid IN (SELECT key FROM code_blocks WHERE doc = ?)",
            (doc,),
        )

    def holds(self, database: Database, docs: Iterable[int]) -> bool:
        rows = (list(self._rows(database, doc)) for doc in docs)
        return holds_rows(database, TABLE, "code", rows)

    def _rows(self, database: Database, doc: int) -> Iterator[Row]:
        select = "SELECT key, code, position FROM code_blocks WHERE doc = ?"
        for key, code, _ in database.paged(select, (doc,), "position", 2):
            yield key, join_terms(self._analyzer.streams(code))


class CodeEngine:
    """Searches the table of CodeIndex."""

    def __init__(self, analyzer: Analyzer, prose: Analyzer) -> None:
        self._analyzer = analyzer
        self._prose = prose
        self._ranking = Fts5Ranking(TABLE, [1.0])

    def search(
        self,
        snapshot: Snapshot,
        text: str,
        limit: int,
        scope: Scope = None,
        language: str = "",
        *,
        most_terms: int | None = None,
    ) -> CodeHits:
        """A hit is the chunk in which a block begins. Ignores the stop words of prose. With more
        than `most_terms` terms, searches for the rarest.
        """
        units: Sequence[Unit] = self._units(text)
        if most_terms is not None:
            count = partial(self._ranking.frequencies, snapshot)
            units = rarest(units, count, most_terms, self._ranking.count_rows(snapshot))
        ranked = self._ranking.rank(
            snapshot,
            units,
            limit * _BLOCKS_PER_CHUNK,
            _restriction(scope, language),
        )
        best: dict[int, float] = {}
        chunks = _chunks_of(snapshot, [key for key, _ in ranked.rows])
        for key, score in ranked.rows:
            if key in chunks:
                best.setdefault(chunks[key], score)
        hits = [Hit(ChunkKey(chunk), score) for chunk, score in best.items()]
        is_all = len(ranked.rows) < limit * _BLOCKS_PER_CHUNK and len(hits) <= limit
        scores_of = (
            None if is_all else partial(self._scores, snapshot, units, ranked.scores, language)
        )
        return CodeHits(tuple(hits[:limit]), ranked.ideal, scores_of)

    def _scores(
        self,
        snapshot: Snapshot,
        units: Sequence[Unit],
        known: Mapping[int, float] | None,
        language: str,
        keys: Collection[ChunkKey],
    ) -> dict[ChunkKey, float]:
        blocks = _blocks_of(snapshot, keys, language)
        best: dict[ChunkKey, float] = {}
        for block, score in self._ranking.scores(snapshot, units, known, list(blocks)).items():
            chunk = blocks[block]
            best[chunk] = max(score, best.get(chunk, 0.0))
        return best

    def _units(self, text: str) -> list[Unit]:
        terms = dict.fromkeys(
            token.term
            for token in self._analyzer.query(text)
            if not self._prose.is_stop_word(token.term)
        )
        return [Unit((term,)) for term in terms]


def _restriction(scope: Scope, language: str) -> Restriction | None:
    if scope is None and not language:
        return None
    left_out = few_left_out(scope)
    named = scope if left_out is None else left_out
    wanted = None if named is None else json.dumps(list(named))
    languages = json.dumps(language_names(language) if language.strip() else [])
    return Restriction(
        f"""SELECT b.key FROM code_blocks b JOIN documents d ON d.key = b.doc
        WHERE (? IS NULL OR d.id {"" if left_out is None else "NOT"} IN
            (SELECT value FROM json_each(?)))
        AND (? = '[]' OR b.language IN (SELECT value FROM json_each(?)))""",
        (wanted, wanted, languages, languages),
    )


def _chunks_of(snapshot: Snapshot, blocks: list[int]) -> dict[int, int]:
    rows = snapshot.select(
        "SELECT key, chunk FROM code_blocks WHERE chunk NOT NULL "
        "AND key IN (SELECT value FROM json_each(?))",
        (json.dumps(blocks),),
    )
    return dict(rows)


def _blocks_of(
    snapshot: Snapshot, chunks: Collection[ChunkKey], language: str
) -> dict[int, ChunkKey]:
    languages = json.dumps(language_names(language) if language.strip() else [])
    rows = snapshot.select(
        """SELECT key, chunk FROM code_blocks WHERE chunk IN (SELECT value FROM json_each(?))
        AND (? = '[]' OR language IN (SELECT value FROM json_each(?)))""",
        (json.dumps(list(chunks)), languages, languages),
    )
    return {key: ChunkKey(chunk) for key, chunk in rows}
