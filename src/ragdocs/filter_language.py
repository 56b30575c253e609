"""The filter language, from text to terms: `status:active -tag:old priority:>2 due:2026-01..`.

The command line, MCP, Python and the configuration read it with the same parser. It knows neither
documents nor an index; search turns its terms into conditions.
"""

import math
import re
import unicodedata
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import NamedTuple, NoReturn

from ragdocs.dates import DATE_FORMS, Period, parse_calendar, parse_period
from ragdocs.errors import QueryError
from ragdocs.limits import MAX_FILTER_ITEMS, MAX_FILTER_TEXT_CHARS
from ragdocs.memory import BoundedCache

# Keys: the ones with a meaning of their own; every other key is a property of documents.


class FilterKey(StrEnum):
    """Keys that do not name a property."""

    TREE = "tree"
    PATH = "path"
    TAG = "tag"
    CATEGORY = "category"
    AUTHOR = "author"
    LANGUAGE = "language"
    TITLE = "title"
    MODIFIED = "modified"
    AFTER = "after"
    BEFORE = "before"


_RESERVED = {key.value: key for key in FilterKey}
_OTHER_NAMES = {"tags": FilterKey.TAG}
OF_DATES = frozenset({FilterKey.MODIFIED, FilterKey.AFTER, FilterKey.BEFORE})
_HAS_ONE_VALUE = frozenset({FilterKey.LANGUAGE, FilterKey.AFTER, FilterKey.BEFORE})
_MAY_BE_MISSING = frozenset({FilterKey.TAG, FilterKey.CATEGORY, FilterKey.AUTHOR})


def property_key(text: str) -> str:
    """The name of a property as filters use it: `Due Date` is `due-date`, in documents too."""
    plain = unicodedata.normalize("NFC", text).casefold()
    return "-".join(plain.replace(":", " ").split())


# Values: a text may also be a number, a date or a truth value.


class PropertyKind(StrEnum):
    """How the values of a property are compared."""

    TEXT = "text"
    NUMBER = "number"
    DATE = "date"
    BOOLEAN = "boolean"


class ReadValue(NamedTuple):
    """A value of a document in each form that it has; `text` is folded, for comparing."""

    text: str
    number: float | None
    period: Period | None

    @property
    def kind(self) -> PropertyKind:
        if self.number is not None:
            return PropertyKind.NUMBER
        if self.period is not None:
            return PropertyKind.DATE
        is_truth = self.text in ("true", "false")
        return PropertyKind.BOOLEAN if is_truth else PropertyKind.TEXT


# As in JSON: `007` and `1_000` are texts.
_NUMBER = re.compile(r"[+-]?(?:0|[1-9]\d{0,300})(?:\.\d{1,300})?(?:[eE][+-]?\d{1,3})?")
_DATE = re.compile(r"\d{4}[-/.]\d")
_WIKILINK = re.compile(r"!?\[\[([^\[\]|]+)(?:\|[^\[\]]*)?\]\]")
READ_BYTES = 4 << 20


def fold_value(text: str) -> str:
    """Without regard to case, extra blanks and the brackets of a wikilink; a tag without its #."""
    link = _WIKILINK.fullmatch(text.strip())
    plain = unicodedata.normalize("NFC", link[1] if link else text)
    return " ".join(plain.split()).casefold().removeprefix("#")


def read_number(text: str) -> float | None:
    found = float(text) if _NUMBER.fullmatch(text) else None
    return None if found is None or math.isinf(found) else found


def _read(text: str) -> ReadValue:
    folded = fold_value(text)
    period = parse_calendar(folded) if _DATE.match(folded) else None
    return ReadValue(folded, read_number(folded), period)


read_value = BoundedCache(_read, READ_BYTES)
"""Of documents: the same few values stand in many."""


# From text to terms.


@dataclass(frozen=True, slots=True)
class Range:
    """From `least` to `most`, as they are written; empty is no bound. `is_open`: without the bounds
    themselves."""

    least: str = ""
    most: str = ""
    is_open: bool = False


@dataclass(frozen=True, slots=True)
class FilterTerm:
    """One condition. The value is one of `values`, or lies in `range`; with neither, there is one.

    `key` is a FilterKey, or the name of a property; `text` is the condition as it was typed.
    """

    text: str
    key: str
    values: tuple[str, ...] = ()
    range: Range | None = None
    is_excluded: bool = False

    @property
    def reserved(self) -> FilterKey | None:
        """None for a property."""
        return _RESERVED.get(self.key)


HINT = "write key:value, -key:value, key:>2, key:1..5, key:a,b or key:*"
_BLANKS = re.compile(r"\s*")
_KEY = re.compile(r'(-?)([^\s:"<>=,()]+):')
_RELATION = re.compile(r"[<>]=?|=")
_ITEM = re.compile(r'"((?:[^"\\]|\\.)*)"|([^\s,"]+)', re.DOTALL)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_END = re.compile(r"(?=\s)|\Z")
_SHOWN_CHARS = 80


def parse_filter(text: str) -> tuple[FilterTerm, ...]:
    """The conditions, which must all hold; none for a blank text. Raises QueryError, which names
    what cannot be read."""
    if len(text) > MAX_FILTER_TEXT_CHARS:
        raise QueryError(
            f"the filter is too long: {len(text):,} characters; the "
            f"maximum is {MAX_FILTER_TEXT_CHARS:,}"
        )
    terms = tuple(_Reader(text).read())
    if (count := sum(max(1, len(term.values)) for term in terms)) > MAX_FILTER_ITEMS:
        raise QueryError(f"the filter has {count} values; the maximum is {MAX_FILTER_ITEMS}")
    if [term.key for term in terms].count(FilterKey.LANGUAGE) > 1:
        raise QueryError("the filter names `language` twice: name it once")
    return terms


