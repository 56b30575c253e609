"""Which documents each generation touched, so that a view can catch up instead of starting over.

One row for each generation, with its own hash; the numbers have no gap, so a lost row shows.
"""

import json
import secrets
from collections import defaultdict
from collections.abc import Mapping

from ragdocs.errors import IndexCorrupt
from ragdocs.models import DocId
from ragdocs.store.connection import Database, Row
from ragdocs.store.records import Change, ChangeKind, Position
from ragdocs.store.rows import check_row, row_hash, to_json

# Behind by more than this, reading the whole store is about as quick as replaying.
KEPT_GENERATIONS = 2000

SELECT_GENERATIONS = "SELECT row_hash, generation, stamp, changes FROM generations"

Changes = Mapping[DocId, set[ChangeKind]]


def next_position(position: Position) -> Position:
    return Position(position.generation + 1, secrets.token_hex(8))


def append(database: Database, position: Position, changes: Changes) -> None:
    encoded = to_json({doc_id: sorted(kinds) for doc_id, kinds in sorted(changes.items())})
    values = (position.generation, position.stamp, encoded)
    database.run(
        "INSERT INTO generations (generation, stamp, changes, row_hash) VALUES (?, ?, ?, ?)",
        (*values, row_hash("generation", values)),
    )
    database.run(
        "DELETE FROM generations WHERE generation <= ?", (position.generation - KEPT_GENERATIONS,)
    )


def follows(database: Database, current: Position, earlier: Position) -> bool:
    """Whether the one is of the same history as the other, as far back as that is known."""
    if earlier == current or earlier.generation <= current.generation - KEPT_GENERATIONS:
        return True
    row = database.one("SELECT stamp FROM generations WHERE generation = ?", (earlier.generation,))
    return row is not None and row[0] == earlier.stamp


def since(database: Database, seen: Position, current: Position) -> tuple[Change, ...] | None:
    """What was touched after `seen`; None when the log does not know that commit (any more)."""
    rows = database.all(
        f"{SELECT_GENERATIONS} WHERE generation >= ? ORDER BY generation",
        (seen.generation,),
    )
    if not rows or (rows[0][1], rows[0][2]) != (seen.generation, seen.stamp):
        return None
    if len(rows) != current.generation - seen.generation + 1:
        raise IndexCorrupt(f"{database.path} has lost part of its change log: rebuild the index")
    kinds: defaultdict[DocId, set[ChangeKind]] = defaultdict(set)
    for row in rows[1:]:
        for doc_id, found in read_changes(row).items():
            kinds[doc_id] |= found
    return tuple(Change(doc_id, frozenset(found)) for doc_id, found in sorted(kinds.items()))


def read_changes(row: Row) -> dict[DocId, set[ChangeKind]]:
    hashed, *values = row
    check_row("generation", values, hashed)
    found: dict[str, list[str]] = json.loads(values[2])
    return {DocId(doc_id): {ChangeKind(kind) for kind in kinds} for doc_id, kinds in found.items()}
