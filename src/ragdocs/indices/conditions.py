"""Conditions on passages and their documents: values that every engine evaluates in its own way.

A condition is a word that a passage must have, a comparison of a field of its document, or a
combination of these. A filter is a condition with comparisons only. A new property or permission is
a new field, never a new method of an engine.
"""

import unicodedata
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from functools import reduce
from pathlib import PurePosixPath
from typing import NamedTuple, assert_never

from ragdocs.dates import parse_calendar
from ragdocs.filter_language import fold_value, read_number, read_value
from ragdocs.memory import BoundedCache
from ragdocs.models import DocId, QueryField
from ragdocs.parsers.ids import encode_path
from ragdocs.store.records import StoredDocument


class Unit(NamedTuple):
    """A term, or several consecutive ones; in one field, or in any.

    A tuple, because units are dictionary keys for every match that is marked.
    """

    terms: tuple[str, ...]
    field: QueryField | None = None
    weight: float = 1.0


class FilterField(StrEnum):
    """A field that a comparison can use."""

    TREE = "tree"
    PATH = "path"
    FILE = "file"
    """A path, a folder's path, a bare file name or an id, whichever was typed."""
    TAG = "tag"
    CATEGORY = "category"
    AUTHOR = "author"
    MODIFIED = "modified"
    DOCUMENT = "document"
    """The document's id."""
    TITLE = "title"
    PROPERTY = "property"
    """A front-matter property or inline field, named by the comparison's key."""
    LANGUAGE = "language"
    """The language of a code block in the passage: the only field that is not a document's."""


class Operator(StrEnum):
    """How a field is compared with a value."""

    IS = "is"
    """Ignores case; a tag also matches the tags nested below it."""
    ONE_OF = "one of"
    UNDER = "under"
    """A path below a folder, by whole components."""
    BEGINS = "begins"
    """A path that begins with these characters, as in the query language."""
    AT_LEAST = "at least"
    AT_MOST = "at most"
    WITHIN = "within"
    """Between the bounds of an interval: less, greater and a range are one operator."""
    EXISTS = "exists"


@dataclass(frozen=True, slots=True)
class Interval:
    """The numbers and the moments between two bounds, both included; None for values of that kind
    lets none of them through."""

    numbers: tuple[float, float] | None = None
    moments: tuple[datetime, datetime] | None = None


Value = str | datetime | frozenset[str] | tuple[str, ...] | Interval | None


@dataclass(frozen=True, slots=True)
class Comparison:
    """One field compared with one value; `key` names the property."""

    field: FilterField
    operator: Operator
    value: Value = None
    key: str = ""


@dataclass(frozen=True, slots=True)
class All:
    """Every part must hold."""

    parts: tuple["Condition", ...]


@dataclass(frozen=True, slots=True)
class Some:
    """At least one part must hold."""

    parts: tuple["Condition", ...]


@dataclass(frozen=True, slots=True)
class Without:
    """The part must not hold."""

    part: "Condition"


Condition = Unit | Comparison | All | Some | Without
Filter = Condition | None
"""A condition without words; None lets every document through."""


def both(one: Condition | None, other: Condition | None) -> Condition | None:
    """A condition that holds if both do."""
    if one is None or other is None:
        return other if one is None else one
    return All((*parts_of(one), *parts_of(other)))


def parts_of(condition: Condition | None) -> tuple[Condition, ...]:
    """The conditions that must all hold."""
    if condition is None:
        return ()
    return condition.parts if isinstance(condition, All) else (condition,)


def join(conditions: Iterable[Condition]) -> Filter:
    return reduce(both, conditions, None)


def in_tree(name: str) -> Comparison:
    return Comparison(FilterField.TREE, Operator.ONE_OF, frozenset({name}))


def in_language(language: str) -> Condition | None:
    """None if no language is given."""
    return Comparison(FilterField.LANGUAGE, Operator.IS, language) if language.strip() else None


def except_documents(ids: Iterable[DocId]) -> Without:
    return Without(Comparison(FilterField.DOCUMENT, Operator.ONE_OF, frozenset[str](ids)))


def is_of_language(condition: Condition) -> bool:
    return isinstance(condition, Comparison) and condition.field is FilterField.LANGUAGE


