"""Storms in their short form: kills, many servers, many edits, questions, hostile files.

The long form, with the figures that are promised, is `make stress`. Here the deadlines are three
times as long: other tests run beside these, and what must come about at all is what is asserted.
"""

import random
from pathlib import Path

import pytest

from tests.support.storms.edits import EditStorm
from tests.support.storms.hostile_check import HostileCheck
from tests.support.storms.hostile_rows import hostile_tree
from tests.support.storms.killing import KillStorm
from tests.support.storms.questions import QuestionStorm
from tests.support.storms.seeds import storm_seed
from tests.support.storms.servers import ServerStorm
from tests.support.storms.words import Words

RECOVERED_SECONDS = 30
TAKEN_OVER_SECONDS = 15
CONVERGED_SECONDS = 30
STORM_CONVERGED_SECONDS = 90


@pytest.fixture
def seed() -> int:
    return storm_seed()


def test_servers_that_are_killed_at_random_moments_lose_nothing(tmp_path: Path, seed: int):
    storm = KillStorm(tmp_path, seed, files=120)
    storm.run(kills=5)
    storm.check()
    figures = storm.figures
    assert figures.errors == []
    assert (figures.missing, figures.ghosts, figures.stale) == (0, 0, 0)
    assert figures.kills >= 5
    assert figures.recovery <= RECOVERED_SECONDS


def test_three_servers_answer_while_files_change_and_one_takes_over(tmp_path: Path, seed: int):
    with ServerStorm(tmp_path, seed, files=60) as storm:
        storm.start(servers=3)
        storm.edit(seconds=2, killing=1)
        storm.converge()
    figures = storm.figures
    assert figures.errors == []
    assert (figures.missing, figures.ghosts, figures.stale) == (0, 0, 0)
    assert figures.answers > 0
    assert figures.take_over <= TAKEN_OVER_SECONDS
    assert figures.convergence <= CONVERGED_SECONDS


def test_a_storm_of_edits_and_a_checkout_end_in_a_fresh_build(tmp_path: Path, seed: int):
    storm = EditStorm(tmp_path, seed, files=100)
    storm.run(per_second=170, seconds=1.5, checkout=150)
    assert storm.figures.errors == []
    assert storm.figures.edits >= 250
    assert storm.figures.convergence <= STORM_CONVERGED_SECONDS


def test_questions_during_the_first_build_are_answered_right_or_said_to_be_early(
    tmp_path: Path, seed: int
):
    storm = QuestionStorm(tmp_path, seed, files=250)
    storm.run(questions=100)
    assert storm.figures.errors == []
    assert storm.figures.wrong == []
    assert storm.figures.early > 0


def test_every_file_of_a_hostile_tree_meets_its_fate(tmp_path: Path, seed: int):
    tree = hostile_tree(tmp_path / "docs", Words(random.Random(seed)), depth=500)
    check = HostileCheck(tree, tmp_path / "index")
    check.run()
    assert check.wrong == []
