"""What a strict query requires, worked out as sets of rows inside the store."""

import json
from collections.abc import Callable
from typing import assert_never

from ragdocs.indices.hits import Scope, few_left_out
from ragdocs.indices.keyword import All, Condition, InTree, Some, UnderPath, Unit, Without
from ragdocs.models import DocId
from ragdocs.parsers.identity import encode_path
from ragdocs.store.snapshot import Snapshot


class Conditions:
    """Answers conditions within one snapshot; `expression` writes a unit as the table wants it."""

    def __init__(self, snapshot: Snapshot, table: str, expression: Callable[[Unit], str]) -> None:
        self._snapshot = snapshot
        self._table = table
        self._expression = expression

    def matching(self, condition: Condition) -> set[int]:
        match condition:
            case Unit():
                return self._rows(f"{self._table} MATCH ?", self._expression(condition))
            case All(parts):
                return self.matching(parts[0]).intersection(*map(self.matching, parts[1:]))
            case Some(parts):
                return set[int]().union(*map(self.matching, parts))
            case Without(part):
                return self.everything() - self.matching(part)
            case InTree(name):
                return self._in_documents("tree = ?", name)
            case UnderPath(prefix):
                return self._under(encode_path(prefix))
            case _:
                assert_never(condition)

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

    def _under(self, prefix: str) -> set[int]:
        """`path:api` is what begins so, as it was typed: a folder, or the start of a name."""
        return self._in_documents("substr(path, 1, length(?1)) = ?1", prefix)

    def _in_documents(self, where: str, value: str) -> set[int]:
        rows = self._snapshot.select(
            f"SELECT key FROM chunks WHERE doc IN (SELECT key FROM documents WHERE {where})",
            (value,),
        )
        return {row[0] for row in rows}

    def _rows(self, where: str, value: str) -> set[int]:
        rows = self._snapshot.select(f"SELECT rowid FROM {self._table} WHERE {where}", (value,))
        return {row[0] for row in rows}
