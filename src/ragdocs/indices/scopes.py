"""How the embedded indices carry out conditions: as sets of documents and of passages."""

import json
import sys
import threading
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Self, assert_never

from ragdocs.indices.applied_commit import AppliedCommit
from ragdocs.indices.conditions import (
    All,
    Comparison,
    Condition,
    Filter,
    FilterField,
    Operator,
    Some,
    Unit,
    Without,
    compile_filter,
    join,
    language_of,
    parts_of,
)
from ragdocs.memory import bytes_of
from ragdocs.models import DocId
from ragdocs.parsers.ids import encode_path
from ragdocs.store.records import ChangeKind, ChunkKey, StoredDocument
from ragdocs.store.snapshot import Snapshot

# Languages of code blocks: the names of each, and which documents and chunks have one.

_NAMES = (
    ("python", "py", "python3", "py3"),
    ("javascript", "js", "node", "mjs", "cjs"),
    ("typescript", "ts"),
    ("shell", "sh", "bash", "zsh", "console", "shell-session"),
    ("c++", "cpp", "cxx", "cc"),
    ("c#", "cs", "csharp"),
    ("go", "golang"),
    ("rust", "rs"),
    ("ruby", "rb"),
    ("kotlin", "kt"),
    ("yaml", "yml"),
    ("markdown", "md"),
    ("powershell", "ps1", "pwsh"),
    ("docker", "dockerfile"),
    ("html", "htm"),
    ("latex", "tex"),
    ("haskell", "hs"),
    ("perl", "pl"),
    ("objective-c", "objc", "objectivec"),
    ("make", "makefile"),
)
_GROUPS = {name: group for group in _NAMES for name in group}


def language_names(language: str) -> tuple[str, ...]:
    """All names of the language with this name; an unknown language has only its own."""
    name = language.strip().lower()
    return _GROUPS.get(name, (name,))


def documents_with_language(snapshot: Snapshot, language: str) -> frozenset[DocId]:
    """The documents that have a block in this language, under any of its names."""
    rows = snapshot.select(
        """SELECT id FROM documents WHERE key IN (SELECT doc FROM code_blocks
        WHERE language IN (SELECT value FROM json_each(?)))""",
        (json.dumps(language_names(language)),),
    )
    return frozenset(DocId(doc_id) for (doc_id,) in rows)


def chunks_with_language(snapshot: Snapshot, language: str) -> frozenset[ChunkKey]:
    """The chunks in which a block in this language begins."""
    rows = snapshot.select(
        """SELECT DISTINCT chunk FROM code_blocks WHERE chunk NOT NULL
        AND language IN (SELECT value FROM json_each(?))""",
        (json.dumps(language_names(language)),),
    )
    return frozenset(ChunkKey(chunk) for (chunk,) in rows)


# Which documents satisfy a filter: a set of ids, called a scope.
#
# Every document is compared, so all of them are in memory and follow the change log: reading them
# for each filtered query took thirty times as long as the search. The results of recent filters are
# kept until the next commit, because several queries in a row often have the same filter.

Scope = frozenset[DocId] | None
"""The documents that may answer; None is all of them. Each index searches within the scope, so that
a small folder in a large corpus still gets its hits."""

FEW_LEFT_OUT = 200


class AllBut(frozenset[DocId]):
    """A scope that leaves out few documents and knows which: skipping these is many times as fast
    as testing for all the others.
    """

    left_out: frozenset[DocId]

    def __new__(cls, allowed: Iterable[DocId], left_out: frozenset[DocId]) -> Self:
        scope = super().__new__(cls, allowed)
        scope.left_out = left_out
        return scope


def scope_of(allowed: frozenset[DocId], left_out: frozenset[DocId]) -> frozenset[DocId]:
    """The allowed documents; both arguments together are all documents."""
    is_short = len(left_out) <= FEW_LEFT_OUT and len(left_out) < len(allowed)
    return AllBut(allowed, left_out) if is_short else allowed


def few_left_out(scope: Scope) -> frozenset[DocId] | None:
    """The documents that a scope leaves out, if they are few."""
    return scope.left_out if isinstance(scope, AllBut) else None


_KINDS = frozenset({ChangeKind.UPSERT, ChangeKind.DELETE})
MATCHING_BYTES = 4 << 20
"""For the scopes of recent filters: one with 50,000 documents, dozens with 1,000."""


