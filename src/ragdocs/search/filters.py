"""Filters: from terms of the filter language to conditions, and the advice for one that no document
satisfies."""

import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta

from ragdocs.dates import parse_calendar, parse_period
from ragdocs.errors import QueryError
from ragdocs.filter_language import (
    OF_DATES,
    FilterKey,
    FilterTerm,
    Range,
    parse_filter,
    read_number,
)
from ragdocs.indices.conditions import (
    All,
    Comparison,
    Condition,
    Filter,
    FilterField,
    Interval,
    Operator,
    Some,
    Without,
    join,
)
from ragdocs.indices.view import View

# From terms to conditions.

_ALWAYS = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
_INSTANT = timedelta(microseconds=1)
_FIELDS = {
    FilterKey.TAG: FilterField.TAG,
    FilterKey.CATEGORY: FilterField.CATEGORY,
    FilterKey.AUTHOR: FilterField.AUTHOR,
}


def where_condition(text: str, now: datetime | None = None) -> Filter:
    """The condition of a filter text; None for a blank one. Raises QueryError."""
    return join(to_condition(term, now) for term in parse_filter(text))


def to_condition(term: FilterTerm, now: datetime | None = None) -> Condition:
    """Words such as `today` become dates here, by the clock of the request."""
    found = _to_comparison(term, now)
    return Without(found) if term.is_excluded else found


def _to_comparison(term: FilterTerm, now: datetime | None) -> Condition:
    key = term.reserved
    if key is None:
        return _of_property(term, now)
    if key in OF_DATES:
        return _of_dates(key, term, now)
    if key in _FIELDS:
        if not term.values:
            return Comparison(_FIELDS[key], Operator.EXISTS)
        return _any_of(_FIELDS[key], Operator.IS, term.values)
    if key is FilterKey.PATH:
        return _any_of(FilterField.PATH, Operator.UNDER, term.values)
    if key is FilterKey.LANGUAGE:
        return Comparison(FilterField.LANGUAGE, Operator.IS, term.values[0])
    if key is FilterKey.TREE:
        return Comparison(FilterField.TREE, Operator.ONE_OF, frozenset(term.values))
    return Comparison(FilterField.TITLE, Operator.ONE_OF, term.values)


def _of_dates(key: FilterKey, term: FilterTerm, now: datetime | None) -> Condition:
    if key is FilterKey.AFTER:
        return _modified(Range(least=term.values[0]), now)
    if key is FilterKey.BEFORE:
        return _modified(Range(most=term.values[0]), now)
    ranges = [term.range] if term.range else [Range(each, each) for each in term.values]
    return _some([_modified(each, now) for each in ranges])


def _any_of(field: FilterField, operator: Operator, values: Sequence[str]) -> Condition:
    return _some([Comparison(field, operator, value) for value in values])


def _some(parts: Sequence[Condition]) -> Condition:
    return parts[0] if len(parts) == 1 else Some(tuple(parts))


def _of_property(term: FilterTerm, now: datetime | None) -> Comparison:
    if term.range:
        interval = Interval(_numbers(term.range), _moments(term.range, now))
        return Comparison(FilterField.PROPERTY, Operator.WITHIN, interval, term.key)
    if not term.values:
        return Comparison(FilterField.PROPERTY, Operator.EXISTS, None, term.key)
    values = (*term.values, *_relative_days(term.values, now))
    return Comparison(FilterField.PROPERTY, Operator.ONE_OF, values, term.key)


def _relative_days(values: Iterable[str], now: datetime | None) -> Iterator[str]:
    """The days that `today` or `2w` mean now: a filter is kept with its result."""
    for value in values:
        if parse_calendar(value) is None and (period := parse_period(value, now)) is not None:
            yield period.first.date().isoformat()


def _numbers(bounds: Range) -> tuple[float, float] | None:
    least, most = (read_number(each) for each in (bounds.least, bounds.most))
    if (bounds.least and least is None) or (bounds.most and most is None):
        return None
    lower = -math.inf if least is None else least
    upper = math.inf if most is None else most
    if bounds.is_open:
        lower = lower if least is None else math.nextafter(lower, math.inf)
        upper = upper if most is None else math.nextafter(upper, -math.inf)
    return lower, upper


def _moments(bounds: Range, now: datetime | None) -> tuple[datetime, datetime] | None:
    """A day as a bound is in the range as a whole, or not at all if the range is open."""
    least, most = (parse_period(each, now) for each in (bounds.least, bounds.most))
    if (bounds.least and least is None) or (bounds.most and most is None):
        return None
    lower, upper = _ALWAYS
    if least is not None:
        lower = least.last + _INSTANT if bounds.is_open else least.first
    if most is not None:
        upper = most.first - _INSTANT if bounds.is_open else most.last
    return lower, upper


def _modified(bounds: Range, now: datetime | None) -> Condition:
    first, last = _moments(bounds, now) or _ALWAYS
    ends: list[Condition] = []
    if bounds.least:
        ends.append(Comparison(FilterField.MODIFIED, Operator.AT_LEAST, first))
    if bounds.most:
        ends.append(Comparison(FilterField.MODIFIED, Operator.AT_MOST, last))
    return ends[0] if len(ends) == 1 else All(tuple(ends))


def is_condition(view: View, text: str, trees: Collection[str], now: datetime) -> bool:
    """Whether a text in a query is a condition of a filter: on a property that some document
    satisfies (`publish:site` may be the name of a command), or on a path or tree that the query
    language would not find as typed."""
    try:
        terms = parse_filter(text)
    except QueryError:
        return False
    return all(_is_condition(view, term, trees, now) for term in terms)


def _is_condition(view: View, term: FilterTerm, trees: Collection[str], now: datetime) -> bool:
    if term.reserved is None:
        return view.has_documents(_to_comparison(term, now))
    if term.reserved is FilterKey.PATH:
        begins = _any_of(FilterField.PATH, Operator.BEGINS, term.values)
        return not view.has_documents(begins)
    return term.reserved is FilterKey.TREE and bool(trees) and not set(term.values) <= set(trees)
