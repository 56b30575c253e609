"""Finds the documentation for source files or a diff: rules, query and answer."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path, PurePosixPath

from ragdocs.config.resolved import Tree
from ragdocs.config.settings import ContextConfig, ContextRule
from ragdocs.indices.analysis import Analyzer
from ragdocs.indices.view import View
from ragdocs.library.answers import (
    ContextAnswer,
    ContextExplanation,
    ContextFile,
    ContextTerm,
    IncludedDocument,
    short,
)
from ragdocs.library.documents import PathMatcher
from ragdocs.library.requests import ContextRequest
from ragdocs.library.source_code import ReadSource, TermPlace, read_diff, read_sources
from ragdocs.library.terms import FoundTerm, TermChoice, TermFrequencies
from ragdocs.limits import MAX_QUERIES, MAX_QUERIES_CHARS, MAX_QUERY_CHARS
from ragdocs.models import Boost, DocId, Or, Phrase, QueryExpression, Term, TreeName
from ragdocs.parsers.ids import document_id
from ragdocs.parsers.link_targets import match_key
from ragdocs.places import printable_name, shown_path
from ragdocs.search.budget import BYTES_PER_TOKEN
from ragdocs.search.query_language import format_expression
from ragdocs.search.requests import Filters, QueryRequest, refuse_unknown_trees
from ragdocs.search.responses import SearchResponse
from ragdocs.store.records import StoredDocument
from ragdocs.text import without_surrogates

# From terms to a query in the query language; any may match, each with its weight.

MIN_WEIGHT = 0.1


def query_terms(rules: Sequence[str], found: Sequence[FoundTerm]) -> list[ContextTerm]:
    """First those of the rules, with the highest weight, then those of the files, best first."""
    added = list(dict.fromkeys(" ".join(term.split()).casefold() for term in rules))
    most = max((each.emphasis for each in found), default=1.0) or 1.0
    own = [each for each in found if each.word not in added]
    return [
        *(
            ContextTerm(
                word=word,
                origins=(TermPlace.RULE.value,),
                frequency=0,
                documents=0,
                score=0.0,
                weight=1.0,
            )
            for word in added
        ),
        *(
            ContextTerm(
                word=each.word,
                origins=tuple(sorted(map(str, each.places))),
                frequency=each.frequency,
                documents=each.documents,
                score=each.score,
                weight=round(max(MIN_WEIGHT, each.emphasis / most), 2),
            )
            for each in own
        ),
    ]


def query_text(terms: Sequence[ContextTerm]) -> tuple[str, int]:
    """The query, and how many of the terms fit into it; empty without terms."""
    for count in range(len(terms), 0, -1):
        text = format_expression(_expression(terms[:count]))
        if len(text) <= MAX_QUERY_CHARS:
            return text, count
    return "", 0


def _expression(terms: Sequence[ContextTerm]) -> QueryExpression:
    parts = tuple(Boost(_leaf(term.word), term.weight) for term in terms)
    return parts[0] if len(parts) == 1 else Or(parts)


def _leaf(word: str) -> QueryExpression:
    """Anything but a plain word becomes a phrase, which has no operators."""
    return Term(word) if word.isalnum() else Phrase(word.replace('"', " "))


# `[[context.rules]]`: what they add for files whose path matches. All matching rules apply.


@dataclass(frozen=True, slots=True)
class AppliedRules:
    """The rules that match any of the files, and for each file the patterns that match it."""

    rules: tuple[ContextRule, ...]
    patterns: dict[str, tuple[str, ...]]

    @property
    def terms(self) -> tuple[str, ...]:
        return tuple(term for rule in self.rules for term in rule.terms)

    @property
    def filter(self) -> str:
        """What all rules let through, as a filter text."""
        return " ".join(dict.fromkeys(rule.filter for rule in self.rules if rule.filter.strip()))

    @property
    def trees(self) -> frozenset[str]:
        return frozenset(tree for rule in self.rules for tree in rule.trees)


def applied_rules(
    rules: Sequence[ContextRule], names: Sequence[str], matches: PathMatcher
) -> AppliedRules:
    patterns = {
        name: tuple(
            pattern for rule in rules for pattern in rule.match if matches((pattern,), name)
        )
        for name in names
    }
    matched = {pattern for found in patterns.values() for pattern in found}
    applying = tuple(rule for rule in rules if not matched.isdisjoint(rule.match))
    return AppliedRules(applying, patterns)


def included_documents(
    view: View, applied: AppliedRules, trees: Sequence[Tree]
) -> tuple[tuple[IncludedDocument, ...], tuple[str, ...]]:
    """The documents that the rules always include, and a note for each that is not in the index."""
    found: dict[DocId, IncludedDocument] = {}
    notes: list[str] = []
    for rule in applied.rules:
        for inclusion in rule.include:
            known = view.documents_by_id(_ids(inclusion, trees))
            for document in known.values():
                found.setdefault(document.id, _included(document, rule.match[0]))
            if not known:
                # A path may be outside the trees, so only its name is shown.
                name = printable_name(inclusion.rpartition("/")[2])
                notes.append(f"`{name}`, which a rule includes, is not in the index")
    return tuple(found.values()), tuple(dict.fromkeys(notes))


def _ids(inclusion: str, trees: Sequence[Tree]) -> list[DocId]:
    """For `tree:path`, or an absolute path below a tree's folder; no file is looked at."""
    path = Path(inclusion)
    if not path.is_absolute():
        tree, _, relative = inclusion.partition(":")
        return [document_id(TreeName(tree), relative)]
    return [
        document_id(tree.name, path.relative_to(tree.root).as_posix())
        for tree in trees
        if path.is_relative_to(tree.root)
    ]


