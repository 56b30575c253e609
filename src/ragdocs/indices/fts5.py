"""Keyword search inside the store: SQLite FTS5 finds the candidates, our BM25 ranks them."""

import json
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import partial
from heapq import nlargest
from math import log
from typing import TypeVar

from ragdocs.indices.analysis import Analyzer, Streams
from ragdocs.indices.conditions import All, Condition, Some, Unit, Without
from ragdocs.indices.hits import Hit, KeywordHits
from ragdocs.indices.keyword import FIELDS, MOST, KeywordQuery, field_texts, idf
from ragdocs.indices.scopes import Conditions, Scope, few_left_out
from ragdocs.memory import ENTRY_BYTES, bytes_of
from ragdocs.models import DocId, QueryField
from ragdocs.store.database import Database, Row
from ragdocs.store.records import ChunkKey, Position, StoredChunk
from ragdocs.store.snapshot import Snapshot
from ragdocs.store.tables import (
    POSITION,
    SELECT_CHUNKS,
    SELECT_DOCUMENTS,
    read_chunk,
    read_document,
)

# How many rows an FTS5 table has, and how many of them have each unit.
#
# Every query needs both, and they change only with a commit, so counts are kept until then.
# Counting a common word takes as long as ranking it.

MOST_BYTES = 4 << 20

UnitKey = tuple[tuple[str, ...], QueryField | None]
"""A unit without its weight."""


@dataclass(slots=True)
class _CommitCounts:
    """The counts at one commit."""

    position: Position
    total: int
    rows: dict[UnitKey, int] = field(default_factory=dict[UnitKey, int])
    bytes: int = 0
    """The approximate size of the rows: two threads may count at the same time."""

    def serves(self, position: Position) -> bool:
        """Whether these are counts at that commit, with room for more."""
        return self.position == position and self.bytes < MOST_BYTES


class Fts5Counts:
    """Counts in one table, which has an fts5vocab table `TABLE_vocabulary`; safe to use from
    several threads, which at worst count the same twice.
    """

    def __init__(self, table: str) -> None:
        self._table = table
        self._counted: _CommitCounts | None = None

    def of(self, snapshot: Snapshot, units: Sequence[Unit]) -> tuple[int, dict[Unit, int]]:
        """How many rows the table has, and how many of them have each unit."""
        counted = self._counted
        if counted is None or not counted.serves(snapshot.position):
            total = snapshot.select(f"SELECT count(*) FROM {self._table}_docsize")[0][0]
            counted = self._counted = _CommitCounts(snapshot.position, total)
        rows = counted.rows
        unknown = [unit for unit in units if _unit_key(unit) not in rows]
        words = [unit.terms[0] for unit in unknown if is_word(unit)]
        if words:
            rows.update(self._words(snapshot, words))
        for unit in unknown:
            if not is_word(unit):
                rows[_unit_key(unit)] = self._count_matching(snapshot, unit)
        counted.bytes += sum(bytes_of(_unit_key(unit)) + ENTRY_BYTES for unit in unknown)
        return counted.total, {unit: rows[_unit_key(unit)] for unit in units}

    def _words(self, snapshot: Snapshot, words: Sequence[str]) -> dict[UnitKey, int]:
        found: dict[str, int] = dict(
            snapshot.select(
                f"SELECT term, doc FROM {self._table}_vocabulary "
                "WHERE term IN (SELECT value FROM json_each(?))",
                (json.dumps(words),),
            )
        )
        return {((word,), None): found.get(word, 0) for word in words}

    def _count_matching(self, snapshot: Snapshot, unit: Unit) -> int:
        rows = snapshot.select(
            f"SELECT count(*) FROM {self._table} WHERE {self._table} MATCH ?",
            (match_expression(unit),),
        )
        return rows[0][0]


def match_expression(unit: Unit) -> str:
    """A unit in FTS5's query syntax."""
    quoted = '"' + " ".join(unit.terms).replace('"', '""') + '"'
    return quoted if unit.field is None else f"{unit.field.value} : {quoted}"


def is_word(unit: Unit) -> bool:
    return len(unit.terms) == 1 and unit.field is None


def _unit_key(unit: Unit) -> UnitKey:
    return unit.terms, unit.field


