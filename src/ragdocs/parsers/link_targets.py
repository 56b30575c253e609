"""Resolves a link, given the documents that it could mean. Pure: reads nothing.

The rules, in order: a path, a file name (with the folders given), a title, an alias; first in the
link's own tree, then in the others. Each counts only if it matches exactly one document: with
exact case first, then ignoring case and Unicode form. Nothing is guessed.

A link can only mean a document that shares its match key. So a catalogue of the documents with
that key resolves the link just as a catalogue of all documents would.
"""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from urllib.parse import unquote

from ragdocs.models import DocId, Link, LinkSyntax, Slug, TreeName
from ragdocs.parsers.ids import collapse_slug, slugify

EXTENSIONS = (".md", ".markdown", ".mdx", ".txt")
_BRACKETED = re.compile(r"!?\[\[([^\]|#]*)(?:#([^\]|]*))?(?:\|[^\]]*)?\]\]")
_DOTS = {".", ".."}


@dataclass(frozen=True, slots=True)
class Names:
    """All names of a document."""

    key: int
    doc_id: DocId
    tree: TreeName
    path: str
    title: str
    aliases: tuple[str, ...]

    def match_keys(self) -> set[str]:
        called = (self.title.strip(), *(alias.strip() for alias in self.aliases))
        return {match_key(name) for name in (self.path, *called)}


def fold(text: str) -> str:
    """Maps strings that differ only in case or Unicode form to the same string."""
    if text.isascii():
        return text.lower()
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())


def match_key(name: str) -> str:
    """The last component of a path, title or alias, folded and without its extensions."""
    parts = [part for part in fold(name).split("/") if part]
    key = parts[-1] if parts else ""
    while bare := next((key.removesuffix(e) for e in EXTENSIONS if key.endswith(e)), ""):
        key = bare
    return key


def meaning(link: Link) -> tuple[str, str]:
    """Target and anchor, decoded according to the link's syntax."""
    target, anchor = link.target.strip(), link.anchor.strip()
    if link.syntax is LinkSyntax.MARKDOWN:
        return unquote(target, errors="surrogateescape"), unquote(anchor, errors="replace")
    if link.syntax is LinkSyntax.FRONT_MATTER and (found := _BRACKETED.fullmatch(target)):
        return found[1].strip(), anchor or (found[2] or "").strip()
    return target, anchor


def link_key(link: Link) -> str | None:
    """The match key of a link's target; None for a link within its document."""
    target, _ = meaning(link)
    return match_key(target) if target else None


class _Lookup:
    """Names of one kind in one tree."""

    def __init__(self) -> None:
        self.exact: defaultdict[str, list[Names]] = defaultdict(list)
        self.folded: defaultdict[str, list[Names]] = defaultdict(list)

    def add(self, name: str, names: Names) -> None:
        self.exact[name].append(names)
        self.folded[fold(name)].append(names)


class _Tree:
    """The lookups of one tree."""

    def __init__(self) -> None:
        self.paths = _Lookup()
        self.tails = _Lookup()
        self.titles = _Lookup()
        self.aliases = _Lookup()

    def add(self, names: Names) -> None:
        self.paths.add(names.path, names)
        parts = names.path.split("/")
        for start in range(len(parts)):
            self.tails.add("/".join(parts[start:]), names)
        self.titles.add(names.title.strip(), names)
        for alias in {alias.strip() for alias in names.aliases}:
            self.aliases.add(alias, names)


@dataclass(frozen=True, slots=True)
class _Wanted:
    """Every possible reading of a target, with and without extensions."""

    paths: tuple[tuple[str, ...], ...]
    rooted: tuple[str, ...]
    tails: tuple[str, ...]
    name: tuple[str, ...]


