"""Indices that live inside the store and are changed in the same transaction as its rows.

They are views all the same: each remembers its version and the commit it has applied, and one
that is of another version, or has missed a commit, is made anew from the store's own rows.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol, runtime_checkable

from ragdocs.errors import IndexCorrupt, IndexIncompatible
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

    def holds(self, database: Database, docs: Iterable[int]) -> bool:
        """Whether it has what these documents put there, and nothing else."""
        ...


@runtime_checkable
class Prepares(Protocol):
    """A stored index for which much of a document can be worked out before the lock is taken."""

    def prepare(self, texts: Iterable[str]) -> None:
        """Remembers what `put` will need of the texts of some leaves, in place of what it
        remembered; `put` works out what is not remembered."""
        ...


@runtime_checkable
class HoldsTexts(Protocol):
    """A stored index with texts of its own that have vectors: pruning leaves those alone."""

    def text_hashes(self, database: Database) -> Iterator[TextHash]: ...


@runtime_checkable
class ChecksItself(Protocol):
    """A stored index whose rows have no hashes, but that knows another way to tell damage."""

    def check(self, database: Database) -> None:
        """Raises IndexCorrupt. Within a transaction that may write."""
        ...


@runtime_checkable
class ChecksRows(Protocol):
    """A stored index whose rows have hashes, which a store that is in doubt is checked by."""

    def check_rows(self, database: Database) -> None:
        """Raises IndexCorrupt."""
        ...


@runtime_checkable
class Compacts(Protocol):
    """A stored index that keeps something of deleted documents until it is compacted."""

    def compact(self, database: Database, pages: int) -> bool:
        """Writes about so many pages; whether there was anything to do. Within a transaction."""
        ...


def in_step(
    database: Database, indices: Sequence[StoredIndex], position: Position
) -> list[StoredIndex]:
    """Those that have applied all commits up to this one."""
    late = behind(database, indices, position)
    return [one for one in indices if one not in late]


def behind(
    database: Database, indices: Sequence[StoredIndex], position: Position
) -> list[StoredIndex]:
    """Those that are not of this version, or have missed a commit."""
    if not indices:
        return []
    rows = database.all("SELECT name, version, generation, stamp FROM stored_indices")
    states = {name: state for name, *state in rows}
    return [one for one in indices if states.get(one.name) != [*_expected(one, position)]]


def check_in_step(database: Database, indices: Sequence[StoredIndex], position: Position) -> None:
    """For readers: tables that are behind would answer for documents as they were."""
    if missing := behind(database, indices, position):
        names = ", ".join(index.name for index in missing)
        raise IndexIncompatible(
            f"{database.path} was last written by another version of this program or with another "
            f"keyword engine, which left out what this one needs ({names}): update the index"
        )


def held_texts(database: Database, indices: Sequence[StoredIndex]) -> set[TextHash]:
    """The texts of the indices themselves that have vectors."""
    return {
        text
        for index in indices
        if isinstance(index, HoldsTexts)
        for text in index.text_hashes(database)
    }


def bring_up(database: Database, indices: Sequence[StoredIndex], position: Position) -> bool:
    """Makes anew what is behind; says whether anything was. Within a transaction."""
    found = behind(database, indices, position)
    remake(database, found, position)
    return bool(found)


def repair(
    database: Database, indices: Sequence[StoredIndex], position: Position, *, deep: bool
) -> None:
    """Makes anew what is damaged; `deep`: by every row. Within a transaction."""
    remake(database, [index for index in indices if _is_damaged(database, index, deep)], position)


def _is_damaged(database: Database, index: StoredIndex, deep: bool) -> bool:
    try:
        if isinstance(index, ChecksItself):
            index.check(database)
        if deep and isinstance(index, ChecksRows):
            index.check_rows(database)
    except IndexCorrupt:
        return True
    return False


def remake(database: Database, indices: Sequence[StoredIndex], position: Position) -> None:
    """Makes indices anew, whatever they hold. Within a transaction."""
    for index in indices:
        index.drop(database)
        index.create(database)
        for (doc,) in database.all("SELECT key FROM documents ORDER BY key"):
            index.put(database, doc)
    note(database, indices, position)


def note(database: Database, indices: Sequence[StoredIndex], position: Position) -> None:
    """Remembers that these indices have applied all up to a commit."""
    database.many(
        "INSERT OR REPLACE INTO stored_indices (name, version, generation, stamp) VALUES (?,?,?,?)",
        [(index.name, *_expected(index, position)) for index in indices],
    )


def _expected(index: StoredIndex, position: Position) -> tuple[str, int, str]:
    return index.version, position.generation, position.stamp
