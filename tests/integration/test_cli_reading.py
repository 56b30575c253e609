"""`get`, `ls`, `related`, `context`: what is indexed, word for word, and what goes with it."""

import json
import os
from pathlib import Path

import pytest
from click.testing import CliRunner

from ragdocs.cli.main import main
from tests.support.indexes import write
from tests.support.program import called

AUTH = (
    """---
title: Authentication
tags: [security]
---
# Authentication

See [tokens](tokens.md) first.

## Sign in

"""
    + "Use your e-mail address and the password that was sent to you.\n" * 20
)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reading")
    write(folder, "docs/auth.md", AUTH)
    write(folder, "docs/tokens.md", "# Tokens\n\nA bearer token lives for an hour.\n")
    write(folder, "src/bearer_token.py", "# renews the bearer token\ndef renew_token(): ...\n")
    cache = os.environ.get("XDG_CACHE_HOME", str(Path.home() / ".cache"))
    runner = CliRunner(env={"HOME": str(folder), "XDG_CACHE_HOME": cache})
    place = ["--docs", str(folder / "docs"), "--index", str(folder / "index")]
    assert runner.invoke(main, ["update", *place]).exit_code == 0

    def invoke(*words, stdin=None):
        paths = [str(folder / word) if word.startswith("src/") else word for word in words]
        return runner.invoke(
            main, [*paths, *place, "--no-update"], input=stdin, catch_exceptions=False
        )

    return invoke


def test_get_gives_the_file_word_for_word(run):
    assert run("get", "auth.md").stdout == AUTH


def test_get_gives_a_section_and_some_lines(run):
    section = run("get", "auth.md#sign-in").stdout
    assert section.startswith("## Sign in\n")
    assert run("get", "auth.md:7-7").stdout == "See [tokens](tokens.md) first.\n"


def test_a_folder_is_told_with_the_command_that_lists_it(tmp_path):
    write(tmp_path, "docs/two words/auth.md", AUTH)
    place = ["--docs", str(tmp_path / "docs"), "--index", str(tmp_path / "index")]
    done = CliRunner().invoke(main, ["get", "two words", *place])
    assert "`two words` is a folder, not a document: `ragdocs ls docs" in done.stderr
    assert "--path 'two words'" in done.stderr


def test_a_documents_lines_are_as_many_wherever_they_are_told(run):
    listed = json.loads(run("ls", "docs", "--path", "tokens.md", "--json").stdout)["documents"]
    got = json.loads(run("get", "tokens.md", "--json").stdout)
    assert (listed[0]["lines"], got["total_lines"]) == (3, 3)


def test_an_outline_has_lines_and_sizes(run):
    lines = run("get", "auth.md", "--outline").stdout.splitlines()
    assert [line.split()[-1] for line in lines] == ["Authentication", "in"]
    assert lines[1].split()[0].startswith("9-")


def test_a_large_document_is_given_whole(run, tmp_path):
    text = "# Large\n\n" + "word " * 40_000 + "\n"
    write(tmp_path, "docs/large.md", text)
    runner = CliRunner(env={"HOME": str(tmp_path)})
    place = ["--docs", str(tmp_path / "docs"), "--index", str(tmp_path / "index")]
    runner.invoke(main, ["update", "--no-vectors", *place])
    result = runner.invoke(main, ["get", "large.md", "--no-update", "--json", *place])
    value = json.loads(result.stdout)
    assert value["text"] == text
    assert (value["cursor"], value["tokens"]) == (None, value["total_tokens"])


def test_a_mistyped_document_names_the_nearest(run):
    result = run("get", "auht.md")
    assert result.exit_code == 1
    assert "auth.md" in result.stderr


@pytest.mark.parametrize("reference", ["../../etc/passwd", "/etc/passwd", "a\0b", "x" * 100_000])
def test_nothing_outside_is_ever_shown(run, reference):
    result = run("get", reference)
    assert result.exit_code == 2
    assert "root:" not in result.output


def test_ls_lists_trees_documents_tags_headings_and_chunks(run):
    assert run("ls", "trees").stdout.startswith("docs  local  2 documents")
    assert [line.split()[0] for line in run("ls").stdout.splitlines()] == [
        "docs:auth.md",
        "docs:tokens.md",
    ]
    assert run("ls", "tags").stdout == "security  1 document\n"
    assert "## Sign in" in run("ls", "outlines", "--path", "auth.md").stdout
    chunks = json.loads(run("ls", "chunks", "--path", "tokens.md", "--json").stdout)["chunks"]
    assert chunks[0]["id"] == "docs:tokens.md"


def test_related_tells_links_from_likeness(run):
    shown = run("related", "tokens.md").stdout
    assert "linked from\n  auth.md:7" in shown
    value = json.loads(run("related", "auth.md", "--json").stdout)
    assert value["links"][0]["path"] == "tokens.md"
    assert [one["path"] for one in value["community"]] == ["tokens.md"]
    assert {one["path"] for one in value["similar_by_meaning"]} == {"tokens.md"}


def test_related_does_not_choose_between_two_documents(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    write(tmp_path, "notes/a/Engine.md", "# Engine\n\nSteam.\n")
    write(tmp_path, "notes/b/Engine.md", "# Engine\n\nPetrol.\n")
    write(tmp_path, "Engine.md", "# Another\n\nSteam and petrol.\n")
    found = called(tmp_path, "related", "Engine.md", "--docs", "notes")
    assert found.returncode == 2
    assert "could be 2 documents" in found.stderr


def test_context_finds_the_documentation_of_a_source_file(run):
    result = run("context", "src/bearer_token.py", "--explain")
    assert result.exit_code == 0
    assert "/docs/tokens.md:" in result.stdout.splitlines()[0]
    assert "query: " in result.stdout


def test_context_reads_a_diff(run):
    diff = (
        "--- a/src/auth.py\n+++ b/src/auth.py\n@@ -1 +1,2 @@\n"
        " import token\n+# the bearer token lives for an hour\n"
    )
    printed = run("context", "--diff", "--json", stdin=diff).stdout
    assert run("context", "-", "--json", stdin=diff).stdout == printed
    value = json.loads(printed)
    # The one has the changed file's name, the other what the diff adds.
    snippets = {found["path"]: found["snippet"]["highlighted"] for found in value["results"][:2]}
    assert set(snippets) == {"auth.md", "tokens.md"}
    assert "**bearer**" in snippets["tokens.md"]


def test_context_without_anything_says_what_to_give(run):
    result = run("context")
    assert result.exit_code == 2
    assert "--diff" in result.stderr
    assert run("context", "src/gone.py").exit_code == 2


def test_rules_see_a_source_file_from_the_configurations_folder(tmp_path, monkeypatch):
    write(tmp_path, "docs/style.md", "# Style\n\nTabs or spaces.\n")
    write(tmp_path, "src/deep/a.py", "nothing = 1\n")
    rule = '[[context.rules]]\nmatch = "src/**"\ninclude = ["docs:style.md"]\n'
    place = f'[indexing]\ndocuments_path = "docs"\nindex_path = "{tmp_path / "ix"}"\n'
    config = write(tmp_path, ".ragdocs.toml", place + rule)
    monkeypatch.chdir(tmp_path / "src")
    runner = CliRunner(env={"HOME": str(tmp_path)})
    arguments = ["--config", str(config)]
    assert runner.invoke(main, ["update", "--no-vectors", *arguments]).exit_code == 0
    words = ["context", "deep/a.py", "--json", "--no-update", *arguments]
    value = json.loads(runner.invoke(main, words).stdout)
    assert [one["path"] for one in value["included"]] == ["style.md"]
