import random
from xml.etree import ElementTree

import pytest

from ragdocs.evaluation.chart import reliability_chart
from ragdocs.evaluation.reliability import (
    Bin,
    Cited,
    NearMiss,
    calibration_error,
    disagrees,
    honesty,
    reliability,
    separation,
)

SVG = "{http://www.w3.org/2000/svg}"


def firsts(*confidences):
    """A first result for each question, `a`, `b`, …; none where there is None."""
    return {
        query: None if value is None else Cited(f"{query}.md", f"On {query}", value)
        for query, value in zip("abcd", confidences, strict=False)
    }


def test_bins_have_equal_mass_and_the_least_confident_come_first():
    confidences = [number / 100 for number in range(100)]
    random.Random(3).shuffle(confidences)
    bins = reliability(confidences, [one >= 0.5 for one in confidences])
    assert [part.cases for part in bins] == [10] * 10
    assert [part.right for part in bins] == pytest.approx([0.0] * 5 + [1.0] * 5)
    assert bins[0].confidence == pytest.approx(0.045)


def test_few_cases_make_few_bins():
    assert reliability([0.2, 0.9], [False, True]) == (Bin(1, 0.2, 0.0), Bin(1, 0.9, 1.0))
    assert reliability([], []) == ()


def test_what_is_right_as_often_as_it_says_has_no_error():
    right = [True] * 7 + [False] * 3
    assert calibration_error([Bin(10, 0.7, sum(right) / 10)]) == pytest.approx(0.0)
    assert calibration_error(reliability([1.0] * 20, [False] * 20)) == pytest.approx(1.0)
    assert calibration_error([Bin(30, 0.5, 0.7), Bin(10, 0.9, 0.5)]) == pytest.approx(0.25)
    assert calibration_error(()) == pytest.approx(0.0)


def test_separation_is_the_share_of_pairs_in_the_right_order():
    seed = 11
    chance = random.Random(seed)
    good = [chance.randrange(8) / 8 for _ in range(40)]
    bad = [chance.randrange(6) / 8 for _ in range(30)]
    pairs = [(one > other) + (one == other) / 2 for one in good for other in bad]
    assert separation(good, bad) == pytest.approx(sum(pairs) / len(pairs)), f"seed {seed}"
    assert separation([0.9], [0.1]) == pytest.approx(1.0)
    assert separation([], [0.1]) == pytest.approx(0.5)


def test_a_dot_stands_where_its_bin_is():
    chart = reliability_chart("all", {"pooled": [Bin(4, 0.0, 1.0)], "one set": [Bin(2, 1.0, 0.0)]})
    boxes = [box for box in ElementTree.fromstring(chart).iter(f"{SVG}rect") if len(box)]
    by_name = {box.findtext(f"{SVG}title").partition(":")[0]: box for box in boxes}
    pooled, one_set = by_name["pooled"], by_name["one set"]
    assert float(pooled.get("x")) < float(one_set.get("x"))
    assert float(pooled.get("y")) < float(one_set.get("y"))
    assert "4 cases, 0.00 said, 1.00 right" in chart


def test_both_kinds_of_question_by_hand():
    right = {"a": True, "b": True, "c": False, "d": True}
    found = honesty(
        firsts(0.9, 0.6, 0.4, 0.2), firsts(0.5, 0.3, 0.1, None), firsts(0.2, 0.0), right
    )
    assert found.questions == 4
    assert (found.right.cases, found.right.mean.mean) == (3, pytest.approx(1.7 / 3))
    assert (found.wrong.cases, found.wrong.mean.mean) == (1, pytest.approx(0.4))
    assert (found.near_misses.cases, found.near_misses.mean.mean) == (4, pytest.approx(0.225))
    # Of the right ones .9 and .6 are above all four near misses, .2 above two; the wrong one is
    # not compared.
    assert found.near_miss_auc.mean == pytest.approx(10 / 12)
    # Eight cases, each its own bin: .1 + .4 + .4 + .8 with the answers, .5 + .3 + .1 + 0 without.
    assert [each.cases for each in found.bins] == [1] * 8
    assert found.error.mean == pytest.approx(2.6 / 8)
    assert found.believed == (NearMiss("a", "a.md", "On a", 0.5),)
    # All four of the set against two foreign ones; .2 against .2 is half.
    assert found.foreign_auc.mean == pytest.approx(7.5 / 8)
    for each in (found.near_miss_auc, found.error, found.foreign_auc):
        assert each.low <= each.mean <= each.high
        assert each.low < each.high


def test_without_a_right_result_or_a_foreign_question_there_is_no_auc():
    found = honesty(firsts(0.9), firsts(0.5), {}, {"a": False})
    assert (found.near_miss_auc, found.foreign_auc) == (None, None)
    assert found.foreign.cases == 0
    assert found.error.mean == pytest.approx(0.7)


@pytest.mark.parametrize(
    ("confidences", "expected"),
    [
        ([], False),
        ([0.9, 0.5, 0.1], False),
        ([0.5, 0.54, 0.54], False),
        ([0.5, 0.56], True),
        # Each is near its neighbour, and the last is not near the first.
        ([0.50, 0.53, 0.56], True),
        ([0.9, 0.2, 0.3], True),
    ],
)
def test_order_and_confidence_disagree_beyond_near_ties(confidences, expected):
    assert disagrees(confidences) is expected