# BM25F by FTS5's own counts, with an idf that also works for small folders and common words.
#
# FTS5 computes weighted counts, lengths and averages exactly as BM25F needs them. Only its idf is
# wrong here: a word in more than half of the rows counts nothing, and a folder of five files is
# ranked at random. FTS5's idf is known, so each unit's score is divided by it and multiplied by
# ln(1 + (N - n + 0.5) / (n + 0.5)).
#
# This needs the score of each unit by itself. If the units have few rows, all rows are scored. If
# they have many, FTS5 proposes rows by its own ranking, and only these get exact scores. The
# maximum score of a row that was not proposed is known (`most_possible`); if it could be among the
# best, all rows are scored after all. See specs/0027.

FEW_ROWS = 4000
"""Up to this number every row of every unit is scored: proposing would take as long."""
PROPOSED = 3
"""How many rows are proposed for each one wanted."""
FEW_UNITS = 32
"""With more units the proposed rows are rarely enough, and all rows are scored after all."""
TRUSTED = 1.0
"""FTS5 proposes rows if its idfs are too small by no more than this part of them."""
EXPECTED = 0.7
"""The part of the rarer units' idf that the last of the best rows usually scores at least."""
UNITS_PER_STATEMENT = 200
"""SQLite joins at most 500 selects."""
_LEAST_IDF = 1e-6
"""FTS5's replacement for an idf that is not above zero."""
_CLEAR_IDF = 0.05
"""From this idf on, a unit's share can be computed from a row's whole score without loss."""
_ROUNDING = 1 + 1e-9
_ALL = -1
"""No limit, as SQLite has it."""

Rows = list[tuple[int, float]]
Key = TypeVar("Key", bound=int)


@dataclass(frozen=True, slots=True)
class Ranked:
    """Row numbers with scores, best first; the maximum score; the units' frequencies; and the
    scores of all rows that have a unit, or None if not all were scored.
    """

    rows: Rows
    ideal: float
    frequencies: Mapping[Unit, int]
    scores: Mapping[int, float] | None = None


@dataclass(frozen=True, slots=True)
class Restriction:
    """Which rows may be ranked: `test` is an SQL condition on a row's number `{row}` and may refer
    to `members`, which are selected once.
    """

    members: str
    values: tuple[object, ...]
    test: str = "{row} IN members"
    is_large: bool = False
    """Whether building a set of the members takes longer than scoring the rows outside it."""


@dataclass(frozen=True, slots=True)
class Share:
    """A unit that some rows have, with our idf and FTS5's."""

    unit: Unit
    frequency: int
    idf: float
    fts5_idf: float

    @property
    def factor(self) -> float:
        """From FTS5's score to ours, for this unit alone."""
        return self.idf / self.fts5_idf


class Fts5Ranking:
    """Ranks the rows of one FTS5 table. Keeps counts of rows until the next commit."""

    def __init__(self, table: str, weights: Sequence[float], few_rows: int = FEW_ROWS) -> None:
        self._table = table
        self._counts = Fts5Counts(table)
        self._few_rows = few_rows
        listed = ", ".join(f"{weight:.6g}" for weight in weights)
        self._score = f"-bm25({table}, {listed})"

    def rank(
        self,
        snapshot: Snapshot,
        units: Sequence[Unit],
        limit: int,
        only: Restriction | None = None,
    ) -> Ranked:
        total, frequencies = self._counts.of(snapshot, units)
        ideal = sum(unit.weight * idf(total, frequencies[unit]) * MOST for unit in units)
        shares = _shares(total, frequencies)
        if not shares or limit <= 0:
            return Ranked([], ideal, frequencies)
        search = _Search(snapshot, self._table, self._score, only)
        if only is None and self._are_few(shares):
            # Scores below the best are needed too, as soon as another index finds these rows.
            scores = search.scores(shares)
            return Ranked(_best(scores, limit), ideal, frequencies, scores)
        rows = search.propose(shares, limit) if self._is_worth_proposing(shares) else None
        return Ranked(search.score_all(shares, limit) if rows is None else rows, ideal, frequencies)

    def scores(
        self,
        snapshot: Snapshot,
        units: Sequence[Unit],
        known: Mapping[int, float] | None,
        keys: Collection[Key],
    ) -> dict[Key, float]:
        """The scores of those rows that have any of the units; `known`: see `Ranked.scores`."""
        if known is None:
            shares = _shares(*self._counts.of(snapshot, units))
            known = _Search(snapshot, self._table, self._score, None).scores(shares, keys)
        return {key: known[key] for key in keys if key in known}

    def count_rows(self, snapshot: Snapshot) -> int:
        return self._counts.of(snapshot, ())[0]

    def frequencies(self, snapshot: Snapshot, terms: Sequence[str]) -> dict[str, int]:
        """How many rows have each of these terms."""
        _, counts = self._counts.of(snapshot, [Unit((term,)) for term in terms])
        return {unit.terms[0]: count for unit, count in counts.items()}

    def _is_worth_proposing(self, shares: Sequence[Share]) -> bool:
        """Not for few rows; nor for many units, because no row has most of them; nor if FTS5's
        idfs differ too much from ours.
        """
        if len(shares) > FEW_UNITS or self._are_few(shares):
            return False
        known = sum(share.fts5_idf for share in shares)
        unknown = MOST * sum(share.idf - share.fts5_idf for share in shares)
        return len(shares) == 1 or unknown <= TRUSTED * known

    def _are_few(self, shares: Sequence[Share]) -> bool:
        return sum(share.frequency for share in shares) <= self._few_rows


