"""From units and conditions to tantivy's queries, and from its statistics to ours."""

from collections.abc import Callable, Iterable, Mapping
from math import fsum
from typing import TYPE_CHECKING, Protocol, assert_never, cast

from ragdocs.indices.bm25 import K1, MOST, idf
from ragdocs.indices.keyword import (
    FIELDS,
    All,
    Condition,
    InTree,
    Some,
    UnderPath,
    Unit,
    Without,
)
from ragdocs.indices.tantivy_library import DOC, LEAST_WEIGHT, TAGGED, TEXT, TantivyIndex, tagged
from ragdocs.models import DocId, QueryField

if TYPE_CHECKING:
    from tantivy import Query

DocumentsOf = Callable[[InTree | UnderPath], frozenset[DocId]]
"""What is said of documents is asked of the store."""


class _Counted(Protocol):
    """Left out of tantivy's type stubs."""

    count: int


class Queries:
    """Queries for one state of the files. The weights are those that it was written with."""

    def __init__(self, index: TantivyIndex, weights: Mapping[QueryField, float]) -> None:
        self._index = index
        self._faint = {field: weights[field] for field in FIELDS if weights[field] < LEAST_WEIGHT}

    def count(self, query: "Query") -> int:
        found = self._index.searcher.search(query, 1, count=True)
        return cast("_Counted", found).count

    def frequency(self, unit: Unit) -> int:
        """How many chunks have the unit, without those that were removed."""
        is_plain = len(unit.terms) == 1 and not self._faint and not self._index.dead
        if is_plain and unit.field is None:
            return self._index.searcher.doc_freq(TEXT, unit.terms[0])
        return self.count(self.unit(unit))

    def unit(self, unit: Unit) -> "Query":
        """Whatever has it, without a score of its own."""
        field = unit.field
        if field is not None:
            return self._occurrence(TAGGED, [tagged(field, term) for term in unit.terms])
        return self._some(
            [
                self._occurrence(TEXT, unit.terms),
                *(self.unit(Unit(unit.terms, faint)) for faint in self._faint),
            ]
        )

    def scored(self, unit: Unit, frequency: int) -> "Query":
        """Scores `weight · idf · count · (k1 + 1) / (count + k1 · norm)`, with our idf."""
        from tantivy import Query

        wanted = unit.weight * idf(self._index.live, frequency)
        if unit.field is not None:
            return self._weighted(TAGGED, [tagged(unit.field, term) for term in unit.terms], wanted)
        faint = [
            Query.const_score_query(
                self.unit(Unit(unit.terms, field)), wanted * MOST * weight / (weight + K1)
            )
            for field, weight in self._faint.items()
        ]
        return self._some([self._weighted(TEXT, unit.terms, wanted), *faint])

    def condition(self, condition: Condition, documents_of: DocumentsOf) -> "Query":
        from tantivy import Occur, Query

        match condition:
            case Unit():
                return self.unit(condition)
            case All(parts):
                return Query.boolean_query(
                    [(Occur.Must, self.condition(part, documents_of)) for part in parts]
                )
            case Some(parts):
                return self._some([self.condition(part, documents_of) for part in parts])
            case Without(part):
                excluded = self.condition(part, documents_of)
                return Query.boolean_query(
                    [(Occur.Must, Query.all_query()), (Occur.MustNot, excluded)]
                )
            case InTree() | UnderPath():
                return self.within(documents_of(condition))
            case _:
                assert_never(condition)

    def within(self, doc_ids: Iterable[DocId]) -> "Query":
        from tantivy import Query

        return Query.term_set_query(self._index.schema, DOC, sorted(doc_ids))

    def _some(self, queries: "list[Query]") -> "Query":
        from tantivy import Occur, Query

        if len(queries) == 1:
            return queries[0]
        return Query.boolean_query([(Occur.Should, query) for query in queries])

    def _occurrence(self, field: str, terms: "Iterable[str]") -> "Query":
        from tantivy import Query

        words = list(terms)
        if len(words) == 1:
            return Query.term_query(self._index.schema, field, words[0], "freq")
        return Query.phrase_query(self._index.schema, field, list[str | tuple[int, str]](words))

    def _weighted(self, field: str, terms: "Iterable[str]", wanted: float) -> "Query":
        """tantivy's own idf counts removed chunks, and adds up those of a phrase's terms."""
        from tantivy import Query

        words = list(terms)
        total = self._index.live + self._index.dead
        theirs = fsum(idf(total, self._index.searcher.doc_freq(field, word)) for word in words)
        return Query.boost_query(self._occurrence(field, words), wanted / theirs)
