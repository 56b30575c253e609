"""docs/ra-parity.md names only what there is."""

import ast
import re
from functools import cache
from pathlib import Path

import click
import pytest

from ragdocs.cli.main import main
from ragdocs.config.sections import Settings

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "ra-parity.md").read_text(encoding="utf-8")
ROWS = [
    [cell.strip() for cell in line.strip("|").split(" | ")]
    for line in PAGE.split("## Several trees, measured")[0].splitlines()
    if line.startswith("| ") and not line.startswith("| ra |")
]
TESTS = sorted(set(re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", PAGE)))
COMMANDS = sorted(set(re.findall(r"`ragdocs ([a-z -]+)`", PAGE)))
SETTINGS = sorted(set(re.findall(r"`((?:search|chunking|context)\.[a-z_.]+)`", PAGE)))


@cache
def functions(path):
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def test_every_feature_has_its_way_here_and_its_proof():
    assert len(ROWS) > 50
    for row in ROWS:
        assert len(row) == 3, row
        _, here, proof = row
        assert "`" in here, row
        assert "::test_" in proof or "benchmarks/" in proof, row


@pytest.mark.parametrize("path", sorted({path for path, _ in TESTS}))
def test_every_named_test_exists(path):
    named = {name for where, name in TESTS if where == path}
    assert named <= functions(path), named - functions(path)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_named_command_exists(command):
    found = main
    for word in command.split():
        assert isinstance(found, click.Group)
        assert word in found.commands, command
        found = found.commands[word]


@pytest.mark.parametrize("setting", SETTINGS)
def test_every_named_setting_exists(setting):
    section = Settings()
    for name in setting.split("."):
        assert hasattr(section, name), setting
        section = getattr(section, name)


def test_every_linked_page_exists():
    for target in re.findall(r"\]\(([^)#]+)\)", PAGE):
        assert (ROOT / "docs" / target).is_file(), target
