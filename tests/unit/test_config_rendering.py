"""The example file and the reference page say what the models say."""

import re
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from ragdocs.config.loading import read_config
from ragdocs.config.problems import ANY, settings
from ragdocs.config.reference import example_file, reference_page
from ragdocs.text import toml_key, toml_value

REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("path", "render"),
    [("config.example.toml", example_file), ("docs/configuration.md", reference_page)],
)
def test_the_kept_file_is_what_would_be_generated(path, render):
    kept = (REPOSITORY / path).read_text(encoding="utf-8")

    assert kept == render(), "run scripts/generate_config_docs.py"


def read(folder: Path, text: str):
    (folder / ".ragdocs.toml").write_text(text, encoding="utf-8")
    return read_config(cwd=folder, environ={"HOME": str(folder / "home")})


def in_force(config) -> dict[str, object]:
    return {one.key: one.value for one in config.in_force()}


def test_the_example_as_it_stands_changes_nothing(tmp_path):
    defaults = read(tmp_path, "")

    example = read(tmp_path, example_file())

    assert example.problems == example.notes == ()
    assert in_force(example.config) == in_force(defaults.config)
    assert example.config.trees == defaults.config.trees


def test_the_example_with_every_line_uncommented_is_still_the_defaults(tmp_path):
    defaults = read(tmp_path, "").config
    text, count = re.subn(r"^#(?=[\[a-z])", "", example_file(), flags=re.MULTILINE)

    example = read(tmp_path, text)

    assert count > 80
    assert example.problems == ()
    assert in_force(example.config) == in_force(defaults)
    (named,), (tree,) = example.config.trees, defaults.trees
    assert replace(named, name=tree.name) == tree
    mine, usual = (one.fingerprint_settings() for one in (example.config, defaults))
    assert {**mine, "tree": None} == {**usual, "tree": None}


def test_the_example_has_every_setting():
    text = re.sub(r"^#\s*(?=[\[a-z])", "", example_file(), flags=re.MULTILINE)
    for path in settings():
        if path != ("context", "rules"):
            assert re.search(rf"^{path[-1]} = ", text, re.MULTILINE), path


def test_the_rule_in_the_example_is_one(tmp_path):
    shown = [line[4:] for line in example_file().splitlines() if line.startswith("#   ")]

    config = read(tmp_path, "\n".join(shown)).config

    assert config.context.rules[0].match == ("src/api/**",)


def test_the_page_has_every_setting_with_its_default():
    page = reference_page()
    for one in settings().values():
        default = re.escape(toml_value(one.default))
        row = rf"^\| `{one.name}` \| (required|of `\[indexing\]`|`{default}`)"
        assert re.search(row, page, re.MULTILINE), one.path
    assert ANY not in re.findall(r"^### (.*)$", page, re.MULTILINE)


@pytest.mark.parametrize(
    "value",
    [
        True,
        0,
        -3,
        1.5,
        1e-7,
        "",
        'a "quoted" \\ text',
        "tab\tline\n",
        "\x7f\x00",
        "é",
        [],
        ["a", ["b"]],
        {"a b": 1},
    ],
)
def test_values_are_written_as_toml_reads_them(value):
    assert tomllib.loads(f"value = {toml_value(value)}")["value"] == value


@pytest.mark.parametrize("name", ["a", "a-b", "a.b", "ä", "", 'q"'])
def test_names_are_written_as_toml_reads_them(name):
    assert tomllib.loads(f"{toml_key(name)} = 1") == {name: 1}
