"""Dates as people write them: a moment, or a period such as a day, `yesterday` or `2w`.

No zone means UTC, so that results are the same on every machine.
"""

import re
from calendar import monthrange
from datetime import UTC, datetime, timedelta, timezone
from typing import NamedTuple

_NUMBERS = re.compile(
    r"""(?P<year>\d{4}) (?:[-/.](?P<month>\d{1,2}))? (?:[-/.](?P<day>\d{1,2}))?
        (?:[T,\s]+ (?P<hour>\d{1,2}):(?P<minute>\d{2}) (?::(?P<second>\d{2}))? (?:[.,]\d+)?
           \s*(?P<zone>Z|UTC|GMT|[+-]\d{2}:?\d{2})? )?""",
    re.VERBOSE | re.IGNORECASE,
)
_EPOCH_SECONDS = re.compile(r"\d{9,10}")
_WRITTEN = ("%B %d, %Y", "%b %d, %Y", "%d %B %Y", "%d %b %Y")
_MAX_CHARS = 64
_EPOCH = datetime.fromtimestamp(0, UTC)


def parse_date(text: str) -> datetime | None:
    """None for a text that is not an existing date."""
    text = text.strip().removeprefix("[[").removesuffix("]]").strip()
    if len(text) > _MAX_CHARS:
        return None
    try:
        return _parse_numbers(text) or _parse_words(text)
    except (ValueError, OverflowError):
        return None


def _parse_numbers(text: str) -> datetime | None:
    if _EPOCH_SECONDS.fullmatch(text):
        return datetime.fromtimestamp(int(text), UTC)
    found = _NUMBERS.fullmatch(text)
    if found is None:
        return None
    parts = [int(found[name] or least) for name, least in zip(_PARTS, _LEAST, strict=True)]
    return datetime(*parts, tzinfo=_zone(found["zone"] or "Z")).astimezone(UTC)


_PARTS = ("year", "month", "day", "hour", "minute", "second")
_LEAST = (1, 1, 1, 0, 0, 0)


def _zone(text: str) -> timezone:
    if text[0] not in "+-":
        return UTC
    digits = text[1:].replace(":", "")
    offset = timedelta(hours=int(digits[:2]), minutes=int(digits[2:]))
    return timezone(-offset if text[0] == "-" else offset)


def _parse_words(text: str) -> datetime | None:
    for form in _WRITTEN:
        try:
            return datetime.strptime(text, form).replace(tzinfo=UTC)
        except ValueError:
            continue
    from email.utils import parsedate_to_datetime  # rarely needed, and slow to import

    moment = parsedate_to_datetime(text)
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def from_mtime(mtime_ns: int) -> datetime:
    """The file's modification time; an impossible one (a broken clock) counts as 1970."""
    try:
        return datetime.fromtimestamp(mtime_ns / 1e9, UTC)
    except (ValueError, OverflowError, OSError):
        return _EPOCH


# Periods: what a person means by a date. `2026` is a year, `2026-01` a month, `2026-01-31` a day,
# and so are `yesterday` and `2w`; a date with a time is that moment.

DATE_FORMS = "2026-01-31, 2026-01, today, yesterday, tomorrow, 3d, 2w, 6m or 1y ago"
"""For messages."""

_DAYS = {"yesterday": -1, "today": 0, "tomorrow": 1}
_AGO = re.compile(
    r"(?P<ahead>\+?)(?P<count>\d{1,5})\s*(?P<unit>d|w|m|y|days?|weeks?|months?|years?)(?:\s+ago)?",
    re.IGNORECASE,
)
_YEAR_OR_MONTH = re.compile(r"\d{4}([-/.]\d{1,2})?")
_DAY = timedelta(days=1)
_LAST_MOMENT = datetime.max.replace(tzinfo=UTC)
_MONTHS_OF = {"m": 1, "y": 12}
_DAYS_OF = {"d": 1, "w": 7}


class Period(NamedTuple):
    """From its first moment to its last, both included."""

    first: datetime
    last: datetime


def parse_period(text: str, now: datetime | None = None) -> Period | None:
    """A date, `today`, `yesterday`, `tomorrow`, `2w` or `2 weeks ago` (d, w, m, y), or `+3d` for a
    day to come; None if it is none of these, or out of the calendar.
    """
    typed = " ".join(text.split()).casefold()
    today = (now or datetime.now(UTC)).replace(hour=0, minute=0, second=0, microsecond=0)
    try:
        if typed in _DAYS:
            return _until(day := today + _DAYS[typed] * _DAY, day + _DAY)
        if ago := _AGO.fullmatch(typed):
            count = int(ago["count"]) if ago["ahead"] else -int(ago["count"])
            return _until(day := _move(today, count, ago["unit"][0]), day + _DAY)
        return parse_calendar(text)
    except (ValueError, OverflowError):
        return None


def parse_age(text: str, now: datetime | None = None) -> timedelta | None:
    """How long ago `30d`, `6w`, `3m` or `1y` was, by the calendar; None if it is no age."""
    ago = _AGO.fullmatch(" ".join(text.split()).casefold())
    if ago is None or ago["ahead"]:
        return None
    now = now or datetime.now(UTC)
    try:
        return now - _move(now, -int(ago["count"]), ago["unit"][0])
    except (ValueError, OverflowError):
        return None


def parse_calendar(text: str) -> Period | None:
    """Like `parse_period`, without the words and counts that depend on today."""
    text = text.strip()
    first = parse_date(text)
    if first is None:
        return None
    if ":" in text or _EPOCH_SECONDS.fullmatch(text):
        return Period(first, first)
    month = _YEAR_OR_MONTH.fullmatch(text)
    try:
        if month:
            return _until(first, _move(first, 1 if month[1] else 12, "m"))
        return _until(first, first + _DAY)
    except (ValueError, OverflowError):  # `9999-12-31`, which people write for never
        return Period(first, _LAST_MOMENT)


def _move(day: datetime, count: int, unit: str) -> datetime:
    """By months or years, the 31st becomes the last day of a shorter month."""
    if unit in _DAYS_OF:
        return day + count * _DAYS_OF[unit] * _DAY
    months = day.year * 12 + day.month - 1 + count * _MONTHS_OF[unit]
    year, month = divmod(months, 12)
    last = monthrange(year, month + 1)[1]
    return day.replace(year=year, month=month + 1, day=min(day.day, last))


def _until(first: datetime, end: datetime) -> Period:
    return Period(first, end - timedelta(microseconds=1))
