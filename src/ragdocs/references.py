"""From what is typed to documents: resolves a reference, and the paths and values of a filter.

What matches nothing is an error that names the nearest: an empty answer would say that the
documents do not have it.
"""

import os
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from typing import cast

from ragdocs.errors import Ambiguous, NotThere, QueryError
from ragdocs.filter_language import read_value
from ragdocs.indices.conditions import (
    All,
    Comparison,
    Condition,
    Filter,
    FilterField,
    Interval,
    Operator,
    Some,
    Unit,
    Without,
    in_tree,
    is_of_language,
    join,
    parts_of,
    values_of,
)
from ragdocs.indices.view import View
from ragdocs.models import (
    CANVAS_SUFFIX,
    ChunkId,
    DocId,
    Link,
    LinkKind,
    LinkSyntax,
    NodeKind,
    Span,
    TreeName,
)
from ragdocs.parsers.ids import document_id, encode_path
from ragdocs.parsers.link_targets import EXTENSIONS, Catalogue, Names, fold, match_key
from ragdocs.places import PathReading, Places, Readings, printable_name
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

    def __init__(self, view: View, places: Places) -> None:
        self._view = view
        self._places = places

    def find(self, reference: str) -> ReferenceTarget:
        """Raises NotThere if there is no such document, Ambiguous if there are several."""
        wanted = self._places.readings(reference)
        target = self._by_id(reference) or self._by_path(wanted) or self._by_name(wanted)
        if target is None and self._is_folder(wanted):
            message = f"`{printable_name(reference)}` is a folder, not a document"
            raise NotThere(message, listed_by="ls docs --path", folder=reference)
        if target is None:
            raise NotThere(self._describe_unknown(reference, wanted), listed_by="ls")
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

    def _by_path(self, wanted: Iterable[Readings]) -> ReferenceTarget | None:
        for group in wanted:
            ids = dict.fromkeys(doc_id for one in group for doc_id in self._ids(one))
            found = self._view.documents_by_id(ids)
            documents = [found[doc_id] for doc_id in ids if doc_id in found]
            # Nested trees may have the same file twice; the deepest tree comes first.
            files = {self._file(document) for document in documents}
            if len(files) > 1:
                raise Ambiguous(_describe_ambiguous(group[0].path, documents))
            if documents:
                return _target(documents[0], group[0])
        return None

    def _by_name(self, wanted: Iterable[Readings]) -> ReferenceTarget | None:
        for reading in chain.from_iterable(wanted):
            candidates = self._documents_called(reading)
            found = _resolve(reading.path, candidates)
            if found is not None:
                return _target(found, reading)
            if len(candidates) > 1 and reading.fragment is None and reading.lines is None:
                alike = [one for one in candidates if _ends_alike(one.path, reading.path)]
                if len(alike) > 1:
                    raise Ambiguous(_describe_ambiguous(reading.path, alike))
        return None

    def _is_folder(self, wanted: Iterable[Readings]) -> bool:
        for one in chain.from_iterable(wanted):
            trees = self._places.roots if one.tree is None else [TreeName(one.tree)]
            if one.path and any(self._view.has_path(tree, one.path) for tree in trees):
                return True
        return False

    def _documents_called(self, reading: PathReading) -> list[StoredDocument]:
        key = match_key(reading.path)
        if not key or not _is_storable(key):
            return []
        found = self._view.documents_called(key)
        return [each for each in found if reading.tree is None or each.tree == reading.tree]

    def _ids(self, reading: PathReading) -> list[DocId]:
        trees = self._places.roots if reading.tree is None else [TreeName(reading.tree)]
        return [document_id(tree, reading.path) for tree in trees]

    def _file(self, document: StoredDocument) -> str:
        return os.path.join(self._places.roots.get(document.tree, document.tree), document.path)

    def _describe_unknown(self, reference: str, wanted: Sequence[Readings]) -> str:
        every = list(chain.from_iterable(wanted))
        for doc_id in (doc_id for reading in every for doc_id in self._ids(reading)):
            if failure := self._view.failure(doc_id):
                return f"`{printable_name(doc_id)}` could not be indexed: {failure.reason}"
        message = f"no document is called `{printable_name(reference)}`"
        if near := nearest_paths(self._view, every[-1].path, MAX_NAMED):
            return f"{message}; {nearest_are(near)}"
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


def _list_names(names: Iterable[str], mark: str = "") -> str:
    return ", ".join(f"`{mark}{printable_name(name)}`" for name in names)


# From the typed paths of a filter to conditions, with a word about what matches nothing.
#
# A filter that lets no document through would be answered with an empty list, and the reader would
# believe that the documents say nothing. So a path or a value that no document has is an error that
# names the nearest; while files are still to be read, it is a note.

