"""With --json a command that fails prints its error as JSON, and nothing else, on stdout."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest

from ragdocs.cli.failures import NO_SPACE, STOPPED, USAGE, kind_of, wants_json
from ragdocs.cli.main import main
from ragdocs.errors import RagdocsError
from tests.support.indexes import write
from tests.support.program import called

PAGE = Path(__file__).parents[2] / "docs" / "commands.md"


def failed(folder: Path, *words: str, code: int) -> dict[str, Any]:
    done = called(folder, *words, XDG_CACHE_HOME=str(folder / "cache"), HOME=str(folder / "home"))
    assert done.returncode == code, (done.stdout, done.stderr)
    answer = json.loads(done.stdout)
    assert set(answer) == {"error", "kind", "exit_code", "advice"}
    assert answer["exit_code"] == code
    assert answer["error"] in " ".join(done.stderr.split())  # a person still reads it
    return answer


def commands(group: click.Group, *above: str) -> Iterator[tuple[str, ...]]:
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from commands(command, *above, name)
        else:
            yield (*above, name)


def command_at(words: tuple[str, ...]) -> click.Command:
    found: click.Command = main
    for word in words:
        assert isinstance(found, click.Group)
        found = found.commands[word]
    return found


WITH_JSON = [
    words
    for words in commands(main)
    if any("--json" in option.opts for option in command_at(words).params)
]


@pytest.mark.parametrize("words", WITH_JSON, ids=" ".join)
def test_a_mistyped_option_of_any_command_that_knows_json(tmp_path, words):
    answer = failed(tmp_path, *words, "--json", "--mistyped", code=2)

    assert answer["kind"] == "usage_error"
    assert "--mistyped" in answer["error"]
    assert answer["advice"] == f"`ragdocs {' '.join(words)} --help` shows what it accepts"


def test_there_are_many_such_commands():
    assert len(WITH_JSON) >= 15


def test_an_unknown_command(tmp_path):
    answer = failed(tmp_path, "qeury", "--json", code=2)

    assert (answer["kind"], answer["advice"]) == (
        "usage_error",
        "`ragdocs --help` shows what it accepts",
    )


def test_a_configuration_that_cannot_be_used(tmp_path):
    (tmp_path / ".ragdocs.toml").write_text("[search]\nmmr_lambd = 1\n", encoding="utf-8")

    answer = failed(tmp_path, "query", "x", "--json", code=2)

    assert answer["kind"] == "config_error"
    assert "`ragdocs check-config`" in answer["advice"]


def test_a_document_that_is_not_there_and_a_folder_that_is_not_ours(tmp_path):
    write(tmp_path / "notes", "a.md", "# A\n\nword\n")
    write(tmp_path / "other", "theirs.txt", "theirs")

    missing = failed(tmp_path, "get", "nothing", "--json", "--docs", "notes", code=1)
    foreign = failed(
        tmp_path, "query", "x", "--json", "--docs", "notes", "--index", "other", code=3
    )

    assert missing == json.loads(re.findall(r"```json\n(.*?)```", PAGE.read_text("utf-8"), re.S)[0])
    assert foreign["kind"] == "index_folder_foreign"


def test_the_format_asked_for_in_another_way(tmp_path):
    assert failed(tmp_path, "query", "x", "--output", "json", "--docs", "gone", code=2)


def test_without_json_stdout_stays_empty(tmp_path):
    done = called(tmp_path, "query", "x", "--docs", "gone")

    assert (done.returncode, done.stdout) == (2, "")


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (["query", "x", "--json"], True),
        (["query", "-o", "json", "x"], True),
        (["query", "--output=json", "x"], True),
        (["query", "--", "--json"], False),
        (["query", "json", "-o", "list"], False),
        ([], False),
    ],
)
def test_which_words_ask_for_json(words, wanted):
    assert wants_json(words) is wanted


def test_the_page_lists_every_kind():
    def below(error: type[RagdocsError]) -> Iterator[type[RagdocsError]]:
        yield error
        for one in error.__subclasses__():
            yield from below(one)

    ours = {one for one in below(RagdocsError) if one.__module__ == "ragdocs.errors"}
    table = PAGE.read_text(encoding="utf-8").partition("| kind |")[2].partition("\n\n")[0]
    listed = re.findall(r"`(\w+)`", table)

    assert sorted(listed) == sorted({*map(kind_of, ours), USAGE, NO_SPACE, STOPPED})