class _Search:
    """Scores the rows of one query: all of them, or those that FTS5 proposes."""

    def __init__(
        self, snapshot: Snapshot, table: str, score: str, only: Restriction | None
    ) -> None:
        self._snapshot = snapshot
        self._table = table
        self._score = score
        self._only = only
        self._values = () if only is None else only.values
        self._members = [] if only is None else [f"members AS MATERIALIZED ({only.members})"]
        # The plus keeps SQLite from asking FTS5 for each allowed row separately.
        self._test = "" if only is None else f" AND {only.test.format(row=f'+{table}.rowid')}"

    def score_all(self, shares: Sequence[Share], limit: int) -> Rows:
        """Each unit is scored separately, because only then can FTS5's idf be taken out."""
        if len(shares) <= UNITS_PER_STATEMENT:
            return self._sums(shares, limit)
        totals: defaultdict[int, float] = defaultdict(float)
        for start in range(0, len(shares), UNITS_PER_STATEMENT):
            for key, score in self._sums(shares[start : start + UNITS_PER_STATEMENT], _ALL):
                totals[key] += score
        return _best(totals, limit)

    def propose(self, shares: Sequence[Share], limit: int) -> Rows | None:
        """The best rows, or None if a row that FTS5 did not propose might be among them."""
        if len(shares) == 1:
            # For one unit FTS5's order is ours.
            found = self._rank_by_fts5(match_expression(shares[0].unit), limit)
            return [(key, score * shares[0].factor) for key, score in found]
        rare, common = split_common(shares)
        if common:
            # Rows without a rare unit are left out. Every unit is in the expression twice: once to
            # select rows and once to score them, or twice to score them.
            chosen = _any_of(rare)
            expression = f"({chosen}) AND ({chosen} OR {_any_of([*common, *common])})"
            rows = self._propose(expression, 2, shares, limit)
            least = MOST * sum(share.idf for share in common)
            if rows is not None and len(rows) == limit and rows[-1][1] > least * _ROUNDING:
                return rows
        return self._propose(_any_of(shares), 1, shares, limit)

    def _propose(
        self, expression: str, times: int, shares: Sequence[Share], limit: int
    ) -> Rows | None:
        """The best rows that match an expression, which has each unit this many times."""
        found = self._rank_by_fts5(expression, limit * PROPOSED)
        whole = {key: score / times for key, score in found}
        rows = _best(self._exact(whole, shares), limit)
        if len(found) < limit * PROPOSED:
            return rows
        rest = most_possible(found[-1][1] / times, shares)
        return rows if rows[-1][1] > rest * _ROUNDING else None

    def _exact(self, whole: Mapping[int, float], shares: Sequence[Share]) -> dict[int, float]:
        """Our scores of these rows. The share of the most common unit is the rest of the whole
        score, so its rows, which may be most of the table, are not read again.
        """
        commonest = max(shares, key=lambda share: share.frequency)
        is_clear = commonest.fts5_idf >= _CLEAR_IDF
        base = commonest.factor if is_clear else 0.0
        asked = [share for share in shares if share is not commonest or not is_clear]
        scores = {key: score * base for key, score in whole.items()}
        for rows in self._gains([(share, share.factor - base) for share in asked], whole):
            for key, gain in rows:
                scores[key] += gain
        return scores

    def scores(
        self, shares: Sequence[Share], keys: Collection[int] | None = None
    ) -> dict[int, float]:
        """Our scores of those of these rows, or of all rows, that have any of the units."""
        scores: dict[int, float] = {}
        so_far = scores.get
        for rows in self._gains([(share, share.factor) for share in shares], keys):
            for key, gain in rows:
                scores[key] = so_far(key, 0.0) + gain
        return scores

    def _gains(
        self, asked: Sequence[tuple[Share, float]], keys: Collection[int] | None
    ) -> Iterator[list[Row]]:
        """Each unit's score of each of these rows, or of all for None, times its factor."""
        one = f"SELECT rowid, {self._score} * ? FROM {self._table} WHERE {self._table} MATCH ?"
        wanted: tuple[str, ...] = ()
        if keys is not None:
            one += " AND +rowid IN (SELECT value FROM json_each(?))"
            wanted = (json.dumps(list(keys)),)
        for start in range(0, len(asked), UNITS_PER_STATEMENT):
            portion = asked[start : start + UNITS_PER_STATEMENT]
            values = [
                value
                for share, factor in portion
                for value in (factor, match_expression(share.unit), *wanted)
            ]
            yield self._snapshot.select(" UNION ALL ".join([one] * len(portion)), values)

    def _rank_by_fts5(self, expression: str, limit: int) -> Rows:
        """By FTS5's own score."""
        rows = self._snapshot.select(
            f"{_with(self._members)}SELECT rowid, {self._score} AS score FROM {self._table} "
            f"WHERE {self._table} MATCH ?{self._test} ORDER BY score DESC, rowid LIMIT ?",
            [*self._values, expression, limit],
        )
        return [(key, score) for key, score in rows]

    def _sums(self, shares: Sequence[Share], limit: int) -> Rows:
        # SQLite builds a set of the members for each select: with many selects, test afterwards.
        within, after = self._test, ""
        if self._only is not None and self._only.is_large and len(shares) > 1:
            within, after = "", f"WHERE {self._only.test.format(row='key')} "
        one = (
            f"SELECT rowid AS key, {self._score} * ? AS score FROM {self._table} "
            f"WHERE {self._table} MATCH ?{within}"
        )
        # Materialised, because bm25() works only in a search of its own table.
        scored = f"scored AS MATERIALIZED ({' UNION ALL '.join([one] * len(shares))})"
        rows = self._snapshot.select(
            f"{_with([*self._members, scored])}SELECT key, sum(score) AS total FROM scored "
            f"{after}GROUP BY key ORDER BY total DESC, key LIMIT ?",
            [
                *self._values,
                *(v for share in shares for v in (share.factor, match_expression(share.unit))),
                limit,
            ],
        )
        return [(key, score) for key, score in rows]