class Catalogue:
    """Documents by all their names."""

    def __init__(self, documents: Iterable[Names]) -> None:
        self._answers: dict[tuple[str, str, LinkSyntax, str], Sequence[Names]] = {}
        self._trees: defaultdict[str, _Tree] = defaultdict(_Tree)
        for names in documents:
            self._trees[names.tree].add(names)

    def resolve(self, source: Names, link: Link) -> Names | None:
        """The document that a link in `source` points to."""
        found = self.candidates(source, link)
        return found[0] if len(found) == 1 else None

    def candidates(self, source: Names, link: Link) -> Sequence[Names]:
        """The documents that a link could point to: several if it is ambiguous."""
        target, _ = meaning(link)
        if not target:
            return (source,)
        folder = source.path.rpartition("/")[0]
        question = (source.tree, folder, link.syntax, target)
        if question not in self._answers:
            self._answers[question] = self._find(*question)
        return self._answers[question]

    def _find(self, tree: str, folder: str, syntax: LinkSyntax, target: str) -> Sequence[Names]:
        wanted = _read_target(folder, syntax, target)
        own = [self._trees[tree]] if tree in self._trees else []
        if found := _first(own, wanted, wanted.paths):
            return found
        others = [other for name, other in self._trees.items() if name != tree]
        # A relative path means nothing in another tree.
        return _first(others, wanted, (wanted.rooted,))


def _first(
    trees: Sequence[_Tree], wanted: _Wanted, paths: Iterable[tuple[str, ...]]
) -> Sequence[Names]:
    """The document of the first rule that matches exactly one; otherwise, the documents of the
    first rule that matches several."""
    rules = [
        *(([tree.paths for tree in trees], forms) for forms in paths),
        ([tree.tails for tree in trees], wanted.tails),
        ([tree.titles for tree in trees], wanted.name),
        ([tree.aliases for tree in trees], wanted.name),
    ]
    several: Sequence[Names] = ()
    for lookups, forms in rules:
        found = _matches(lookups, forms)
        if len(found) == 1:
            return found
        several = several or found
    return several


def _matches(lookups: Sequence[_Lookup], forms: Sequence[str]) -> list[Names]:
    for form in forms:
        if found := [names for lookup in lookups for names in lookup.exact.get(form, ())]:
            return found
    for form in map(fold, forms):
        if found := [names for lookup in lookups for names in lookup.folded.get(form, ())]:
            return found
    return []


def _read_target(folder: str, syntax: LinkSyntax, target: str) -> _Wanted:
    parts = [part for part in target.split("/") if part]
    if "://" in target or not parts or parts[-1] in _DOTS:
        return _Wanted((), (), (), (target,))
    root = _forms(_normalise([], parts))
    if target.startswith("/"):
        return _Wanted((root,), root, (), (target,))
    relative = _forms(_normalise(folder.split("/") if folder else [], parts))
    if parts[0] in _DOTS:
        return _Wanted((relative,), (), (), (target,))
    paths = (relative, root) if syntax is LinkSyntax.MARKDOWN else (root, relative)
    tails = () if _DOTS.intersection(parts) else root
    return _Wanted(paths, root, tails, (target,))


def _forms(path: str | None) -> tuple[str, ...]:
    return (path, *(path + extension for extension in EXTENSIONS)) if path else ()


def _normalise(base: list[str], parts: list[str]) -> str | None:
    """Resolves `.` and `..` in the path; None if it would leave the tree."""
    path = list(base)
    for part in parts:
        if part == "..":
            if not path:
                return None
            path.pop()
        elif part != ".":
            path.append(part)
    return "/".join(path)


# Which heading of a document an anchor means.

_BLOCK = "^"


