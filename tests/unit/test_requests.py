import math

import pytest

from ragdocs.errors import QueryError
from ragdocs.limits import MAX_QUERIES, MAX_QUERY_CHARS
from ragdocs.search.requests import QueryRequest


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"queries": ()}, "empty"),
        ({"queries": ("  ", "\n")}, "empty"),
        ({"queries": ("",), "hypothesis": " "}, "empty"),
        ({"queries": ("x",) * (MAX_QUERIES + 1)}, "at most 5"),
        ({"queries": ("x" * (MAX_QUERY_CHARS + 1),)}, "from 0 to 2000"),
        ({"hypothesis": "x" * 9000}, "from 0 to 8000"),
        ({"queries": ("x",), "top_n": 0}, "top_n is 0: it must be from 1 to 50"),
        ({"queries": ("x",), "top_n": 51}, "from 1 to 50"),
        ({"queries": ("x",), "min_score": -0.1}, "min_score"),
        ({"queries": ("x",), "min_score": math.nan}, "min_score"),
        ({"queries": ("x",), "similarity_threshold": 1.5}, "similarity_threshold"),
        ({"queries": ("x",), "top_n": 2.5}, "whole number"),
        ({"queries": ("x",), "top_n": True}, "whole number"),
        ({"queries": ("x",), "max_tokens": "many"}, "whole number"),
        ({"queries": ("x",), "min_score": "a"}, "must be a number"),
        ({"queries": ("x",), "max_tokens": 0}, "from 1 to 10000"),
        ({"queries": ("x",), "max_tokens": 10_001}, "from 1 to 10000"),
    ],
)
def test_what_cannot_be_answered_is_refused_with_the_limit(given, message):
    with pytest.raises(QueryError, match=message):
        QueryRequest(**given)


def test_the_limits_themselves_are_allowed():
    QueryRequest(queries=("x" * MAX_QUERY_CHARS,), top_n=50, min_score=1, max_tokens=10_000)
    assert len(QueryRequest(hypothesis="x" * 8000).hypothesis) == 8000
