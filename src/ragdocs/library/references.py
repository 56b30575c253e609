"""Resolves a reference (a path, an id, a heading) to a document and a place in it."""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from ragdocs.errors import NotThere, QueryError
from ragdocs.indices.view import View
from ragdocs.models import ChunkId, DocId, Link, LinkKind, LinkSyntax, NodeKind, Span, TreeName
from ragdocs.parsers.ids import decode_path, document_id, encode_path
from ragdocs.parsers.link_targets import Catalogue, Names, match_key
from ragdocs.store.records import StoredChunk, StoredDocument

# Names similar to one that does not exist, to suggest for a wrong reference.

MAX_COMPARED = 5_000
"""The number of paths, so that an error comes at once in a large index."""
MAX_CHARS = 200
"""The end of a name that is compared."""
MIN_LIKENESS = 55.0
"""Of 100; below this, names count as similar that nobody would confuse."""


def nearest_paths(view: View, path: str, count: int) -> list[str]:
    """By the whole path or by the file's name, whichever is more similar."""
    return nearest(path, view.some_paths(MAX_COMPARED), count)


def nearest(wanted: str, names: Iterable[str], count: int) -> list[str]:
    """The most similar names, best first."""
    from rapidfuzz.fuzz import ratio

    typed = _comparable(wanted)
    last = typed.rpartition("/")[2]

    def likeness(name: str) -> float:
        known = _comparable(name)
        return max(ratio(typed, known), ratio(last, known.rpartition("/")[2]))

    judged = sorted((-likeness(name), name) for name in dict.fromkeys(names))
    return [name for worth, name in judged[:count] if -worth >= MIN_LIKENESS]


def _comparable(name: str) -> str:
    return encode_path(name)[-MAX_CHARS:].casefold()


# The readings of a reference, from its text alone: no file or index is looked at.
#
# A file's name may contain `#`, `:` or `%`, so a reference has several readings; the documents
# decide which one is right. The most literal reading comes first.

MAX_SHOWN_CHARS = 120
_LINES = re.compile(r"(?P<path>.+):(?P<first>[0-9]{1,9})(?:-(?P<last>[0-9]{1,9}))?", re.DOTALL)
_DRIVE = re.compile(r"[A-Za-z]:[\\/]")
# An invalid UTF-8 byte of a name becomes one of U+DC80 to U+DCFF; no name has other surrogates.
_NEVER_IN_A_NAME = re.compile("[\x00\ud800-\udc7f\udd00-\udfff]")
HINT = "give an id, a path relative to its tree, `path#heading` or `path:10-40`"


@dataclass(frozen=True, slots=True)
class PathReading:
    """One reading of a reference: in one tree or any, with a heading, with lines, or neither."""

    path: str
    tree: str | None = None
    fragment: str | None = None
    lines: tuple[int, int] | None = None


def printable_name(text: str) -> str:
    """A name for a message: on one line, valid text, and short."""
    safe = encode_path(_NEVER_IN_A_NAME.sub("\ufffd", text))
    return safe if len(safe) <= MAX_SHOWN_CHARS else f"{safe[: MAX_SHOWN_CHARS - 1]}…"


def readings(reference: str, trees: Collection[str]) -> list[PathReading]:
    """Every reading that stays within the trees, the most literal first.

    Raises:
        QueryError: there is no such reading.
    """
    refuse_outside(reference)
    found = dict.fromkeys(
        reading
        for tree, rest in _in_trees(reference, trees)
        for reading in _forms(rest, tree)
        if reading.path
    )
    if not found:
        raise QueryError(f"`{printable_name(reference)}` names no document: {HINT}")
    return list(found)


def refuse_outside(reference: str) -> None:
    """Raises QueryError for a text that cannot be a path within a tree."""
    if _NEVER_IN_A_NAME.search(reference):
        raise QueryError(f"the reference has characters that no file's name can have: {HINT}")
    if reference.startswith(("/", "~/")) or _DRIVE.match(reference):
        raise QueryError(f"an absolute path is not accepted: {HINT}")
    parts = chain(reference.split("/"), decode_path(reference).split("/"))
    if any(part.rpartition(":")[2] == ".." for part in parts):
        raise QueryError(f"a path with `..` is not accepted: {HINT}")


def _in_trees(reference: str, trees: Collection[str]) -> Iterator[tuple[str | None, str]]:
    tree, colon, rest = reference.partition(":")
    if colon and tree in trees:
        yield tree, rest
    yield None, reference


def _forms(text: str, tree: str | None) -> Iterator[PathReading]:
    for path in _spellings(text):
        yield PathReading(path, tree)
    if found := _LINES.fullmatch(text):
        first = int(found["first"])
        for path in _spellings(found["path"]):
            yield PathReading(path, tree, lines=(first, int(found["last"] or first)))
    # In an id the first `#` ends the path; in a typed path it may be the last one.
    for path_text, hash_sign, fragment in (text.partition("#"), text.rpartition("#")):
        if hash_sign and fragment:
            for path in _spellings(path_text):
                yield PathReading(path, tree, fragment=fragment)


