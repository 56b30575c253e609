"""The parity pages name only what there is; docs/parity.md the defaults in force."""

import ast
import re
from dataclasses import fields
from functools import cache
from pathlib import Path

import click
import pytest

from ragdocs.cli.main import main
from ragdocs.config.settings import Settings
from ragdocs.mcp_server.search_tool import FoundPassage, SearchAnswer
from ragdocs.mcp_server.tools import TOOLS
from ragdocs.search.responses import SearchResult
from ragdocs.search.stages import CompressionStats
from ragdocs.text import toml_value

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "parity.md").read_text(encoding="utf-8")
RA_PAGE = (ROOT / "docs" / "ra-parity.md").read_text(encoding="utf-8")
BOTH = f"{PAGE}\n{RA_PAGE}"
TESTS = sorted(set(re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", BOTH)))
COMMANDS = sorted(set(re.findall(r"`ragdocs ([a-z -]+)`", BOTH)))
SETTINGS = sorted(set(re.findall(r"`((?:search|chunking|context)\.[a-z_.]+)`", BOTH)))
PROPOSALS = [f"P{number}" for number in range(1, 14)]


def table(heading):
    """The rows of the tables below a heading, without their heads."""
    section = PAGE.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    lines = section.splitlines()
    is_head = [after.startswith("|---") for after in [*lines[1:], ""]]
    return [
        [cell.strip() for cell in line.strip("|").split(" | ")]
        for line, head in zip(lines, is_head, strict=True)
        if line.startswith("| ") and not head
    ]


FEATURES = [
    row
    for heading in (
        "The thirteen proposals",
        "Strategies",
        "Fusion, calibration and the order of stages",
        "Acceptance criteria",
        "Commands and tools",
    )
    for row in table(heading)
]
RA_FEATURES = [
    [cell.strip() for cell in line.strip("|").split(" | ")]
    for line in RA_PAGE.split("## Names in an answer")[0].splitlines()
    if line.startswith("| ") and not line.startswith("| ra |")
]
DIFFERING = table("Settings whose defaults differ")


@cache
def functions(path):
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def default(setting):
    section = Settings()
    for name in setting.split("."):
        section = getattr(section, name)
    return section


def is_known(setting):
    try:
        default(setting)
    except AttributeError:
        return False
    return True


@pytest.mark.parametrize("rows", [FEATURES, RA_FEATURES], ids=["parity", "ra-parity"])
def test_every_feature_has_its_way_here_and_its_proof(rows):
    assert len(rows) > 50
    for row in rows:
        assert len(row) == 3, row
        _, here, proof = row
        assert "`" in here, row
        assert "::test_" in proof or "benchmarks/" in proof, row


def test_every_proposal_is_there():
    named = [row[0].partition(",")[0] for row in table("The thirteen proposals")]
    assert [name for name in named if not name.startswith("…")] == PROPOSALS


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
    assert is_known(setting), f"no setting {setting}"


@pytest.mark.parametrize("row", DIFFERING, ids=lambda row: row[0])
def test_the_defaults_on_the_page_are_right(row):
    setting, there, here, why = row
    value = default(setting.strip("`"))
    assert here.strip("`") == toml_value(value)
    assert there != toml_value(value)
    assert any(character.isdigit() for character in why)


def test_every_setting_of_the_documents_that_differs_has_a_row():
    """What they print, by the test that loads it; the page has what is another default here."""
    printed = {
        "semantic_weight": 1.0,
        "keyword_weight": 1.0,
        "recency_bias": 0.5,
        "rrf_k_constant": 60,
        "min_confidence": 0.3,
        "score_calibration_threshold": 0.035,
        "score_calibration_steepness": 150.0,
        "dedup_enabled": False,
        "ngram_dedup_enabled": True,
        "ngram_dedup_threshold": 0.7,
        "mmr_enabled": False,
        "mmr_lambda": 0.7,
        "rerank_enabled": False,
        "rerank_top_n": 10,
        "adaptive_weights_enabled": True,
        "query_expansion_enabled": True,
        "code_search_enabled": False,
        "code_search_weight": 1.0,
        "graph_neighbor_weight": 0.5,
        "graph_depth": 1,
        "advanced.community_detection_enabled": True,
        "advanced.community_boost_factor": 1.1,
        "advanced.dynamic_weights_enabled": True,
        "advanced.variance_threshold": 0.1,
        "advanced.hyde_enabled": True,
        "boosts.title": 3.0,
        "boosts.headers": 2.5,
        "boosts.keywords": 2.5,
        "boosts.description": 2.0,
        "boosts.tags": 2.0,
        "boosts.aliases": 1.5,
        "boosts.author": 1.0,
    }
    differing = {
        f"`search.{name}`"
        for name, value in printed.items()
        if default(f"search.{name}") != pytest.approx(value)
    }
    assert differing <= {row[0] for row in DIFFERING}


def test_tools_and_their_parameters_exist():
    named = re.findall(r"`(query_documents|search_with_hypothesis)` \(([^)]+)\)", PAGE)
    assert named
    for tool, parameters in named:
        known = TOOLS[tool].arguments.model_fields
        assert set(re.findall(r"`(\w+)`", parameters)) <= set(known), (tool, parameters)


def test_the_names_of_an_answer_are_those_that_it_has():
    kinds = (FoundPassage, SearchAnswer, SearchResult)
    known = {field.name for kind in kinds for field in fields(kind)}
    known |= set(TOOLS["query_documents"].arguments.model_fields)
    stated = RA_PAGE.split("## Names in an answer")[1].split("\n## ")[0]
    ra_names = re.findall(r"^\| .+? \| (.+) \|$", stated, re.M)[1:]
    assert len(ra_names) >= 5
    for here in [*(here for _, here in table("Names in an answer")), *ra_names]:
        if not here.startswith("none"):
            assert set(re.findall(r"`(\w+)`", here)) <= known, here
    stated = PAGE.split("`stats` has the documents' own names:")[1].split(".")[0]
    assert set(re.findall(r"`(\w+)`", stated)) == {field.name for field in fields(CompressionStats)}


def test_every_linked_page_exists():
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", BOTH):
        assert (ROOT / "docs" / target).is_file(), target


def test_the_readme_leads_here():
    assert "](docs/parity.md)" in (ROOT / "README.md").read_text(encoding="utf-8")
