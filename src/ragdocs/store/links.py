"""Links in the store: their rows, and their targets while documents come, go and change."""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from urllib.parse import unquote

from ragdocs.models import DocId, Link, LinkKind, LinkSyntax, Slug, Span, TreeName
from ragdocs.parsers.ids import collapse_slug, slugify
from ragdocs.store.database import Database, Row
from ragdocs.store.generations import Ledger
from ragdocs.store.records import ResolvedLink
from ragdocs.store.schema import Values, check_row, row_hash, span_values, storable
from ragdocs.store.tables import SELECT_DOCUMENTS, read_document

# Resolves a link, given the documents that it could mean. Pure: reads nothing.
#
# The rules, in order: a path, a file name (with the folders given), a title, an alias; first in the
# link's own tree, then in the others. Each counts only if it matches exactly one document: with
# exact case first, then ignoring case and Unicode form. Nothing is guessed.
#
# A link can only mean a document that shares its match key. So a catalogue of the documents with
# that key resolves the link just as a catalogue of all documents would.

EXTENSIONS = (".md", ".markdown", ".txt")
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
        self._answers: dict[tuple[str, str, LinkSyntax, str], Names | None] = {}
        self._trees: defaultdict[str, _Tree] = defaultdict(_Tree)
        for names in documents:
            self._trees[names.tree].add(names)

    def resolve(self, source: Names, link: Link) -> Names | None:
        """The document that a link in `source` points to."""
        target, _ = meaning(link)
        if not target:
            return source
        folder = source.path.rpartition("/")[0]
        question = (source.tree, folder, link.syntax, target)
        if question not in self._answers:
            self._answers[question] = self._find(*question)
        return self._answers[question]

    def _find(self, tree: str, folder: str, syntax: LinkSyntax, target: str) -> Names | None:
        wanted = _read_target(folder, syntax, target)
        own = [self._trees[tree]] if tree in self._trees else []
        found, ambiguous = _first(own, wanted, wanted.paths)
        if found or ambiguous:
            return found
        others = [other for name, other in self._trees.items() if name != tree]
        # A relative path means nothing in another tree.
        return _first(others, wanted, (wanted.rooted,))[0]


def _first(
    trees: Sequence[_Tree], wanted: _Wanted, paths: Iterable[tuple[str, ...]]
) -> tuple[Names | None, bool]:
    """The document of the first rule that matches exactly one; otherwise, whether any matched
    several."""
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


# Converts links to rows and back.

SELECT_LINKS = """SELECT l.key, l.row_hash, d.id, l.position, l.kind, l.syntax, l.target, l.anchor,
    l.text, l.byte_start, l.byte_end, l.line_start, l.line_end, l.match_key, t.id, l.target_slug
    FROM links l JOIN documents d ON d.key = l.doc LEFT JOIN documents t ON t.key = l.target_doc"""


def link_values(doc_id: DocId, links: Sequence[Link]) -> Iterator[Values]:
    """Not resolved yet: the end of the transaction resolves all affected links."""
    for position, link in enumerate(links):
        yield storable(
            (
                doc_id,
                position,
                link.kind,
                link.syntax,
                link.target,
                link.anchor,
                link.text,
                *span_values(link.span),
                link_key(link),
                None,
                None,
            )
        )


def insert_links(
    database: Database, doc: int, rows: Iterable[Values], hashes: Iterable[bytes]
) -> None:
    database.many(
        """INSERT INTO links (row_hash, doc, position, kind, syntax, target, anchor, text,
        byte_start, byte_end, line_start, line_end, match_key, target_doc, target_slug)
        VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)""",
        ((hashed, doc, *row[1:]) for row, hashed in zip(rows, hashes, strict=True)),
    )


def read_link(row: Row) -> ResolvedLink:
    _, hashed, *values = row
    check_row("link of", values, hashed)
    doc_id, _, kind, syntax, target, anchor, text, *span, _, target_doc, target_slug = values
    link = Link(LinkKind(kind), LinkSyntax(syntax), target, anchor, text, Span(*span))
    return ResolvedLink(DocId(doc_id), link, target_doc, target_slug)


# Keeps the targets of stored links up to date while documents come, go and change.
#
# Resolves only links that may be affected: those with a match key of a changed document, and those
# of the documents written in this transaction.

LINKS_AT_ONCE = 5_000
_HEADINGS = "SELECT text, slug FROM headings WHERE doc = ? ORDER BY position"


