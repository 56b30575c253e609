from dataclasses import replace

import pytest

from ragdocs.search.candidates import Stage
from ragdocs.search.stages import (
    StageCount,
    StageName,
    cut_at_elbow,
    filter_by_confidence,
    run_stages,
)
from tests.support.engine import candidates, places

FIVE = candidates(*"abcde", scores=[0.9, 0.6, 0.3, 0.29, 0.05])


def confidence(threshold):
    return Stage(StageName.CONFIDENCE, lambda items: filter_by_confidence(items, threshold))


def test_filter_below_threshold():
    assert places(filter_by_confidence(FIVE, 0.3)) == [0, 1, 2]


def test_filter_all_below():
    assert filter_by_confidence(FIVE, 0.95) == []
    assert filter_by_confidence([], 0.3) == []


def test_filter_returns_count():
    kept, [count] = run_stages([confidence(0.3)], FIVE)
    assert len(kept) == 3
    assert count == StageCount("confidence", 5, 3)


def test_a_threshold_of_zero_keeps_all():
    assert filter_by_confidence(FIVE, 0.0) == FIVE


def test_a_boost_does_not_lift_a_candidate_over_the_threshold():
    raised = replace(FIVE[4], score=0.99)
    assert filter_by_confidence([raised], 0.3) == []


@pytest.mark.parametrize(("ratio", "left"), [(0.0, 5), (0.3, 4), (0.6, 2), (1.0, 1)])
def test_the_elbow_is_where_a_score_falls_below_a_part_of_the_one_before(ratio, left):
    assert cut_at_elbow(FIVE, ratio) == FIVE[:left]


def test_scores_without_a_fall_are_not_cut():
    flat = candidates(*"abc", scores=[0.5, 0.5, 0.5])
    nothing = candidates(*"abc", scores=[0.0, 0.0, 0.0])
    assert cut_at_elbow(flat, 1.0) == flat
    assert cut_at_elbow(nothing, 0.3) == nothing
    assert cut_at_elbow([], 0.3) == []


def test_confidence_filter_removes_low_scores():
    kept = filter_by_confidence(FIVE, 0.5)
    assert [item.confidence for item in kept] == pytest.approx([0.9, 0.6])


def test_confidence_filter_zero_returns_all():
    worthless = [replace(item, confidence=0.0) for item in FIVE]
    assert filter_by_confidence(worthless, 0.0) == worthless
    assert filter_by_confidence(worthless, 1e-9) == []


def test_confidence_filter_returns_count():
    for threshold, left in ((0.0, 5), (0.3, 3), (0.9, 1), (1.0, 0)):
        _, [count] = run_stages([confidence(threshold)], FIVE)
        assert (count.before, count.after) == (5, left)
