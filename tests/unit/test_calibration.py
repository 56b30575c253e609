import math
from dataclasses import replace

import pytest

from ragdocs.search.confidence import Calibration, calibrate
from tests.support.engine import candidates

SEED = Calibration(0.035, 150.0)


@pytest.mark.parametrize(
    ("raw", "calibrated"), [(0.0325, 0.41), (0.0323, 0.40), (0.0175, 0.07), (0.0082, 0.02)]
)
def test_the_sigmoid_of_the_seed(raw, calibrated):
    assert SEED.of(raw) == pytest.approx(1 / (1 + math.exp(-150 * (raw - 0.035))))
    assert SEED.of(raw) == pytest.approx(calibrated, abs=0.005)


def test_the_threshold_means_one_half():
    assert SEED.of(0.035) == pytest.approx(0.5)
    assert Calibration(0.6, 12).of(0.6) == pytest.approx(0.5)


def test_a_lower_threshold_is_kinder_and_a_higher_steepness_sharper():
    assert Calibration(0.025, 150).of(0.03) > SEED.of(0.03)
    assert Calibration(0.035, 200).of(0.05) > SEED.of(0.05)
    assert Calibration(0.035, 200).of(0.02) < SEED.of(0.02)


@pytest.mark.parametrize("raw", [-1e308, -1e9, -1.0, 0.0, 1.0, 1e9, 1e308, math.inf, -math.inf])
def test_any_value_is_brought_between_zero_and_one(raw):
    assert 0.0 <= Calibration(0.035, 10_000).of(raw) <= 1.0


def test_confidence_comes_from_the_evidence_and_never_from_boosts():
    [item] = candidates("words", scores=[0.9])
    [judged] = calibrate([replace(item, relevance=0.03)], SEED)
    assert judged.confidence == SEED.of(0.03)
    assert judged.score == pytest.approx(0.9)


def test_scores_over_one_are_brought_down_in_proportion():
    items = candidates("a", "b", "c", scores=[1.8, 0.9, 0.0])
    assert [item.score for item in calibrate(items, SEED)] == pytest.approx([1.0, 0.5, 0.0])
    items = candidates("a", "b", scores=[0.6, 0.3])
    assert [item.score for item in calibrate(items, SEED)] == pytest.approx([0.6, 0.3])
