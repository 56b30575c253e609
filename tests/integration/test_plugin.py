"""The plugin for Claude Code, Codex and Gemini CLI: built, checked, and its server started."""

import json
import os
import re
import shlex
import tomllib
from pathlib import Path

import pytest
import yaml

from ragdocs import __version__
from ragdocs.cli.install import INSTRUCTIONS
from ragdocs.cli.plugin import CLIENTS_WITH_PLUGINS
from tests.support.indexes import write
from tests.support.machine import move_home
from tests.support.mcp_clients import ServerProcess
from tests.support.program import run

PROJECT = Path(__file__).parents[2]
ABOUT = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
INSIDE = "plugins/ragdocs"
MANIFESTS = (".claude-plugin/plugin.json", ".codex-plugin/plugin.json", "gemini-extension.json")


@pytest.fixture
def home(tmp_path, monkeypatch):
    """An empty home with a folder of notes; a project below it is where we are."""
    folder = tmp_path.resolve() / "home"
    (folder / "project").mkdir(parents=True)
    write(folder, "notes/a.md", "# A\n\nHello.\n")
    move_home(monkeypatch, folder)
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.chdir(folder / "project")
    return folder


def build(*words):
    return json.loads(run("plugin", "build", "out", "--json", *words).stdout)


def problems(folder="out", code=1):
    done = run("plugin", "check", folder, "--json", code=code)
    return [(one["file"], one["problem"]) for one in json.loads(done.stdout)["problems"]]


def read(home, path):
    return (home / "project" / "out" / path).read_text(encoding="utf-8")


def servers(home):
    """The entry as each client reads it."""
    yield json.loads(read(home, f"{INSIDE}/.mcp.json"))["mcpServers"]["ragdocs"]
    yield json.loads(read(home, f"{INSIDE}/gemini-extension.json"))["mcpServers"]["ragdocs"]


def test_what_is_built_passes_the_check_and_names_the_program_and_its_version(home):
    told = build()
    assert problems(code=0) == []
    assert {file["change"] for file in told["files"]} == {"new"}
    assert {file["path"] for file in told["files"]} == {
        path.relative_to("out").as_posix() for path in Path("out").rglob("*") if path.is_file()
    }
    for manifest in MANIFESTS:
        about = json.loads(read(home, f"{INSIDE}/{manifest}"))
        assert (about["name"], about["version"]) == ("ragdocs", __version__)
        assert about.get("license", ABOUT["license"]) == ABOUT["license"]


def test_agents_and_skill_have_one_text(home):
    build()
    printed = run("agents").stdout
    skill = read(home, f"{INSIDE}/skills/ragdocs/SKILL.md")
    assert skill.endswith(f"---\n\n{INSTRUCTIONS}")
    assert read(home, f"{INSIDE}/GEMINI.md") == INSTRUCTIONS
    assert INSTRUCTIONS in printed
    head = yaml.safe_load(skill.split("---\n")[1])
    assert set(head) == {"name", "description"}


def test_both_forms_of_the_command_ask_the_same(home):
    build()
    markdown = read(home, f"{INSIDE}/commands/ask.md").split("---\n\n")[1]
    toml = tomllib.loads(read(home, f"{INSIDE}/commands/ragdocs/ask.toml"))
    assert "$ARGUMENTS" in markdown
    assert toml["prompt"] == markdown.replace("$ARGUMENTS", "{{args}}")


def test_the_servers_entry_starts_and_answers(home):
    build("--docs", "~/notes", "--index", "~/index")
    for entry in servers(home):
        with ServerProcess(entry["command"], *entry["args"], HOME=str(home)) as server:
            assert server.initialize()["result"]["serverInfo"]["name"] == "ragdocs"
            trees = server.call("trees", "list_documents", kind="trees")["result"]
            (tree,) = trees["structuredContent"]["trees"]
            assert tree["documents"] == 1, tree


def test_without_places_no_path_of_this_machine_is_in_a_plugin_that_uv_runs(home):
    build("--uvx")
    for entry in servers(home):
        assert [entry["command"], *entry["args"]] == ["uvx", "mcp-markdown-ragdocs", "mcp"]
    for path in Path("out").rglob("*"):
        assert path.is_dir() or str(home) not in path.read_text(encoding="utf-8")


def test_a_second_build_changes_nothing_and_a_changed_file_is_kept(home):
    build()
    assert {file["change"] for file in build()["files"]} == {"unchanged"}
    skill = f"{INSIDE}/skills/ragdocs/SKILL.md"
    write(home / "project" / "out", skill, "mine")
    shown = build("--dry-run")["files"]
    assert [file["path"] for file in shown if file["change"] == "replaced"] == [skill]
    assert read(home, skill) == "mine"
    [replaced] = [file for file in build()["files"] if file["change"] == "replaced"]
    assert Path(replaced["backup"]).read_text(encoding="utf-8") == "mine"
    assert read(home, skill).endswith(INSTRUCTIONS)
    assert problems(code=0) == []


