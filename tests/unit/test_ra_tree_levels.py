"""Several trees at one level: the factors."""

import pytest

from ragdocs.search.boosts import MOST, best_by_tree, level_factors


def test_by_full_strength_the_best_of_each_tree_scores_the_same():
    best = best_by_tree([("a", 0.8), ("a", 0.9), ("b", 0.5), ("b", 0.6)])
    factors = level_factors(best, 1.0)
    assert best == pytest.approx({"a": 0.9, "b": 0.6})
    assert [best[tree] * factors[tree] for tree in best] == pytest.approx([0.9, 0.9])


@pytest.mark.parametrize(("strength", "factor"), [(0.0, 1.0), (0.5, 1.5**0.5), (1.0, 1.5)])
def test_the_strength_says_how_far(strength, factor):
    assert level_factors({"a": 0.9, "b": 0.6}, strength)["b"] == pytest.approx(factor)


def test_a_tree_with_nothing_to_say_is_not_raised_over_one_that_has():
    factors = level_factors({"a": 0.9, "b": 0.1, "c": 0.0}, 1.0)
    assert factors == pytest.approx({"a": 1.0, "b": MOST, "c": 1.0})


def test_one_tree_and_none_are_left_alone():
    assert level_factors({"a": 0.3}, 1.0) == pytest.approx({"a": 1.0})
    assert level_factors({}, 1.0) == {}
