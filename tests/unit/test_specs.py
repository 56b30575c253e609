"""The decisions under specs: numbered, listed, each with its four parts, and found when named."""

import importlib.util
import re
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]
SPECS = PROJECT / "specs"
FILES = sorted(path for path in SPECS.iterdir() if path.name != "README.md")
PARTS = ["Context", "Decision", "Measurement", "Consequences"]


def test_they_are_numbered_without_a_gap_and_none_twice():
    for path in FILES:
        assert re.fullmatch(r"\d{4}-[a-z0-9-]+\.md", path.name), path.name
    assert [int(path.name[:4]) for path in FILES] == list(range(1, len(FILES) + 1))


def test_no_spec_repeats_another():
    titles = [path.read_text(encoding="utf-8").partition("\n")[0][8:] for path in FILES]
    assert len(set(titles)) == len(titles)
    lines: dict[str, str] = {}
    for path in FILES:
        for line in path.read_text(encoding="utf-8").splitlines():
            if len(line) > 60 and not re.fullmatch(r"[-|: ]+", line):
                assert line not in lines, f"{path.name} repeats {lines.get(line)}: {line}"
                lines[line] = path.name


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_each_has_its_title_and_its_four_parts(path: Path):
    text = path.read_text(encoding="utf-8")
    assert text.startswith(f"# {path.name[:4]}: ")
    assert re.findall(r"^## (.+)$", text, re.MULTILINE) == PARTS
    for part in re.split(r"^## .+$", text, flags=re.MULTILINE)[1:]:
        assert part.strip(), "a part without a word"


def test_the_list_of_them_is_what_would_be_generated():
    path = PROJECT / "scripts" / "generate_spec_index.py"
    spec = importlib.util.spec_from_file_location("generate_spec_index", path)
    assert spec
    assert spec.loader
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    assert (SPECS / "README.md").read_text(encoding="utf-8") == script.page(), "run make docs"


def test_every_one_that_is_named_in_code_and_documentation_is_there():
    numbers = {path.name[:4] for path in FILES}
    named = 0
    for folder, pattern in (("src", "*.py"), ("benchmarks", "*.py"), ("docs", "*.md")):
        for path in (PROJECT / folder).rglob(pattern):
            for number in re.findall(r"specs/([\w.-]+)", path.read_text(encoding="utf-8")):
                named += 1
                name = number.rstrip(".")
                is_there = name in numbers or (SPECS / name).exists()
                assert is_there, f"{path.relative_to(PROJECT)}: specs/{number}"
    assert named > 10
