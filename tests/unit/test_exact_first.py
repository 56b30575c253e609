"""What alone has an exact token stays first after the second look."""

import pytest

from ragdocs.search.candidates import ExactToken
from ragdocs.search.weighing import exact_first
from tests.support.engine import candidates


def test_the_passage_with_the_token_is_first_and_as_good_as_the_best():
    near, nearer, odd = candidates("near", "nearer", "odd", scores=[0.9, 0.8, 0.3])
    found = exact_first([near, nearer, odd], [ExactToken(frozenset({odd.stored.key}), 1)])
    assert [item.id for item in found] == [odd.id, near.id, nearer.id]
    assert found[0].score == pytest.approx(0.9)
    assert found[0].boosts["exact"] == pytest.approx(3.0)


def test_without_a_token_nothing_changes():
    found = candidates("near", "odd", scores=[0.9, 0.3])
    assert exact_first(found, []) is found


def test_a_token_that_two_documents_have_puts_neither_first():
    near, odd = candidates("near", "odd", scores=[0.9, 0.3])
    token = ExactToken(frozenset({odd.stored.key}), 2)
    assert exact_first([near, odd], [token]) == [near, odd]