MAX_SUGGESTED = 3
MAX_MISTAKES = 5
"""More of one filter's mistakes are not named."""
_CERTAIN = 1000.0
"""The likeness of a path that differs in case only, or in the folders before it."""


@dataclass(frozen=True, slots=True)
class ResolvedFilter:
    """A condition whose paths are those of the index, and what the reader must know about it."""

    condition: Filter
    notes: tuple[str, ...] = ()


def resolve_filter(view: View, within: Filter, places: Places) -> ResolvedFilter:
    """Raises QueryError for a path outside the trees, and for a path or value that no document has,
    with the nearest."""
    if within is None:
        return ResolvedFilter(None)
    resolver = _FilterResolver(view, places)
    typed = parts_of(within)
    resolved = [resolver.resolve(part) for part in typed]
    condition = join(resolved)
    if view.count_documents() == 0:
        return ResolvedFilter(condition)
    has_any = view.has_documents(condition)
    for part in resolved:
        resolver.check(part, is_needless=has_any)
    mistakes = tuple(dict.fromkeys(resolver.mistakes))[:MAX_MISTAKES]
    notes = tuple(dict.fromkeys(resolver.notes))[:MAX_MISTAKES]
    if mistakes and view.waiting == 0:
        raise QueryError("; ".join(mistakes))
    if mistakes:
        return ResolvedFilter(condition, (*(f"{one} (so far)" for one in mistakes), *notes))
    if not has_any and len(resolved) > 1:
        notes = (_describe_empty(view, list(zip(typed, resolved, strict=True))), *notes)
    return ResolvedFilter(condition, notes)


class _FilterResolver:
    """Walks over a condition; collects what matches nothing."""

    def __init__(self, view: View, places: Places) -> None:
        self._view = view
        self._places = places
        self.mistakes: list[str] = []
        self.notes: list[str] = []

    def resolve(self, condition: Condition, *, is_excluded: bool = False) -> Condition:
        """With each typed path as the folder or document that it means."""
        match condition:
            case Comparison(FilterField.PATH, Operator.UNDER, str() as path):
                found = self._under(path)
                if found is None:
                    said = self.notes if is_excluded else self.mistakes
                    said.append(describe_no_path(self._view, self._places, path))
                return found or condition
            case Comparison(FilterField.FILE, Operator.ONE_OF, tuple() as names):
                return self._files(names, condition)
            case All(parts):
                return All(tuple(self.resolve(part, is_excluded=is_excluded) for part in parts))
            case Some(parts):
                return Some(tuple(self.resolve(part, is_excluded=is_excluded) for part in parts))
            case Without(part):
                return Without(self.resolve(part, is_excluded=True))
            case _:
                return condition

    def check(self, condition: Condition, *, is_needless: bool, is_excluded: bool = False) -> None:
        """Notes each value that no document has; not needed where it is known to have some."""
        match condition:
            case All(parts):
                for part in parts:
                    self.check(part, is_needless=is_needless, is_excluded=is_excluded)
            case Some(parts):
                for part in parts:
                    self.check(part, is_needless=False, is_excluded=is_excluded)
            case Without(part):
                self.check(part, is_needless=False, is_excluded=True)
            case Comparison() if not is_needless and not self._view.has_documents(condition):
                said = self.notes if is_excluded else self.mistakes
                said.extend(_describe_unknown_value(self._view, condition))
            case _:
                pass

    def _under(self, path: str) -> Condition | None:
        """The first meaning of a path that has any document."""
        for meaning in self._places.folders(path):
            condition = _below_any(meaning)
            if self._has_any(meaning, condition):
                return condition
        document = document_named(self._view, self._places, path)
        if document is None:
            return None
        return Comparison(FilterField.DOCUMENT, Operator.ONE_OF, frozenset({document.id}))

    def _has_any(self, meaning: Readings, condition: Condition) -> bool:
        for reading in meaning:
            every = self._places.roots or self._view.trees()
            trees = every if reading.tree is None else [TreeName(reading.tree)]
            if any(self._view.has_path(tree, reading.path) for tree in trees):
                return True
        # Only other characters than ASCII have several forms, which a filter does not tell apart.
        is_plain = all(reading.path.isascii() for reading in meaning)
        return not is_plain and self._view.has_documents(condition)

    def _files(self, names: tuple[str, ...], condition: Condition) -> Condition:
        """Names of files to leave out, as they are and in every other spelling."""
        found = [condition]
        for name in names:
            own = Comparison(FilterField.FILE, Operator.ONE_OF, (name,))
            is_id = _is_storable(name) and self._view.document(DocId(name)) is not None
            if not name.strip() or is_id or self._view.has_documents(own):
                continue
            if (meant := self._under(name)) is not None:
                found.append(meant)
            else:
                said = describe_no_path(self._view, self._places, name)
                self.notes.append(f"nothing is left out for `{printable_name(name)}`: {said}")
        return found[0] if len(found) == 1 else Some(tuple(found))


