"""Every step of a commit fails once, in every way: 100 % of them leave it done or not done."""

import pytest

from tests.support.faults.nth import FAULTS, CommitTrial, KeywordTrial, running


def assert_survived(what, trial, fault, measured):
    """Tells every failure, not the first alone."""
    failures = {}
    with running(trial):
        steps = trial.steps()
        for number in range(1, steps + 1):
            try:
                trial.fail(number, fault)
            except AssertionError as error:
                failures[number] = str(error)
    measured(f"every step of {what} ({fault})", steps=steps, failures=len(failures))
    assert failures == {}


@pytest.mark.parametrize("fault", FAULTS, ids=str)
@pytest.mark.parametrize("is_new", [False, True], ids=["changes", "a first build"])
def test_a_commit_is_there_or_not(tmp_path, fault, is_new, measured):
    what = "a first build" if is_new else "a commit"
    assert_survived(what, CommitTrial(tmp_path, is_new=is_new), fault, measured)


@pytest.mark.parametrize("fault", FAULTS, ids=str)
@pytest.mark.parametrize("engine", ["whoosh", "tantivy"])
def test_a_keyword_engine_has_followed_or_not(tmp_path, engine, fault, measured):
    assert_survived(
        f"following a commit, {engine}", KeywordTrial(tmp_path, engine), fault, measured
    )