class _Reader:
    """Reads conditions from left to right, in linear time."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def read(self) -> list[FilterTerm]:
        found: list[FilterTerm] = []
        self._skip_blanks()
        while self._at < len(self._text):
            found.append(self._read_term())
            self._skip_blanks()
        return found

    def _skip_blanks(self) -> None:
        blanks = _BLANKS.match(self._text, self._at)
        self._at = blanks.end() if blanks else self._at

    def _read_term(self) -> FilterTerm:
        start = self._at
        key = _KEY.match(self._text, start)
        if key is None:
            raise QueryError(f"`{self._word(start)}` is not a condition of a filter: {HINT}")
        self._at = key.end()
        relation = _RELATION.match(self._text, self._at)
        if relation is not None:
            self._at = relation.end()
        items = self._read_items(start)
        name = property_key(key[2])
        term = FilterTerm(
            text=self._text[start : self._at],
            key=_OTHER_NAMES.get(name, name),
            is_excluded=bool(key[1]),
        )
        return _check_term(_with_value(term, relation[0] if relation else "", items))

    def _read_items(self, start: int) -> list[tuple[str, bool]]:
        """The values with whether each is quoted, up to the next blank."""
        found: list[tuple[str, bool]] = []
        while True:
            item = _ITEM.match(self._text, self._at)
            if item is None:
                self._refuse_value(start, is_after_comma=bool(found))
            self._at = item.end()
            is_quoted = item[1] is not None
            found.append((_ESCAPE.sub(r"\1", item[1]) if is_quoted else item[2], is_quoted))
            if self._text[self._at : self._at + 1] == ",":
                self._at += 1
                continue
            if _END.match(self._text, self._at) is None:
                self._refuse_value(start)
            return found

    def _refuse_value(self, start: int, *, is_after_comma: bool = False) -> NoReturn:
        typed = self._word(start)
        if self._text[self._at : self._at + 1] == '"':
            raise QueryError(f"`{typed}`: a quotation mark is not closed")
        if is_after_comma:
            raise QueryError(f"`{typed}` ends with a comma: write the values without blanks")
        if self._at >= len(self._text) or self._text[self._at].isspace():
            key = typed.removeprefix("-").partition(":")[0]
            raise QueryError(
                f"`{typed}` has no value: write it directly after the colon, or `{key}:*` for any"
            )
        raise QueryError(f"`{typed}`: put a value with such signs in quotation marks")

    def _word(self, start: int) -> str:
        return _shorten(self._text[start : start + 2 * _SHOWN_CHARS].split()[0])


def _with_value(term: FilterTerm, relation: str, items: list[tuple[str, bool]]) -> FilterTerm:
    text, is_quoted = items[0]
    if relation in ("", "="):
        if len(items) == 1 and not is_quoted and text == "*":
            return term
        has_order = term.reserved is None or term.reserved in OF_DATES
        least, dots, most = text.partition("..")
        if len(items) == 1 and not is_quoted and has_order and dots:
            return replace(term, range=Range(least, most))
        return replace(term, values=tuple(text for text, _ in items))
    if len(items) > 1:
        raise QueryError(f"`{term.text}`: {relation} takes one value")
    is_open = "=" not in relation
    ends = Range(text, "", is_open) if relation[0] == ">" else Range("", text, is_open)
    return replace(term, range=ends)


def _check_term(term: FilterTerm) -> FilterTerm:
    """Raises QueryError for a value that this key cannot have."""
    typed = _shorten(term.text)
    if term.reserved is not None:
        _check_reserved(term, term.reserved, typed)
    if term.range:
        if not (term.range.least or term.range.most):
            raise QueryError(f"`{typed}`: a range needs a bound, as in {term.key}:2..5")
        for bound in filter(None, (term.range.least, term.range.most)):
            _check_bound(term, bound)
    elif term.reserved in OF_DATES:
        for value in term.values:
            _check_bound(term, value)
    return term


def _check_reserved(term: FilterTerm, key: FilterKey, typed: str) -> None:
    if not (term.values or term.range or key in _MAY_BE_MISSING):
        raise QueryError(f"`{typed}`: every document has this; name a value")
    if key in _HAS_ONE_VALUE and (len(term.values) != 1 or term.is_excluded):
        raise QueryError(f"`{typed}`: `{key}` takes one value, and no minus before it")
    if term.range and key not in OF_DATES:
        raise QueryError(f"`{typed}`: `{key}` has no order; name its value")


def _check_bound(term: FilterTerm, bound: str) -> None:
    if parse_period(bound) is not None:
        return
    if term.reserved in OF_DATES:
        raise QueryError(f"`{_shorten(bound)}` is not a date: write {DATE_FORMS}")
    if read_number(bound) is None:
        raise QueryError(
            f"`{_shorten(term.text)}`: only numbers and dates have an order; write dates as "
            f"{DATE_FORMS}"
        )


def _shorten(text: str) -> str:
    return text if len(text) <= _SHOWN_CHARS else f"{text[: _SHOWN_CHARS - 1]}…"