def document_named(view: View, places: Places, path: str) -> StoredDocument | None:
    """The one document of that file name, or that a wikilink means. A bare word is a folder."""
    name = path.strip()
    extensions = (*EXTENSIONS, CANVAS_SUFFIX)
    if not name.startswith("[[") and not fold(name.partition("#")[0]).endswith(extensions):
        return None
    try:
        return Resolver(view, places).find(name).document
    except NotThere:
        return None


def _below_any(meaning: Readings) -> Condition:
    below = [_below(reading) for reading in meaning]
    return below[0] if len(below) == 1 else Some(tuple(below))


def _below(reading: PathReading) -> Condition:
    under = Comparison(FilterField.PATH, Operator.UNDER, reading.path)
    if reading.tree is None:
        return under
    tree = in_tree(reading.tree)
    return All((tree, under)) if reading.path else tree


_VALUE_NOUNS = {
    FilterField.TAG: ("the tag", "tags"),
    FilterField.CATEGORY: ("the category", "categories"),
    FilterField.AUTHOR: ("the author", "authors"),
    FilterField.LANGUAGE: ("code in", "languages of code"),
}


def _describe_no_value(view: View, field: FilterField, value: str) -> str:
    noun, plural = _VALUE_NOUNS[field]
    message = f"no document has {noun} `{printable_name(value)}`"
    known = {fold(one): one for one in _values_of(view, field)}.values()
    if not known:
        return f"{message}, and none has any {plural}"
    if near := nearest(value.lstrip("#"), known, MAX_SUGGESTED):
        return f"{message}; {nearest_are(near)}"
    return f"{message}"


def _describe_unknown_value(view: View, comparison: Comparison) -> Iterator[str]:
    """Nothing for a comparison that fails without a mistake, such as one of dates."""
    field, value = comparison.field, comparison.value
    if field in (FilterField.PROPERTY, FilterField.TITLE):
        yield from _describe_no_property(view, comparison)
    elif field in _VALUE_NOUNS and isinstance(value, str) and value:
        yield _describe_no_value(view, field, value)


def _describe_no_property(view: View, comparison: Comparison) -> Iterator[str]:
    """Nothing if the property has values that the comparison could find."""
    key, value = comparison.key, comparison.value
    if comparison.field is FilterField.TITLE:
        known = Counter(document.title for document in view.filtered_documents(None))
        key = "title"
    else:
        documents = list(view.filtered_documents(None))
        known = Counter(each for one in documents for each in values_of(one, key))
        if not known:
            names = Counter(name for one in documents for name, _ in one.properties)
            yield f"no document has the property `{printable_name(key)}`{_suggest(key, names)}"
            return
    if isinstance(value, tuple):
        wanted = printable_name(value[0])
        yield f"no document has `{printable_name(key)}: {wanted}`{_suggest(value[0], known)}"
    elif isinstance(value, Interval) and not any(_has_order(each, value) for each in known):
        kind = "number" if value.numbers else "date"
        yield f"no document has a {kind} as `{printable_name(key)}`{_suggest('', known)}"


def _has_order(text: str, interval: Interval) -> bool:
    """Whether a value can be in the interval at all."""
    value = read_value[text]
    is_number = value.number is not None and interval.numbers is not None
    return is_number or (value.period is not None and interval.moments is not None)


def _suggest(wanted: str, known: Counter[str]) -> str:
    """The nearest of the known names, or the most frequent."""
    first: dict[str, str] = {}
    for name, _ in known.most_common(MAX_COMPARED):
        first.setdefault(fold(name), name)
    if near := nearest(wanted, first.values(), MAX_SUGGESTED) if wanted else []:
        return f"; {nearest_are(near)}"
    if not first:
        return ", and none has any property"
    frequent = list(first.values())[:MAX_SUGGESTED]
    return f"; the most frequent {'is' if len(first) == 1 else 'are'} {_list_names(frequent)}"


def _values_of(view: View, field: FilterField) -> Iterator[str]:
    if field is FilterField.LANGUAGE:
        yield from view.languages()
        return
    for document in view.filtered_documents(None):
        if field is FilterField.TAG:
            for tag in document.tags:
                parts = tag.split("/")
                yield from ("/".join(parts[:end]) for end in range(1, len(parts) + 1))
            continue
        matter = document.front_matter
        text = matter.category if field is FilterField.CATEGORY else matter.author
        yield from filter(None, (part.strip() for part in text.split(",")))


