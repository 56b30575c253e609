"""The transactions of one update: each stores a batch, and says how many files are left to store.

An update of all trees says what it has left, whatever was said before. One that follows hints knows
of some files only: it adds its own, and takes them away again as they are stored. An update that
ends early leaves its number behind, until the next one that looks at all trees.
"""

from collections.abc import Iterator

from ragdocs.indexing.application import Applied, Batch, Manifest, apply
from ragdocs.indexing.index_access import IndexAccess
from ragdocs.store.records import Position
from ragdocs.store.transaction import Transaction


class Commits:
    """One update's way into the store. `is_whole`: it looks at all trees."""

    def __init__(self, access: IndexAccess, *, is_whole: bool) -> None:
        self._access = access
        self._is_whole = is_whole
        self._left = self._told = 0

    def expect(self, files: int) -> None:
        """So many files are to be stored or removed in this round."""
        self._left = files

    def skip(self, files: int) -> None:
        """So many of them changed while they were read: they belong to the next round."""
        self._left -= files

    def store(self, batch: Batch, basis: Manifest) -> Applied:
        """One transaction, done again while others write: so nothing is noted before its end."""
        manifest = self._access.manifest
        left = self._left - len(batch.prepared) - len(batch.removals)

        def work(transaction: Transaction) -> tuple[Applied, Position, Transaction]:
            before = transaction.position
            applied = apply(transaction, batch, basis, manifest.at(before))
            self._tell(transaction, left)
            return applied, before, transaction

        with self._access.prepared(_texts(batch)):
            applied, before, transaction = self._access.run(work)
        manifest.advance(before, transaction.position, applied.written)
        self._left = self._told = left
        return applied

    def finish(self) -> None:
        """All trees were looked at, and what was found is stored: says so, unless it is said."""
        if self._is_whole and self._access.retried(self._waiting) != 0:
            self._left = 0
            self.store(Batch(), {})

    def _tell(self, transaction: Transaction, left: int) -> None:
        waiting = transaction.waiting
        if self._is_whole:
            transaction.expect(left)
        elif waiting is not None:
            transaction.expect(max(left, waiting + left - self._told))

    def _waiting(self) -> int | None:
        with self._access.reader.snapshot() as snapshot:
            return snapshot.waiting


def _texts(batch: Batch) -> Iterator[str]:
    """Of the leaves that will be stored."""
    for one in batch.prepared:
        for chunk in one.content.chunks if one.content else ():
            if chunk.text is not None:
                yield chunk.text
