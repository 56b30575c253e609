"""A step of a commit fails, or is the last one: some steps of many; `make stress` has them all."""

import random

from tests.support.faults.nth import FAULTS, CommitTrial, KeywordTrial, running

SEED = 4


def assert_survived(trial, each):
    """The last step (the first ones are many and alike), and a few before it, of each fault."""
    with running(trial):
        steps = trial.steps()
        for fault in FAULTS:
            chosen = random.Random(f"{SEED} {fault}").sample(range(1, steps), each - 1)
            for number in sorted({*chosen, steps}):
                print(f"seed {SEED}: step {number} of {steps}, {fault}")  # noqa: T201
                trial.fail(number, fault)


def test_a_commit_is_there_or_not(tmp_path):
    assert_survived(CommitTrial(tmp_path), each=5)


def test_a_keyword_engine_has_followed_or_not(tmp_path):
    assert_survived(KeywordTrial(tmp_path, "whoosh"), each=2)
