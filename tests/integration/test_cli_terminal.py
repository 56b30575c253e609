"""`query` in a real terminal: a list that fits, links, an answer while vectors are missing."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.indexes import write
from tests.support.processes import (
    Terminal,
    environment,
    read_json,
    run_python,
    run_ragdocs,
)
from tests.support.systems.needs import posix

pytestmark = posix

LONG = (
    "Sign in with your e-mail address and the password that was sent to you when your account was "
    "opened, and change it at once, because the letter may have been read by others on its way."
)
NOTES = {
    "guides/how to begin.md": f"# Beginning\n\n## Accounts\n\n### Sign in\n\n{LONG}\n",
    "garden.md": "# Garden\n\nTomatoes need sun, and a neighbour who waters them in August.\n",
    "boats.md": "# Boats\n\nKeelhauling is forbidden on this harbour's boats.\n",
}
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\]8;;[^\x1b]*\x1b\\")
LINK = re.compile(r"\x1b\]8;;([^\x1b]+)\x1b\\")
EDITOR = "import sys; print('opened', *sys.argv[1:], sep='|')"


class Desk:
    """A folder of notes, an index of it, and a terminal."""

    def __init__(self, folder: Path, notes: dict[str, str] = NOTES) -> None:
        self.folder = folder
        self.docs = folder / "notes"
        for name, text in notes.items():
            write(self.docs, name, text)
        self.env = {
            **environment(("RAGDOCS_", "NO_COLOR", "VISUAL", "EDITOR", "COLUMNS")),
            "HOME": str(folder),
            # What is known of the model's files is shared; finding it out takes seconds.
            "XDG_CACHE_HOME": os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache"),
            "XDG_CONFIG_HOME": str(folder / "config"),
            "TERM": "xterm-256color",
        }

    @property
    def place(self) -> list[str]:
        return ["--docs", str(self.docs), "--index", str(self.folder / "index")]

    def open(self, *words: str, columns: int = 80, **changed: str) -> Terminal:
        return Terminal(*words, cwd=self.docs, env={**self.env, **changed}, columns=columns)

    def shown(self, *words: str, code: int = 0, columns: int = 80, **changed: str) -> str:
        """What it writes to a terminal; its errors go elsewhere, to `said`."""
        env = {**self.env, **changed}
        with open(self.folder / "errors.txt", "w+b") as errors:
            terminal = Terminal(*words, cwd=self.docs, env=env, columns=columns, errors=errors)
            status = terminal.end()
            errors.seek(0)
            self.said = " ".join(errors.read().decode().split())
        assert status == code, (terminal.written, self.said)
        assert "Traceback" not in self.said
        return terminal.written

    def all_shown(self, *words: str) -> str:
        terminal = self.open(*words)
        assert terminal.end() == 0
        return plain(terminal.written)


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Desk:
    made = Desk(tmp_path_factory.mktemp("desk"))
    run_ragdocs("update", *made.place, cwd=made.folder, env=made.env)
    return made


def plain(text: str) -> str:
    return ESCAPES.sub("", text)


@pytest.mark.parametrize("columns", [40, 80, 120])
def test_a_terminal_gets_a_list_with_snippets_of_two_lines_that_fits(desk, columns):
    shown = plain(desk.shown("query", "how do I sign in", *desk.place, columns=columns))
    lines = shown.splitlines()
    first = lines[: lines.index("")]
    assert first[0].startswith("1. guides/how to begin.md:")
    assert re.search(r"\d+%$", first[0])
    assert 2 <= len(first) <= 3
    assert all(line.startswith("   ") for line in first[1:])
    assert max(map(len, first[1:])) <= columns
    if columns >= 80:
        assert "Sign in  " in first[0]
        assert len(first[0]) <= columns


def test_what_is_piped_and_full_have_whole_passages(desk):
    piped = run_ragdocs("query", "how do I sign in", *desk.place, env=desk.env).stdout
    full = plain(desk.shown("query", "how do I sign in", "--full", *desk.place))
    assert "\x1b" not in piped
    assert LONG in piped
    assert LONG in full.replace("\n   ", " ")
    assert LONG not in plain(desk.shown("query", "how do I sign in", *desk.place))


def test_confidence_has_a_colour_by_its_meaning_beside_its_number(desk):
    shown = desk.shown("query", "keelhauling forbidden on boats", *desk.place)
    found = {
        int(percent): colour
        for colour, percent in re.findall(r"\x1b\[([0-9;]+m(?:\x1b\[[0-9;]+m)?)(\d+)%", shown)
    }
    assert found
    for percent, colour in found.items():
        expected = "32m" if percent >= 70 else "33m" if percent >= 30 else "2m"
        assert expected in colour, (percent, colour)
    without = desk.shown("query", "keelhauling forbidden on boats", *desk.place, NO_COLOR="1")
    assert re.search(r"\d+%", without)
    assert "\x1b" not in without


def test_places_are_links_to_the_files(desk):
    shown = desk.shown("query", "how do I sign in", *desk.place)
    host = os.uname().nodename
    path = f"{desk.docs}/guides/how%20to%20begin.md"
    assert LINK.findall(shown)[0] == f"file://{host}{path}"


@pytest.mark.parametrize(
    ("links", "expected"),
    [
        ("vscode", "vscode://file{docs}/boats.md:3"),
        ("obsidian", "obsidian://open?path={quoted}%2Fboats.md"),
        ("my-editor://show{path}?at={line}", "my-editor://show{docs}/boats.md?at=3"),
    ],
)
def test_a_setting_chooses_what_a_click_opens(desk, links, expected):
    shown = desk.shown("query", "keelhauling", *desk.place, RAGDOCS_TERMINAL__LINKS=links)
    quoted = str(desk.docs).replace("/", "%2F")
    assert expected.format(docs=desk.docs, quoted=quoted) in LINK.findall(shown)


@pytest.mark.parametrize("changed", [{"TERM": "dumb"}, {"RAGDOCS_TERMINAL__LINKS": "off"}])
def test_a_terminal_without_links_gets_none(desk, changed):
    assert not LINK.findall(desk.shown("query", "keelhauling", *desk.place, **changed))


def test_a_setting_for_links_that_is_no_address_is_refused(desk):
    desk.shown("query", "boats", *desk.place, code=2, RAGDOCS_TERMINAL__LINKS="rm {path} now")
    assert "terminal.links" in desk.said
    assert "vscode" in desk.said


def test_the_places_of_a_vault_are_links_to_obsidian(tmp_path):
    desk = Desk(tmp_path)
    (desk.docs / ".obsidian").mkdir()
    shown = desk.shown("query", "keelhauling", *desk.place)
    quoted = str(desk.docs).replace("/", "%2F")
    assert f"obsidian://open?path={quoted}%2Fboats.md" in LINK.findall(shown)


def test_places_tell_several_trees_apart(tmp_path):
    desk = Desk(tmp_path)
    write(tmp_path / "work", "boats.md", "# Boats\n\nKeelhauling at work.\n")
    places = [*desk.place, "--docs", str(tmp_path / "work")]
    shown = plain(desk.shown("query", "keelhauling", *places))
    assert "/work/boats.md:1-" in shown
    assert re.search(r"^\d\. boats\.md:1-", shown, re.MULTILINE)  # in the working directory


# `--open`.


def test_open_starts_the_editor_at_the_line_without_a_shell(desk):
    editor = f'{sys.executable} -c "{EDITOR}" "two words; $HOME"'
    shown = desk.shown("query", "keelhauling", "--open", *desk.place, VISUAL=editor, EDITOR="no")
    assert f"opened|two words; $HOME|{desk.docs}/boats.md\n" in plain(shown)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("vim", "opened|+3|{file}"),
        ("code", "opened|--goto|{file}:3"),
        ("hx", "opened|{file}:3"),
    ],
)
def test_editors_are_told_the_line_in_their_own_way(desk, tmp_path, name, expected):
    program = write(tmp_path, name, f"#!{sys.executable}\n{EDITOR}\n")
    program.chmod(0o755)
    shown = desk.shown("query", "keelhauling", "--open", "1", *desk.place, EDITOR=str(program))
    assert expected.format(file=desk.docs / "boats.md") in plain(shown)


def test_open_needs_a_result_with_that_number(desk):
    desk.shown("query", "boats", "--open", "40", *desk.place, code=1, EDITOR="true")
    assert "there is no result 40 to open" in desk.said


def test_open_never_follows_a_link_out_of_the_tree(tmp_path):
    desk = Desk(tmp_path)
    run_ragdocs("update", *desk.place, env=desk.env)
    secret = write(tmp_path, "secret.txt", "keelhauling")
    (desk.docs / "boats.md").unlink()
    (desk.docs / "boats.md").symlink_to(secret)
    words = ("query", "keelhauling", "--open", "--no-update", *desk.place)
    shown = plain(desk.shown(*words, code=1, EDITOR=f"{sys.executable} -c '{EDITOR}'"))
    assert "opened" not in shown
    assert "cannot be opened" in desk.said


def test_the_system_opens_only_text_because_it_may_run_other_files(tmp_path):
    desk = Desk(tmp_path, {"boats.md": "# Keelhauling\n", "run.desktop": "Tomatoes. Exec=true\n"})
    opener = write(tmp_path, "bin/xdg-open", f"#!{sys.executable}\n{EDITOR}\n")
    opener.with_name("open").symlink_to(opener)
    opener.chmod(0o755)
    desk.env["PATH"] = f"{opener.parent}:{os.environ['PATH']}"
    desk.env["RAGDOCS_INDEXING__INCLUDE"] = '["**/*.md", "**/*.desktop"]'
    run_ragdocs("update", "--no-vectors", *desk.place, env=desk.env)
    place = ("--open", "--no-update", *desk.place)
    assert f"opened|{desk.docs}/boats.md\n" in plain(desk.shown("query", "keelhauling", *place))
    shown = plain(desk.shown("query", "tomatoes", *place, code=1))
    assert "run.desktop" in shown
    assert "opened|" not in shown
    assert "run.desktop is not opened" in desk.said
    assert "set EDITOR" in desk.said
    edited = f'{sys.executable} -c "{EDITOR}"'
    assert "opened|" in plain(desk.shown("query", "tomatoes", *place, EDITOR=edited))


def test_the_words_after_open_belong_to_the_query(desk):
    shown = plain(desk.shown("query", "--open", "keelhauling", *desk.place, EDITOR="true"))
    assert "1. boats.md:1-" in shown


# While vectors are missing.

MANY = {
    f"note-{n}.md": f"# Note {n}\n\n" + "\n\n".join(
        f"## Part {part}\n\nThe {n}th lamp of hall {part} is lit at dusk by the keeper. "
        f"It burns oil number {n * part} until the morning bell is heard over the roofs, and "
        "then the keeper walks back along the wall and counts the lamps that went out."
        for part in range(1, 9)
    )
    for n in range(1, 61)
}  # fmt: skip


def test_the_answer_from_words_comes_first_then_the_full_one(tmp_path):
    desk = Desk(tmp_path, {f"n{n}.md": MANY[f"note-{n}.md"] for n in range(1, 21)})
    shown = desk.all_shown("query", "who lights the lamps", *desk.place)
    first, _, rest = shown.partition("from words only: 0 of 40 passages have vectors")
    assert first.count("1. n") == 1
    assert rest.count("1. n") == 1
    answer = read_json("query", "lamps", "--no-wait", *desk.place, env=desk.env)
    assert answer["index"]["vectors_pending"] == 0


def test_ctrl_c_keeps_the_vectors_that_were_made(tmp_path):
    desk = Desk(tmp_path, MANY)
    terminal = desk.open("query", "who lights the lamps", *desk.place)
    terminal.read_until("from words only")
    terminal.read_until("/120 chunks, ")
    terminal.type("\x03")
    assert terminal.end() == 130
    assert "What was indexed is kept" in plain(terminal.written)
    assert "Traceback" not in terminal.written
    answer = read_json("query", "lamps", "--no-wait", *desk.place, env=desk.env)
    assert 0 < answer["index"]["vectors_pending"] < answer["index"]["passages"]


def test_no_wait_stops_after_the_words(tmp_path):
    desk = Desk(tmp_path, MANY)
    shown = desk.all_shown("query", "who lights the lamps", "--no-wait", *desk.place)
    assert shown.count("1. note-") == 1
    assert "0 of 120 passages have vectors" in shown
    answer = read_json("query", "lamps", "--no-wait", *desk.place, env=desk.env)
    assert answer["results"]
    assert answer["index"]["complete"] is False


def test_a_pipe_gets_one_answer_with_all_vectors(tmp_path):
    desk = Desk(tmp_path, {f"n{n}.md": MANY[f"note-{n}.md"] for n in range(1, 6)})
    done = run_ragdocs("query", "who lights the lamps", *desk.place, env=desk.env)
    assert done.stdout.count("\n1. ") + done.stdout.startswith("1. ") == 1
    assert "from words only" not in done.stderr
    answer = read_json("query", "lamps", *desk.place, env=desk.env)
    assert answer["index"]["complete"] is True


# Before a folder that nobody named is indexed.


@pytest.fixture
def unnamed(tmp_path: Path) -> Desk:
    """Its indices are where they are by default, below a folder of its own."""
    made = Desk(tmp_path)
    made.env["XDG_CACHE_HOME"] = str(tmp_path / "cache")
    return made


def test_a_terminal_is_asked_before_the_working_directory_is_indexed(unnamed, tmp_path):
    terminal = unnamed.open("query", "keelhauling")
    terminal.read_until("[Y/n]")
    assert f"{unnamed.docs} has no index yet: it has 3 files to index" in terminal.written.replace(
        "\n", " "
    )
    terminal.type("n\n")
    assert terminal.end() == 1
    assert not list((tmp_path / "cache").rglob("store.db"))
    terminal = unnamed.open("query", "keelhauling")
    terminal.read_until("[Y/n]")
    terminal.type("\n")
    assert terminal.end() == 0
    assert "1. boats.md" in plain(terminal.written)
    assert "[Y/n]" not in unnamed.all_shown("query", "keelhauling")


@pytest.mark.parametrize("command", [["query", "boats"], ["ls"], ["get", "boats.md"]])
def test_without_a_terminal_nothing_is_indexed_unasked(unnamed, tmp_path, command):
    done = run_ragdocs(*command, cwd=unnamed.docs, env=unnamed.env, code=2)
    assert f"{unnamed.docs} has no index yet: it has 3 files to index" in done.stderr
    assert "--docs DIR" in done.stderr
    assert not list((tmp_path / "cache").rglob("store.db"))


def test_a_large_folder_is_counted_only_so_far(unnamed):
    for folder in range(110):
        below = unnamed.docs / f"f{folder}"
        below.mkdir()
        for n in range(100):
            (below / f"{n}.md").touch()
    done = run_ragdocs("query", "boats", cwd=unnamed.docs, env=unnamed.env, code=2)
    assert "at least 10," in done.stderr
    shutil.rmtree(unnamed.docs)


# Other forms of an answer.


def test_an_explanation_never_cuts_an_id(tmp_path):
    folder = "a folder with a long name/and another one below it/that has a very long name itself"
    desk = Desk(tmp_path, {f"{folder}/boats and harbours.md": NOTES["boats.md"], **NOTES})
    shown = plain(desk.shown("query", "keelhauling", "--explain", *desk.place, columns=60))
    assert f"notes:{folder}/boats and harbours.md#boats" in shown


def test_context_prints_a_list_too(desk, tmp_path):
    source = write(tmp_path, "boats.py", "def keelhauling(boats):\n    return harbour(boats)\n")
    words = ("context", str(source), *desk.place)
    short = run_ragdocs(*words, "-o", "list", env=desk.env).stdout
    assert "/notes/boats.md:" in short.splitlines()[0]
    assert len(short.splitlines()) == 2 * short.count("%")
    assert '"results"' in run_ragdocs(*words, "-o", "json", env=desk.env).stdout
    assert plain(desk.shown(*words)).startswith("1. boats.md:")


def test_any_file_is_related_to_documents_by_its_text(desk, tmp_path):
    draft = write(tmp_path, "draft.txt", "Boats in the harbour, and keelhauling is forbidden.\n")
    found = read_json("related", str(draft), *desk.place, env=desk.env)
    assert found["similar_by_words"][0]["path"] == "boats.md"
    assert found["similar_by_meaning"][0]["path"] == "boats.md"
    assert "is not indexed: compared by its text" in found["notes"][0]
    picture = write(tmp_path, "picture.png", b"\x89PNG\r\n\0\0\xff")
    refused = run_ragdocs("related", str(picture), *desk.place, env=desk.env, code=2)
    assert "picture.png" in refused.stderr
    run_ragdocs("related", str(tmp_path / "none.md"), *desk.place, env=desk.env, code=2)


def completed(desk: Desk, typed: str, shell: str = "bash") -> list[str]:
    words = typed.split(" ")
    env = {
        **desk.env,
        "_RAGDOCS_COMPLETE": f"{shell}_complete",
        "COMP_WORDS": typed,
        "COMP_CWORD": str(len(words) - 1),
    }
    done = run_python("-m", "ragdocs", env=env, cwd=desk.docs)
    return (
        [line.partition(",")[2] for line in done.stdout.splitlines()] if done.stdout.strip() else []
    )


def test_a_shell_completes_documents_tags_and_trees(tmp_path):
    tagged = "---\ntags: [harbour, garden]\n---\n# Tagged\n\nText.\n"
    desk = Desk(tmp_path, {**NOTES, "tagged.md": tagged})
    run_ragdocs("update", "--no-vectors", *desk.place, env=desk.env)
    place = " ".join(desk.place)
    assert completed(desk, f"ragdocs get {place} gui") == [r"guides/how\\ to\\ begin.md"]
    assert completed(desk, f"ragdocs get {place} how") == [r"how\\ to\\ begin.md"]
    assert completed(desk, f"ragdocs query {place} x --tag h") == ["harbour"]
    assert completed(desk, f"ragdocs query {place} x --tree n") == ["notes"]
    assert completed(desk, f"ragdocs query {place} x --path gu")[0] == "guides/"
    assert completed(desk, f"ragdocs get --index {tmp_path}/none --docs {desk.docs} g") == []


ATTACKS = ("zeta$(touch PWNED).md", "zeta`touch PWNED`.md", "zeta'$(touch PWNED)'.md", "zeta~*.md")


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
@pytest.mark.parametrize("before", ["x", '"don\'t"'])
@pytest.mark.parametrize("quote", ["", '"', "'"])
def test_bash_never_runs_the_name_of_a_file(tmp_path, before, quote):
    """The script as bash runs it: each word that it inserts is read again, as after Enter."""
    desk = Desk(tmp_path, dict.fromkeys((*ATTACKS, "zeta one.md"), "# Text\n\nWords.\n"))
    run_ragdocs("update", "--no-vectors", *desk.place, env=desk.env)
    program = write(tmp_path, "bin/ragdocs", f'#!/bin/sh\nexec {sys.executable} -m ragdocs "$@"\n')
    program.chmod(0o755)
    script = run_ragdocs("completion", "bash", env=desk.env).stdout
    words = ["ragdocs", "query", *desk.place, before, "--path", f"{quote}zeta"]
    run = (
        f"{script}\nCOMP_WORDS=({shlex.join(words)})\nCOMP_CWORD={len(words) - 1}\n"
        f"_ragdocs_completion {shlex.quote(str(program))}\n"
        f'for word in "${{COMPREPLY[@]}}"; do eval "printf \'%s\\n\' "{shlex.quote(quote)}"$word"'
        f"{shlex.quote(quote)}; done"
    )
    env = {**os.environ, **desk.env}
    done = subprocess.run(
        ["bash", "--norc", "-c", run],
        cwd=desk.docs,
        env=env,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert not (desk.docs / "PWNED").exists()
    expected = {"zeta one.md"} if quote else {*ATTACKS, "zeta one.md"}
    assert set(done.stdout.splitlines()) == expected, done.stderr


def test_a_completion_imports_nothing_heavy(desk):
    code = (
        "import atexit, sys\n"
        "heavy = {'numpy', 'faiss', 'onnxruntime', 'networkx', 'mcp', 'rich', 'tokenizers',\n"
        "         'ragdocs.search', 'ragdocs.indices.embedded', 'ragdocs.library'}\n"
        "atexit.register(lambda: print('heavy', *heavy & set(sys.modules)))\n"
        "sys.argv = ['ragdocs']\n"
        "from ragdocs.__main__ import main\n"
        "main()\n"
    )
    place = " ".join(desk.place)
    typed = f"ragdocs get {place} bo"
    env = {
        **desk.env,
        "_RAGDOCS_COMPLETE": "bash_complete",
        "COMP_WORDS": typed,
        "COMP_CWORD": str(len(typed.split(" ")) - 1),
    }
    lines = run_python("-c", code, env=env, cwd=desk.docs).stdout.splitlines()
    assert lines == ["plain,boats.md", "heavy"]