@dataclass(frozen=True, slots=True)
class _StoredLink:
    """A link and the row it came from."""

    row: Row
    resolved: ResolvedLink

    @property
    def match_key(self) -> str | None:
        return self.row[13]


def detach(database: Database, ledger: Ledger, doc: int) -> set[DocId]:
    """Clears the target of every link to the document; returns the documents of those links."""
    links = [
        _StoredLink(row, read_link(row))
        for row in database.all(f"{SELECT_LINKS} WHERE l.target_doc = ?", (doc,))
    ]
    _update(database, ledger, ((link, None, None) for link in links))
    return {link.resolved.source for link in links}


def refresh(
    database: Database, ledger: Ledger, match_keys: Iterable[str], sources: Iterable[int]
) -> set[DocId]:
    """Resolves again the links that may have changed; returns the documents whose links did."""
    keys = sorted(_find_affected(database, match_keys, sources))
    anchors = _AnchorCache(database)
    touched: set[DocId] = set()
    for start in range(0, len(keys), LINKS_AT_ONCE):
        rows = database.all_in(
            f"{SELECT_LINKS} WHERE l.key IN (*)", keys[start : start + LINKS_AT_ONCE]
        )
        links = [_StoredLink(row, read_link(row)) for row in rows]
        touched |= _resolve(database, ledger, links, anchors)
    return touched


def _resolve(
    database: Database, ledger: Ledger, links: Sequence[_StoredLink], anchors: "_AnchorCache"
) -> set[DocId]:
    found = {link.match_key for link in links if link.match_key is not None}
    catalogue = Catalogue(_names(database, found))
    origins = {names.doc_id: names for names in _origins(database, links)}
    changed: list[tuple[_StoredLink, Names | None, Slug | None]] = []
    for link in links:
        resolved = link.resolved
        target = catalogue.resolve(origins[resolved.source], resolved.link)
        slug = anchors.find(target, resolved) if target else None
        if (target.doc_id if target else None, slug) != (resolved.target, resolved.slug):
            changed.append((link, target, slug))
    _update(database, ledger, changed)
    return {link.resolved.source for link, _, _ in changed}


def _find_affected(
    database: Database, match_keys: Iterable[str], sources: Iterable[int]
) -> set[int]:
    """Only the keys of the links, because the rows of one document alone may take 100 MB."""
    found: set[int] = set()
    for column, members in (("doc", sources), ("match_key", match_keys)):
        rows = database.all_in(f"SELECT key FROM links WHERE {column} IN (*)", members)
        found.update(key for (key,) in rows)
    return found


def _names(database: Database, match_keys: Iterable[str]) -> list[Names]:
    rows = database.all_in("SELECT DISTINCT doc FROM names WHERE match_key IN (*)", match_keys)
    return _load(database, "key", {doc for (doc,) in rows})


def _origins(database: Database, links: Iterable[_StoredLink]) -> list[Names]:
    return _load(database, "id", {link.resolved.source for link in links})


def _load(database: Database, column: str, members: Iterable[object]) -> list[Names]:
    select = SELECT_DOCUMENTS.replace("SELECT", "SELECT key,")
    loaded: list[Names] = []
    for key, *row in database.all_in(f"{select} WHERE {column} IN (*)", members):
        found = read_document(tuple(row))
        loaded.append(
            Names(key, found.id, found.tree, found.path, found.title, found.front_matter.aliases)
        )
    return loaded


class _AnchorCache:
    """The headings of each target, read once: thousands of links may point to one document."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._known: dict[int, Anchors] = {}

    def find(self, target: Names, resolved: ResolvedLink) -> Slug | None:
        if not meaning(resolved.link)[1]:
            return None
        if target.key not in self._known:
            rows = self._database.all(_HEADINGS, (target.key,))
            self._known[target.key] = Anchors((text, Slug(slug)) for text, slug in rows)
        return self._known[target.key].find(resolved.link)


def _update(
    database: Database,
    ledger: Ledger,
    changed: Iterable[tuple[_StoredLink, Names | None, Slug | None]],
) -> None:
    rows: list[tuple[int | None, Slug | None, bytes, int]] = []
    for link, target, slug in changed:
        key, old_hash, *values = link.row
        values[-2:] = [target.doc_id if target else None, slug]
        hashed = row_hash("link of", values)
        rows.append((target.key if target else None, slug, hashed, key))
        ledger.drop("links", [old_hash])
        ledger.add("links", [hashed])
    database.many(
        "UPDATE links SET target_doc = ?, target_slug = ?, row_hash = ? WHERE key = ?", rows
    )
