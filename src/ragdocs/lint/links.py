"""Links that lead nowhere, or to several places; with what may have been meant.

The store has resolved every link already. Only links that it could not resolve are looked at
again: the names of documents, the headings of a target, and, for anchors in HTML and block ids,
the target's text. No file is opened; `TreePaths` only tells whether a path exists.
"""

import difflib
import posixpath
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from ragdocs.config.choices import LintRule
from ragdocs.indices.view import View
from ragdocs.lint.findings import (
    Documents,
    LintFinding,
    LintPlace,
    RuleSelection,
    UncheckedLinks,
    find_at,
)
from ragdocs.models import DocId, Heading, Link, LinkKind, LinkSyntax, Span, TreeName
from ragdocs.parsers.link_targets import (
    EXTENSIONS,
    Catalogue,
    Names,
    block_ids,
    fold,
    match_key,
    meaning,
)
from ragdocs.store.records import ResolvedLink, StoredDocument
from ragdocs.text import number_of

MAX_SUGGESTIONS = 2_000
"""Names that similar ones are looked for; further broken links get no suggestion."""
MAX_NAMED = 4
"""Documents or lines that one message names."""
_LOOKED_AT = 20_000
"""Names that share a trigram with the wanted one, those with the rarest trigrams first."""
_COMPARED = 30
"""Names with the most shared trigrams that are compared letter by letter."""
_LIKENESS = 0.7
"""How similar a name must be to be suggested, as a ratio of difflib."""
_MAX_SHOWN = 120

_TEMPLATE = re.compile(r"\{\{|\{%|<%|\$\{")
_ATTACHMENT = re.compile(
    r"\.(?:base|canvas|csv|tsv|xlsx?|docx?|pptx?|odt|json|jsonl|ya?ml|toml|html?|xml|epub|css|"
    r"drawio|excalidraw|flac|mkv|3gp|aac|m4b|heic|rtf|ipynb)$",
    re.IGNORECASE,
)
_DOCUMENT = re.compile(r"\.(?:md|markdown|mdx|txt)$", re.IGNORECASE)
_HTML_ANCHOR = re.compile(
    r"<[a-z][^<>]*?\s(?:id|name)\s*=\s*(?:\"([^\"]+)\"|'([^']+)'|([^\s>]+))", re.I
)
_ATTRIBUTE_ANCHOR = re.compile(r"\{[^{}\n]*?#([\w:.-]+)[^{}\n]*\}")
_PAGE_TOP = {"top", ""}
_TEXT_FRAGMENT = ":~:"


class TreePaths(Protocol):
    """The files of the trees, as far as lint may know them."""

    def exists(self, tree: TreeName, path: str) -> bool:
        """Whether there is a file or folder; links on the way are not followed."""
        ...


class NearNames:
    """Finds the most similar of many names: by shared trigrams, then letter by letter."""

    def __init__(self, names: Iterable[str]) -> None:
        self._names = sorted(set(names))
        self._folded = [fold(name) for name in self._names]
        self._by_trigram: defaultdict[str, list[int]] = defaultdict(list)
        for number, name in enumerate(self._folded):
            for trigram in _trigrams(name):
                self._by_trigram[trigram].append(number)

    def nearest(self, wanted: str) -> str | None:
        wanted = fold(wanted)[:_MAX_SHOWN]
        shared: Counter[int] = Counter()
        looked_at = 0
        holders = [self._by_trigram[one] for one in _trigrams(wanted) if one in self._by_trigram]
        for numbers in sorted(holders, key=len):
            shared.update(numbers)
            looked_at += len(numbers)
            if looked_at > _LOOKED_AT:
                break
        best, likeness = None, _LIKENESS
        # A long name shares more trigrams with everything, so its length counts against it.
        ranked = sorted(shared, key=lambda at: (-shared[at] / (len(self._folded[at]) + 2), at))
        matcher = difflib.SequenceMatcher(b=wanted, autojunk=False)
        for number in ranked[:_COMPARED]:
            matcher.set_seq1(self._folded[number])
            if matcher.quick_ratio() > likeness and (ratio := matcher.ratio()) > likeness:
                best, likeness = self._names[number], ratio
        return best