class Anchors:
    """The headings of one document, by text and by slug; the first of several equal ones counts."""

    def __init__(self, headings: Iterable[tuple[str, Slug]]) -> None:
        self._headings = [(text.strip(), slug) for text, slug in headings]
        self._slugs: dict[str, Slug] = {slug: slug for _, slug in self._headings}

    # Most anchors are exact slugs; the other lookups are built on demand.

    @cached_property
    def _texts(self) -> dict[str, Slug]:
        return dict(reversed(self._headings))

    @cached_property
    def _folded(self) -> dict[str, Slug]:
        found: dict[str, Slug] = {}
        for text, slug in self._headings:
            found.setdefault(fold(text), slug)
            found.setdefault(fold(slug), slug)
        return found

    @cached_property
    def _loose(self) -> dict[str, Slug]:
        return {_loose(slug): slug for _, slug in reversed(self._headings)}

    def find(self, link: Link) -> Slug | None:
        """None if there is no such heading, or if the anchor means a block."""
        anchor = meaning(link)[1].removeprefix("#")
        last = anchor.rpartition("#")[2].strip()
        if not last or last.startswith(_BLOCK):
            return None
        written = (anchor, last) if anchor != last else (last,)
        return next((slug for form in written if (slug := self._find(form, link.syntax))), None)

    def _find(self, anchor: str, syntax: LinkSyntax) -> Slug | None:
        # A URL usually has the slug; a wikilink, the heading.
        if syntax is LinkSyntax.MARKDOWN and anchor in self._slugs:
            return self._slugs[anchor]
        for known in (self._texts, self._slugs):
            if anchor in known:
                return known[anchor]
        slug = slugify(anchor)
        for form in (fold(anchor), fold(slug)):
            if form in self._folded:
                return self._folded[form]
        return self._loose.get(_loose(slug))


def _loose(slug: str) -> str:
    """The collapsed form of a slug, with hyphens for the underscores that some sites use."""
    return collapse_slug(fold(slug).replace("_", "-"))


# Which lines a block id means: the paragraph, list item, table, quote or code that it stands at.

# Obsidian asks for a space before it, and does without one behind an embed.
_BLOCK_ID = re.compile(r"(?<![\w^])\^([A-Za-z0-9-]+)[ \t]*$", re.MULTILINE)
_ALONE = re.compile(r"[ \t>]*\^[A-Za-z0-9-]+[ \t]*")
_ITEM = re.compile(r"([ \t>]*)(?:[-*+]|\d{1,9}[.)])[ \t]")
_HEADING_LINE = re.compile(r"[ \t>]{0,3}#{1,6}[ \t]")
_FENCE_LINE = re.compile(r"[ \t>]*(`{3,}|~{3,})")


def block_ids(text: str) -> list[str]:
    """The ids of blocks (`^id` at the end of a line), as they are written."""
    return _BLOCK_ID.findall(text)


def block_lines(text: str, block_id: str) -> tuple[int, int] | None:
    """The first and the last line of a block, counted from 0; None if no block has this id."""
    lines = text.split("\n")
    opened: int | None = None
    opened_by: dict[int, int] = {}
    for at, line in enumerate(lines):
        if fence := _FENCE_LINE.match(line):
            if opened is None:
                opened = at
            elif fence[1].startswith(lines[opened].lstrip(" \t>")[:3]):
                opened_by[at], opened = opened, None
        elif opened is None:
            found = _BLOCK_ID.search(line)
            if found is not None and fold(found[1]) == fold(block_id):
                return _lines_at(lines, at, opened_by)
    return None


def _lines_at(lines: Sequence[str], at: int, opened_by: dict[int, int]) -> tuple[int, int]:
    if not _ALONE.fullmatch(lines[at]):
        first = _first_of_run(lines, at, is_item=True)
        return first, _last_of_item(lines, at, first)
    last = at - 1
    while last >= 0 and not lines[last].strip():
        last -= 1
    if last < 0:
        return at, at
    return opened_by.get(last, _first_of_run(lines, last, is_item=False)), at


def _first_of_run(lines: Sequence[str], at: int, *, is_item: bool) -> int:
    """Up to a blank line or a heading; for a list item, up to its mark."""
    while (
        at > 0 and not _HEADING_LINE.match(lines[at]) and not (is_item and _ITEM.match(lines[at]))
    ):
        above = lines[at - 1]
        if not above.strip() or _HEADING_LINE.match(above) or _FENCE_LINE.match(above):
            break
        at -= 1
    return at


def _last_of_item(lines: Sequence[str], at: int, first: int) -> int:
    """With the items below it."""
    item = _ITEM.match(lines[first])
    if item is None:
        return at
    while at + 1 < len(lines) and (below := _ITEM.match(lines[at + 1])):
        if len(below[1]) <= len(item[1]):
            break
        at += 1
    return at
