"""What every index answers with, and what every index may be confined to."""

from collections.abc import Iterable
from typing import NamedTuple, Self

from ragdocs.models import DocId
from ragdocs.store.records import ChunkKey

Scope = frozenset[DocId] | None
"""The documents that may answer; None is all of them. A filter becomes this once, and each index
searches within it, so that a small folder inside a large corpus is not starved."""

FEW_LEFT_OUT = 200


class AllBut(frozenset[DocId]):
    """A scope that leaves out few documents and knows which: to pass over these is many times as
    fast as to look among all the others.
    """

    left_out: frozenset[DocId]

    def __new__(cls, allowed: Iterable[DocId], left_out: frozenset[DocId]) -> Self:
        scope = super().__new__(cls, allowed)
        scope.left_out = left_out
        return scope


def scope_of(allowed: frozenset[DocId], left_out: frozenset[DocId]) -> frozenset[DocId]:
    """The first ones, of all documents that there are."""
    is_little = len(left_out) <= FEW_LEFT_OUT and len(left_out) < len(allowed)
    return AllBut(allowed, left_out) if is_little else allowed


def few_left_out(scope: Scope) -> frozenset[DocId] | None:
    """The documents that a scope leaves out, where that is the shorter way to say it."""
    return scope.left_out if isinstance(scope, AllBut) else None


class Hit(NamedTuple):
    """One index's opinion of one chunk. Lists of hits are best first; higher is better.

    A tuple, because hundreds are made for every query.
    """

    key: ChunkKey
    score: float
