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
# Both are asked for by every query and change only with a commit, so what was counted once is kept
# until then. To count a common word takes as long as to rank it.

MOST_BYTES = 4 << 20

Sought = tuple[tuple[str, ...], QueryField | None]
"""A unit, whatever its weight."""


@dataclass(slots=True)
class _Counted:
    """What is known of one commit."""

    position: Position
    total: int
    rows: dict[Sought, int] = field(default_factory=dict[Sought, int])
    bytes: int = 0
    """Of the rows, about: two threads may count at the same moment."""

    def serves(self, position: Position) -> bool:
        """Whether it is of that commit, and has room."""
        return self.position == position and self.bytes < MOST_BYTES


class Fts5Counts:
    """Counts in one table, which has an fts5vocab table `TABLE_vocabulary`; safe to use from
    several threads, which at worst count the same again.
    """

    def __init__(self, table: str) -> None:
        self._table = table
        self._counted: _Counted | None = None

    def of(self, snapshot: Snapshot, units: Sequence[Unit]) -> tuple[int, dict[Unit, int]]:
        """The rows of the table, and of each unit."""
        counted = self._counted
        if counted is None or not counted.serves(snapshot.position):
            total = snapshot.select(f"SELECT count(*) FROM {self._table}_docsize")[0][0]
            counted = self._counted = _Counted(snapshot.position, total)
        rows = counted.rows
        unknown = [unit for unit in units if _sought(unit) not in rows]
        words = [unit.terms[0] for unit in unknown if is_word(unit)]
        if words:
            rows.update(self._words(snapshot, words))
        for unit in unknown:
            if not is_word(unit):
                rows[_sought(unit)] = self._matching(snapshot, unit)
        counted.bytes += sum(bytes_of(_sought(unit)) + ENTRY_BYTES for unit in unknown)
        return counted.total, {unit: rows[_sought(unit)] for unit in units}

    def _words(self, snapshot: Snapshot, words: Sequence[str]) -> dict[Sought, int]:
        found: dict[str, int] = dict(
            snapshot.select(
                f"SELECT term, doc FROM {self._table}_vocabulary "
                "WHERE term IN (SELECT value FROM json_each(?))",
                (json.dumps(words),),
            )
        )
        return {((word,), None): found.get(word, 0) for word in words}

    def _matching(self, snapshot: Snapshot, unit: Unit) -> int:
        rows = snapshot.select(
            f"SELECT count(*) FROM {self._table} WHERE {self._table} MATCH ?",
            (match_expression(unit),),
        )
        return rows[0][0]


def match_expression(unit: Unit) -> str:
    """A unit as FTS5 wants it written."""
    quoted = '"' + " ".join(unit.terms).replace('"', '""') + '"'
    return quoted if unit.field is None else f"{unit.field.value} : {quoted}"


def is_word(unit: Unit) -> bool:
    return len(unit.terms) == 1 and unit.field is None


def _sought(unit: Unit) -> Sought:
    return unit.terms, unit.field


# BM25F by FTS5's own counts, with an idf that also works for small folders and common words.
#
# FTS5 counts weighted occurrences, lengths and averages exactly as BM25F wants them; only its idf
# is wrong for us: a word in more than half of the rows counts for nothing, and a folder of five
# files ranks at random. Its own idf is known, so each unit's score is divided by it and multiplied
# by ln(1 + (N - n + 0.5) / (n + 0.5)).
#
# That needs each unit's score by itself. Where the units have few rows, all are asked for so. Where
# they have many, FTS5 proposes rows by its own ranking, and only these get their exact scores; what
# a row that was not proposed could score at most is known (`most_possible`), and if that might be
# enough to be among the best, the slow way is gone after all. See specs/0027.