def _shares(total: int, frequencies: Mapping[Unit, int]) -> list[Share]:
    """The shares of the units that any row has."""
    return [
        Share(unit, count, unit.weight * idf(total, count), _fts5_idf(total, count))
        for unit, count in frequencies.items()
        if count
    ]


def most_possible(score: float, shares: Sequence[Share]) -> float:
    """The maximum of our score for a row to which FTS5 gives this score or less.

    Each unit's share is between 0 and MOST. FTS5's score is spent first on the unit that FTS5
    undervalues most, until that unit's share is used up.
    """
    most = 0.0
    for share in sorted(shares, key=lambda share: -share.factor):
        spent = min(score, MOST * share.fts5_idf)
        most += spent * share.factor
        score -= spent
    return most


def split_common(shares: Sequence[Share]) -> tuple[list[Share], list[Share]]:
    """Rare and common units: a row with only common ones will hardly be among the best."""
    rare = sorted(shares, key=lambda share: -share.frequency)
    common: list[Share] = []
    while len(rare) > 1:
        most = MOST * sum(share.idf for share in (*common, rare[0]))
        if most > EXPECTED * sum(share.idf for share in rare[1:]):
            break
        common.append(rare.pop(0))
    return rare, common


def _any_of(shares: Sequence[Share]) -> str:
    return " OR ".join(match_expression(share.unit) for share in shares)


def _with(tables: Sequence[str]) -> str:
    return f"WITH {', '.join(tables)} " if tables else ""


