"""How many rows an FTS5 table has, and how many of them have each unit.

Both are asked for by every query and change only with a commit, so what was counted once is kept
until then. To count a common word takes as long as to rank it.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field

from ragdocs.bounded_cache import ENTRY_BYTES, bytes_of
from ragdocs.indices.keyword import Unit
from ragdocs.models import QueryField
from ragdocs.store.records import Position
from ragdocs.store.snapshot import Snapshot

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