def describe_no_path(view: View, places: Places, path: str) -> str:
    for meaning in places.folders(path):
        for reading in meaning:
            trees = places.roots if reading.tree is None else [TreeName(reading.tree)]
            for tree in trees:
                if failure := view.failure(document_id(tree, reading.path)):
                    return f"`{printable_name(path)}` could not be indexed: {failure.reason}"
    message = f"no document is at or below `{printable_name(path)}`"
    near = _nearest_places(view, places, path)
    return f"{message}; {nearest_are(near)}" if near else message


def nearest_are(near: Sequence[str], mark: str = "") -> str:
    """With the mark, such as `#`, before each name."""
    return f"the nearest {'is' if len(near) == 1 else 'are'} {_list_names(near, mark)}"


def _nearest_places(view: View, places: Places, path: str) -> list[str]:
    """Folders and documents: those that differ in case or in the folders before them come first."""
    from rapidfuzz.fuzz import ratio

    text = path.strip().strip("[]").removeprefix("./").rstrip("/")
    typed = tuple(part for part in fold(text)[-MAX_CHARS:].split("/") if part)
    known: dict[tuple[str, str], tuple[str, ...]] = {
        (tree, ""): (fold(tree),) for tree in places.roots
    }
    for document in view.filtered_documents(None):
        parts = tuple(document.path.split("/"))
        for end in range(len(parts), 0, -1):
            place = (document.tree, "/".join(parts[:end]))
            if place in known:
                break
            known[place] = tuple(map(fold, parts[:end]))

    def likeness(parts: tuple[str, ...]) -> float:
        shorter, longer = sorted((typed, parts), key=len)
        if shorter and longer[-len(shorter) :] == shorter:
            return _CERTAIN - (len(longer) - len(shorter))
        return 0.0

    judged = {place: likeness(parts) for place, parts in known.items()}
    if not any(judged.values()):
        compared = list(known.items())[:MAX_COMPARED]
        whole, last = "/".join(typed), typed[-1] if typed else ""
        judged = {
            place: max(ratio(whole, "/".join(parts)[-MAX_CHARS:]), ratio(last, parts[-1]))
            for place, parts in compared
        }
    best = sorted(judged, key=lambda place: (-judged[place], place))[:MAX_SUGGESTED]
    top = judged[best[0]] if best else 0.0
    is_certain = top >= _CERTAIN / 2
    return [
        _shown_place(places, *place)
        for place in best
        if (judged[place] == top if is_certain else judged[place] >= MIN_LIKENESS)
    ]


def _shown_place(places: Places, tree: str, path: str) -> str:
    """As it can be given: with its tree, if there are several."""
    return f"{tree}:{path}" if not path or len(places.roots) > 1 else path


def _describe_empty(view: View, parts: Sequence[tuple[Condition, Condition]]) -> str:
    counts = (
        f"{describe(typed)} ({sum(1 for _ in view.filtered_documents(resolved)):,})"
        for typed, resolved in parts
        if not is_of_language(resolved)
    )
    languages = [describe(typed) for typed, resolved in parts if is_of_language(resolved)]
    said = ", ".join((*counts, *languages))
    return f"no document passes all filters together; how many pass each: {said}"


def describe(condition: Condition) -> str:
    """A condition as the reader gave it, for a message."""
    match condition:
        case Comparison():
            return _describe_comparison(condition)
        case All(parts):
            return " and ".join(map(describe, parts))
        case Some(parts):
            return " or ".join(map(describe, parts))
        case Without(Comparison(FilterField.FILE, _, value)):
            return f"without {_describe_value(value)}"
        case Without(part):
            return f"not {describe(part)}"
        case Unit():
            return " ".join(condition.terms)


def _describe_comparison(comparison: Comparison) -> str:
    match comparison:
        case Comparison(FilterField.PROPERTY, _, value, key):
            return f"{printable_name(key)} {_describe_value(value)}".rstrip()
        case Comparison(field, Operator.EXISTS):
            return f"any {field.value}"
        case Comparison(FilterField.MODIFIED, operator, value):
            side = "from" if operator is Operator.AT_LEAST else "up to"
            return f"modified {side} {_describe_value(value)}"
        case Comparison(field, _, value):
            return f"{_FIELD_WORDS.get(field, field.value)} {_describe_value(value)}"


_FIELD_WORDS = {FilterField.LANGUAGE: "code in"}


def _describe_value(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, Interval):
        return "in the range"
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d}"
    if isinstance(value, frozenset | tuple):
        shown = sorted(map(str, cast("Collection[object]", value)))
        return _list_names(shown[:MAX_SUGGESTED]) + (" …" if len(shown) > MAX_SUGGESTED else "")
    return f"`{printable_name(str(value))}`"