def _best(scores: Mapping[int, float], limit: int) -> Rows:
    rows: Collection[tuple[int, float]] = scores.items()
    if len(rows) > limit:
        # Finding the largest numbers takes a fraction of the time of sorting rows.
        least = nlargest(limit, scores.values())[-1]
        rows = [row for row in rows if row[1] >= least]
    return sorted(rows, key=lambda row: (-row[1], row[0]))[:limit]


def _fts5_idf(total: int, frequency: int) -> float:
    as_it_is = log((total - frequency + 0.5) / (frequency + 0.5))
    return as_it_is if as_it_is > 0 else _LEAST_IDF


# Whether a table inside the store has the rows that it should have.


def has_exactly(
    database: Database, select: str, count: str, expected: Iterable[Sequence[Row]]
) -> bool:
    """`select` reads rows `IN (*)` by their first column, `count` counts all rows. The expected
    rows come in portions, so that they are never all in memory."""
    known = 0
    for rows in expected:
        found = database.all_in(select, [row[0] for row in rows])
        if sorted(found) != sorted(rows):
            return False
        known += len(rows)
    return database.one(count) == (known,)


# Creates, checks, compacts and drops FTS5 tables inside the store.

_GAP = "\u241f"
"""Separates a text's words from the wholes after them, so that no phrase matches across."""

_WORK_DONE = 2
"""According to FTS5's documentation, fewer changes mean that there was nothing to merge."""


def create_table(database: Database, table: str, columns: str) -> None:
    # The ascii tokenizer takes every character beyond ASCII as part of a word, and our terms have
    # no other ASCII punctuation than this: a term is stored unchanged.
    database.run(
        f"""CREATE VIRTUAL TABLE {table} USING fts5({columns},
        tokenize = "ascii tokenchars '_.+#-:''/@&$'")"""
    )
    database.run(f"CREATE VIRTUAL TABLE {table}_vocabulary USING fts5vocab({table}, row)")


def drop_table(database: Database, table: str) -> None:
    database.run(f"DROP TABLE IF EXISTS {table}_vocabulary")
    database.run(f"DROP TABLE IF EXISTS {table}")


def check_table(database: Database, table: str) -> None:
    """Compares the search structures with the stored columns: a flipped bit in a posting list would
    otherwise hide rows although no page or row looks damaged."""
    database.run(f"INSERT INTO {table} ({table}) VALUES ('integrity-check')")


def compact_table(database: Database, table: str, pages: int) -> bool:
    """Merges some segments, which removes deleted rows from the posting lists; returns whether
    there was anything to merge."""
    before = database.changes
    # Negative: merge segments of any age.
    database.run(f"INSERT INTO {table} ({table}, rank) VALUES ('merge', ?)", (-pages,))
    return database.changes - before >= _WORK_DONE


def holds_rows(
    database: Database, table: str, columns: str, expected: Iterable[Sequence[Row]]
) -> bool:
    """Compares the stored columns; `check_table` compares the search structures with them."""
    return has_exactly(
        database,
        f"SELECT rowid, {columns} FROM {table} WHERE rowid IN (*)",
        f"SELECT count(*) FROM {table}_docsize",
        expected,
    )


def join_terms(streams: Streams) -> str:
    gap = [_GAP] if streams.wholes else []
    return " ".join([*streams.plain, *gap, *streams.wholes])


# The default keyword engine: FTS5 tables that change in the same commit as the store.

TABLE = "keyword"
LARGE = 1_000
_LAYOUT_VERSION = 2
_COLUMNS = ", ".join(FIELDS)


class Fts5Index:
    """The table: one row for every leaf, or for the document's node if it has no text."""

    name = TABLE

    def __init__(self, analyzer: Analyzer, analysis: str) -> None:
        self._analyzer = analyzer
        self.version = f"{_LAYOUT_VERSION};{analysis}"
        self._prepared: Mapping[str, str] = {}

    def prepare(self, texts: Iterable[str]) -> None:
        """Analyses texts before the transaction: in a file full of names this takes most time."""
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
        # The document's own fields are the same in each of its leaves.
        known: dict[str, str] = {}
        for stored in _leaves(database, doc):
            texts = field_texts(document, stored.chunk)
            yield stored.key, *(self._write_column(field, texts[field], known) for field in FIELDS)

    def _write_column(self, field: QueryField, text: str, known: dict[str, str]) -> str:
        if field is QueryField.CONTENT:
            found = self._prepared.get(text)
            return self._column(text) if found is None else found
        if field is QueryField.HEADERS:
            return self._column(text)
        if text not in known:
            known[text] = self._column(text)
        return known[text]

    def _column(self, text: str) -> str:
        return join_terms(self._analyzer.streams(text))


