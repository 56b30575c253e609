"""Indices that live inside the store and are changed in the same transaction as its rows.

They are views all the same: each remembers its version and the commit it has applied, and one
that is of another version, or has missed a commit, is made anew from the store's own rows.
"""

from collections.abc import Iterator, Sequence
from typing import Protocol, runtime_checkable

from ragdocs.store.connection import Database
from ragdocs.store.records import Position, TextHash


class StoredIndex(Protocol):
    """Tables of an index's own in the store's file. `doc` is a document's internal key."""

    @property
    def name(self) -> str: ...

    @property
    def version(self) -> str:
        """All that decides what is in its tables: of another version, they are made anew."""
        ...

    def create(self, database: Database) -> None: ...

    def drop(self, database: Database) -> None: ...

    def put(self, database: Database, doc: int) -> None:
        """Adds a document, whose rows are stored already, and which it does not hold."""
        ...

    def remove(self, database: Database, doc: int) -> None:
        """Takes a document out, whose rows are still there."""
        ...


@runtime_checkable
class HoldsTexts(Protocol):
    """A stored index with texts of its own that have vectors: pruning leaves those alone."""

    def text_hashes(self, database: Database) -> Iterator[TextHash]: ...


def bring_up(database: Database, indices: Sequence[StoredIndex], position: Position) -> list[str]:
    """Makes anew what is not of this version and position; says which. Within a transaction."""
    behind = [index for index in indices if _state(database, index) != _expected(index, position)]
    for index in behind:
        index.drop(database)
        index.create(database)
        for (doc,) in database.all("SELECT key FROM documents ORDER BY key"):
            index.put(database, doc)
    note(database, behind, position)
    return [index.name for index in behind]


def note(database: Database, indices: Sequence[StoredIndex], position: Position) -> None:
    """Remembers that these indices have applied all up to a commit."""
    database.many(
        "INSERT OR REPLACE INTO stored_indices (name, version, generation, stamp) VALUES (?,?,?,?)",
        [(index.name, *_expected(index, position)) for index in indices],
    )


def _state(database: Database, index: StoredIndex) -> tuple[str, int, str] | None:
    row = database.one(
        "SELECT version, generation, stamp FROM stored_indices WHERE name = ?", (index.name,)
    )
    return None if row is None else (row[0], row[1], row[2])


def _expected(index: StoredIndex, position: Position) -> tuple[str, int, str]:
    return index.version, position.generation, position.stamp
