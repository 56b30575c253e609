"""Dates as people write them in front matter. No zone means UTC, so that results are stable."""

import re
from datetime import UTC, datetime

_SLASHED = re.compile(r"^(\d{4})[/.](\d{1,2})[/.](\d{1,2})")
_SHORT = re.compile(r"^(\d{4})(?:-(\d{1,2}))?$")
_WRITTEN = ("%B %d, %Y", "%b %d, %Y", "%d %B %Y", "%d %b %Y", "%a, %d %b %Y %H:%M:%S %z")
_MAX_CHARS = 64
_EPOCH = datetime.fromtimestamp(0, UTC)


def parse_date(text: str) -> datetime | None:
    """None for what is not a date, or not one that exists."""
    text = text.strip()[:_MAX_CHARS]
    for candidate in (text, _iso_from_slashes(text), _iso_from_short(text)):
        try:
            return _in_utc(datetime.fromisoformat(candidate))
        except (ValueError, OverflowError):
            continue
    return _parse_written(text)


def from_mtime(mtime_ns: int) -> datetime:
    """The file's own time; one that no calendar has (a broken clock) counts as 1970."""
    try:
        return datetime.fromtimestamp(mtime_ns / 1e9, UTC)
    except (ValueError, OverflowError, OSError):
        return _EPOCH


def _iso_from_slashes(text: str) -> str:
    return _SLASHED.sub(lambda m: f"{m[1]}-{int(m[2]):02}-{int(m[3]):02}", text)


def _iso_from_short(text: str) -> str:
    return _SHORT.sub(lambda m: f"{m[1]}-{int(m[2] or 1):02}-01", text)


def _parse_written(text: str) -> datetime | None:
    for form in _WRITTEN:
        try:
            return _in_utc(datetime.strptime(text, form))
        except (ValueError, OverflowError):
            continue
    return None


def _in_utc(moment: datetime) -> datetime:
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