FEW_ROWS = 4000
"""Up to here every row of every unit is scored: to propose first would take as long."""
PROPOSED = 3
"""So many times as many rows are proposed as are wanted."""
FEW_UNITS = 32
"""With more, what was proposed is rarely enough, and all rows are scored after all."""
TRUSTED = 1.0
"""FTS5 is asked first when its idfs are too small by no more than this part of them."""
EXPECTED = 0.7
"""What part of the rarer units' idf the last of the best rows usually scores, at least."""
UNITS_PER_STATEMENT = 200
"""SQLite joins at most 500 selects."""
_LEAST_IDF = 1e-6
"""What FTS5 uses in place of an idf that is not above zero."""
_CLEAR_IDF = 0.05
"""From here on a unit's share can be told from a row's whole score without loss."""
_ROUNDING = 1 + 1e-9
_ALL = -1
"""No limit, as SQLite has it."""

Rows = list[tuple[int, float]]
Key = TypeVar("Key", bound=int)


@dataclass(frozen=True, slots=True)
class Ranked:
    """Row numbers with scores, best first; the most there is to score; the units' frequencies; and
    the scores of every row of the table that has a unit, None when not all were looked at.
    """

    rows: Rows
    ideal: float
    frequencies: Mapping[Unit, int]
    scores: Mapping[int, float] | None = None


@dataclass(frozen=True, slots=True)
class Restriction:
    """Which rows may be ranked: `test` is put to each, with `{row}` for its number, and may look
    into `members`, which are selected once.
    """

    members: str
    values: tuple[object, ...]
    test: str = "{row} IN members"
    is_large: bool = False
    """Whether to make a set of the members takes longer than to score rows that are none."""


@dataclass(frozen=True, slots=True)
class Share:
    """A unit that some rows have: what it is worth to us, and what FTS5 takes it for."""

    unit: Unit
    frequency: int
    idf: float
    fts5_idf: float

    @property
    def factor(self) -> float:
        """From FTS5's score to ours, for this unit alone."""
        return self.idf / self.fts5_idf


class Fts5Ranking:
    """Ranks the rows of one FTS5 table, whose numbers of rows it remembers for a commit."""

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
            # What is behind the best is asked for too, as soon as another index has found it.
            scores = search.scores(shares)
            return Ranked(_best(scores, limit), ideal, frequencies, scores)
        rows = search.proposed(shares, limit) if self._is_worth_proposing(shares) else None
        return Ranked(search.every(shares, limit) if rows is None else rows, ideal, frequencies)

    def scores(
        self,
        snapshot: Snapshot,
        units: Sequence[Unit],
        known: Mapping[int, float] | None,
        keys: Collection[Key],
    ) -> dict[Key, float]:
        """Of these very rows, those that have any of the units; `known`: see `Ranked.scores`."""
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
        """Not for a few rows, nor for many units, of which no few rows have most; nor where FTS5
        knows too little of what its words are worth.
        """
        if len(shares) > FEW_UNITS or self._are_few(shares):
            return False
        known = sum(share.fts5_idf for share in shares)
        unknown = MOST * sum(share.idf - share.fts5_idf for share in shares)
        return len(shares) == 1 or unknown <= TRUSTED * known

    def _are_few(self, shares: Sequence[Share]) -> bool:
        return sum(share.frequency for share in shares) <= self._few_rows


