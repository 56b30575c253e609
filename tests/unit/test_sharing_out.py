"""The list of the longest files, by which a run of all tests is shared out."""

from pathlib import Path

from tests.conftest import LONGEST


def test_the_longest_files_are_there_and_named_once():
    tests = Path(__file__).parents[1]
    assert [name for name in LONGEST if not (tests / name).is_file()] == []
    assert len(set(LONGEST)) == len(LONGEST)
