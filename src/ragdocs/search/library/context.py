"""`context`: the documentation that matters for source files, or for a diff (ra's).

The words that tell what the files are about make one query, in which any may match, each with its
weight; what the files mean, in short, is asked beside it. Both go the way of every other query.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate

from ragdocs.config.context_section import ContextConfig
from ragdocs.config.resolved import Tree
from ragdocs.indices.term_frequencies import TermFrequencies
from ragdocs.models import DocId
from ragdocs.search.filters import refuse_unknown_trees
from ragdocs.search.library.context_answers import (
    ContextAnswer,
    ContextExplanation,
    ContextFile,
    ContextTerm,
    IncludedDocument,
)
from ragdocs.search.library.context_query import query_terms, query_text
from ragdocs.search.library.context_rules import AppliedRules, applied_rules, included_documents
from ragdocs.search.library.context_terms import TermChoice
from ragdocs.search.library.own_documents import OwnDocuments
from ragdocs.search.library.requests import ContextRequest
from ragdocs.search.library.source_texts import ReadSource, read_diff, read_sources
from ragdocs.search.library.sources import PathMatcher
from ragdocs.search.requests import MAX_QUERIES, MAX_QUERIES_CHARS, Filters, QueryRequest
from ragdocs.search.responses import SearchResponse
from ragdocs.search.retrieval import Indices
from ragdocs.store.snapshot import Snapshot

MAX_MEANINGS = 4
"""Files whose meaning is asked for, each a search: of more, the others count by their words."""

Search = Callable[[QueryRequest], SearchResponse]


@dataclass(frozen=True, slots=True)
class ContextPlan:
    """What will be searched for, and what is known already."""

    files: tuple[ContextFile, ...]
    included: tuple[IncludedDocument, ...]
    terms: tuple[ContextTerm, ...]
    query: str
    rule_query: str
    """By itself too: what a rule adds must not drown in what the files say."""
    meanings: tuple[str, ...]
    filters: Filters
    notes: tuple[str, ...]

    @property
    def queries(self) -> tuple[str, ...]:
        """As many as are asked at once; meanings come last."""
        texts = [text for text in (self.query, self.rule_query, *self.meanings) if text]
        lengths = accumulate(map(len, texts))
        fitting = sum(length <= MAX_QUERIES_CHARS for length in lengths)
        return tuple(texts[: min(fitting, MAX_QUERIES)])

    @property
    def strict(self) -> tuple[bool, ...]:
        """What was made of terms is written in the query language, and a meaning is text."""
        return tuple(text in (self.query, self.rule_query) for text in self.queries)


class ContextPlanner:
    """Turns a request into a plan, by one snapshot."""

    def __init__(
        self,
        snapshot: Snapshot,
        indices: Indices,
        trees: Sequence[Tree],
        settings: ContextConfig,
        matches: PathMatcher,
    ) -> None:
        self._snapshot = snapshot
        self._indices = indices
        self._trees = trees
        self._settings = settings
        self._matches = matches

    def plan(self, request: ContextRequest) -> ContextPlan:
        """Raises QueryError for a tree that is not there."""
        self._check_trees(request.trees)
        sources, notes = _sources(request)
        names = [source.name for source in sources if source.name]
        applied = applied_rules(self._settings.rules, names, self._matches)
        included, missing = included_documents(self._snapshot, applied, self._trees)
        own = {name: self._own(name) for name in names}
        terms = self._terms(sources, applied)
        query, fitting = query_text(terms)
        if fitting < len(terms):
            notes = (*notes, f"{len(terms) - fitting} terms were left out: the query has no room")
        return ContextPlan(
            files=tuple(_file(source, applied, own) for source in sources if source.name),
            included=included,
            terms=tuple(terms[:fitting]),
            query=query,
            rule_query=query_text(query_terms(applied.terms, ()))[0],
            meanings=tuple(dict.fromkeys(s.gist for s in sources[:MAX_MEANINGS] if s.gist)),
            filters=Filters(
                trees=request.trees or self._known_trees(applied),
                excluded_files=tuple(doc_id for doc_id in own.values() if doc_id is not None),
            ),
            notes=(*notes, *missing),
        )

    def _terms(self, sources: Sequence[ReadSource], applied: AppliedRules) -> list[ContextTerm]:
        frequencies = TermFrequencies(self._snapshot, self._indices.keyword)
        choice = TermChoice(self._indices.analyzer, self._settings, frequencies)
        return query_terms(applied.terms, choice.of(sources))

    def _own(self, name: str) -> DocId | None:
        return OwnDocuments(self._snapshot, self._trees).of(name)

    def _check_trees(self, wanted: frozenset[str]) -> None:
        refuse_unknown_trees(wanted, [tree.name for tree in self._trees])

    def _known_trees(self, applied: AppliedRules) -> frozenset[str]:
        return applied.trees.intersection(tree.name for tree in self._trees)


def answered(plan: ContextPlan, request: ContextRequest, search: Search) -> ContextAnswer:
    response = None
    if plan.queries:
        response = search(
            QueryRequest(
                queries=plan.queries,
                strict=plan.strict,
                top_n=request.top_n,
                # What is found is a hint to read on, not an answer: the best there is, is given.
                min_score=0.0,
                filters=plan.filters,
                max_tokens=request.max_tokens,
                explain=request.explain,
            )
        )
    notes = plan.notes if plan.query else (*plan.notes, "no word of these files is in the index")
    return ContextAnswer(
        files=plan.files,
        included=plan.included,
        results=response.results if response else (),
        left_out=response.left_out if response else (),
        index=response.index if response else None,
        explanation=_explained(plan, response) if request.explain else None,
        notes=(*notes, *(response.notes if response else ())),
        within=response.within if response else None,
    )


def _explained(plan: ContextPlan, response: SearchResponse | None) -> ContextExplanation:
    return ContextExplanation(
        terms=plan.terms,
        query=plan.query,
        rule_query=plan.rule_query,
        meanings=plan.meanings,
        trees=tuple(sorted(plan.filters.trees)),
        search=response.explanation if response else None,
    )


def _sources(request: ContextRequest) -> tuple[list[ReadSource], tuple[str, ...]]:
    sources = read_sources(request.files)
    if not request.diff:
        return sources, ()
    changed, problem = read_diff(request.diff)
    return [*sources, *changed], (problem,) if problem else ()


def _file(source: ReadSource, applied: AppliedRules, own: dict[str, DocId | None]) -> ContextFile:
    return ContextFile(
        name=source.name,
        rules=applied.patterns[source.name],
        doc_id=own[source.name],
        problem=source.problem,
    )
