"""From a reference to a document of the index, and to the place in it that is meant.

By the readings of the reference: an id, a path, and then, as links do, an end of a path, a file
name, a title or an alias that only one document has. Nothing is guessed: what fits several, or
none, is an error that names the nearest.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ragdocs.errors import NotThere, QueryError
from ragdocs.models import ChunkId, DocId, Link, LinkKind, LinkSyntax, NodeKind, Span, TreeName
from ragdocs.parsers.identity import document_id
from ragdocs.search.library.nearest import nearest_paths
from ragdocs.search.library.references import Reading, readings, shown
from ragdocs.store.holdings import documents_called, failure_of
from ragdocs.store.link_resolution import Catalogue, Names, match_key
from ragdocs.store.records import StoredChunk, StoredDocument
from ragdocs.store.snapshot import Snapshot

MAX_NAMED = 5
"""More would not help to choose."""
_NOWHERE = Span(0, 0, 1, 1)


@dataclass(frozen=True, slots=True)
class Target:
    """A document, and what of it: a chunk by its id, a heading or part by name, lines, or all."""

    document: StoredDocument
    chunk: StoredChunk | None = None
    fragment: str | None = None
    lines: tuple[int, int] | None = None


class Resolver:
    """Finds what references name, within one snapshot."""

    def __init__(self, snapshot: Snapshot, trees: Sequence[TreeName]) -> None:
        self._snapshot = snapshot
        self._trees = trees

    def find(self, reference: str) -> Target:
        """Raises NotThere when nothing, QueryError when more than one thing is meant."""
        wanted = readings(reference, self._trees)
        target = self._by_id(reference) or self._by_path(wanted) or self._by_name(wanted)
        if target is None:
            raise NotThere(self._unknown(reference, wanted))
        return target

    def _by_id(self, reference: str) -> Target | None:
        if not _is_storable(reference):
            return None
        found = self._snapshot.chunk(ChunkId(reference))
        document = self._snapshot.document(found.chunk.doc_id) if found else None
        if found is None or document is None:
            return None
        is_whole = found.chunk.kind is NodeKind.DOCUMENT
        return Target(document, None if is_whole else found)

    def _by_path(self, wanted: Iterable[Reading]) -> Target | None:
        for reading in wanted:
            found = self._snapshot.documents_by_id(self._ids(reading))
            if len(found) > 1:
                raise QueryError(_ambiguous(reading.path, found.values()))
            for document in found.values():
                return _target(document, reading)
        return None

    def _by_name(self, wanted: Iterable[Reading]) -> Target | None:
        for reading in wanted:
            candidates = self._called(reading)
            found = _resolved(reading.path, candidates)
            if found is not None:
                return _target(found, reading)
            if len(candidates) > 1 and reading.fragment is None and reading.lines is None:
                alike = [one for one in candidates if _ends_alike(one.path, reading.path)]
                if len(alike) > 1:
                    raise QueryError(_ambiguous(reading.path, alike))
        return None

    def _called(self, reading: Reading) -> list[StoredDocument]:
        key = match_key(reading.path)
        if not key or not _is_storable(key):
            return []
        found = documents_called(self._snapshot, key)
        return [each for each in found if reading.tree is None or each.tree == reading.tree]

    def _ids(self, reading: Reading) -> list[DocId]:
        trees = self._trees if reading.tree is None else [TreeName(reading.tree)]
        return [document_id(tree, reading.path) for tree in trees]

    def _unknown(self, reference: str, wanted: Sequence[Reading]) -> str:
        for doc_id in (doc_id for reading in wanted for doc_id in self._ids(reading)):
            if failure := failure_of(self._snapshot, doc_id):
                return f"`{shown(doc_id)}` could not be indexed: {failure.reason}"
        near = nearest_paths(self._snapshot, wanted[-1].path, MAX_NAMED)
        message = f"no document is called `{shown(reference)}`"
        if near:
            return f"{message}; the nearest are {_listed(near)}"
        return f"{message}: list the documents to see what there is"


def _target(document: StoredDocument, reading: Reading) -> Target:
    return Target(document, fragment=reading.fragment, lines=reading.lines)


def _resolved(path: str, candidates: Sequence[StoredDocument]) -> StoredDocument | None:
    """As a link written nowhere in particular would lead."""
    names = [
        Names(at, each.id, each.tree, each.path, each.title, each.front_matter.aliases)
        for at, each in enumerate(candidates)
    ]
    link = Link(LinkKind.LINKS_TO, LinkSyntax.WIKI, path, "", "", _NOWHERE)
    nowhere = Names(-1, document_id(TreeName(""), ""), TreeName(""), "", "", ())
    found = Catalogue(names).resolve(nowhere, link)
    return candidates[found.key] if found and found.key >= 0 else None


def _ends_alike(path: str, wanted: str) -> bool:
    parts, end = path.casefold().split("/"), wanted.casefold().split("/")
    return match_key(path) == match_key(wanted) and parts[-len(end) : -1] == end[:-1]


def _is_storable(text: str) -> bool:
    """SQLite has no lone surrogates: what holds one is not in the store."""
    return text.isascii() or not any("\ud800" <= char <= "\udfff" for char in text)


def _ambiguous(path: str, found: Iterable[StoredDocument]) -> str:
    ids = sorted(document.id for document in found)
    return (
        f"`{shown(path)}` could be {len(ids)} documents: {_listed(ids[:MAX_NAMED])}"
        f"{' and more' if len(ids) > MAX_NAMED else ''}; give the id of one"
    )


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{shown(name)}`" for name in names)
