"""Dates as people type them: a period from its first to its last moment."""

from datetime import UTC, datetime

import pytest

from ragdocs.dates import parse_age, parse_calendar, parse_period

NOW = datetime(2026, 3, 31, 15, 30, tzinfo=UTC)


def period(text):
    found = parse_period(text, NOW)
    return found and tuple(each.isoformat(timespec="seconds") for each in found)


def day(text):
    found = parse_period(text, NOW)
    assert found is not None
    assert (found.last - found.first).total_seconds() == pytest.approx(86_400, abs=0.001)
    return found.first.date().isoformat()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-01-31", "2026-01-31"),
        ("today", "2026-03-31"),
        ("Yesterday", "2026-03-30"),
        ("tomorrow", "2026-04-01"),
        ("0d", "2026-03-31"),
        ("3d", "2026-03-28"),
        ("2w", "2026-03-17"),
        ("2 weeks ago", "2026-03-17"),
        ("1m", "2026-02-28"),  # February has no 31st
        ("1y", "2025-03-31"),
        ("+3d", "2026-04-03"),
        ("31 March 2026", "2026-03-31"),
    ],
)
def test_a_day(text, expected):
    assert day(text) == expected


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("2026", "2026-01-01T00:00:00+00:00", "2026-12-31T23:59:59+00:00"),
        ("2026-02", "2026-02-01T00:00:00+00:00", "2026-02-28T23:59:59+00:00"),
        ("2026/02", "2026-02-01T00:00:00+00:00", "2026-02-28T23:59:59+00:00"),
        ("2026.2", "2026-02-01T00:00:00+00:00", "2026-02-28T23:59:59+00:00"),
        ("2026-02-03T04:05", "2026-02-03T04:05:00+00:00", "2026-02-03T04:05:00+00:00"),
        ("2026-02-03 04:05+02:00", "2026-02-03T02:05:00+00:00", "2026-02-03T02:05:00+00:00"),
    ],
)
def test_a_year_a_month_and_a_moment(text, first, last):
    assert period(text) == (first, last)


@pytest.mark.parametrize(
    "text", ["", "soon", "2026-02-30", "9999y", "-3d", "3", "3x", "w2", "1" * 100_000]
)
def test_other_text_is_not_a_date(text):
    assert parse_period(text, NOW) is None


@pytest.mark.parametrize("never", ["9999-12-31", "9999-12", "9999"])
def test_the_last_day_of_the_calendar_is_a_date(never):
    """It ended filters with an OverflowError; people write it for never."""
    period = parse_calendar(never)
    assert period is not None
    assert (period.last.year, period.last.month, period.last.day) == (9999, 12, 31)


@pytest.mark.parametrize(
    ("age", "then"),
    [
        ("30d", datetime(2026, 5, 1, 9, tzinfo=UTC)),
        ("2 weeks", datetime(2026, 5, 17, 9, tzinfo=UTC)),
        ("3m", datetime(2026, 2, 28, 9, tzinfo=UTC)),
        ("1y", datetime(2025, 5, 31, 9, tzinfo=UTC)),
    ],
)
def test_an_age_is_counted_by_the_calendar(age, then):
    now = datetime(2026, 5, 31, 9, tzinfo=UTC)
    assert parse_age(age, now) == now - then


@pytest.mark.parametrize("text", ["", "30", "+3d", "today", "2026-05-01", "99999y"])
def test_what_is_no_age(text):
    assert parse_age(text) is None
