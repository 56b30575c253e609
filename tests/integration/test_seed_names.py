"""Every test that the seeds name exists under that name."""

import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
SEEDS = TESTS.parents[1] / "shared" / "seeds"
NAME = re.compile(r"`(test_\w+)`")
# 000 names tests for each proposal and again in section 9; 003 in section 5.
SECTIONS = {
    "000": re.compile(r"^### P\d+:.*?(?=^### |^## )|^## 9\..*?(?=^## )", re.MULTILINE | re.DOTALL),
    "003": re.compile(r"^## 5\..*?(?=^## )", re.MULTILINE | re.DOTALL),
}


def named(seed):
    [path] = SEEDS.glob(f"{seed}_*.txt")
    sections = SECTIONS[seed].findall(path.read_text(encoding="utf-8"))
    return {name for section in sections for name in NAME.findall(section)}


def existing():
    definition = re.compile(r"^(?:async )?def (test_\w+)\(", re.MULTILINE)
    files = [*(TESTS / "unit").glob("*.py"), *(TESTS / "integration").glob("*.py")]
    return {name for file in files for name in definition.findall(file.read_text(encoding="utf-8"))}


@pytest.mark.parametrize(("seed", "at_least"), [("000", 97), ("003", 41)])
def test_every_test_that_a_seed_names_exists(seed, at_least):
    if not SEEDS.is_dir():
        pytest.skip("the seeds are not beside the project: ../shared/seeds")
    names = named(seed)
    assert len(names) >= at_least, "the seed was read wrongly"
    assert sorted(names - existing()) == []
