"""The script that fits the confidence finds the constants again that its data were made with."""

import importlib.util
import math
import random
from pathlib import Path

import pytest

from ragdocs.search.calibration import Calibration
from ragdocs.search.candidates import Grounds
from ragdocs.search.evidence import worth

SCRIPT = Path(__file__).parents[2] / "scripts" / "fit_calibration.py"
SEED = 5
CURVE = Calibration(0.6, 8.0)


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("fit_calibration", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def answers(script, chance, count, is_answerable):
    """Right as often as the shipped constants say."""
    for _ in range(count):
        lead = chance.uniform(-0.2, 0.2)
        grounds = Grounds(chance.uniform(0.1, 0.9), chance.uniform(0.0, 0.9), lead)
        right = chance.random() < CURVE.of(worth(grounds))
        yield script.Answer(is_answerable, (grounds,), (right,))


def test_what_the_data_were_made_with_is_found_again(script):
    chance = random.Random(SEED)
    sets = [
        [*answers(script, chance, 4000, True), *answers(script, chance, 1500, False)]
        for _ in range(2)
    ]
    fit = script.fitted(sets)
    for grounds in (Grounds(0.5, 0.4, 0.05), Grounds(0.3, 0.7, -0.1), Grounds(0.8, 0.2, 0.1)):
        found = fit.confidence(script.Answer(True, (grounds,), (True,)))
        assert found == pytest.approx(CURVE.of(worth(grounds)), abs=0.04), f"seed {SEED}"


def test_each_set_weighs_the_same_and_the_first_result_most(script):
    grounds = Grounds(0.5, 0.5, 0.0)
    known = script.Answer(True, (grounds,) * 3, (True, False, False))
    alien = script.Answer(False, (grounds,), (False,))
    weights = [share for _, _, share in script.weighed([known, known, alien])]
    later = script.LATER_SHARE
    own = 1 - script.UNANSWERABLE_SHARE
    assert weights[:2] == pytest.approx([own * (1 - later) / 2] * 2)
    assert sum(weights[2:6]) == pytest.approx(own * later)
    assert math.isclose(weights[6], script.UNANSWERABLE_SHARE * (1 - later))


def test_nothing_found_is_no_confidence(script):
    fit = script.fitted([list(answers(script, random.Random(SEED), 50, True))])
    assert fit.confidence(script.Answer(True, (), ())) == pytest.approx(0.0)


def test_what_users_are_told_is_judged_too(script, capsys):
    """By the shipped constants, which made these data: they are right as often as they say."""
    chance = random.Random(SEED)
    sets = {name: list(answers(script, chance, 2000, True)) for name in ("one", "other")}
    script.as_shipped(sets)
    *_, last = capsys.readouterr().out.splitlines()
    name, queries, error, excess, _ = (cell.strip() for cell in last.strip("|").split("|"))
    assert (name, queries) == ("all sets", "4000")
    assert float(error) < 0.05
    assert abs(float(excess)) < 0.03
