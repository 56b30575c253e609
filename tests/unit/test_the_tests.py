"""The tests themselves: each asserts something, and a run of all of them is shared out."""

import ast
from pathlib import Path

import pytest

from tests.conftest import LONGEST

TESTS = Path(__file__).parents[1]
CHECKS = ("raises", "warns")


def asserts(function: ast.AST) -> bool:
    """By itself: a statement, an exception that must come, or a helper that is named for it."""
    for node in ast.walk(function):
        name = getattr(node, "id", getattr(node, "attr", ""))
        if isinstance(node, ast.Assert) or name in CHECKS or name.startswith("assert_"):
            return True
    return False


def without_assertion(source: str) -> list[str]:
    return [
        node.name
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.name.startswith("test_")
        and "survived" not in node.name
        and not asserts(node)
    ]


def test_every_test_asserts_something_or_is_named_for_what_is_survived():
    files = [file for file in TESTS.rglob("test_*.py") if "fixtures" not in file.parts]
    found = {
        str(file.relative_to(TESTS)): names
        for file in files
        if (names := without_assertion(file.read_text(encoding="utf-8")))
    }
    assert not found, "assert what must be, or say in the name that something is survived"


@pytest.mark.parametrize(
    ("body", "is_seen"),
    [
        ("work()", True),
        ("until(lambda: work())", True),
        ("assert work()", False),
        ("assert_found(work())", False),
        ("with pytest.raises(ValueError): work()", False),
    ],
)
def test_a_test_without_an_assertion_is_seen(body, is_seen):
    assert bool(without_assertion(f"def test_one():\n    {body}\n")) == is_seen
    assert without_assertion(f"def test_all_is_survived():\n    {body}\n") == []


def test_the_longest_files_are_there_and_named_once():
    assert [name for name in LONGEST if not (TESTS / name).is_file()] == []
    assert len(set(LONGEST)) == len(LONGEST)
