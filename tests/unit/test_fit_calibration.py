"""The script that fits the confidence finds the constants again that its data were made with."""

import importlib.util
import random
from pathlib import Path

import pytest

from ragdocs.search.candidates import Grounds
from ragdocs.search.confidence import Question, question_evidence, worth

SCRIPT = Path(__file__).parents[2] / "scripts" / "fit_calibration.py"
SEED = 5


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("fit_calibration", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def shipped(script, grounds, question):
    return script.SHIPPED.of(worth(grounds, question.words) + question_evidence(question))


def some_grounds(chance):
    return Grounds(
        chance.uniform(0.1, 0.9),
        chance.uniform(0.0, 0.9),
        is_named=chance.random() < 0.2,
        token=chance.choice((-1, 0, 0, 0, 1)),
        wish=chance.choice((0.0, 0.0, 0.5)),
    )


def some_question(chance):
    return Question(
        words=chance.randint(2, 20),
        rarity=chance.uniform(0.2, 0.9),
        spread=chance.uniform(0.05, 0.16),
        passages=chance.choice((50, 500, 5_000, 50_000)),
    )


def answers(script, chance, count, kind):
    """Right as often as the shipped constants say."""
    for _ in range(count):
        grounds, question = some_grounds(chance), some_question(chance)
        right = chance.random() < shipped(script, grounds, question)
        yield script.Answer(kind, question, (grounds,), (right,))


def a_set(script, chance, count):
    return [each for kind in script.Kind for each in answers(script, chance, count, kind)]


def test_what_the_data_were_made_with_is_found_again(script):
    chance = random.Random(SEED)
    fit = script.fitted([a_set(script, chance, 3000) for _ in range(2)])
    for _ in range(40):
        grounds, question = some_grounds(chance), some_question(chance)
        answer = script.Answer(script.Kind.OWN, question, (grounds,), (True,))
        told = fit.confidence(answer)
        assert told == pytest.approx(shipped(script, grounds, question), abs=0.06), f"seed {SEED}"


def test_what_was_set_and_not_fitted_counts_as_shipped(script):
    """Data without any token, quotation or other size still know what these are worth."""
    chance = random.Random(SEED)
    plain = [
        script.Answer(kind, question, (grounds,), (right,))
        for kind in script.Kind
        for _ in range(3000)
        for grounds in [some_grounds(chance)._replace(token=0, wish=0.0)]
        for question in [some_question(chance)._replace(passages=1_000)]
        for right in [chance.random() < shipped(script, grounds, question)]
    ]
    fit = script.fitted([plain])
    question = Question(passages=20_000)
    for changed in ({"token": 1}, {"token": -1}, {"wish": 0.5}, {}):
        grounds = Grounds(0.5, 0.3)._replace(**changed)
        answer = script.Answer(script.Kind.OWN, question, (grounds,), (True,))
        told = fit.confidence(answer)
        assert told == pytest.approx(shipped(script, grounds, question), abs=0.05), changed


def test_each_kind_has_its_share_and_the_first_result_most_of_it(script):
    grounds, question = Grounds(0.5, 0.5), Question()
    known = script.Answer(script.Kind.OWN, question, (grounds,) * 3, (True, False, False))
    near = script.Answer(script.Kind.NEAR_MISS, question, (grounds,) * 2, (False, False))
    alien = script.Answer(script.Kind.FOREIGN, question, (grounds,), (False,))
    weights = [row.weight for row in script.weighed([known, near, alien, known])]
    later, own, missed, foreign = script.LATER_SHARE, *script.SHARES.values()
    assert sum(script.SHARES.values()) == pytest.approx(1.0)
    assert weights[:2] == pytest.approx([own * (1 - later) / 2] * 2)
    assert weights[2:6] == pytest.approx([own * later / 4] * 4)
    assert weights[6:8] == pytest.approx([missed * (1 - later), missed * later])
    assert weights[8:] == pytest.approx([foreign * (1 - later)])


def test_nothing_found_is_no_confidence(script):
    fit = script.fitted([a_set(script, random.Random(SEED), 50)])
    nothing = script.Answer(script.Kind.OWN, Question(), (), ())
    assert fit.confidence(nothing) == pytest.approx(0.0)


def test_the_shipped_constants_are_judged_too(script, capsys):
    """By the shipped constants, which made these data: they are right as often as they say. Sets
    that are only reported are not in the last line."""
    chance = random.Random(SEED)
    sets = {name: a_set(script, chance, 1500) for name in ("one", "other")}
    script.as_shipped(sets, {"third": a_set(script, chance, 10)})
    table, _, _ = capsys.readouterr().out.strip().partition("\n\n")
    *_, third, last = (row(line) for line in table.splitlines())
    assert third[:2] == ["third", "10"]
    assert last[:2] == ["all sets", "3000"]
    assert float(last[2]) < 0.05
    assert abs(float(last[3])) < 0.03


def test_the_error_is_over_both_kinds_and_each_auc_is_against_its_own(script, capsys):
    """A foreign question is no part of the error; a wrong first result is no right one."""
    grounds, question = Grounds(0.5, 0.5), Question()
    told = {
        script.Kind.OWN: [(0.9, True), (0.8, True), (0.1, False)],
        script.Kind.NEAR_MISS: [(0.85, False), (0.1, False), (0.1, False)],
        script.Kind.FOREIGN: [(0.95, False), (0.0, False)],
    }
    asked = [
        (script.Answer(kind, question, (grounds,), (right,)), value)
        for kind, each in told.items()
        for value, right in each
    ]
    bins = script.print_row("set", [one for one, _ in asked], [value for _, value in asked])
    found = row(capsys.readouterr().out)
    assert found[:2] == ["set", "3"]
    assert sum(each.cases for each in bins) == 6
    error = (0.1 + 0.2 + 0.1 + 0.85 + 0.1 + 0.1) / 6
    excess = (-0.1 - 0.2 + 0.1 + 0.85 + 0.1 + 0.1) / 6
    foreign, near = 3 / 6, 5 / 6
    assert [float(cell) for cell in found[2:]] == pytest.approx(
        [error, excess, foreign, near], abs=0.001
    )


def test_bands_tell_how_often_each_is_right_and_what_is_in_it(script, capsys):
    told = {
        script.Kind.OWN: [(1.0, True), (0.9, True), (0.05, True), (0.95, False)],
        script.Kind.NEAR_MISS: [(0.92, False), (0.0, False), (0.3, False), (0.1, False)],
        script.Kind.FOREIGN: [(0.0, False), (0.299, False)],
    }
    asked = [
        (script.Answer(kind, Question(), (Grounds(),), (right,)), value)
        for kind, each in told.items()
        for value, right in each
    ]
    script.print_bands([one for one, _ in asked], [value for _, value in asked])
    _, _, *rows = (row(line) for line in capsys.readouterr().out.splitlines())
    assert rows[0] == ["0% to 10%", "2", "50.0%", "33.3%", "25.0%", "50.0%"]
    assert rows[1] == ["10% to 30%", "1", "0.0%", "0.0%", "25.0%", "50.0%"]
    assert rows[2] == ["30% to 50%", "1", "0.0%", "0.0%", "25.0%", "0.0%"]
    assert rows[-1] == ["90% to 100%", "4", "50.0%", "66.7%", "25.0%", "0.0%"]


def row(line):
    return [cell.strip() for cell in line.strip().strip("|").split("|")]
