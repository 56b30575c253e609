"""How many rows each table must hold, and the sum of their hashes.

A row's own hash proves that the row is whole. It cannot prove that the row is still there, or
that it is not an older version of itself, as when an old copy of the file meets a newer
write-ahead log. The sums can, and cost one addition for each row that is written or deleted.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

from ragdocs.errors import IndexCorrupt
from ragdocs.store.connection import Database
from ragdocs.store.records import Position
from ragdocs.store.rows import check_row, row_hash, to_json

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
    """Counts and sums by table; a transaction keeps its copy in step with what it writes."""

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

    def encoded(self) -> str:
        return to_json({table: [n, f"{total:x}"] for table, (n, total) in self._entries.items()})

    @classmethod
    def decoded(cls, encoded: str) -> Self:
        return cls(
            {table: (n, int(total, 16)) for table, (n, total) in json.loads(encoded).items()}
        )

    @classmethod
    def counted(cls, database: Database, tables: Iterable[str] = TABLES) -> Self:
        """What the tables really hold."""
        ledger = cls()
        for table in tables:
            ledger.add(table, (row[0] for row in database.each(f"SELECT row_hash FROM {table}")))
        return ledger

    def differing(self, other: "Ledger") -> list[str]:
        return [table for table in TABLES if self._entries[table] != other._entries[table]]


@dataclass(frozen=True, slots=True)
class Meta:
    """The one row that says what the store is and where it stands.

    `waiting`: how many files were found to differ and are not stored yet; None as long as nobody
    has looked at all files since the store was emptied. `settings` are what the fingerprint is of,
    so that others can be told which of theirs differ. `communities` is what the stored communities
    were computed from (see `community_rows`); empty when none were stored yet.
    """

    fingerprint: str
    position: Position
    ledger: Ledger
    waiting: int | None = None
    settings: str = ""
    communities: str = ""


def read_meta(database: Database) -> Meta:
    row = database.one(
        """SELECT row_hash, fingerprint, generation, stamp, ledger, waiting, settings, communities
        FROM meta"""
    )
    if row is None:
        raise IndexCorrupt(f"{database.path} has lost its description: rebuild the index")
    hashed, *values = row
    check_row("description", values, hashed)
    fingerprint, generation, stamp, ledger, waiting, settings, communities = values
    position = Position(generation, stamp)
    return Meta(fingerprint, position, Ledger.decoded(ledger), waiting, settings, communities)


def write_meta(database: Database, meta: Meta) -> None:
    at = meta.position
    values = (
        meta.fingerprint,
        at.generation,
        at.stamp,
        meta.ledger.encoded(),
        meta.waiting,
        meta.settings,
        meta.communities,
    )
    database.run(
        """INSERT OR REPLACE INTO meta
        (key, fingerprint, generation, stamp, ledger, waiting, settings, communities, row_hash)
        VALUES (1, ?, ?, ?, ?, ?, ?, ?, ?)""",
        (*values, row_hash("description", values)),
    )
