"""Dates as people write them in front matter. No zone means UTC, so that results are stable."""

import re
from datetime import UTC, datetime, timedelta, timezone

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
    """None for what is not a date, or not one that exists."""
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
    """The file's own time; one that no calendar has (a broken clock) counts as 1970."""
    try:
        return datetime.fromtimestamp(mtime_ns / 1e9, UTC)
    except (ValueError, OverflowError, OSError):
        return _EPOCH
