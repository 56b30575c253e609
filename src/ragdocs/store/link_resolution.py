"""Where a link leads, given the documents it could mean. Pure: nothing is read from anywhere.

The rules, in order: a path, a file name (with the folders given), a title, an alias; first in the
link's own tree, then in the others. Each counts only when it fits exactly one document: exact
case first, then without regard to case and Unicode form. Nothing is guessed.

A document can only be meant by a link that has one of its match keys. So a catalogue of the
documents with a link's key resolves it as the catalogue of all documents would.
"""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from urllib.parse import unquote

from ragdocs.models import DocId, Link, LinkSyntax, TreeName

EXTENSIONS = (".md", ".markdown", ".txt")
_BRACKETED = re.compile(r"!?\[\[([^\]|#]*)(?:#([^\]|]*))?(?:\|[^\]]*)?\]\]")
_DOTS = {".", ".."}


@dataclass(frozen=True, slots=True)
class Names:
    """Everything a document can be called by."""

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
    """The same for strings that differ only in case or in Unicode form."""
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
    """Target and anchor as they are meant, by the syntax the link was written in."""
    target, anchor = link.target.strip(), link.anchor.strip()
    if link.syntax is LinkSyntax.MARKDOWN:
        return unquote(target, errors="surrogateescape"), unquote(anchor, errors="replace")
    if link.syntax is LinkSyntax.FRONT_MATTER and (found := _BRACKETED.fullmatch(target)):
        return found[1].strip(), anchor or (found[2] or "").strip()
    return target, anchor


def link_key(link: Link) -> str | None:
    """The match key of what a link names; None when it stays within its document."""
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
    """A target in every reading it allows, each tried with and without extensions."""

    paths: tuple[tuple[str, ...], ...]
    rooted: tuple[str, ...]
    tails: tuple[str, ...]
    name: tuple[str, ...]


class Catalogue:
    """Documents by everything they can be called."""

    def __init__(self, documents: Iterable[Names]) -> None:
        self._answers: dict[tuple[str, str, LinkSyntax, str], Names | None] = {}
        self._trees: defaultdict[str, _Tree] = defaultdict(_Tree)
        for names in documents:
            self._trees[names.tree].add(names)

    def resolve(self, source: Names, link: Link) -> Names | None:
        """The document that the link, standing in `source`, leads to."""
        target, _ = meaning(link)
        if not target:
            return source
        folder = source.path.rpartition("/")[0]
        question = (source.tree, folder, link.syntax, target)
        if question not in self._answers:
            self._answers[question] = self._find(*question)
        return self._answers[question]

    def _find(self, tree: str, folder: str, syntax: LinkSyntax, target: str) -> Names | None:
        wanted = _wanted(folder, syntax, target)
        own = [self._trees[tree]] if tree in self._trees else []
        found, ambiguous = _first(own, wanted, wanted.paths)
        if found or ambiguous:
            return found
        others = [other for name, other in self._trees.items() if name != tree]
        # A relative path says nothing in another tree.
        return _first(others, wanted, (wanted.rooted,))[0]


def _first(
    trees: Sequence[_Tree], wanted: _Wanted, paths: Iterable[tuple[str, ...]]
) -> tuple[Names | None, bool]:
    """What the first rule that fits one document finds; or else, whether any fitted several."""
    rules = [
        *(([tree.paths for tree in trees], forms) for forms in paths),
        ([tree.tails for tree in trees], wanted.tails),
        ([tree.titles for tree in trees], wanted.name),
        ([tree.aliases for tree in trees], wanted.name),
    ]
    ambiguous = False
    for lookups, forms in rules:
        found = _matches(lookups, forms)
        if len(found) == 1:
            return found[0], False
        ambiguous = ambiguous or len(found) > 1
    return None, ambiguous


def _matches(lookups: Sequence[_Lookup], forms: Sequence[str]) -> list[Names]:
    for form in forms:
        if found := [names for lookup in lookups for names in lookup.exact.get(form, ())]:
            return found
    for form in map(fold, forms):
        if found := [names for lookup in lookups for names in lookup.folded.get(form, ())]:
            return found
    return []


def _wanted(folder: str, syntax: LinkSyntax, target: str) -> _Wanted:
    parts = [part for part in target.split("/") if part]
    if "://" in target or not parts or parts[-1] in _DOTS:
        return _Wanted((), (), (), (target,))
    root = _forms(_normalised([], parts))
    if target.startswith("/"):
        return _Wanted((root,), root, (), (target,))
    relative = _forms(_normalised(folder.split("/") if folder else [], parts))
    if parts[0] in _DOTS:
        return _Wanted((relative,), (), (), (target,))
    paths = (relative, root) if syntax is LinkSyntax.MARKDOWN else (root, relative)
    tails = () if _DOTS.intersection(parts) else root
    return _Wanted(paths, root, tails, (target,))


def _forms(path: str | None) -> tuple[str, ...]:
    return (path, *(path + extension for extension in EXTENSIONS)) if path else ()


def _normalised(base: list[str], parts: list[str]) -> str | None:
    """The path with its dots followed; None when it would leave the tree."""
    path = list(base)
    for part in parts:
        if part == "..":
            if not path:
                return None
            path.pop()
        elif part != ".":
            path.append(part)
    return "/".join(path)
