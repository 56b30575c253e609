"""BM25F by FTS5's own counts, with an idf that also works for small folders and common words.

FTS5 counts weighted occurrences, lengths and averages exactly as BM25F wants them; only its idf
is wrong for us: a word in more than half of the rows counts for nothing, and a folder of five
files ranks at random. Its own idf is known, so each unit's score is divided by it and multiplied
by ln(1 + (N - n + 0.5) / (n + 0.5)).
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log

from ragdocs.indices.keyword import Unit
from ragdocs.store.snapshot import Snapshot

K1, B = 1.2, 0.75
"""Fixed inside FTS5's bm25()."""
_LEAST_IDF = 1e-6
"""What FTS5 uses in place of an idf that is not above zero."""


@dataclass(frozen=True, slots=True)
class Ranked:
    """Row numbers with scores, best first; the most there is to score; the units' frequencies."""

    rows: list[tuple[int, float]]
    ideal: float
    frequencies: Mapping[Unit, int]


class Fts5Ranking:
    """Ranks the rows of one FTS5 table, which has an fts5vocab table `TABLE_vocabulary`."""

    def __init__(self, table: str, weights: Sequence[float]) -> None:
        self._table = table
        self._weights = ", ".join(f"{weight:.6g}" for weight in weights)

    def rank(
        self,
        snapshot: Snapshot,
        units: Sequence[Unit],
        limit: int,
        allowed: frozenset[int] | None = None,
    ) -> Ranked:
        total = snapshot.select(f"SELECT count(*) FROM {self._table}_docsize")[0][0]
        frequencies = {unit: self._frequency(snapshot, unit) for unit in units}
        idf = {unit: _idf(total, count) for unit, count in frequencies.items()}
        ideal = sum(unit.weight * idf[unit] * (K1 + 1) for unit in units)
        factors = {
            unit: unit.weight * idf[unit] / _fts5_idf(total, count)
            for unit, count in frequencies.items()
            if count
        }
        if not factors or limit <= 0:
            return Ranked([], ideal, frequencies)
        return Ranked(self._rows(snapshot, factors, limit, allowed), ideal, frequencies)

    def _rows(
        self,
        snapshot: Snapshot,
        factors: Mapping[Unit, float],
        limit: int,
        allowed: frozenset[int] | None,
    ) -> list[tuple[int, float]]:
        """Each unit is asked for by itself, because only then can its idf be taken out again."""
        only = "" if allowed is None else " AND rowid IN (SELECT value FROM json_each(?))"
        one = (
            f"SELECT rowid AS key, -bm25({self._table}, {self._weights}) * ? AS score "
            f"FROM {self._table} WHERE {self._table} MATCH ?{only}"
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

    def _frequency(self, snapshot: Snapshot, unit: Unit) -> int:
        if len(unit.terms) == 1 and unit.field is None:
            rows = snapshot.select(
                f"SELECT doc FROM {self._table}_vocabulary WHERE term = ?", (unit.terms[0],)
            )
            return rows[0][0] if rows else 0
        rows = snapshot.select(
            f"SELECT count(*) FROM {self._table} WHERE {self._table} MATCH ?",
            (match_expression(unit),),
        )
        return rows[0][0]


def match_expression(unit: Unit) -> str:
    quoted = '"' + " ".join(unit.terms).replace('"', '""') + '"'
    return quoted if unit.field is None else f"{unit.field.value} : {quoted}"


def _idf(total: int, frequency: int) -> float:
    return log(1 + (total - frequency + 0.5) / (frequency + 0.5))


def _fts5_idf(total: int, frequency: int) -> float:
    idf = log((total - frequency + 0.5) / (frequency + 0.5))
    return idf if idf > 0 else _LEAST_IDF
