"""BM25F by FTS5's own counts, with an idf that also works for small folders and common words.

FTS5 counts weighted occurrences, lengths and averages exactly as BM25F wants them; only its idf
is wrong for us: a word in more than half of the rows counts for nothing, and a folder of five
files ranks at random. Its own idf is known, so each unit's score is divided by it and multiplied
by ln(1 + (N - n + 0.5) / (n + 0.5)).

That needs each unit's score by itself. Where the units have few rows, all are asked for so. Where
they have many, FTS5 proposes rows by its own ranking, and only these get their exact scores; what
a row that was not proposed could score at most is known (`most_possible`), and if that might be
enough to be among the best, the slow way is gone after all. See specs/0027.
"""

import json
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import nlargest
from math import log
from typing import TypeVar

from ragdocs.indices.bm25 import MOST, idf
from ragdocs.indices.fts5_counts import Fts5Counts, match_expression
from ragdocs.indices.keyword import Unit
from ragdocs.store.connection import Row
from ragdocs.store.snapshot import Snapshot

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
