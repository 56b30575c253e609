"""Which documents may answer, and which candidates are good enough."""

import sys
import threading
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import PurePosixPath

from ragdocs.errors import QueryError
from ragdocs.indices.code import documents_with_language
from ragdocs.indices.view import AppliedCommit, Scope, scope_of
from ragdocs.memory import BoundedCache, bytes_of
from ragdocs.models import DocId
from ragdocs.search.candidates import Candidate
from ragdocs.search.requests import Filters
from ragdocs.store.records import ChangeKind, StoredDocument
from ragdocs.store.snapshot import Snapshot

# Which documents may answer, and which candidates are good enough to be an answer.

PATHS_BYTES = 24 << 20
"""Of 50,000 documents, about: a filter looks at every one, and takes what has room."""

IsMatch = Callable[[StoredDocument], bool]


def refuse_unknown_trees(wanted: frozenset[str], known: Sequence[str]) -> None:
    """Raises QueryError: that nothing is found in a tree that is not there is no answer."""
    if unknown := sorted(wanted.difference(known)):
        names = ", ".join(f"`{name}`" for name in known)
        raise QueryError(f"there is no tree `{unknown[0][:100]}`; there is {names}")


def compile_filters(filters: Filters) -> IsMatch | None:
    """Whether a document fulfils every filter that is given; None when none is. The language of
    code is judged by passages, not by documents.
    """
    checks = tuple(_checks(filters))
    if not checks:
        return None
    return lambda document: all(check(document) for check in checks)


def _checks(filters: Filters) -> Iterator[IsMatch]:
    if filters.trees:
        yield lambda document: document.tree in filters.trees
    if filters.paths:
        wanted = [_split(path) for path in filters.paths]
        yield lambda document: any(_begins(_components[document.path], path) for path in wanted)
    if filters.excluded_files:
        yield _is_kept(filters.excluded_files)
    if filters.tags:
        yield lambda document: all(_has_tag(document, tag) for tag in filters.tags)
    if filters.category:
        yield lambda document: _is_one_of(filters.category, document.front_matter.category)
    if filters.author:
        yield lambda document: _is_one_of(filters.author, document.front_matter.author)
    if filters.modified_after is not None or filters.modified_before is not None:
        yield lambda document: _is_in_time(filters, document.date)


def matches(filters: Filters, document: StoredDocument) -> bool:
    is_match = compile_filters(filters)
    return is_match is None or is_match(document)


def filter_matching(candidates: Sequence[Candidate], filters: Filters) -> list[Candidate]:
    """The indices searched within the filters already; this makes sure."""
    is_match = compile_filters(filters)
    return [item for item in candidates if is_match is None or is_match(item.document)]


def filter_by_confidence(candidates: Sequence[Candidate], threshold: float) -> list[Candidate]:
    """Fewer answers rather than noise (P10); 0 keeps all."""
    return [item for item in candidates if item.confidence >= threshold]


def cut_at_elbow(candidates: Sequence[Candidate], ratio: float) -> list[Candidate]:
    """All before the first that scores less than `ratio` of the one before it; 0 cuts nothing."""
    for place, (before, item) in enumerate(pairwise(candidates), start=1):
        if item.score < ratio * before.score:
            return list(candidates[:place])
    return list(candidates)


def _is_kept(excluded: Sequence[str]) -> IsMatch:
    """Leaves out a file by its path, its folder's path, its bare name or its id."""
    named = {name: parts for name in excluded if (parts := _split(name))}
    every = frozenset(named.values())
    lengths = sorted({len(parts) for parts in every})

    def is_kept(document: StoredDocument) -> bool:
        parts = _components[document.path]
        if document.id in named or parts[-1:] in every:
            return False
        return not any(parts[:length] in every for length in lengths)

    return is_kept


def _begins(parts: tuple[str, ...], wanted: tuple[str, ...]) -> bool:
    return parts[: len(wanted)] == wanted


def _split(path: str) -> tuple[str, ...]:
    """Composed, because what is typed and what a file system gives back may differ in that."""
    return PurePosixPath(unicodedata.normalize("NFC", path).lstrip("/")).parts


_components = BoundedCache(_split, PATHS_BYTES)
"""Of documents only: what is typed into filters is never the same for long."""


def _has_tag(document: StoredDocument, wanted: str) -> bool:
    name = wanted.lstrip("#").strip("/").casefold()
    own = (tag.casefold() for tag in document.tags)
    return any(tag == name or tag.startswith(f"{name}/") for tag in own)


def _is_one_of(wanted: str, value: str) -> bool:
    """The value, or one of those it lists: the parser joins several authors by commas."""
    name = " ".join(wanted.split()).casefold()
    folded = value.casefold()
    return not name or name == folded or name in (part.strip() for part in folded.split(","))


def _is_in_time(filters: Filters, date: datetime) -> bool:
    after, before = filters.modified_after, filters.modified_before
    moment = _aware(date)
    return (after is None or moment >= _aware(after)) and (
        before is None or moment <= _aware(before)
    )


def _aware(moment: datetime) -> datetime:
    """No zone means UTC, as in front matter."""
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


# From filters to the documents that may answer.
#
# Every document is looked at, so they are kept in memory and follow the store by its change log:
# reading all of them again for each filtered query took thirty times as long as the search. What
# the last filters left is kept too, until a commit: who asks once within a folder asks again there.

_KINDS = frozenset({ChangeKind.UPSERT, ChangeKind.DELETE})
MATCHING_BYTES = 4 << 20
"""Of what the last filters left: one set of them for 50,000 documents, dozens for 1,000."""


class Scopes:
    """Answers which documents the filters leave; safe to use from several threads."""

    def __init__(self) -> None:
        self._documents: dict[DocId, StoredDocument] = {}
        self._matching: dict[Filters, Scope] = {}
        self._matching_bytes = 0
        self._progress = AppliedCommit()
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