def _included(document: StoredDocument, because: str) -> IncludedDocument:
    return IncludedDocument(
        doc_id=document.id,
        tree=document.tree,
        path=shown_path(document.path),
        title=short(document.title),
        lines=document.lines,
        tokens=-(-document.size // BYTES_PER_TOKEN),
        because=because,
    )


# Whether an edited file is itself a document of the index, by its path alone.


def own_document(view: View, trees: Sequence[Tree], name: str) -> DocId | None:
    """The document at this path, relative to a tree's folder or to a folder above it, or absolute;
    None if it could be several documents. Uses the index, never the file system.
    """
    parts = _parts(name)
    if not parts or ".." in parts:
        return None
    exact = [document_id(tree.name, "/".join(parts)) for tree in trees]
    found = list(view.documents_by_id(exact))
    if not found:
        roots = {tree.name: _parts(tree.root.as_posix()) for tree in trees}
        for document in view.documents_called(match_key(parts[-1])):
            whole = (*roots.get(document.tree, ()), *_parts(document.path))
            if whole[-len(parts) :] == parts:
                found.append(document.id)
    return found[0] if len(found) == 1 else None


def _parts(path: str) -> tuple[str, ...]:
    return tuple(part for part in PurePosixPath(without_surrogates(path)).parts if part != "/")


# `context`: the documentation that is relevant to source files or a diff (as in ra).
#
# The most telling words of the files make one query, in which any may match, each with its weight;
# a short text about each file is searched by meaning beside it. Both are ordinary queries.

MAX_MEANINGS = 4
"""How many files are searched by meaning, each in its own search; further files count by words
only.
"""

Search = Callable[[QueryRequest], SearchResponse]


@dataclass(frozen=True, slots=True)
class ContextPlan:
    """What will be searched, and what is already known."""

    files: tuple[ContextFile, ...]
    included: tuple[IncludedDocument, ...]
    terms: tuple[ContextTerm, ...]
    query: str
    rule_query: str
    """Searched separately as well: a rule's terms must not drown in those of the files."""
    meanings: tuple[str, ...]
    filters: Filters
    notes: tuple[str, ...]

    @property
    def queries(self) -> tuple[str, ...]:
        """As many as one request allows; meanings come last."""
        texts = [text for text in (self.query, self.rule_query, *self.meanings) if text]
        lengths = accumulate(map(len, texts))
        fitting = sum(length <= MAX_QUERIES_CHARS for length in lengths)
        return tuple(texts[: min(fitting, MAX_QUERIES)])

    @property
    def strict(self) -> tuple[bool, ...]:
        """A query made of terms is in the query language, a meaning is plain text."""
        return tuple(text in (self.query, self.rule_query) for text in self.queries)


def plan_context(
    request: ContextRequest,
    view: View,
    analyzer: Analyzer,
    trees: Sequence[Tree],
    settings: ContextConfig,
    matches: PathMatcher,
) -> ContextPlan:
    """Raises QueryError for an unknown tree."""
    known_trees = [tree.name for tree in trees]
    refuse_unknown_trees(request.trees, known_trees)
    sources, notes = _sources(request)
    names = [source.name for source in sources if source.name]
    applied = applied_rules(settings.rules, names, matches)
    included, missing = included_documents(view, applied, trees)
    own = {name: own_document(view, trees, name) for name in names}
    choice = TermChoice(analyzer, settings, TermFrequencies(view))
    terms = query_terms(applied.terms, choice.of(sources))
    query, fitting = query_text(terms)
    if fitting < len(terms):
        notes = (*notes, f"{len(terms) - fitting} terms were left out, because the query is full")
    return ContextPlan(
        files=tuple(_file(source, applied, own) for source in sources if source.name),
        included=included,
        terms=tuple(terms[:fitting]),
        query=query,
        rule_query=query_text(query_terms(applied.terms, ()))[0],
        meanings=tuple(dict.fromkeys(s.gist for s in sources[:MAX_MEANINGS] if s.gist)),
        filters=Filters(
            trees=request.trees or applied.trees.intersection(known_trees),
            excluded_files=tuple(doc_id for doc_id in own.values() if doc_id is not None),
            configured=applied.filter,
        ),
        notes=(*notes, *missing, *_filter_notes(applied)),
    )


def _filter_notes(applied: AppliedRules) -> tuple[str, ...]:
    if not applied.filter:
        return ()
    return (f"only documents with `{applied.filter}` are searched, by a rule for these files",)


def answer_plan(plan: ContextPlan, request: ContextRequest, search: Search) -> ContextAnswer:
    response = None
    if plan.queries:
        response = search(
            QueryRequest(
                queries=plan.queries,
                strict=plan.strict,
                top_n=request.top_n,
                # The results are hints to read on, not answers: even weak ones are returned.
                min_score=0.0,
                filters=plan.filters,
                max_tokens=request.max_tokens,
                explain=request.explain,
            )
        )
    notes = plan.notes if plan.query else (*plan.notes, "the index has no word of these files")
    return ContextAnswer(
        files=plan.files,
        included=plan.included,
        results=response.results if response else (),
        left_out=response.left_out if response else (),
        index=response.index if response else None,
        explanation=_explain(plan, response) if request.explain else None,
        notes=(*notes, *(response.notes if response else ())),
        pack=response.pack if response else None,
    )


def _explain(plan: ContextPlan, response: SearchResponse | None) -> ContextExplanation:
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
