"""What a strict query requires, worked out as sets of rows inside the store."""

import json
from collections.abc import Callable, Sequence
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
            case InTree(name):
                return self._in_documents("tree = ?", name)
            case UnderPath(prefix):
                return self._under(encode_path(prefix))
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

    def _under(self, prefix: str) -> set[int]:
        """`path:api` is what begins so, as it was typed: a folder, or the start of a name."""
        return self._in_documents("substr(path, 1, length(?)) = ?", prefix, prefix)

    def _in_documents(self, where: str, *values: str) -> set[int]:
        rows = self._snapshot.select(
            f"SELECT key FROM chunks WHERE doc IN (SELECT key FROM documents WHERE {where})",
            values,
        )
        return {row[0] for row in rows}

    def _rows(self, where: str, value: str) -> set[int]:
        rows = self._snapshot.select(f"SELECT rowid FROM {self._table} WHERE {where}", (value,))
        return {row[0] for row in rows}


class Fts5Conditions(Conditions):
    """Whatever is made of words alone is one expression, which FTS5 works out by itself."""

    def _matching(self, condition: Condition) -> set[int]:
        written = _written(condition, self._expression)
        if written is not None:
            return self._rows(f"{self._table} MATCH ?", written)
        if isinstance(condition, Some):
            # Of those among other parts that are words, one expression.
            words = tuple(part for part in condition.parts if self._is_of_words(part))
            others = [part for part in condition.parts if not self._is_of_words(part)]
            if len(words) > 1:
                return set[int]().union(*map(self.matching, [Some(words), *others]))
        return super()._matching(condition)

    def _all(self, parts: Sequence[Condition]) -> set[int]:
        wanted = [part for part in parts if not isinstance(part, Without)]
        words = [part for part in wanted if self._is_of_words(part)]
        others = [part for part in wanted if not self._is_of_words(part)]
        excluded = [part.part for part in parts if isinstance(part, Without)]
        return super()._all(
            [
                *([All(tuple(words))] if len(words) > 1 else words),
                *others,
                *([Without(Some(tuple(excluded)))] if excluded else []),
            ]
        )

    def _is_of_words(self, condition: Condition) -> bool:
        return _written(condition, self._expression) is not None


def _written(condition: Condition, unit: Callable[[Unit], str]) -> str | None:
    """A condition as FTS5 wants it; None for one that it cannot tell, of documents or by exclusion
    alone.
    """
    match condition:
        case Unit():
            return unit(condition)
        case All(parts) | Some(parts):
            written = [_written(part, unit) for part in parts]
            known = [part for part in written if part is not None]
            joint = " AND " if isinstance(condition, All) else " OR "
            return f"({joint.join(known)})" if len(known) == len(written) else None
        case _:
            return None
