import pytest

from ragdocs.search.candidates import Strategy
from ragdocs.search.weighing import score_aware_weights

SEMANTIC, KEYWORD, _, GRAPH = Strategy
EVEN = {SEMANTIC: 1.0, KEYWORD: 1.0}
SPREAD = [1.0, 0.0, 1.0, 0.0]  # variance 0.25
FLAT = [0.5, 0.5, 0.5]  # variance 0


def test_an_index_whose_scores_are_all_alike_loses_weight_to_the_others():
    weights = score_aware_weights(EVEN, {SEMANTIC: FLAT, KEYWORD: SPREAD}, 0.1, 0.5)
    assert weights == pytest.approx({SEMANTIC: 2 / 3, KEYWORD: 4 / 3})


def test_the_factor_is_variance_over_threshold():
    scores = [0.6, 0.4]  # variance 0.01
    weights = score_aware_weights(EVEN, {SEMANTIC: scores, KEYWORD: SPREAD}, 0.02, 0.1)
    assert weights[SEMANTIC] / weights[KEYWORD] == pytest.approx(0.5)


def test_the_factor_never_falls_below_the_minimum():
    weights = score_aware_weights(EVEN, {SEMANTIC: FLAT, KEYWORD: SPREAD}, 0.1, 0.8)
    assert weights[SEMANTIC] / weights[KEYWORD] == pytest.approx(0.8)


def test_more_variance_than_the_threshold_gains_nothing():
    more = score_aware_weights(EVEN, {SEMANTIC: SPREAD, KEYWORD: [0.7, 0.0]}, 0.1, 0.5)
    assert more == pytest.approx(EVEN)


def test_the_sum_stays_and_indices_without_scores_keep_their_weight():
    weights = {SEMANTIC: 1.3, KEYWORD: 0.7, GRAPH: 0.5}
    after = score_aware_weights(weights, {SEMANTIC: FLAT, KEYWORD: SPREAD}, 0.1, 0.2)
    assert sum(after.values()) == pytest.approx(2.5)
    assert after[GRAPH] == pytest.approx(0.5)


def test_a_single_hit_keeps_its_indexs_weight():
    scores = {SEMANTIC: SPREAD, KEYWORD: [1.0]}
    assert score_aware_weights(EVEN, scores, 0.1, 0.5) == pytest.approx(EVEN)


@pytest.mark.parametrize("weights", [{}, {SEMANTIC: 0.0, KEYWORD: 0.0}])
def test_without_weights_there_is_nothing_to_share_out(weights):
    assert score_aware_weights(weights, {SEMANTIC: FLAT}, 0.1, 0.5) == weights


def test_a_threshold_of_zero_is_off():
    scores = {SEMANTIC: FLAT, KEYWORD: SPREAD}
    assert score_aware_weights(EVEN, scores, 0.0, 0.5) == EVEN