def _trigrams(text: str) -> set[str]:
    padded = f"  {text[:_MAX_SHOWN]} "
    return {padded[at : at + 3] for at in range(len(padded) - 2)}


@dataclass(frozen=True, slots=True)
class _Target:
    """What the anchors of one document are."""

    headings: tuple[Heading, ...]
    near: NearNames
    near_blocks: NearNames
    marks: frozenset[str]
    """Anchors that are written as such: ids of HTML elements, `{#id}` of headings."""
    blocks: frozenset[str]


class LinkChecker:
    """Looks at each link once; afterwards it knows which documents are linked."""

    def __init__(
        self, view: View, documents: Documents, selection: RuleSelection, paths: TreePaths | None
    ) -> None:
        self._view = view
        self._documents = documents
        self._selection = selection
        self._paths = paths
        self._targets: dict[DocId, _Target] = {}
        self._suggested: dict[tuple[TreeName, str], DocId | None] = {}
        self._answers: dict[tuple[int, str], str | None] = {}
        self._unchecked: Counter[str] = Counter()
        self.linked: set[DocId] = set()
        """Documents that link to others, or that others link to."""
        self.linking_trees: set[TreeName] = set()
        """Trees in which a document links to another."""
        self.wiki_trees: set[TreeName] = set()
        """Trees in which links are written as wikilinks."""

    @property
    def unchecked(self) -> UncheckedLinks:
        return UncheckedLinks(**self._unchecked)

    def check(self, links: Iterable[ResolvedLink]) -> Iterator[LintFinding]:
        for resolved in links:
            source = self._documents.get(resolved.source)
            if source is None:
                continue
            self._note(source, resolved)
            finding = self._check(source, resolved)
            if finding is not None and finding.rule in self._selection:
                yield finding

    def _note(self, source: StoredDocument, resolved: ResolvedLink) -> None:
        if resolved.link.syntax is LinkSyntax.WIKI:
            self.wiki_trees.add(source.tree)
        if resolved.target != source.id and meaning(resolved.link)[0]:
            self.linked.add(source.id)  # a broken link is reported as such
            if resolved.target is not None:
                self.linked.add(resolved.target)
                self.linking_trees.add(source.tree)

    def _check(self, source: StoredDocument, resolved: ResolvedLink) -> LintFinding | None:
        link = resolved.link
        target, anchor = meaning(link)
        if _TEMPLATE.search(target) or _TEMPLATE.search(anchor):
            self._unchecked["templates"] += 1
            return None
        if resolved.target is None:
            return self._unresolved(source, link, target)
        aimed = self._documents.get(resolved.target)
        anchor = anchor.removeprefix("#").strip()
        if not anchor or aimed is None:
            return None
        last = anchor.rpartition("#")[2].strip()
        if last.startswith("^"):
            return self._block(source, link, aimed, last[1:])
        if resolved.slug is None:
            return self._anchor(source, link, aimed, anchor)
        if link.syntax is LinkSyntax.WIKI and "#" not in anchor:
            return self._heading(source, link, aimed, anchor)
        return None

    # Links without a document.

    def _unresolved(self, source: StoredDocument, link: Link, target: str) -> LintFinding | None:
        if several := self._candidates(source, link, target):
            shown = _some([f"`{one.path}`" for one in several])
            return find_at(
                LintRule.AMBIGUOUS_LINK,
                source,
                f"{written(link)} could mean {shown}",
                link=link.span,
                related=tuple(LintPlace(one.tree, one.path, 1, 1) for one in several),
            )
        if reason := self._why_unchecked(source, link, target):
            self._unchecked[reason] += 1
            return None
        if self._is_file(source, link, target):
            return None
        suggestion = self._suggest(source, link, target)
        meant = f"; did you mean {suggestion}?" if suggestion else ""
        what = "no document has this name" if _is_name(link) else "there is no such file"
        return find_at(
            LintRule.BROKEN_LINK,
            source,
            f"{written(link)}: {what}{meant}",
            link=link.span,
            suggestion=suggestion,
        )

    def _candidates(self, source: StoredDocument, link: Link, target: str) -> list[Names]:
        named = self._by_key.get(match_key(target), [])
        if len(named) < 2 or link.syntax is LinkSyntax.MARKDOWN:  # a path means one file, or none
            return []
        found = Catalogue(named).candidates(names_of(source), link)
        return list(found) if len(found) > 1 else []

    def _why_unchecked(self, source: StoredDocument, link: Link, target: str) -> str:
        if link.syntax is LinkSyntax.WIKI and _ATTACHMENT.search(target):
            return "attachments"
        path = _path_in_tree(source, target)
        if path is None:
            return "outside"
        is_address = link.syntax is not LinkSyntax.WIKI and target.startswith("/")
        if is_address and not _DOCUMENT.search(target):
            first = path.partition("/")[0]
            return "" if first and self._exists(source.tree, first) else "site"
        return ""

    def _is_file(self, source: StoredDocument, link: Link, target: str) -> bool:
        """Whether it leads to a file that is not indexed, or to a folder."""
        path = _path_in_tree(source, target)
        rooted = target.strip("/")
        places = [path, rooted] if not target.startswith((".", "/")) else [path]
        if link.syntax is LinkSyntax.WIKI:
            places += [f"{place}.md" for place in places]
        return any(self._exists(source.tree, place) for place in places if place)

    def _exists(self, tree: TreeName, path: str) -> bool:
        return self._paths is not None and self._paths.exists(tree, path)

    def _suggest(self, source: StoredDocument, link: Link, target: str) -> str | None:
        """The most similar name of a document of the same tree, as the link would be written."""
        question = source.tree, _path_in_tree(source, target) or target
        if question not in self._suggested:
            self._suggested[question] = self._nearest(*question)
        found = self._suggested[question]
        if found is None:
            return None
        path = self._documents[found].path
        if link.syntax is LinkSyntax.MARKDOWN:
            return posixpath.relpath(path, posixpath.dirname(source.path) or ".")
        stem = _stem(path)
        is_clear = len(self._by_key.get(match_key(stem), ())) == 1
        return f"[[{stem if is_clear else path.removesuffix('.md')}]]"

    def _nearest(self, tree: TreeName, path: str) -> DocId | None:
        """A document of the same name in another folder, or else of a similar name; of several the
        one with the most similar path."""
        if tree not in self._near_names:
            return None
        near, by_name = self._near_names[tree]
        key = match_key(path)
        found = key if key in by_name else self._near(near, key)
        if found is None:
            return None
        matcher = difflib.SequenceMatcher(b=path[-_MAX_SHOWN:])

        def likeness(doc_id: DocId) -> float:
            matcher.set_seq1(self._documents[doc_id].path[-_MAX_SHOWN:])
            return matcher.ratio()

        return max(by_name[found][:_COMPARED], key=likeness)

    def _near(self, names: NearNames, wanted: str) -> str | None:
        """The most similar of the names; each question is answered once, and only so many are."""
        question = id(names), wanted  # all of them live as long as this
        if question not in self._answers:
            if len(self._answers) >= MAX_SUGGESTIONS:
                return None
            self._answers[question] = names.nearest(wanted)
        return self._answers[question]

    @cached_property
    def _by_key(self) -> dict[str, list[Names]]:
        found: defaultdict[str, list[Names]] = defaultdict(list)
        for document in self._documents.values():
            names = names_of(document)
            for key in names.match_keys():
                found[key].append(names)
        return found

    @cached_property
    def _near_names(self) -> dict[TreeName, tuple[NearNames, dict[str, list[DocId]]]]:
        found: defaultdict[TreeName, defaultdict[str, list[DocId]]]
        found = defaultdict(lambda: defaultdict(list))
        for doc_id in sorted(self._documents):
            names = names_of(self._documents[doc_id])
            for key in names.match_keys():
                found[names.tree][key].append(doc_id)
        return {tree: (NearNames(names), dict(names)) for tree, names in found.items()}

    # Links to a part of a document.

    def _anchor(
        self, source: StoredDocument, link: Link, aimed: StoredDocument, anchor: str
    ) -> LintFinding | None:
        target = self._target(aimed)
        last = anchor.rpartition("#")[2].strip()
        is_top = link.syntax is LinkSyntax.MARKDOWN and last in _PAGE_TOP
        if is_top or _TEXT_FRAGMENT in anchor or {anchor, last} & target.marks:
            return None
        nearest = self._near(target.near, last)
        if nearest is None:
            nearest = self._near(target.near, last.replace("-", " ").replace("_", " "))
        is_wiki = link.syntax is not LinkSyntax.MARKDOWN
        suggestion = None
        if nearest is not None:
            slug = next((each.slug for each in target.headings if each.text == nearest), None)
            suggestion = nearest if is_wiki else f"#{slug}"
        meant = f"; did you mean {_quoted(suggestion)}?" if suggestion else ""
        noun = "heading" if is_wiki else "heading or anchor"
        where = "this document" if aimed.id == source.id else f"`{aimed.path}`"
        return find_at(
            LintRule.BROKEN_HEADING if is_wiki else LintRule.BROKEN_ANCHOR,
            source,
            f"{written(link)}: {where} has no {noun} {_quoted(last)}{meant}",
            link=link.span,
            suggestion=suggestion,
            related=(LintPlace(aimed.tree, aimed.path, 1, 1),),
        )

    def _heading(
        self, source: StoredDocument, link: Link, aimed: StoredDocument, anchor: str
    ) -> LintFinding | None:
        wanted = fold(anchor)
        same = [each for each in self._target(aimed).headings if fold(each.text.strip()) == wanted]
        if len(same) < 2:
            return None
        lines = _some([str(each.span.line_start) for each in same])
        where = "this document" if aimed.id == source.id else f"`{aimed.path}`"
        return find_at(
            LintRule.AMBIGUOUS_HEADING,
            source,
            f"{written(link)}: {where} has this heading {len(same)} times (lines {lines}); "
            "the link leads to the first",
            link=link.span,
            related=tuple(_place(aimed, each.span) for each in same),
        )

    def _block(
        self, source: StoredDocument, link: Link, aimed: StoredDocument, block: str
    ) -> LintFinding | None:
        target = self._target(aimed)
        if not block or fold(block) in target.blocks:
            return None
        found = self._near(target.near_blocks, block)
        meant = f"; did you mean `^{found}`?" if found else ""
        where = "this document" if aimed.id == source.id else f"`{aimed.path}`"
        return find_at(
            LintRule.BROKEN_BLOCK,
            source,
            f"{written(link)}: {where} has no block {_quoted('^' + block)}{meant}",
            link=link.span,
            suggestion=f"^{found}" if found else None,
            related=(LintPlace(aimed.tree, aimed.path, 1, 1),),
        )

    def _target(self, aimed: StoredDocument) -> _Target:
        if aimed.id not in self._targets:
            headings = self._view.headings(aimed.id)
            leaves = (stored.chunk.text for stored in self._view.chunks(aimed.id))
            text = "".join(leaf for leaf in leaves if leaf is not None)
            marks = {mark for found in _HTML_ANCHOR.findall(text) for mark in found if mark}
            marks.update(_ATTRIBUTE_ANCHOR.findall(text))
            blocks = frozenset(map(fold, block_ids(text)))
            self._targets[aimed.id] = _Target(
                headings,
                NearNames(each.text for each in headings),
                NearNames(blocks),
                frozenset(marks),
                blocks,
            )
        return self._targets[aimed.id]


