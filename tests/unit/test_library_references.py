"""Requests of the library that are out of range."""

import pytest

from ragdocs.errors import QueryError
from ragdocs.library.requests import DocumentRequest


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
        ({"reference": "a", "start_line": 5, "full_document": True}, "combined"),
        ({"cursor": "x" * 40_000}, "cursor"),
    ],
)
def test_a_request_out_of_range_says_so(more, message):
    with pytest.raises(QueryError, match=message):
        DocumentRequest(**more)