def test_a_dry_run_writes_nothing(home):
    run("plugin", "build", "out", "--dry-run")
    assert not Path("out").exists()


@pytest.mark.parametrize("catalogue", [".claude-plugin", ".agents/plugins"])
@pytest.mark.parametrize("text", ['{"name": "team", "plugins": [{"name": "x"}]}', "not JSON"])
def test_a_folder_with_plugins_of_others_is_left_as_it_is(home, catalogue, text):
    file = write(home, f"project/out/{catalogue}/marketplace.json", text)
    done = run("plugin", "build", "out", code=1)
    assert "was left as it is" in done.stderr
    assert [path for path in Path("out").rglob("*") if path.is_file()] == [
        file.relative_to(home / "project")
    ]
    assert file.read_text(encoding="utf-8") == text


def test_a_link_out_of_the_folder_is_not_followed(home):
    outside = write(home, "outside.json", "{}")
    (home / "project" / "out" / INSIDE).mkdir(parents=True)
    (home / "project" / "out" / INSIDE / ".mcp.json").symlink_to(outside)
    assert "is a link" in run("plugin", "build", "out", code=1).stderr
    assert outside.read_text(encoding="utf-8") == "{}"
    assert not (home / "project" / "out" / ".claude-plugin").exists()


def changed(path, **keys):
    """A manifest with other values; a key with None is left out."""
    whole = json.loads(Path("out", path).read_text(encoding="utf-8"))
    for key, value in keys.items():
        whole[key] = value
        if value is None:
            del whole[key]
    Path("out", path).write_text(json.dumps(whole), encoding="utf-8")


CLAUDE, CODEX, GEMINI = (f"{INSIDE}/{manifest}" for manifest in MANIFESTS)
SKILL = f"{INSIDE}/skills/ragdocs/SKILL.md"
LISTED, OFFERED = ".claude-plugin/marketplace.json", ".agents/plugins/marketplace.json"
LOCAL = {"source": "local", "path": "./plugins/ragdocs"}
POLICY = {"installation": "AVAILABLE", "authentication": "ON_INSTALL"}
OFFER = {"name": "ragdocs", "source": LOCAL, "policy": POLICY, "category": "Productivity"}
WRONG = [
    (CLAUDE, {"name": "Rag Docs"}, '"name" must be'),
    (CLAUDE, {"name": None}, '"name" must be'),
    (CLAUDE, {"version": "2"}, '"version" must be'),
    (CLAUDE, {"version": "9.9.9"}, "different versions"),
    (CLAUDE, {"author": {}}, '"author" needs'),
    (CODEX, {"description": " "}, '"description" must be'),
    (CODEX, {"skills": "./gone/"}, "which is missing"),
    (CODEX, {"mcpServers": "../.mcp.json"}, "stays inside"),
    (CODEX, {"interface": {}}, '"interface" needs'),
    (GEMINI, {"name": "other"}, "name of the folder"),
    (GEMINI, {"mcpServers": {}}, "must have a server"),
    (GEMINI, {"mcpServers": {"x": {"command": "y", "trust": True}}}, '"trust"'),
    (GEMINI, {"contextFileName": "GONE.md"}, "which is missing"),
    (f"{INSIDE}/.mcp.json", {"mcpServers": {"x": {}}}, 'needs a "command"'),
    (f"{INSIDE}/.mcp.json", {"mcpServers": {"x": {"command": "y", "args": [1]}}}, '"args"'),
    (LISTED, {"owner": {}}, '"owner" needs'),
    (LISTED, {"plugins": []}, "at least one"),
    (LISTED, {"plugins": [{"name": "ragdocs", "source": "plugins/ragdocs"}]}, "begin with ./"),
    (LISTED, {"plugins": [{"name": "ragdocs", "source": "./../x"}]}, "stay inside"),
    (LISTED, {"plugins": [{"name": "ragdocs", "source": "./gone"}]}, "no folder"),
    (LISTED, {"plugins": [{"name": "x", "source": "./plugins/ragdocs"}]}, 'the entry "x"'),
    (OFFERED, {"plugins": [OFFER, OFFER]}, "twice"),
    (OFFERED, {"plugins": [{**OFFER, "source": {"source": "local", "path": "./"}}]}, "of its own"),
    (OFFERED, {"plugins": [{**OFFER, "policy": {"installation": "MAYBE"}}]}, "installation"),
    (OFFERED, {"plugins": [{**OFFER, "category": ""}]}, '"category"'),
]


@pytest.mark.parametrize(("path", "keys", "problem"), WRONG)
def test_what_a_client_would_refuse_is_found(home, path, keys, problem):
    build()
    changed(path, **keys)
    found = problems()
    assert any(problem in told for _, told in found), found
    assert any(path in file or file == INSIDE for file, _ in found)