def find_ambiguous_names(
    documents: Documents, applies: Callable[[TreeName], bool]
) -> Iterator[LintFinding]:
    """One finding for each name that several documents of a tree share, at the first of them."""
    by_key: defaultdict[tuple[TreeName, str], list[Names]] = defaultdict(list)
    for doc_id in sorted(documents):
        names = names_of(documents[doc_id])
        if applies(names.tree):
            for key in names.match_keys():
                by_key[names.tree, key].append(names)
    for (tree, key), sharing in sorted(by_key.items()):
        if len(sharing) < 2 or not key:
            continue
        catalogue = Catalogue(sharing)
        reported: set[tuple[DocId, ...]] = set()
        root = Names(0, DocId(""), tree, "", "", ())
        for kind, name in _called(sharing, key):
            link = Link(LinkKind.LINKS_TO, LinkSyntax.WIKI, name, "", name, Span(0, 0, 1, 1))
            found = catalogue.candidates(root, link)
            shared = tuple(each.doc_id for each in found)
            if len(found) < 2 or shared in reported:
                continue
            reported.add(shared)
            others = _some([f"`{each.path}`" for each in found])
            yield find_at(
                LintRule.AMBIGUOUS_NAME,
                documents[found[0].doc_id],
                f"the {kind} {_quoted(name)} is shared by {others}; "
                f"`[[{name[:_MAX_SHOWN]}]]` is ambiguous",
                related=tuple(LintPlace(each.tree, each.path, 1, 1) for each in found[1:]),
            )


