"""The change log (which documents each generation changed) and the sums that reveal lost rows."""

import json
import secrets
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Self

from ragdocs.errors import REBUILD, IndexCorrupt
from ragdocs.models import DocId
from ragdocs.store.database import Database, Row
from ragdocs.store.records import Change, ChangeKind, Position
from ragdocs.store.schema import check_row, row_hash, to_json

# Which documents each generation changed, so that a view can catch up instead of starting over.
#
# One row for each generation, with its own hash; the numbers have no gaps, which reveals lost rows.

# Beyond this many generations, reading the whole store is about as fast as replaying them.
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
    """Whether both positions are in the same history, as far back as the log goes."""
    if earlier == current or earlier.generation <= current.generation - KEPT_GENERATIONS:
        return True
    row = database.one("SELECT stamp FROM generations WHERE generation = ?", (earlier.generation,))
    return row is not None and row[0] == earlier.stamp


def since(database: Database, seen: Position, current: Position) -> tuple[Change, ...] | None:
    """What changed after `seen`; None if that commit is not, or no longer, in the log."""
    rows = database.all(
        f"{SELECT_GENERATIONS} WHERE generation >= ? ORDER BY generation",
        (seen.generation,),
    )
    if not rows or (rows[0][1], rows[0][2]) != (seen.generation, seen.stamp):
        return None
    if len(rows) != current.generation - seen.generation + 1:
        raise IndexCorrupt(f"{database.path} has lost part of its change log", REBUILD)
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


# How many rows each table must have, and the sum of their hashes.
#
# A row's own hash proves that the row is intact. It cannot prove that no row is missing, or that a
# row is not an older version of itself, as when an old copy of the file is combined with a newer
# write-ahead log. The sums can, and cost one addition for each row that is written or deleted.

TABLES = (
    "files",
    "failures",
    "documents",
    "headings",
    "chunks",
    "links",
    "code_blocks",
    "communities",
    "embeddings",
)
_MODULUS = 2**128


class Ledger:
    """Counts and sums by table; a transaction keeps its copy up to date with what it writes."""

    def __init__(self, entries: dict[str, tuple[int, int]] | None = None) -> None:
        self._entries = dict.fromkeys(TABLES, (0, 0)) | (entries or {})

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Ledger) and self._entries == other._entries

    __hash__ = None  # pyright: ignore[reportAssignmentType]

    def add(self, table: str, hashes: Iterable[bytes]) -> None:
        count, total = self._entries[table]
        for hashed in hashes:
            count += 1
            total += int.from_bytes(hashed, "big")
        self._entries[table] = (count, total % _MODULUS)

    def drop(self, table: str, hashes: Iterable[bytes]) -> None:
        count, total = self._entries[table]
        for hashed in hashes:
            count -= 1
            total -= int.from_bytes(hashed, "big")
        self._entries[table] = (count, total % _MODULUS)

    def count(self, table: str) -> int:
        return self._entries[table][0]

    def copy(self) -> "Ledger":
        return Ledger(dict(self._entries))

    def encode(self) -> str:
        return to_json({table: [n, f"{total:x}"] for table, (n, total) in self._entries.items()})

    @classmethod
    def decode(cls, encoded: str) -> Self:
        return cls(
            {table: (n, int(total, 16)) for table, (n, total) in json.loads(encoded).items()}
        )

    @classmethod
    def from_tables(cls, database: Database, tables: Iterable[str] = TABLES) -> Self:
        """Computed from the actual tables."""
        ledger = cls()
        for table in tables:
            ledger.add(table, (row[0] for row in database.each(f"SELECT row_hash FROM {table}")))
        return ledger

    def differing(self, other: "Ledger") -> list[str]:
        return [table for table in TABLES if self._entries[table] != other._entries[table]]


@dataclass(frozen=True, slots=True)
class Meta:
    """The single row that describes the store and its current position.

    `waiting`: how many changed files are not stored yet; None until all files have been compared
    since the store was emptied. `settings` are what the fingerprint was computed from, so that
    messages can say which settings differ. `communities` is what the stored communities were
    computed from (see `CommunityOrigin`); empty before any were stored. `unread` counts the files
    of each tree whose format is not read, by extension, as JSON.
    """

    fingerprint: str
    position: Position
    ledger: Ledger
    waiting: int | None = None
    settings: str = ""
    communities: str = ""
    unread: str = "{}"


def read_meta(database: Database) -> Meta:
    row = database.one(
        """SELECT row_hash, fingerprint, generation, stamp, ledger, waiting, settings, communities,
        unread FROM meta"""
    )
    if row is None:
        raise IndexCorrupt(f"{database.path} has lost its description", REBUILD)
    hashed, *values = row
    check_row("description", values, hashed)
    fingerprint, generation, stamp, ledger, waiting, settings, communities, unread = values
    position = Position(generation, stamp)
    counted = Ledger.decode(ledger)
    return Meta(fingerprint, position, counted, waiting, settings, communities, unread)


def write_meta(database: Database, meta: Meta) -> None:
    at = meta.position
    values = (
        meta.fingerprint,
        at.generation,
        at.stamp,
        meta.ledger.encode(),
        meta.waiting,
        meta.settings,
        meta.communities,
        meta.unread,
    )
    database.run(
        """INSERT OR REPLACE INTO meta
        (key, fingerprint, generation, stamp, ledger, waiting, settings, communities, unread,
        row_hash) VALUES (1, ?, ?, ?, ?, ?, ?, ?, ?, ?)""",
        (*values, row_hash("description", values)),
    )