class _Search:
    """One query's rows: all of them scored, or those that FTS5 proposes."""

    def __init__(
        self, snapshot: Snapshot, table: str, score: str, only: Restriction | None
    ) -> None:
        self._snapshot = snapshot
        self._table = table
        self._score = score
        self._only = only
        self._values = () if only is None else only.values
        self._members = [] if only is None else [f"members AS MATERIALIZED ({only.members})"]
        # The plus keeps SQLite from asking FTS5 for each allowed row anew, its statistics included.
        self._test = "" if only is None else f" AND {only.test.format(row=f'+{table}.rowid')}"

    def every(self, shares: Sequence[Share], limit: int) -> Rows:
        """Each unit is asked for by itself, because only then can its idf be taken out again."""
        if len(shares) <= UNITS_PER_STATEMENT:
            return self._sums(shares, limit)
        totals: defaultdict[int, float] = defaultdict(float)
        for start in range(0, len(shares), UNITS_PER_STATEMENT):
            for key, score in self._sums(shares[start : start + UNITS_PER_STATEMENT], _ALL):
                totals[key] += score
        return _best(totals, limit)

    def proposed(self, shares: Sequence[Share], limit: int) -> Rows | None:
        """The best rows, or None when one that FTS5 did not propose might be among them."""
        if len(shares) == 1:
            # FTS5's order is ours: there is nothing to weigh against each other.
            found = self._ranked(match_expression(shares[0].unit), limit)
            return [(key, score * shares[0].factor) for key, score in found]
        rare, common = split_common(shares)
        if common:
            # A row that has none of the rare units is not looked at. Every unit stands twice in
            # the expression, once to select rows and once to score them, or twice to score them.
            chosen = _any_of(rare)
            expression = f"({chosen}) AND ({chosen} OR {_any_of([*common, *common])})"
            rows = self._proposed_by(expression, 2, shares, limit)
            least = MOST * sum(share.idf for share in common)
            if rows is not None and len(rows) == limit and rows[-1][1] > least * _ROUNDING:
                return rows
        return self._proposed_by(_any_of(shares), 1, shares, limit)

    def _proposed_by(
        self, expression: str, times: int, shares: Sequence[Share], limit: int
    ) -> Rows | None:
        """The best of the rows that an expression finds, in which each unit stands so often."""
        found = self._ranked(expression, limit * PROPOSED)
        whole = {key: score / times for key, score in found}
        rows = _best(self._exact(whole, shares), limit)
        if len(found) < limit * PROPOSED:
            return rows
        rest = most_possible(found[-1][1] / times, shares)
        return rows if rows[-1][1] > rest * _ROUNDING else None

    def _exact(self, whole: Mapping[int, float], shares: Sequence[Share]) -> dict[int, float]:
        """Our scores of these rows. What the commonest unit gives is what the others leave of the
        whole, so that its rows, which may be most of the table, are not gone through once more.
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
        """Our scores of these rows, or of all, whichever of the units they have."""
        scores: dict[int, float] = {}
        so_far = scores.get
        for rows in self._gains([(share, share.factor) for share in shares], keys):
            for key, gain in rows:
                scores[key] = so_far(key, 0.0) + gain
        return scores

    def _gains(
        self, asked: Sequence[tuple[Share, float]], keys: Collection[int] | None
    ) -> Iterator[list[Row]]:
        """What each unit gives each of these rows, or of all for None, times its factor."""
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

    def _ranked(self, expression: str, limit: int) -> Rows:
        """By FTS5's own score."""
        rows = self._snapshot.select(
            f"{_with(self._members)}SELECT rowid, {self._score} AS score FROM {self._table} "
            f"WHERE {self._table} MATCH ?{self._test} ORDER BY score DESC, rowid LIMIT ?",
            [*self._values, expression, limit],
        )
        return [(key, score) for key, score in rows]

    def _sums(self, shares: Sequence[Share], limit: int) -> Rows:
        # SQLite makes a set of the members for each select: of many selects, one set for all.
        within, after = self._test, ""
        if self._only is not None and self._only.is_large and len(shares) > 1:
            within, after = "", f"WHERE {self._only.test.format(row='key')} "
        one = (
            f"SELECT rowid AS key, {self._score} * ? AS score FROM {self._table} "
            f"WHERE {self._table} MATCH ?{within}"
        )
        # Materialised, because bm25() works only where its own table is being searched.
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
    """Of the units that any row has."""
    return [
        Share(unit, count, unit.weight * idf(total, count), _fts5_idf(total, count))
        for unit, count in frequencies.items()
        if count
    ]


def most_possible(score: float, shares: Sequence[Share]) -> float:
    """The most that a row can be worth to us to which FTS5 gives this score or less.

    Each unit's share is between 0 and MOST; where FTS5 undervalues a unit most, its score buys
    most of ours, until that unit's share is used up.
    """
    most = 0.0
    for share in sorted(shares, key=lambda share: -share.factor):
        spent = min(score, MOST * share.fts5_idf)
        most += spent * share.factor
        score -= spent
    return most


