import random

import pytest

from ragdocs.evaluation.drawing import Box
from ragdocs.evaluation.reliability import Bin, calibration_error, reliability, separation
from ragdocs.evaluation.reliability_picture import reliability_chart
from ragdocs.evaluation.svg import to_svg


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
    dots = [each for each in chart.shapes if isinstance(each, Box) and each.title]
    by_name = {dot.title.partition(":")[0]: (dot.x + dot.width / 2, dot.y) for dot in dots}
    assert by_name["pooled"][0] < by_name["one set"][0]
    assert by_name["pooled"][1] < by_name["one set"][1]
    assert "4 cases, 0.00 said, 1.00 right" in to_svg(chart)
