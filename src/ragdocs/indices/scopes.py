"""The documents that a filter leaves, as the embedded indices want them: a set of ids.

Every document is compared, so all of them are in memory and follow the store by its change log:
reading them again for each filtered query took thirty times as long as the search. The sets of the
last filters are kept until the next commit, because one question within a folder is rarely the
last one.
"""

import sys
import threading
from collections.abc import Iterable
from typing import Self

from ragdocs.indices.applied_commit import AppliedCommit
from ragdocs.indices.code_languages import documents_with_language
from ragdocs.indices.conditions import (
    Comparison,
    Condition,
    Filter,
    FilterField,
    Without,
    compile_filter,
    join,
    language_of,
    parts_of,
)
from ragdocs.memory import bytes_of
from ragdocs.models import DocId
from ragdocs.store.records import ChangeKind, StoredDocument
from ragdocs.store.snapshot import Snapshot

Scope = frozenset[DocId] | None
"""The documents that may answer; None is all of them. Each index searches within it, so that a
small folder inside a large corpus is not starved."""

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


_KINDS = frozenset({ChangeKind.UPSERT, ChangeKind.DELETE})
MATCHING_BYTES = 4 << 20
"""Of the sets of the last filters: one for 50,000 documents, dozens for 1,000."""


class Scopes:
    """Carries out filters; safe to use from several threads."""

    def __init__(self) -> None:
        self._documents: dict[DocId, StoredDocument] = {}
        self._matching: dict[Condition, Scope] = {}
        self._matching_bytes = 0
        self._progress = AppliedCommit()
        self._lock = threading.Lock()

    def of(self, snapshot: Snapshot, condition: Filter) -> Scope:
        """None when every document may answer."""
        excluded = [part for part in parts_of(condition) if _excludes_documents(part)]
        rest = join(part for part in parts_of(condition) if part not in excluded)
        found = self._within(snapshot, rest)
        if language := language_of(rest):
            speaking = documents_with_language(snapshot, language)
            found = speaking if found is None else found & speaking
        if not excluded:
            return found
        left_out = frozenset[DocId]().union(*map(_excluded, excluded))
        with self._lock:
            every = frozenset(self._current(snapshot))
        allowed = (every if found is None else found) - left_out
        return scope_of(allowed, every - allowed)

    def documents(self, snapshot: Snapshot, condition: Filter = None) -> Iterable[StoredDocument]:
        """Those that satisfy a filter, in no order."""
        is_match = compile_filter(condition)
        with self._lock:
            found = self._current(snapshot).values()
        return found if is_match is None else filter(is_match, found)

    def _within(self, snapshot: Snapshot, condition: Filter) -> Scope:
        is_match = compile_filter(condition)
        if condition is None or is_match is None:
            return None
        with self._lock:
            documents = self._current(snapshot)
            found = self._matching.get(condition)
            if found is None:
                allowed = frozenset(doc.id for doc in documents.values() if is_match(doc))
                found = scope_of(allowed, frozenset(documents.keys() - allowed))
                self._keep(condition, found)
            return found

    def _keep(self, condition: Condition, found: Scope) -> None:
        """The ids are the documents' own: a set only refers to them."""
        size = bytes_of(condition) + sys.getsizeof(found)
        if self._matching_bytes + size > MATCHING_BYTES:
            self._forget_matching()
        if size <= MATCHING_BYTES:
            self._matching[condition] = found
            self._matching_bytes += size

    def _forget_matching(self) -> None:
        self._matching.clear()
        self._matching_bytes = 0

    def _current(self, snapshot: Snapshot) -> dict[DocId, StoredDocument]:
        if self._progress.is_behind(snapshot):
            touched = self._progress.touched(snapshot, _KINDS)
            if touched is None:
                self._documents = {doc.id: doc for doc in snapshot.documents()}
            elif touched:
                kept = {k: doc for k, doc in self._documents.items() if k not in touched}
                self._documents = kept | snapshot.documents_by_id(touched)
            self._forget_matching()
            self._progress.reach(snapshot.position)
        return self._documents


def _excludes_documents(part: Condition) -> bool:
    return (
        isinstance(part, Without)
        and isinstance(part.part, Comparison)
        and part.part.field is FilterField.DOCUMENT
    )


def _excluded(part: Condition) -> frozenset[DocId]:
    assert isinstance(part, Without)
    assert isinstance(part.part, Comparison)
    assert isinstance(part.part.value, frozenset)
    return frozenset(map(DocId, part.part.value))
