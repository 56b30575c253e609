"""Links in the store: their rows, and their targets while documents come, go and change."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ragdocs.models import DocId, Link, LinkKind, LinkSyntax, Slug, Span
from ragdocs.parsers.link_targets import Anchors, Catalogue, Names, link_key, meaning
from ragdocs.store.database import Database, Row
from ragdocs.store.generations import Ledger
from ragdocs.store.records import ResolvedLink
from ragdocs.store.schema import Values, check_row, row_hash, span_values, storable
from ragdocs.store.tables import SELECT_DOCUMENTS, read_document

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
