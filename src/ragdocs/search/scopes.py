"""From filters to the documents that may answer.

Every document is looked at, so they are kept in memory and follow the store by its change log:
reading all of them again for each filtered query took thirty times as long as the search. What
the last filters left is kept too, until a commit: who asks once within a folder asks again there.
"""

import sys
import threading
from collections.abc import Iterable

from ragdocs.bounded_cache import bytes_of
from ragdocs.indices.code import documents_with_language
from ragdocs.indices.hits import Scope, scope_of
from ragdocs.indices.progress import Progress
from ragdocs.models import DocId
from ragdocs.search.filters import compile_filters
from ragdocs.search.requests import Filters
from ragdocs.store.records import ChangeKind, StoredDocument
from ragdocs.store.snapshot import Snapshot

_KINDS = frozenset({ChangeKind.UPSERT, ChangeKind.DELETE})
MATCHING_BYTES = 4 << 20
"""Of what the last filters left: one set of them for 50,000 documents, dozens for 1,000."""


class Scopes:
    """Answers which documents the filters leave; safe to use from several threads."""

    def __init__(self) -> None:
        self._documents: dict[DocId, StoredDocument] = {}
        self._matching: dict[Filters, Scope] = {}
        self._matching_bytes = 0
        self._progress = Progress()
        self._lock = threading.Lock()

    def of(self, snapshot: Snapshot, filters: Filters) -> Scope:
        """None when every document may answer."""
        if filters == Filters():
            return None
        found = self._within(snapshot, filters)
        if not filters.language.strip():
            return found
        speaking = documents_with_language(snapshot, filters.language)
        return speaking if found is None else found & speaking

    def without(self, snapshot: Snapshot, scope: Scope, left_out: frozenset[DocId]) -> Scope:
        """The same scope but for some documents."""
        with self._lock:
            every = frozenset(self._current(snapshot))
        allowed = (every if scope is None else scope) - left_out
        return scope_of(allowed, every - allowed)

    def _within(self, snapshot: Snapshot, filters: Filters) -> Scope:
        is_match = compile_filters(filters)
        if is_match is None:
            return None
        with self._lock:
            documents = self._current(snapshot)
            found = self._matching.get(filters)
            if found is None:
                allowed = frozenset(doc.id for doc in documents.values() if is_match(doc))
                found = scope_of(allowed, frozenset(documents.keys() - allowed))
                self._keep(filters, found)
            return found

    def _keep(self, filters: Filters, found: Scope) -> None:
        """The ids are the documents' own: a set only holds on to them."""
        size = bytes_of(filters) + sys.getsizeof(found)
        if self._matching_bytes + size > MATCHING_BYTES:
            self._forget_matching()
        if size <= MATCHING_BYTES:
            self._matching[filters] = found
            self._matching_bytes += size

    def _forget_matching(self) -> None:
        self._matching.clear()
        self._matching_bytes = 0

    def documents(self, snapshot: Snapshot) -> Iterable[StoredDocument]:
        """All of them, in no order."""
        with self._lock:
            return self._current(snapshot).values()

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
