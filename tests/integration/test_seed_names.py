"""Every test that the plans name exists under that name."""

import re
import tomllib
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
NAMED = tomllib.loads((TESTS / "fixtures" / "named_tests.toml").read_text(encoding="utf-8"))


def existing():
    definition = re.compile(r"^(?:async )?def (test_\w+)\(", re.MULTILINE)
    files = [*(TESTS / "unit").glob("*.py"), *(TESTS / "integration").glob("*.py")]
    return {name for file in files for name in definition.findall(file.read_text(encoding="utf-8"))}


@pytest.mark.parametrize(("plan", "number"), [("search", 97), ("thinning", 41)])
def test_every_test_that_a_plan_names_exists(plan, number):
    names = set(NAMED[plan])
    assert len(names) == number
    assert sorted(names - existing()) == []