def _spellings(text: str) -> Iterator[str]:
    """As typed, and decoded as in an id; without `./` and doubled slashes."""
    for path in (text, decode_path(text)):
        if not path.startswith("/") and "\0" not in path:
            yield "/".join(part for part in path.split("/") if part not in ("", "."))


# From a reference to a document of the index, and to the place in it.
#
# A reference may be an id, a path or, as in links, the end of a path, a file name, a title or an
# alias that only one document has. Nothing is guessed: a reference to several documents, or to
# none, is an error that names the nearest.

MAX_NAMED = 5
"""More would not help to choose."""
_NOWHERE = Span(0, 0, 1, 1)


@dataclass(frozen=True, slots=True)
class ReferenceTarget:
    """A document, and a part of it: a chunk by its id, a heading or part by name, lines, or all."""

    document: StoredDocument
    chunk: StoredChunk | None = None
    fragment: str | None = None
    lines: tuple[int, int] | None = None


class Resolver:
    """Resolves references within one view."""

    def __init__(self, view: View, trees: Sequence[TreeName]) -> None:
        self._view = view
        self._trees = trees

    def find(self, reference: str) -> ReferenceTarget:
        """Raises NotThere if there is no such document, QueryError if there are several."""
        wanted = readings(reference, self._trees)
        target = self._by_id(reference) or self._by_path(wanted) or self._by_name(wanted)
        if target is None:
            raise NotThere(self._describe_unknown(reference, wanted))
        return target

    def _by_id(self, reference: str) -> ReferenceTarget | None:
        if not _is_storable(reference):
            return None
        found = self._view.chunk(ChunkId(reference))
        document = self._view.document(found.chunk.doc_id) if found else None
        if found is None or document is None:
            return None
        is_whole = found.chunk.kind is NodeKind.DOCUMENT
        return ReferenceTarget(document, None if is_whole else found)

    def _by_path(self, wanted: Iterable[PathReading]) -> ReferenceTarget | None:
        for reading in wanted:
            found = self._view.documents_by_id(self._ids(reading))
            if len(found) > 1:
                raise QueryError(_describe_ambiguous(reading.path, found.values()))
            for document in found.values():
                return _target(document, reading)
        return None

    def _by_name(self, wanted: Iterable[PathReading]) -> ReferenceTarget | None:
        for reading in wanted:
            candidates = self._documents_called(reading)
            found = _resolve(reading.path, candidates)
            if found is not None:
                return _target(found, reading)
            if len(candidates) > 1 and reading.fragment is None and reading.lines is None:
                alike = [one for one in candidates if _ends_alike(one.path, reading.path)]
                if len(alike) > 1:
                    raise QueryError(_describe_ambiguous(reading.path, alike))
        return None

    def _documents_called(self, reading: PathReading) -> list[StoredDocument]:
        key = match_key(reading.path)
        if not key or not _is_storable(key):
            return []
        found = self._view.documents_called(key)
        return [each for each in found if reading.tree is None or each.tree == reading.tree]

    def _ids(self, reading: PathReading) -> list[DocId]:
        trees = self._trees if reading.tree is None else [TreeName(reading.tree)]
        return [document_id(tree, reading.path) for tree in trees]

    def _describe_unknown(self, reference: str, wanted: Sequence[PathReading]) -> str:
        for doc_id in (doc_id for reading in wanted for doc_id in self._ids(reading)):
            if failure := self._view.failure(doc_id):
                return f"`{printable_name(doc_id)}` could not be indexed: {failure.reason}"
        near = nearest_paths(self._view, wanted[-1].path, MAX_NAMED)
        message = f"no document is called `{printable_name(reference)}`"
        if near:
            return f"{message}; the nearest are {_list_names(near)}"
        return f"{message}: list the documents to see what there is"


def _target(document: StoredDocument, reading: PathReading) -> ReferenceTarget:
    return ReferenceTarget(document, fragment=reading.fragment, lines=reading.lines)


def _resolve(path: str, candidates: Sequence[StoredDocument]) -> StoredDocument | None:
    """Resolves the path like a link that is in no document."""
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
    """SQLite cannot store lone surrogates."""
    return text.isascii() or not any("\ud800" <= char <= "\udfff" for char in text)


def _describe_ambiguous(path: str, found: Iterable[StoredDocument]) -> str:
    ids = sorted(document.id for document in found)
    return (
        f"`{printable_name(path)}` could be {len(ids)} documents: {_list_names(ids[:MAX_NAMED])}"
        f"{' and more' if len(ids) > MAX_NAMED else ''}; give the id of one"
    )


def _list_names(names: Iterable[str]) -> str:
    return ", ".join(f"`{printable_name(name)}`" for name in names)