def split_common(shares: Sequence[Share]) -> tuple[list[Share], list[Share]]:
    """Rare units and common ones, of which a row with these alone will hardly be among the best."""
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
        # Of numbers alone the largest are found in a fraction of the time that rows are sorted in.
        least = nlargest(limit, scores.values())[-1]
        rows = [row for row in rows if row[1] >= least]
    return sorted(rows, key=lambda row: (-row[1], row[0]))[:limit]


def _fts5_idf(total: int, frequency: int) -> float:
    as_it_is = log((total - frequency + 0.5) / (frequency + 0.5))
    return as_it_is if as_it_is > 0 else _LEAST_IDF


# Whether a table inside the store has the rows that it should.


def has_exactly(
    database: Database, select: str, count: str, expected: Iterable[Sequence[Row]]
) -> bool:
    """`select` asks for rows `IN (*)`, by the key that comes first in each, `count` for how many
    there are. The rows that are expected come in portions: they are never all in memory."""
    known = 0
    for rows in expected:
        found = database.all_in(select, [row[0] for row in rows])
        if sorted(found) != sorted(rows):
            return False
        known += len(rows)
    return database.one(count) == (known,)


# FTS5 tables inside the store: made, filled and dropped.

_GAP = "\u241f"
"""Between a text's words and the wholes behind them, so that no phrase reaches across."""

_WORK_DONE = 2
"""Fewer changes mean, as FTS5's documentation has it, that there was nothing to merge."""


def create_table(database: Database, table: str, columns: str) -> None:
    # The ascii tokenizer takes every character beyond ASCII as part of a word, and our terms hold
    # no others of ASCII's marks than these: a term goes in and comes out as it is.
    database.run(
        f"""CREATE VIRTUAL TABLE {table} USING fts5({columns},
        tokenize = "ascii tokenchars '_.+#-:''/@&$'")"""
    )
    database.run(f"CREATE VIRTUAL TABLE {table}_vocabulary USING fts5vocab({table}, row)")


def drop_table(database: Database, table: str) -> None:
    database.run(f"DROP TABLE IF EXISTS {table}_vocabulary")
    database.run(f"DROP TABLE IF EXISTS {table}")


def check_table(database: Database, table: str) -> None:
    """Compares what is searched with what was put in: a flipped bit in a list of rows would
    otherwise hide some of them, and no page or row would look damaged."""
    database.run(f"INSERT INTO {table} ({table}) VALUES ('integrity-check')")


def compact_table(database: Database, table: str, pages: int) -> bool:
    """Merges some of what was written at different times into one: only then do rows that were
    deleted leave the lists of those that have a word."""
    before = database.changes
    # Negative: all of it is to become one, whatever its age.
    database.run(f"INSERT INTO {table} ({table}, rank) VALUES ('merge', ?)", (-pages,))
    return database.changes - before >= _WORK_DONE


def holds_rows(
    database: Database, table: str, columns: str, expected: Iterable[Sequence[Row]]
) -> bool:
    """What was put in; that it is also what is searched, `check_table` tells."""
    return has_exactly(
        database,
        f"SELECT rowid, {columns} FROM {table} WHERE rowid IN (*)",
        f"SELECT count(*) FROM {table}_docsize",
        expected,
    )


def written(streams: Streams) -> str:
    gap = [_GAP] if streams.wholes else []
    return " ".join([*streams.plain, *gap, *streams.wholes])


# The default keyword engine: FTS5 inside the store, up to date with it by the same commit.

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


class Fts5Conditions(Conditions):
    """Whatever is made of words alone is one expression, which FTS5 works out by itself."""

    def _matching(self, condition: Condition) -> set[int]:
        words = _write(condition, self._expression)
        if words is not None:
            return self._rows(f"{self._table} MATCH ?", words)
        if isinstance(condition, Some):
            # Of those among other parts that are words, one expression.
            of_words = tuple(part for part in condition.parts if self._is_of_words(part))
            others = [part for part in condition.parts if not self._is_of_words(part)]
            if len(of_words) > 1:
                return set[int]().union(*map(self.matching, [Some(of_words), *others]))
        return super()._matching(condition)

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
    """A condition as FTS5 wants it; None for one that it cannot tell, of documents or by exclusion
    alone.
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
    """The rows that may be ranked, or None when all may."""
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
