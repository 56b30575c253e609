"""The filter language: what it reads, and what it refuses with advice."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragdocs.errors import QueryError
from ragdocs.filter_language import FilterTerm, Range, parse_filter, property_key
from ragdocs.limits import MAX_FILTER_TEXT_CHARS


def read(text):
    (term,) = parse_filter(text)
    return term


@pytest.mark.parametrize(
    ("text", "key", "values"),
    [
        ("status:active", "status", ("active",)),
        ("status:=active", "status", ("active",)),
        ("status:active,done", "status", ("active", "done")),
        ('status:"in progress",done', "status", ("in progress", "done")),
        (r'title:"a \"b\" c"', "title", ('a "b" c',)),
        ("tags:a/b", "tag", ("a/b",)),
        ("Due-Date:2026-01-31", "due-date", ("2026-01-31",)),
        ("author.name:jane", "author.name", ("jane",)),
        ("url:https://example.org/a?b=c", "url", ("https://example.org/a?b=c",)),
        ("path:../a..b", "path", ("../a..b",)),
        ('key:"*"', "key", ("*",)),
        ("Länge:groß", "länge", ("groß",)),
    ],
)
def test_values(text, key, values):
    assert read(text) == FilterTerm(text=text, key=key, values=values)
    assert read(f"-{text}").is_excluded


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("priority:>2", Range("2", "", is_open=True)),
        ("priority:>=2", Range("2")),
        ("priority:<2", Range("", "2", is_open=True)),
        ("priority:<=-2.5", Range("", "-2.5")),
        ("priority:2..5", Range("2", "5")),
        ("priority:2..", Range("2")),
        ("due:..2026-01-31", Range("", "2026-01-31")),
        ("modified:2w..today", Range("2w", "today")),
    ],
)
def test_ranges(text, expected):
    assert read(text).range == expected


def test_blanks_separate_conditions_and_a_star_asks_whether_there_is_one():
    terms = parse_filter("  status:*\n-tag:old   priority:>2 ")
    assert [(term.key, term.values, term.is_excluded) for term in terms] == [
        ("status", (), False),
        ("tag", ("old",), True),
        ("priority", (), False),
    ]
    assert parse_filter("   ") == ()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("active", "`active` is not a condition of a filter: write key:value"),
        (
            "status: active",
            "`status:` has no value: write it directly after the colon, or `status:",
        ),
        ("-status:", "or `status:\\*` for any"),
        ("status:a, b", "ends with a comma"),
        ('status:"in progress', "a quotation mark is not closed"),
        ('status:"a"b', "in quotation marks"),
        ("priority:>a", "only numbers and dates have an order"),
        ("priority:>1,2", "takes one value"),
        ("priority:..", "a range needs a bound"),
        ("tag:>2", "`tag` has no order"),
        ("modified:soon", "`soon` is not a date: write 2026-01-31"),
        ("after:2w..", "`after` takes one value"),
        ("after:2w,3w", "`after` takes one value"),
        ("-language:go", "no minus before it"),
        ("language:go language:c", "names `language` twice"),
        ("path:*", "every document has this"),
        ("a:" + ",".join(["x"] * 51), "has 51 values; the maximum is 50"),
        ("x" * 100_000, f"too long: 100,000 characters; the maximum is {MAX_FILTER_TEXT_CHARS:,}"),
    ],
)
def test_what_cannot_be_read_is_refused_with_advice(text, message):
    with pytest.raises(QueryError, match=message):
        parse_filter(text)


@given(st.text(alphabet='ab:"\\,-<>=*. \n\tä2', max_size=60))
def test_any_text_is_read_or_refused(text):
    terms = ()
    with suppress(QueryError):
        terms = parse_filter(text)
    assert all(term.key == property_key(term.key) for term in terms)
