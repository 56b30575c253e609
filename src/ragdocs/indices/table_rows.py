"""Whether a table inside the store has the rows that it should."""

from collections.abc import Iterable, Sequence

from ragdocs.store.connection import Database, Row


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