def _leaves(database: Database, doc: int) -> Iterator[StoredChunk]:
    """The leaves of a document, or its own node if it has none."""
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


class Fts5Conditions(Conditions):
    """Turns each part that has only words into one FTS5 expression."""

    def _match(self, condition: Condition) -> set[int]:
        words = _write(condition, self._expression)
        if words is not None:
            return self._rows(f"{self._table} MATCH ?", words)
        if isinstance(condition, Some):
            # The parts that have only words become one expression.
            of_words = tuple(part for part in condition.parts if self._is_of_words(part))
            others = [part for part in condition.parts if not self._is_of_words(part)]
            if len(of_words) > 1:
                return set[int]().union(*map(self.matching, [Some(of_words), *others]))
        return super()._match(condition)

    def _all(self, parts: Sequence[Condition]) -> set[int]:
        wanted = [part for part in parts if not isinstance(part, Without)]
        words = [part for part in wanted if self._is_of_words(part)]
        others = [part for part in wanted if not self._is_of_words(part)]
        excluded = [part.part for part in parts if isinstance(part, Without)]
        return super()._all(
            [
                *([All(tuple(words))] if len(words) > 1 else words),
                *others,
                *([Without(Some(tuple(excluded)))] if excluded else []),
            ]
        )

    def _is_of_words(self, condition: Condition) -> bool:
        return _write(condition, self._expression) is not None


def _write(condition: Condition, unit: Callable[[Unit], str]) -> str | None:
    """A condition in FTS5's syntax; None for one that FTS5 cannot evaluate: on documents, or only
    an exclusion.
    """
    match condition:
        case Unit():
            return unit(condition)
        case All(parts) | Some(parts):
            written = [_write(part, unit) for part in parts]
            known = [part for part in written if part is not None]
            joint = " AND " if isinstance(condition, All) else " OR "
            return f"({joint.join(known)})" if len(known) == len(written) else None
        case _:
            return None


class Fts5Engine:
    """Searches the table of Fts5Index, with the weight of each field."""

    def __init__(self, weights: Mapping[QueryField, float]) -> None:
        self._ranking = Fts5Ranking(TABLE, [weights[field] for field in FIELDS])

    def catch_up(self, snapshot: Snapshot) -> None:
        """Nothing to do: the tables change in the same commit as the store."""

    def search(
        self,
        snapshot: Snapshot,
        query: KeywordQuery,
        limit: int,
        scope: Scope = None,
        allowed: Set[int] | None = None,
    ) -> KeywordHits:
        only = _restriction(snapshot, query.condition, scope, allowed)
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


def _restriction(
    snapshot: Snapshot, condition: Condition | None, scope: Scope, allowed: Set[int] | None
) -> Restriction | None:
    """The rows that may be ranked, or None for all."""
    if condition is None:
        return None if scope is None else _within(snapshot, scope)
    conditions = Fts5Conditions(snapshot, TABLE, match_expression)
    if allowed is None:
        allowed = conditions.matching(condition)
    if (left_out := few_left_out(scope)) is not None:
        allowed = allowed - conditions.in_documents(left_out)
    elif scope is not None:
        allowed = allowed & conditions.in_documents(scope)
    members = (json.dumps(list(allowed)),)
    is_large = len(allowed) > LARGE
    return Restriction("SELECT value FROM json_each(?)", members, is_large=is_large)


def _within(snapshot: Snapshot, scope: frozenset[DocId]) -> Restriction:
    """By the rows of the few documents that are left out, or else by the documents that are not:
    they are fewer than rows.
    """
    if (left_out := few_left_out(scope)) is not None:
        return _leave_out(snapshot, left_out)
    return Restriction(
        "SELECT key FROM documents WHERE id IN (SELECT value FROM json_each(?))",
        (json.dumps(list(scope)),),
        "(SELECT doc FROM chunks WHERE key = {row}) IN members",
    )


def _leave_out(snapshot: Snapshot, left_out: frozenset[DocId]) -> Restriction:
    """SQLite builds a set of the members for each word. The rows of a document usually have
    consecutive numbers: for a long document, the first and the last are enough.
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