class Scopes:
    """Carries out filters; safe to use from several threads."""

    def __init__(self) -> None:
        self._documents: dict[DocId, StoredDocument] = {}
        self._matching: dict[Condition, Scope] = {}
        self._matching_bytes = 0
        self._progress = AppliedCommit()
        self._lock = threading.Lock()

    def of(self, snapshot: Snapshot, condition: Filter) -> Scope:
        """None if every document may answer."""
        excluded = [part for part in parts_of(condition) if _excludes_documents(part)]
        rest = join(part for part in parts_of(condition) if part not in excluded)
        found = self._within(snapshot, rest)
        if language := language_of(rest):
            speaking = documents_with_language(snapshot, language)
            found = speaking if found is None else found & speaking
        if not excluded:
            return found
        left_out = frozenset[DocId]().union(*map(_excluded_ids, excluded))
        with self._lock:
            every = frozenset(self._current(snapshot))
        allowed = (every if found is None else found) - left_out
        return scope_of(allowed, every - allowed)

    def documents(self, snapshot: Snapshot, condition: Filter = None) -> Iterable[StoredDocument]:
        """The documents that satisfy a filter, in any order."""
        is_match = compile_filter(condition)
        with self._lock:
            found: Iterable[StoredDocument] = self._current(snapshot).values()
        if language := language_of(condition):
            speaking = documents_with_language(snapshot, language)
            found = (document for document in found if document.id in speaking)
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
        """The ids do not count: the set shares them with the documents."""
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


def _excluded_ids(part: Condition) -> frozenset[DocId]:
    assert isinstance(part, Without)
    assert isinstance(part.part, Comparison)
    assert isinstance(part.part.value, frozenset)
    return frozenset(map(DocId, part.part.value))


# Which passages satisfy a condition: a set of row numbers.


class Conditions:
    """Evaluates conditions in one snapshot; `expression` writes a unit in the table's syntax."""

    def __init__(self, snapshot: Snapshot, table: str, expression: Callable[[Unit], str]) -> None:
        self._snapshot = snapshot
        self._table = table
        self._expression = expression
        self._known: dict[Condition, set[int]] = {}

    def matching(self, condition: Condition) -> set[int]:
        """Each part is evaluated once, however often a query has it."""
        found = self._known.get(condition)
        if found is None:
            found = self._known[condition] = self._match(condition)
        return found

    def _match(self, condition: Condition) -> set[int]:
        match condition:
            case Unit():
                return self.with_unit(condition)
            case All(parts):
                return self._all(parts)
            case Some(parts):
                return set[int]().union(*map(self.matching, parts))
            case Without(part):
                return self.everything() - self.matching(part)
            case Comparison():
                where, values = where_of(condition)
                return self._in_documents(where, *values)
            case _:
                assert_never(condition)

    def _all(self, parts: Sequence[Condition]) -> set[int]:
        """Exclusions last; stops as soon as nothing is left."""
        wanted = [part for part in parts if not isinstance(part, Without)]
        found = self.matching(wanted[0]) if wanted else self.everything()
        for part in wanted[1:]:
            if not found:
                return found
            found = found & self.matching(part)
        for part in parts:
            if isinstance(part, Without) and found:
                found = found - self.matching(part.part)
        return found

    def with_unit(self, unit: Unit) -> set[int]:
        return self._rows(f"{self._table} MATCH ?", self._expression(unit))

    def everything(self) -> set[int]:
        rows = self._snapshot.select(f"SELECT id FROM {self._table}_docsize")
        return {row[0] for row in rows}

    def within(self, scope: Scope) -> set[int]:
        if (left_out := few_left_out(scope)) is not None:
            return self.everything() - self.in_documents(left_out)
        return self.everything() if scope is None else self.in_documents(scope)

    def in_documents(self, doc_ids: frozenset[DocId]) -> set[int]:
        members = json.dumps(sorted(doc_ids))
        return self._in_documents("id IN (SELECT value FROM json_each(?))", members)

    def _in_documents(self, where: str, *values: str) -> set[int]:
        rows = self._snapshot.select(
            f"SELECT key FROM chunks WHERE doc IN (SELECT key FROM documents WHERE {where})",
            values,
        )
        return {row[0] for row in rows}

    def _rows(self, where: str, value: str) -> set[int]:
        rows = self._snapshot.select(f"SELECT rowid FROM {self._table} WHERE {where}", (value,))
        return {row[0] for row in rows}


def where_of(comparison: Comparison) -> tuple[str, tuple[str, ...]]:
    """A comparison of the query language as an SQL condition on documents, with its values."""
    match comparison.field, comparison.operator, comparison.value:
        case FilterField.TREE, Operator.ONE_OF, frozenset() as names:
            return "tree IN (SELECT value FROM json_each(?))", (json.dumps(sorted(names)),)
        case FilterField.PATH, Operator.BEGINS, str() as prefix:
            # `path:api` matches a folder, or the beginning of a name.
            encoded = encode_path(prefix)
            return "substr(path, 1, length(?)) = ?", (encoded, encoded)
        case _:
            raise ValueError(f"the query language has no comparison such as {comparison}")


def existing_chunks(snapshot: Snapshot, keys: Collection[int] | None = None) -> set[ChunkKey]:
    """Those of these chunks, or of all, that exist in the snapshot."""
    if keys is None:
        return {key for (key,) in snapshot.select("SELECT key FROM chunks")}
    rows = snapshot.select(
        "SELECT key FROM chunks WHERE key IN (SELECT value FROM json_each(?))",
        (json.dumps(list(keys)),),
    )
    return {key for (key,) in rows}