def language_of(condition: Filter) -> str:
    """The language of code that a filter requires; empty if it requires none."""
    found = (part for part in parts_of(condition) if is_of_language(part))
    return next((str(part.value) for part in found if isinstance(part, Comparison)), "")


def has_words(condition: Condition) -> bool:
    """Whether the condition depends on the words of a passage."""
    match condition:
        case Unit():
            return True
        case Comparison():
            return False
        case Without(part):
            return has_words(part)
        case All(parts) | Some(parts):
            return any(map(has_words, parts))


# Whether a document satisfies a comparison. Every engine must agree with this.

PATHS_BYTES = 24 << 20
"""Enough for about 50,000 documents: the embedded engine compares a filter with all of them."""

IsMatch = Callable[[StoredDocument], bool]


def compile_filter(condition: Filter) -> IsMatch | None:
    """A function that tests a document; None if every document passes. Ignores languages, which
    belong to passages.
    """
    checks = tuple(_check(part) for part in parts_of(condition) if not is_of_language(part))
    if not checks:
        return None
    return lambda document: all(check(document) for check in checks)


def _check(condition: Condition) -> IsMatch:
    match condition:
        case Comparison():
            return _compare(condition)
        case All(parts):
            checks = tuple(map(_check, parts))
            return lambda document: all(check(document) for check in checks)
        case Some(parts):
            checks = tuple(map(_check, parts))
            return lambda document: any(check(document) for check in checks)
        case Without(part):
            check = _check(part)
            return lambda document: not check(document)
        case Unit():
            raise ValueError(f"a filter compares fields; it has no words: {condition.terms}")
        case _:
            assert_never(condition)


def _compare(comparison: Comparison) -> IsMatch:
    if comparison.field is FilterField.PROPERTY:
        return _compare_property(comparison)
    make = _MAKERS.get((comparison.field, comparison.operator))
    if make is None:
        raise ValueError(f"documents cannot be compared by {comparison}")
    return make(comparison.value)


def _is_in_tree(names: frozenset[str]) -> IsMatch:
    return lambda document: document.tree in names


def _is_document(ids: frozenset[str]) -> IsMatch:
    return lambda document: document.id in ids


def _is_under(path: str) -> IsMatch:
    parts = _split(path)
    return lambda document: _components[document.path][: len(parts)] == parts


def _begins(prefix: str) -> IsMatch:
    encoded = encode_path(prefix)
    return lambda document: encode_path(document.path).startswith(encoded)


def _is_named(names: tuple[str, ...]) -> IsMatch:
    """Matches a document's path, its folder's path, its bare name or its id."""
    named = {name: parts for name in names if (parts := _split(name))}
    every = frozenset(named.values())
    lengths = sorted({len(parts) for parts in every})

    def is_named(document: StoredDocument) -> bool:
        parts = _components[document.path]
        if document.id in named or parts[-1:] in every:
            return True
        return any(parts[:length] in every for length in lengths)

    return is_named


def _has_tag(tag: str) -> IsMatch:
    name = tag.lstrip("#").strip("/").casefold()

    def has_tag(document: StoredDocument) -> bool:
        own = (tag.casefold() for tag in document.tags)
        return any(tag == name or tag.startswith(f"{name}/") for tag in own)

    return has_tag


def _has_category(wanted: str) -> IsMatch:
    return lambda document: _is_one_of(wanted, document.front_matter.category)


def _has_author(wanted: str) -> IsMatch:
    return lambda document: _is_one_of(wanted, document.front_matter.author)


def _has_any_tag(_: None) -> IsMatch:
    return lambda document: bool(document.tags)


def _has_any_category(_: None) -> IsMatch:
    return lambda document: bool(document.front_matter.category)


def _has_any_author(_: None) -> IsMatch:
    return lambda document: bool(document.front_matter.author)


def _is_titled(titles: tuple[str, ...]) -> IsMatch:
    wanted = frozenset(map(fold_value, titles))
    return lambda document: fold_value(document.title) in wanted


def _is_since(moment: datetime) -> IsMatch:
    return lambda document: _aware(document.date) >= _aware(moment)


def _is_until(moment: datetime) -> IsMatch:
    return lambda document: _aware(document.date) <= _aware(moment)


