"""CONTRIBUTING.md: its examples run, and what it names is there."""

import re
import shlex
from pathlib import Path

import pytest

from ragdocs.mcp_server.host import ServedApp
from ragdocs.search.stages import run_stages
from tests.support.engine import candidates
from tests.support.mcp_clients import indexed_app
from tests.support.processes import run_python
from tests.support.stores import ANALYZER, Corpus

PROJECT = Path(__file__).parents[2]
PAGE = (PROJECT / "CONTRIBUTING.md").read_text(encoding="utf-8")
TEXTS = {
    "a.md": "# Apples\n\nAn apple, another apple and a pear.\n",
    "b.md": "# Pears\n\nA pear.\n",
}


def section(heading):
    [found] = re.findall(rf"^## {heading}\n(.*?)(?=^## (?:Add|Write) |\Z)", PAGE, re.M | re.S)
    return found


def block(heading, kind):
    [found] = re.findall(rf"^```{kind}\n(.*?)^```", section(heading), re.M | re.S)
    return found


def example(heading):
    names = {"__name__": "example"}
    exec(compile(block(heading, "python"), heading, "exec", dont_inherit=True), names)
    return names


@pytest.mark.parametrize("line", block("Run the tests", "sh").splitlines())
def test_one_file_and_one_test_are_run_as_is_said(line):
    words = shlex.split(line)
    assert words[:3] == [".venv/bin/python", "-m", "pytest"]
    done = run_python("-m", "pytest", "-q", "-p", "no:cacheprovider", *words[3:], cwd=PROJECT)
    assert re.search(r"\d+ passed", done.stdout)
    assert ("deselected" in done.stdout) == ("-k" in words)


def test_the_setting_has_its_default_and_its_range():
    settings = example("Add a setting")["TitleConfig"]
    assert settings().most_words == 20
    with pytest.raises(ValueError, match="less than or equal to 100"):
        settings(most_words=101)


def test_the_stage_runs_and_tells_why_a_candidate_fell():
    found = candidates("Short.", "A text that is long enough to be kept.")
    left, [count] = run_stages([example("Add a search stage")["STAGE"]], found, explain=True)
    assert [item.document.path for item in left] == ["1.md"]
    assert (count.name, count.before, count.after) == ("short", 2, 1)
    assert [fallen.reason for fallen in count.fallen] == ["its text is short"]


def test_the_tool_is_listed_and_answers(tmp_path):
    tool = example("Add a tool")["TOOL"]
    assert tool.to_tool().output_schema["properties"].keys() == {"documents"}
    with indexed_app(tmp_path, TEXTS) as app:
        given = tool.give(ServedApp(app), tool.arguments.read({}))
    assert given.structured == {"documents": 2}
    assert given.text == "2 documents"


def test_the_engine_finds_what_has_the_words(tmp_path):
    from ragdocs.indices.keyword import compile_query
    from ragdocs.search.query_language import parse_query

    engine = example("Add a keyword engine")["CountingEngine"](ANALYZER)
    with Corpus(tmp_path, TEXTS).snapshot() as snapshot:
        engine.catch_up(snapshot)
        found = engine.search(snapshot, compile_query(parse_query("apples"), ANALYZER), 5)
        names = snapshot.chunks_by_key([hit.key for hit in found.hits])
        assert [each.chunk.doc_id for each in names.values()] == ["docs:a.md"]
        assert found.scores_of([hit.key for hit in found.hits])
        assert engine.frequencies(snapshot, ["pear"]) == {"pear": 2}
        assert engine.count(snapshot) == 2


def test_a_spec_as_it_is_shown_has_the_parts_that_are_asked_for():
    from tests.unit.test_specs import PARTS

    shown = block("Write a spec", "text")
    assert re.findall(r"^## (.+)$", shown, re.M) == PARTS
    assert re.match(r"# \d{4}: .+\n\nDate: \d{4}-\d\d-\d\d\. Status: ", shown)


def test_every_file_module_and_target_that_is_named_is_there():
    source = PROJECT / "src" / "ragdocs"
    named = set(re.findall(r"`((?:[\w.-]+/)*[\w-]+\.(?:py|md|toml))`", PAGE))
    assert len(named) > 20
    assert [
        name for name in named if not any((at / name).is_file() for at in (PROJECT, source))
    ] == []
    support = {path.stem for path in (PROJECT / "tests" / "support").glob("*.py")}
    [listed] = re.findall(r"one module per topic: (.*?)for programs", PAGE, re.S)
    assert set(re.findall(r"`(\w+)`", listed)) == support
    targets = set(re.findall(r"^([\w-]+):", (PROJECT / "Makefile").read_text("utf-8"), re.M))
    for words in re.findall(r"`make ([^`]+)`", PAGE):
        assert set(words.split()) <= targets
    for target in re.findall(r"\]\(([^)#]+)", PAGE):
        assert (PROJECT / target).exists(), target
    assert "(CONTRIBUTING.md)" in (PROJECT / "README.md").read_text(encoding="utf-8")