WRONG_TEXTS = [
    (SKILL, "no front matter", "front matter"),
    (SKILL, "---\nname: other\ndescription: x\n---\nText\n", "name of the folder"),
    (SKILL, "---\nname: ragdocs\n---\nText\n", '"description"'),
    (SKILL, f"---\nname: ragdocs\ndescription: {'x' * 1025}\n---\nText\n", '"description"'),
    (SKILL, "---\nname: ragdocs\ndescription: a <b>\n---\nText\n", "< or >"),
    (SKILL, "---\nname: ragdocs\ndescription: x\n---\n", "no text"),
    (SKILL, "---\nname: [\n---\nText\n", "not YAML"),
    (f"{INSIDE}/commands/ask.md", "---\ndescription: x\n---\n", "no prompt"),
    (f"{INSIDE}/commands/ragdocs/ask.toml", "prompt = 1\n", '"prompt"'),
    (f"{INSIDE}/commands/ragdocs/ask.toml", "prompt =", "not TOML"),
    (CLAUDE, "{", "not JSON"),
    (CODEX, "[]", "JSON object"),
    (LISTED, b"\xff", "not UTF-8"),
]


@pytest.mark.parametrize(("path", "text", "problem"), WRONG_TEXTS)
def test_a_file_that_cannot_be_used_is_named(home, path, text, problem):
    build()
    write(home / "project" / "out", path, text)
    assert [file for file, told in problems() if problem in told] == [path]


@pytest.mark.parametrize("path", [SKILL, CLAUDE, CODEX, GEMINI, LISTED, OFFERED])
def test_a_file_that_is_missing_is_named(home, path):
    build()
    Path("out", path).unlink()
    assert (path, "the file is missing") in problems()


def test_the_check_prints_a_line_for_each_problem(home):
    build()
    changed(CLAUDE, version="2")
    done = run("plugin", "check", "out", code=1)
    assert done.stdout.startswith(f'{CLAUDE}: "version" must be')
    assert "not a folder" in run("plugin", "check", "gone", code=2).stderr


@pytest.mark.parametrize("client", CLIENTS_WITH_PLUGINS)
def test_install_builds_it_and_prints_the_clients_commands(home, client):
    done = run("install", "--client", client, "--plugin", "--docs", "~/notes")
    folder = home / ".local" / "share" / "mcp-markdown-ragdocs" / "plugin" / client
    lines = [shlex.split(line) for line in done.stdout.splitlines()]
    assert all(line[0] == client.partition("-")[0] for line in lines)
    assert Path(lines[0][-1]).is_relative_to(folder)
    assert problems(str(folder), code=0) == []
    entry = json.loads((folder / INSIDE / ".mcp.json").read_text(encoding="utf-8"))
    assert entry["mcpServers"]["ragdocs"]["args"][-2:] == ["--docs", str(home / "notes")]
    again = run("install", "--client", client, "--plugin", "--docs", "~/notes")
    assert again.stdout == done.stdout
    assert "already up to date" in again.stderr


PAGE = (PROJECT / "docs" / "clients.md").read_text(encoding="utf-8")


def test_the_page_shows_what_install_prints(home):
    replaced, commands = re.findall(r"```text\n(.*?)```", PAGE, re.DOTALL)
    done = run("install", "--client", "claude-code", "--plugin", "--docs", "~/notes")
    assert done.stdout.replace(str(home), "/home/you") == commands
    old = {"command": "/home/you/.local/bin/ragdocs", "args": ["mcp", "--docs", "/home/you/old"]}
    write(home, ".cursor/mcp.json", json.dumps({"mcpServers": {"ragdocs": old}}))
    assert replaced in run("install", "--client", "cursor", "--docs", "~/notes").stdout


def test_the_page_lists_every_file(home):
    table = PAGE.split("| file | for |")[1].split("\n\n")[0]
    listed = re.findall(r"^\| `(.*?)` \|", table, re.MULTILINE)
    assert sorted(listed) == sorted(file["path"] for file in build()["files"])


def test_install_tells_of_an_entry_that_would_be_a_second_server(home):
    entry = {"mcpServers": {"ragdocs": {"command": "ragdocs", "args": ["mcp"]}}}
    write(home, ".claude.json", json.dumps(entry))
    for words in (["--plugin"], []):
        done = run("install", "--client", "claude-code", "--docs", "~/notes", *words)
        assert '.claude.json has "ragdocs" already' in done.stderr
        assert "already" not in done.stdout


@pytest.mark.parametrize(
    "words",
    [["cursor"], ["claude-code", "--project"], ["codex", "--name", "x"]],
    ids=" ".join,
)
def test_install_refuses_a_plugin_where_there_is_none(home, words):
    done = run("install", "--client", *words, "--plugin", "--docs", "~/notes", code=2)
    assert "leave out" in done.stderr
    assert not (home / ".local").exists()


def test_install_of_a_plugin_can_be_tried(home):
    done = run("install", "--client", "gemini", "--plugin", "--docs", "~/notes", "--dry-run")
    assert re.search(r"^new +plugins/ragdocs/\.mcp\.json$", done.stderr, re.MULTILINE)
    assert sorted(os.listdir(home)) == ["notes", "project"]