_MAKERS: dict[tuple[FilterField, Operator], Callable[..., IsMatch]] = {
    (FilterField.TREE, Operator.ONE_OF): _is_in_tree,
    (FilterField.DOCUMENT, Operator.ONE_OF): _is_document,
    (FilterField.PATH, Operator.UNDER): _is_under,
    (FilterField.PATH, Operator.BEGINS): _begins,
    (FilterField.FILE, Operator.ONE_OF): _is_named,
    (FilterField.TAG, Operator.IS): _has_tag,
    (FilterField.CATEGORY, Operator.IS): _has_category,
    (FilterField.AUTHOR, Operator.IS): _has_author,
    (FilterField.TAG, Operator.EXISTS): _has_any_tag,
    (FilterField.CATEGORY, Operator.EXISTS): _has_any_category,
    (FilterField.AUTHOR, Operator.EXISTS): _has_any_author,
    (FilterField.TITLE, Operator.ONE_OF): _is_titled,
    (FilterField.MODIFIED, Operator.AT_LEAST): _is_since,
    (FilterField.MODIFIED, Operator.AT_MOST): _is_until,
}
"""A new field is one more line here, and one in every other engine."""


# Properties. A list matches if any of its members does. Texts are compared without regard to case,
# numbers as numbers, and a date without a time is the whole day, month or year. A value with commas
# is also the list of its parts, and a tag stands for those nested below it.


def values_of(document: StoredDocument, key: str) -> tuple[str, ...]:
    """The values of a property, as they are written."""
    for name, values in document.properties:
        if name == key:
            return values
    return ()


def _compare_property(comparison: Comparison) -> IsMatch:
    key = comparison.key
    match comparison.operator, comparison.value:
        case Operator.EXISTS, None:
            return lambda document: bool(values_of(document, key))
        case Operator.ONE_OF, tuple(texts):
            is_value = _one_of(texts)
        case Operator.WITHIN, Interval() as interval:
            is_value = _within(interval)
        case _:
            raise ValueError(f"a property cannot be compared by {comparison}")
    return lambda document: any(map(is_value, values_of(document, key)))


def _one_of(texts: tuple[str, ...]) -> Callable[[str], bool]:
    wanted = frozenset(map(fold_value, texts))
    numbers = {number for text in wanted if (number := read_number(text)) is not None}
    # A number of four digits is also a year, but `1999` is that number first.
    periods = tuple(period for text in wanted if (period := parse_calendar(text)) is not None)

    def is_one(value: str) -> bool:
        found = read_value[value]
        if found.text in wanted or (found.number is not None and found.number in numbers):
            return True
        if found.period is not None:
            return any(one.first <= found.period.first <= one.last for one in periods)
        if "," in found.text and any(part.strip() in wanted for part in found.text.split(",")):
            return True
        return "/" in found.text and value.lstrip().startswith("#") and _is_below(found.text)

    def _is_below(tag: str) -> bool:
        parts = tag.split("/")
        return any("/".join(parts[:end]) in wanted for end in range(1, len(parts)))

    return is_one


def _within(interval: Interval) -> Callable[[str], bool]:
    def is_within(value: str) -> bool:
        found = read_value[value]
        if found.number is not None:
            return interval.numbers is not None and (
                interval.numbers[0] <= found.number <= interval.numbers[1]
            )
        if found.period is None or interval.moments is None:
            return False
        return interval.moments[0] <= found.period.first <= interval.moments[1]

    return is_within


def _split(path: str) -> tuple[str, ...]:
    """In NFC, because typed text and file names may differ in normalisation."""
    return PurePosixPath(unicodedata.normalize("NFC", path).lstrip("/")).parts


_components = BoundedCache(_split, PATHS_BYTES)
"""Only for documents: the paths in filters rarely repeat."""


def _is_one_of(wanted: str, value: str) -> bool:
    """Compares with the value, or with each of its parts: the parser joins authors by commas."""
    name = " ".join(wanted.split()).casefold()
    folded = value.casefold()
    return not name or name == folded or name in (part.strip() for part in folded.split(","))


def _aware(moment: datetime) -> datetime:
    """No zone means UTC, as in front matter."""
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