def _called(sharing: list[Names], key: str) -> Iterator[tuple[str, str]]:
    """The names with this key, as they are written: files first, because they are linked most."""
    yield from (("file name", _stem(each.path)) for each in sharing)
    yield from (("title", each.title.strip()) for each in sharing if match_key(each.title) == key)
    for each in sharing:
        yield from (("alias", one.strip()) for one in each.aliases if match_key(one) == key)


def names_of(document: StoredDocument) -> Names:
    aliases = document.front_matter.aliases
    return Names(0, document.id, document.tree, document.path, document.title, aliases)


def written(link: Link) -> str:
    """A link as its author wrote it, shortened."""
    target = link.target + (f"#{link.anchor}" if link.anchor else "")
    if link.syntax is LinkSyntax.WIKI:
        mark = "!" if link.kind is LinkKind.EMBEDS else ""
        return f"`{mark}[[{_cut(target)}]]`"
    if link.syntax is LinkSyntax.FRONT_MATTER:
        return f"`related: {_cut(target)}`"
    return f"`({_cut(target)})`"


def _is_name(link: Link) -> bool:
    return link.syntax is not LinkSyntax.MARKDOWN and "/" not in link.target


def _path_in_tree(source: StoredDocument, target: str) -> str | None:
    """The target as a path within the tree of `source`; None if it leads out of it."""
    folder = "" if target.startswith("/") else posixpath.dirname(source.path)
    path = posixpath.normpath(posixpath.join(folder, target.lstrip("/")))
    if path == ".." or path.startswith("../"):
        return None
    return path


def _stem(path: str) -> str:
    name = posixpath.basename(path)
    return next((name.removesuffix(each) for each in EXTENSIONS if name.endswith(each)), name)


def _place(document: StoredDocument, span: Span) -> LintPlace:
    return LintPlace(document.tree, document.path, span.line_start, span.line_end)


def _cut(text: str) -> str:
    return text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}…"


def _quoted(text: str) -> str:
    return f"`{_cut(text)}`"


def _some(items: list[str]) -> str:
    shown, left = items[:MAX_NAMED], len(items) - MAX_NAMED
    if left > 0:
        return f"{', '.join(shown)} and {number_of(left, 'other')}"
    return " and ".join([", ".join(shown[:-1]), shown[-1]]) if len(shown) > 1 else shown[0]
