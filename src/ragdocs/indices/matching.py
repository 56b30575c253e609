"""The passages that satisfy a condition, worked out as sets of rows inside the store."""

import json
from collections.abc import Callable, Collection, Sequence
from typing import assert_never

from ragdocs.indices.conditions import (
    All,
    Comparison,
    Condition,
    FilterField,
    Operator,
    Some,
    Unit,
    Without,
)
from ragdocs.indices.scopes import Scope, few_left_out
from ragdocs.models import DocId
from ragdocs.parsers.ids import encode_path
from ragdocs.store.snapshot import Snapshot


class Conditions:
    """Answers conditions within one snapshot; `expression` writes a unit as the table wants it."""

    def __init__(self, snapshot: Snapshot, table: str, expression: Callable[[Unit], str]) -> None:
        self._snapshot = snapshot
        self._table = table
        self._expression = expression
        self._known: dict[Condition, set[int]] = {}

    def matching(self, condition: Condition) -> set[int]:
        """Each part is worked out once, however often it stands in a query."""
        found = self._known.get(condition)
        if found is None:
            found = self._known[condition] = self._matching(condition)
        return found

    def _matching(self, condition: Condition) -> set[int]:
        match condition:
            case Unit():
                return self.having(condition)
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
        """What is wanted first: once nothing is left, no more is asked for."""
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

    def having(self, unit: Unit) -> set[int]:
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
    """The documents that a comparison of the query language names, in SQL, and its values."""
    match comparison.field, comparison.operator, comparison.value:
        case FilterField.TREE, Operator.ONE_OF, frozenset() as names:
            return "tree IN (SELECT value FROM json_each(?))", (json.dumps(sorted(names)),)
        case FilterField.PATH, Operator.BEGINS, str() as prefix:
            # `path:api` is a folder, or the start of a name, as it was typed.
            encoded = encode_path(prefix)
            return "substr(path, 1, length(?)) = ?", (encoded, encoded)
        case _:
            raise ValueError(f"the query language has no comparison such as {comparison}")


def existing(snapshot: Snapshot, keys: Collection[int] | None = None) -> set[int]:
    """Those of these chunks, or of all, that the snapshot has."""
    if keys is None:
        return {key for (key,) in snapshot.select("SELECT key FROM chunks")}
    rows = snapshot.select(
        "SELECT key FROM chunks WHERE key IN (SELECT value FROM json_each(?))",
        (json.dumps(list(keys)),),
    )
    return {key for (key,) in rows}
