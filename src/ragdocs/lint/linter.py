"""Runs the selected rules over one generation of an index: from a view to a report."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime

from ragdocs.config.choices import LintRule
from ragdocs.config.settings import LintConfig
from ragdocs.errors import QueryError
from ragdocs.indices.view import View
from ragdocs.lint.copies import find_copies
from ragdocs.lint.findings import (
    RULES,
    Documents,
    LintFinding,
    LintReport,
    LintRequest,
    RuleSelection,
    count_rules,
    find_at,
)
from ragdocs.lint.links import LinkChecker, TreePaths, find_ambiguous_names
from ragdocs.models import DateSource, TreeName, WarningKind
from ragdocs.places import PathReading, Places, Readings, shown_path
from ragdocs.references import describe_no_path, document_named
from ragdocs.store.records import FileFailure, StoredDocument
from ragdocs.text import number_of

_BY_LINKS = frozenset(
    {
        LintRule.BROKEN_LINK,
        LintRule.BROKEN_HEADING,
        LintRule.BROKEN_ANCHOR,
        LintRule.BROKEN_BLOCK,
        LintRule.AMBIGUOUS_LINK,
        LintRule.AMBIGUOUS_HEADING,
        LintRule.AMBIGUOUS_NAME,
        LintRule.ORPHAN,
        LintRule.MISSING_TITLE,
    }
)
"""These need the links: what they report, or whether they apply, depends on them."""
_FIRST_LEVEL = 1


def lint(
    view: View,
    settings: LintConfig,
    request: LintRequest,
    now: datetime,
    paths: TreePaths | None = None,
    places: Places | None = None,
) -> LintReport:
    """Reads the documents of all trees, because links lead anywhere; reports only the places that
    the request names. Raises QueryError for an unknown rule, or a path that matches nothing.
    """
    selection = RuleSelection.of(settings, request.select, request.ignore)
    documents = {document.id: document for document in view.filtered_documents(None)}
    failures = tuple(view.failures())
    is_asked = _asked_places(view, request, documents, failures, places or Places())
    links = LinkChecker(view, documents, selection, paths)
    pages = _Pages(view, documents, selection, links)
    found = list(links.check(view.all_links())) if selection.rules & _BY_LINKS else []
    found += pages.findings(settings.stale_days, now)
    found += _unindexed(failures) if LintRule.NOT_INDEXED in selection else ()
    if LintRule.NEAR_COPY in selection:
        found += find_copies(view.signatures(), documents, settings.near_copy_threshold)
    found = [finding for finding in found if is_asked(finding.tree, finding.path)]
    found.sort(key=_place)
    return LintReport(
        findings=tuple(map(_with_shown_paths, found)),
        counts=count_rules(found, selection.rules),
        documents=sum(is_asked(document.tree, document.path) for document in documents.values()),
        unchecked=links.unchecked,
        notes=tuple(_notes(view)),
    )


def _with_shown_paths(finding: LintFinding) -> LintFinding:
    related = tuple(replace(place, path=shown_path(place.path)) for place in finding.related)
    return replace(finding, path=shown_path(finding.path), related=related)


_ORDER = {rule: number for number, rule in enumerate(RULES)}


def _place(finding: LintFinding) -> tuple[str, str, int, int, int, str]:
    """In the order in which a reader meets them."""
    at = finding.line_start, finding.byte_start or 0, _ORDER[finding.rule]
    return finding.tree, finding.path, *at, finding.message


def _notes(view: View) -> Iterator[str]:
    if view.waiting is None:
        yield "not all files have been compared with the index yet, so findings may be missing"
    elif view.waiting:
        yield f"{number_of(view.waiting, 'changed file')} not indexed yet: findings may be outdated"


# Where to look.


def _asked_places(
    view: View,
    request: LintRequest,
    documents: Documents,
    failures: Iterable[FileFailure],
    places: Places,
) -> Callable[[str, str], bool]:
    """Whether a document is in one of the trees and below one of the paths of the request."""
    known = [(document.tree, document.path) for document in documents.values()]
    known += [(failure.tree, failure.path) for failure in failures]
    asked = [_meaning(view, places, path, known) for path in request.paths]

    def is_asked(tree: str, path: str) -> bool:
        is_in_tree = not request.trees or tree in request.trees
        return is_in_tree and (not asked or any(_is_below(tree, path, one) for one in asked))

    return is_asked


def _meaning(
    view: View, places: Places, given: str, known: Sequence[tuple[TreeName, str]]
) -> Readings:
    """The first that has any file, or the document of that name."""
    for meaning in places.folders(given):
        if any(_is_below(tree, path, meaning) for tree, path in known):
            return meaning
    document = document_named(view, places, given)
    if document is None:
        raise QueryError(describe_no_path(view, places, given))
    return (PathReading(document.path, document.tree),)


def _is_below(tree: str, path: str, meaning: Readings) -> bool:
    def is_in(folder: str) -> bool:
        return not folder or path == folder or path.startswith(f"{folder}/")

    return any(one.tree in (None, tree) and is_in(one.path) for one in meaning)


# Rules about a document by itself.


class _Pages:
    """Rules about each document by itself, and about its place among the others."""

    def __init__(
        self, view: View, documents: Documents, selection: RuleSelection, links: LinkChecker
    ) -> None:
        self._view = view
        self._documents = documents
        self._selection = selection
        self._links = links

    def findings(self, stale_days: int, now: datetime) -> Iterator[LintFinding]:
        """After the links were checked."""
        selection = self._selection
        if LintRule.ORPHAN in selection:
            yield from self._orphans()
        if LintRule.AMBIGUOUS_NAME in selection:
            is_named = selection.is_named(LintRule.AMBIGUOUS_NAME)
            yield from find_ambiguous_names(
                self._documents, lambda tree: is_named or tree in self._links.wiki_trees
            )
        if LintRule.STALE_PAGE in selection and stale_days:
            yield from self._stale(stale_days, now)
        if LintRule.UNDATED_PAGE in selection:
            yield from self._undated()
        if LintRule.MISSING_TITLE in selection:
            yield from self._untitled()
        yield from self._warnings()

    def _orphans(self) -> Iterator[LintFinding]:
        is_named = self._selection.is_named(LintRule.ORPHAN)
        for document in self._documents.values():
            is_linked = document.id in self._links.linked
            if not is_linked and (is_named or document.tree in self._links.linking_trees):
                message = "no document links here, and it links to no other document"
                yield find_at(LintRule.ORPHAN, document, message)

    def _stale(self, stale_days: int, now: datetime) -> Iterator[LintFinding]:
        for document in self._documents.values():
            days = (now - document.date).days
            if days > stale_days:
                is_file = document.date_source is DateSource.MTIME
                what = "the file was last changed" if is_file else "dated"
                message = (
                    f"{what} {document.date:%Y-%m-%d}, {days:,} days ago (limit: {stale_days:,})"
                )
                yield find_at(LintRule.STALE_PAGE, document, message)

    def _undated(self) -> Iterator[LintFinding]:
        def is_undated(document: StoredDocument) -> bool:
            return document.date_source is DateSource.MTIME

        for document in self._exceptions(LintRule.UNDATED_PAGE, is_undated):
            message = "no date in the front matter (`modified`, `date` or `created`)"
            yield find_at(LintRule.UNDATED_PAGE, document, message)

    def _untitled(self) -> Iterator[LintFinding]:
        def is_untitled(document: StoredDocument) -> bool:
            headings = () if document.front_matter.title else self._view.headings(document.id)
            has_heading = any(heading.level == _FIRST_LEVEL for heading in headings)
            return not document.front_matter.title and not has_heading

        for document in self._exceptions(LintRule.MISSING_TITLE, is_untitled):
            # In a vault the file's name is the title; elsewhere a page should have one.
            message = "no first-level heading and no `title` in the front matter"
            yield find_at(LintRule.MISSING_TITLE, document, message)

    def _exceptions(
        self, rule: LintRule, lacks: Callable[[StoredDocument], bool]
    ) -> Iterator[StoredDocument]:
        """The documents that lack something, but for trees whose habit that is."""
        lacking = [document for document in self._documents.values() if lacks(document)]
        pages = Counter(document.tree for document in self._documents.values())
        without = Counter(document.tree for document in lacking)
        for document in lacking:
            is_habit = 2 * without[document.tree] > pages[document.tree]
            if rule is LintRule.MISSING_TITLE:
                is_habit = is_habit and document.tree in self._links.wiki_trees
            if self._selection.is_named(rule) or not is_habit:
                yield document

    def _warnings(self) -> Iterator[LintFinding]:
        for document in self._documents.values():
            for warning in document.warnings:
                is_front = warning.kind is WarningKind.FRONT_MATTER
                rule = LintRule.FRONT_MATTER if is_front else LintRule.PARTLY_INDEXED
                if (is_front or warning.is_loss) and rule in self._selection:
                    yield find_at(rule, document, warning.text)


def _unindexed(failures: Iterable[FileFailure]) -> Iterator[LintFinding]:
    for failure in failures:
        yield LintFinding(
            rule=LintRule.NOT_INDEXED,
            severity=RULES[LintRule.NOT_INDEXED].severity,
            tree=failure.tree,
            path=failure.path,
            line_start=1,
            line_end=1,
            message=failure.reason,
        )
