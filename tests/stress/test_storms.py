"""Storms in their long form, with the figures that are promised."""

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.storms.edits import EditStorm
from tests.support.storms.hostile_check import HostileCheck
from tests.support.storms.hostile_rows import hostile_tree
from tests.support.storms.idling import idle_share
from tests.support.storms.killing import KillStorm
from tests.support.storms.machine import assert_random_operations_converge
from tests.support.storms.nasty import NASTY, nasty_problems
from tests.support.storms.questions import QuestionStorm
from tests.support.storms.servers import ServerStorm
from tests.support.storms.words import Words

Measured = Callable[..., None]


def test_kills(tmp_path: Path, seed: int, measured: Measured):
    storm = KillStorm(tmp_path, seed, files=300)
    for _ in range(6):
        storm.run(kills=9)
        storm.check()
    figures = storm.figures
    measured(
        "kill -9 at random moments",
        kills=figures.kills,
        missing=figures.missing,
        ghosts=figures.ghosts,
        recovery_seconds=figures.recovery,
        errors=len(figures.errors),
        edits=storm.editor.edits,
        moments=dict(figures.moments),
    )
    assert figures.errors == []
    assert (figures.missing, figures.ghosts, figures.stale) == (0, 0, 0)
    assert figures.kills >= 50
    assert figures.recovery <= 10


def test_eight_servers(tmp_path: Path, seed: int, measured: Measured):
    with ServerStorm(tmp_path, seed, files=500) as storm:
        storm.start(servers=8)
        storm.edit(seconds=30, killing=3)
        storm.converge()
    figures = storm.figures
    measured(
        "8 servers, 50 edits/s, 3 killed",
        edits=storm.editor.edits,
        answers=figures.answers,
        errors=len(figures.errors),
        take_over_seconds=figures.take_over,
        convergence_seconds=figures.convergence,
        missing=figures.missing,
        ghosts=figures.ghosts,
    )
    assert figures.errors == []
    assert figures.take_over <= 5
    assert figures.convergence <= 10


def test_ten_thousand_edits_a_minute(tmp_path: Path, seed: int, measured: Measured):
    storm = EditStorm(tmp_path, seed, files=2000)
    storm.run(per_second=175, seconds=60, checkout=1500)
    figures = storm.figures
    per_minute = figures.edits / figures.seconds * 60
    measured(
        "storm of edits, renamed folders, a checkout",
        edits_a_minute=round(per_minute),
        checked_out=figures.checked_out,
        convergence_seconds=figures.convergence,
        missing=figures.missing,
        ghosts=figures.ghosts,
        errors=len(figures.errors),
    )
    assert figures.errors == []
    assert (figures.missing, figures.ghosts, figures.stale) == (0, 0, 0)
    assert per_minute >= 10_000
    assert figures.convergence <= 30


def test_a_thousand_questions(tmp_path: Path, seed: int, measured: Measured):
    storm = QuestionStorm(tmp_path, seed, files=2500)
    storm.run(questions=1000)
    figures = storm.figures
    measured(
        "questions while 2,500 files are indexed",
        answers=figures.answers,
        before_all_was_in=figures.early,
        errors=len(figures.errors),
        wrong=len(figures.wrong),
        build_seconds=figures.seconds,
    )
    assert figures.errors == []
    assert figures.wrong == []
    assert figures.early >= 100


def test_random_operations(seed: int, measured: Measured):
    assert_random_operations_converge(seed, examples=60, steps=30)
    measured("random file operations", examples=60, steps=30, counter_examples=0)


def test_a_hostile_tree(tmp_path: Path, seed: int, measured: Measured):
    words = Words(random.Random(seed))
    tree = hostile_tree(tmp_path / "docs", words, depth=20_000, is_huge=True)
    check = HostileCheck(tree, tmp_path / "index")
    check.run(patience=600)
    measured(
        "hostile tree",
        files=len(tree.cases),
        unlike_expected=len(check.wrong),
        build_seconds=check.seconds,
    )
    assert check.wrong == []


@pytest.mark.skipif(not NASTY.is_dir(), reason="the collection of awkward Markdown is not here")
def test_awkward_markdown_of_others(tmp_path: Path, measured: Measured):
    files, problems = nasty_problems(tmp_path / "index")
    measured("awkward Markdown of others", files=files, problems=len(problems))
    assert problems == []


def test_idle(tmp_path: Path, seed: int, measured: Measured):
    watcher, standby = idle_share(tmp_path, seed, seconds=20)
    measured(
        "idle, over 20 s",
        watcher_percent=100 * watcher,
        standby_percent=100 * standby,
    )
    assert watcher <= 0.01
    assert standby <= 0.01
