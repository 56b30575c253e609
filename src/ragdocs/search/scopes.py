"""From filters to the documents that may answer.

Every document is looked at, so they are kept in memory and follow the store by its change log:
reading all of them again for each filtered query took thirty times as long as the search.
"""

import threading
from collections.abc import Iterable

from ragdocs.indices.code import documents_with_language
from ragdocs.indices.hits import Scope
from ragdocs.indices.progress import Progress
from ragdocs.models import DocId
from ragdocs.search.filters import compile_filters
from ragdocs.search.requests import Filters
from ragdocs.store.records import ChangeKind, StoredDocument
from ragdocs.store.snapshot import Snapshot

_KINDS = frozenset({ChangeKind.UPSERT, ChangeKind.DELETE})


class Scopes:
    """Answers which documents the filters leave; safe to use from several threads."""

    def __init__(self) -> None:
        self._documents: dict[DocId, StoredDocument] = {}
        self._progress = Progress()
        self._lock = threading.Lock()

    def of(self, snapshot: Snapshot, filters: Filters) -> Scope:
        """None when every document may answer."""
        if filters == Filters():
            return None
        found = self._matching(snapshot, filters)
        if not filters.language.strip():
            return found
        speaking = documents_with_language(snapshot, filters.language)
        return speaking if found is None else found & speaking

    def _matching(self, snapshot: Snapshot, filters: Filters) -> Scope:
        is_match = compile_filters(filters)
        if is_match is None:
            return None
        return frozenset(doc.id for doc in self.documents(snapshot) if is_match(doc))

    def documents(self, snapshot: Snapshot) -> Iterable[StoredDocument]:
        """All of them, in no order."""
        with self._lock:
            if self._progress.is_behind(snapshot):
                touched = self._progress.touched(snapshot, _KINDS)
                if touched is None:
                    self._documents = {doc.id: doc for doc in snapshot.documents()}
                elif touched:
                    kept = {k: doc for k, doc in self._documents.items() if k not in touched}
                    self._documents = kept | snapshot.documents_by_id(touched)
                self._progress.reach(snapshot.position)
            return self._documents.values()
