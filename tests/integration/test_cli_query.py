"""`query` as a person uses it: built at first use, cited, in step with edits, honest exits."""

import json
import os
from pathlib import Path

import pytest
from click.testing import CliRunner

from ragdocs.cli.main import main
from ragdocs.cli.query import queries_of
from tests.support.indexes import write

AUTH = """# Authentication

## Sign in

Use your e-mail address and the password that was sent to you.

## Sign out

Press the button at the top of every page.
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("query")
    write(folder, "docs/auth.md", AUTH)
    write(folder, "docs/garden.md", "# Garden\n\nTomatoes need sun.\n\n```sh\nwater --daily\n```\n")
    return folder


@pytest.fixture
def run(place, one_model):
    # What is known of its files is shared with the other tests; finding it out takes seconds.
    cache = os.environ.get("XDG_CACHE_HOME", str(Path.home() / ".cache"))
    runner = CliRunner(env={"HOME": str(place), "XDG_CACHE_HOME": cache})

    def invoke(*words, docs="docs"):
        arguments = [
            "query",
            *words,
            "--docs",
            str(place / docs),
            "--index",
            str(place / docs) + ".ix",
        ]
        return runner.invoke(main, arguments, catch_exceptions=False)

    return invoke


def test_first_use_builds_the_index_and_answers(run, monkeypatch):
    monkeypatch.undo()  # with a model that the command makes itself
    result = run("how", "do", "I", "log", "in")
    assert result.exit_code == 0
    assert "/docs/auth.md:" in result.stdout.splitlines()[0]
    assert "password" in result.stdout
    assert "2 files" in result.stderr


def test_a_list_has_two_lines_for_each(run):
    lines = run("tomatoes", "--output", "list", "-n", "1").stdout.splitlines()
    assert len(lines) == 2
    assert lines[0].startswith("1. ")
    assert "/docs/garden.md:1-" in lines[0]
    assert "Tomatoes need sun." in lines[1]


def test_matches_are_as_grep_gives_them(run):
    lines = run("tomatoes", "-o", "matches", "-n", "1").stdout.splitlines()
    (line,) = lines
    assert line.endswith("/docs/garden.md:3: Tomatoes need sun.")


def test_a_result_is_a_file_that_an_editor_opens_from_here(place, run, monkeypatch):
    def first(folder):
        monkeypatch.chdir(folder)
        (line,) = run("tomatoes", "-o", "matches", "-n", "1").stdout.splitlines()
        return line.removesuffix(":3: Tomatoes need sun.")

    assert first(place / "docs") == "garden.md"
    assert first(place) == "docs/garden.md"
    elsewhere = Path(first(Path(__file__).parent))
    assert elsewhere.is_absolute()
    assert elsewhere.samefile(place / "docs" / "garden.md")


def test_json_has_everything(run):
    value = json.loads(run("tomatoes", "--json", "--explain").stdout)
    first = value["results"][0]
    assert first["path"] == "garden.md"
    assert first["line_start"] == 1
    assert 0 <= first["confidence"] <= 1
    assert value["index"]["state"] == "ready"
    assert value["index"]["complete"] is True
    assert value["stats"]["original_count"] >= 1
    assert value["explanation"]["queries"][0]["text"] == "tomatoes"
    evidence = value["explanation"]["results"][0]["evidence"]["keyword"]
    assert set(evidence) == {"rank", "score"}  # as an MCP answer has it


def test_explain_shows_indices_and_stages(run):
    shown = run("tomatoes", "--explain", "-o", "list").stdout
    assert "keyword" in shown
    assert "semantic" in shown
    assert "top_n" in shown


def test_edits_are_seen_though_no_server_runs(run, place):
    write(place, "docs/boats.md", "# Boats\n\nKeelhauling is forbidden.\n")
    assert "boats.md" in run("keelhauling", "-o", "list").stdout
    os.unlink(place / "docs/boats.md")
    assert "boats.md" in run("keelhauling", "-o", "list", "--no-update").stdout
    assert "boats.md" not in run("keelhauling", "-o", "list").stdout


def test_filters_confine_the_answer(run):
    assert "garden.md" not in run("tomatoes", "--exclude", "garden.md", "-o", "list").stdout
    only = run("anything", "--language", "sh", "-o", "list").stdout
    assert "garden.md" in only
    assert "auth.md" not in only


def test_nothing_good_enough_is_an_exit_status_of_its_own(run):
    result = run("quantum", "chromodynamics", "--min-score", "0.99")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "Nothing was found." in result.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["x", "--top-n", "0"], "top_n"),
        (["-f", " "], "--filter is blank"),
        (["x", "--top-n", "51"], "top_n"),
        (["x", "--min-score", "2"], "min_score"),
        (["   "], "empty"),
        (["x" * 2001], "2000"),
        (["x", "--modified-after", "soon"], "soon"),
        (["x", "--outptu", "list"], "--output"),
    ],
)
def test_wrong_use_is_said_with_what_is_right(run, words, said):
    result = run(*words)
    assert result.exit_code == 2
    assert said in result.stderr.replace(",", "")
    assert "Traceback" not in result.stderr


def test_an_index_that_cannot_be_used_has_its_own_exit_status(run, place):
    write(place, "other/a.md", "# A\n\nText.\n")
    assert run("text", docs="other").exit_code == 0
    store = place / "other.ix" / "store.db"
    store.unlink()
    store.mkdir()
    (store / "someone's").write_text("file", encoding="utf-8")
    result = run("text", "--no-update", docs="other")
    assert result.exit_code == 3
    assert "store.db" in result.stderr
    assert "Nothing was found" not in result.stderr


def test_a_tree_that_is_not_there_is_no_empty_answer(run):
    result = run("tomatoes", "--tree", "dosc")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "there is no tree `dosc`; there is `docs`" in result.stderr


def test_a_folder_without_documents_is_said_to_be_one(run, place):
    (place / "empty").mkdir()
    result = run("tomatoes", docs="empty")
    assert result.exit_code == 1
    assert "the index has no document" in result.stderr


def test_words_that_no_document_has_are_answered_with_the_nearest(run):
    result = run("tomat", "--min-score", "0.99")
    assert result.exit_code == 1
    assert "the nearest words: tomatoes" in result.stderr


def test_debug_says_where_things_are_and_where_the_time_went(run, place):
    result = run("tomatoes", "--debug")
    assert f"debug: trees: docs ({place / 'docs'})" in result.stderr
    assert f"debug: index: {place / 'docs.ix'}, generation " in result.stderr
    assert "debug: retrieval: " in result.stderr
    assert "debug:" not in run("tomatoes").output


def test_doubtful_answers_are_said_to_be_so(run):
    assert "certain answer" in run("zxqv", "plugh").stderr
    assert "certain answer" not in run("tomatoes").stderr


def test_a_folder_of_other_files_is_refused_in_one_line(run, place):
    write(place, "plain/a.md", "# A\n\nword\n")
    write(place, "plain.ix/letter.txt", "Dear aunt\n")
    result = run("word", docs="plain")
    assert result.exit_code == 3
    assert result.stderr.count("is not an index of this program") == 1
    assert result.stderr.startswith(f"Error: {place / 'plain.ix'} is not empty")
    assert [one.name for one in (place / "plain.ix").iterdir()] == ["letter.txt"]


def test_a_documents_text_cannot_speak_to_the_terminal(run, place):
    write(place, "evil/a.md", "# Evil\n\nred \x1b[31mtext \u202eback\n")
    shown = run("evil", docs="evil").stdout
    assert "\x1b[31m" not in shown
    assert "\u202e" not in shown
    assert "\\u001b" in shown


@pytest.mark.parametrize(
    ("words", "queries"),
    [
        (("how", "do", "I"), ("how do I",)),
        (("sign in",), ("sign in",)),
        (("sign in", "token"), ("sign in", "token")),
    ],
)
def test_words_are_one_question_and_quoted_ones_several(words, queries):
    assert queries_of(words) == queries


@pytest.mark.parametrize("form", ["full", "list", "matches"])
def test_a_line_break_in_a_file_name_cannot_look_like_another_result(run, place, form):
    write(place, "forged/a.md:1-3  T  99 %\n2. real.md", "# Quokka\n\nFacts about quokkas.\n")
    write(place, "forged/b\n3. real.md", "# Quokka\n\nMore about quokkas.\n")
    shown = run("quokka", "-o", form, docs="forged").stdout
    assert "b\\n3. real.md" in shown
    assert not any(line.startswith(("2. real", "3. real")) for line in shown.splitlines())


def test_the_settings_of_words_merging_and_cutoff_can_be_those_of_one_query(run):
    assert "Did you mean: tomatoes" in run("tomatoos", "-o", "list").stderr
    assert "Did you mean" not in run("tomatoos", "-o", "list", "--fuzzy", "0").stderr
    words = ("sign", "button", "-o", "list", "--min-score", "0")
    assert "cutoff" in run(*words, "--explain", "--cutoff-ratio", "0.9").stdout
    assert "cutoff" not in run(*words, "--explain", "--cutoff-ratio", "0").stdout
    assert "merge" in run(*words, "--explain").stdout
    assert "merge" not in run(*words, "--explain", "--no-merge").stdout


@pytest.mark.parametrize(
    ("option", "said"),
    [
        (("--fuzzy", "3"), "'--fuzzy': 3 is not a number from 0 to 2"),
        (("--cutoff-ratio", "2"), "from 0 to 1"),
    ],
)
def test_a_setting_of_one_query_has_the_range_of_the_setting(run, option, said):
    result = run("tomatoes", *option)
    assert result.exit_code == 2
    assert said in result.stderr


@pytest.mark.parametrize("word", ["-deprecated", "-old", "-notes"])
def test_a_word_with_a_minus_that_is_read_as_options_gets_advice(run, word):
    result = run("tomatoes", word)
    assert result.exit_code == 2
    assert f"with the word {word[1:]!r}" in result.stderr
    assert f"-- lemon {word}" in " ".join(result.stderr.split())


def test_a_date_may_be_written_in_words(run):
    assert run("tomatoes", "--modified-after", "yesterday").exit_code == 0
    assert run("tomatoes", "--modified-before", "2w").exit_code == 1


def test_each_result_in_json_has_its_slug_and_position(run):
    results = json.loads(run("sign", "out", "button", "--json", "--no-merge").stdout)["results"]
    assert all(one["id"].endswith(f"#{one['slug']}") or not one["slug"] for one in results)
    assert all(isinstance(one["position"], int) for one in results)


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("search", "query"), ("find", "query"), ("reindex", "rebuild-index"), ("serve-mcp", "mcp")],
)
def test_near_names_of_commands_are_understood(typed, meant):
    shown = CliRunner().invoke(main, [typed, "--help"])
    assert shown.exit_code == 0
    assert f" {meant} [OPTIONS]" in shown.output


def test_a_mistyped_command_names_the_right_one_and_a_question_its_command():
    assert "Did you mean 'query'?" in CliRunner().invoke(main, ["serch", "x"]).stderr
    asked = CliRunner().invoke(main, ["how do I sign in"])
    assert asked.exit_code == 2
    assert "`ragdocs query 'how do I sign in'`" in asked.stderr


def test_summaries_of_commands_are_whole():
    shown = CliRunner().invoke(main, ["--help"], terminal_width=60).output
    assert "..." not in shown.partition("Commands:")[2]
    for name in main.commands:
        assert f"\n  {name} " in shown


def test_a_query_says_in_one_line_that_it_rebuilt_a_damaged_index(place, run):
    write(place, "harmed/garden.md", "# Garden\n\nTomatoes need sun.\n")
    run("tomatoes", docs="harmed")
    store = place / "harmed.ix" / "store.db"
    store.write_bytes(b"this is no database " * 500)
    rebuilt = run("tomatoes", docs="harmed")
    assert rebuilt.exit_code == 0
    assert "/harmed/garden.md:" in rebuilt.stdout.splitlines()[0]
    (note,) = (line for line in rebuilt.stderr.splitlines() if line.startswith("note: "))
    assert note.startswith("note: the index was rebuilt: ")
    assert "rebuilt" not in run("tomatoes", docs="harmed").stderr
