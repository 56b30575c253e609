import pytest

from ragdocs.search.balance import LARGEST_SHARE, SMALLEST_SHARE, balanced, semantic_share
from ragdocs.search.candidates import Strategy

EVEN = {Strategy.SEMANTIC: 1.0, Strategy.KEYWORD: 1.0, Strategy.GRAPH: 0.7}


def test_a_near_passage_speaks_for_meaning_and_a_long_query_for_words():
    usual = semantic_share(0.5, 0.6, 5)
    assert usual == pytest.approx(0.6)
    assert semantic_share(0.5, 0.7, 5) > usual > semantic_share(0.5, 0.5, 5)
    assert semantic_share(0.5, 0.6, 1) > usual > semantic_share(0.5, 0.6, 15)


def test_both_always_have_a_say():
    assert semantic_share(0.5, 1.0, 1) == LARGEST_SHARE
    assert semantic_share(0.5, 0.0, 50) == SMALLEST_SHARE


def test_the_configured_weights_are_where_it_starts():
    assert semantic_share(0.7, 0.6, 5) == pytest.approx(semantic_share(0.5, 0.6, 5) + 0.2)


def test_the_sum_and_the_other_weights_stay():
    shifted = balanced(EVEN, 0.65, 3)
    assert shifted[Strategy.GRAPH] == 0.7
    assert shifted[Strategy.SEMANTIC] + shifted[Strategy.KEYWORD] == pytest.approx(2.0)


@pytest.mark.parametrize("off", [Strategy.SEMANTIC, Strategy.KEYWORD])
def test_an_index_that_is_off_stays_off(off):
    weights = {**EVEN, off: 0.0}
    assert balanced(weights, 0.9, 1) == weights
