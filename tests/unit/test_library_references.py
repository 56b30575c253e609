"""What a reference may mean, from its text alone."""

from contextlib import suppress

import pytest

from ragdocs.errors import QueryError
from ragdocs.library.references import PathReading, printable_name, readings
from ragdocs.library.requests import DocumentRequest
from tests.support.machine import takes_less_than

TREES = ("docs", "notes")


@pytest.mark.parametrize(
    ("reference", "reading"),
    [
        ("a.md", PathReading("a.md")),
        ("./guide//a.md", PathReading("guide/a.md")),
        ("docs:a.md", PathReading("a.md", "docs")),
        ("docs:a.md#intro", PathReading("a.md", "docs", "intro")),
        ("a.md#intro", PathReading("a.md", None, "intro")),
        ("a.md:10-40", PathReading("a.md", None, None, (10, 40))),
        ("a.md:7", PathReading("a.md", None, None, (7, 7))),
        ("notes:a.md:7", PathReading("a.md", "notes", None, (7, 7))),
        ("a#b.md#intro", PathReading("a#b.md", None, "intro")),
        ("docs:a%23b.md#intro", PathReading("a#b.md", "docs", "intro")),
        ("100%.md", PathReading("100%.md")),
        ("other:a.md", PathReading("other:a.md")),
        ("two\nlines.md", PathReading("two\nlines.md")),
    ],
)
def test_every_way_to_name_a_place_is_among_the_readings(reference, reading):
    assert reading in readings(reference, TREES)


def test_the_literal_reading_comes_first():
    assert readings("a.md:10-40", TREES)[0] == PathReading("a.md:10-40")
    assert readings("docs:a.md#b", TREES)[0] == PathReading("a.md#b", "docs")


@pytest.mark.parametrize(
    "reference",
    [
        "../../etc/passwd",
        "docs:../../etc/passwd",
        "a/../../b.md",
        "%2E%2E/secret.md",
        "/etc/passwd",
        "~/notes.md",
        "C:\\Windows\\win.ini",
        "a\0b.md",
        "a\ud800b.md",
        ".",
        "./",
    ],
)
def test_what_cannot_be_within_a_tree_is_refused_at_once(reference):
    with pytest.raises(QueryError) as refused:
        list(readings(reference, TREES))
    assert "etc/passwd" not in str(refused.value)
    assert str(refused.value).encode()  # can be written
    assert takes_less_than(0.1, lambda: tried(lambda: list(readings(reference, TREES))))


def tried(read):
    with suppress(QueryError):
        read()


def test_a_reference_of_a_hundred_thousand_characters_is_refused_at_once():
    long = "a/" * 50_000
    with pytest.raises(QueryError, match="13,000"):
        DocumentRequest(reference=long)
    assert takes_less_than(0.1, lambda: tried(lambda: DocumentRequest(reference=long)))


def test_the_longest_reference_taken_is_read_at_once():
    for text in ("#" * 13_000, ":1" * 6_500, "%23" * 4_333, "../" * 4_333, "a/" * 6_500):
        assert takes_less_than(0.1, lambda text=text: tried(lambda: readings(text, TREES)))


def test_what_is_shown_is_short_and_on_one_line():
    assert printable_name("a\nb") == "a%0Ab"
    assert len(printable_name("x" * 1000)) == 120


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({}, "no document"),
        ({"reference": " "}, "no document"),
        ({"reference": "a", "max_tokens": 0}, "max_tokens"),
        ({"reference": "a", "max_tokens": 10_001}, "10,000"),
        ({"reference": "a", "max_tokens": True}, "whole number"),
        ({"reference": "a", "max_tokens": 1.5}, "whole number"),
        ({"reference": "a", "start_line": 0}, "start_line"),
        ({"reference": "a", "start_line": 5, "end_line": 4}, "after"),
        ({"reference": "a", "start_line": 5, "full_document": True}, "exclude"),
        ({"cursor": "x" * 40_000}, "cursor"),
    ],
)
def test_a_request_out_of_range_says_so(more, message):
    with pytest.raises(QueryError, match=message):
        DocumentRequest(**more)
