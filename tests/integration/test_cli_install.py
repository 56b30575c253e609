"""`install`: into every client's settings, never at the cost of what is there; and the bundle."""

import importlib.util
import json
import os
import re
import shlex
import shutil
import stat
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

from ragdocs import __version__
from ragdocs.cli.install import Launch, entry_text
from ragdocs.cli.main import main, serve
from ragdocs.diagnosis.clients import CLIENTS, ClientFile, registrations, user_place
from tests.support.indexes import write
from tests.support.machine import move_home
from tests.support.mcp_clients import ServerProcess
from tests.support.program import run

PROJECT = Path(__file__).parents[2]
PAGE = (PROJECT / "docs" / "clients.md").read_text(encoding="utf-8")
BY_KEY = {client.key: client for client in CLIENTS}
WITH_FILES = [client for client in CLIENTS if client.file and not client.command]
SECRET = "sk-do-not-tell"
OTHERS = """{
    "preferences": {"list": [1, 2.50, "\\u00e9"]},
    "mcpServers": {
        "other": {"command": "/opt/other", "env": {"KEY": "sk-do-not-tell"}}
    },
    "last": true
}
"""
PROGRAM = shutil.which("ragdocs", path=str(Path(sys.executable).parent))


@pytest.fixture
def home(tmp_path, monkeypatch):
    """An empty home with a folder of notes; a project below it is where we are."""
    folder = tmp_path.resolve() / "home"
    (folder / "notes").mkdir(parents=True)
    (folder / "project").mkdir()
    move_home(monkeypatch, folder)
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.chdir(folder / "project")
    return folder


def install(client, *words, code=0):
    return run("install", "--client", client, *words, code=code)


def place_of(client, home):
    return user_place(client, home, sys.platform, os.environ)


def everything(home):
    return {
        path.relative_to(home).as_posix(): path.read_bytes()
        for path in sorted(home.rglob("*"))
        if path.is_file()
    }


@pytest.mark.parametrize("client", WITH_FILES, ids=lambda client: client.key)
def test_a_client_that_had_no_file(home, client):
    said = install(client.key, "--docs", "~/notes").stdout
    path = place_of(client, home)
    entry = json.loads(path.read_text(encoding="utf-8"))[client.servers]["ragdocs"]
    assert [entry["command"], *entry["args"]] == shlex.split(said.split("It runs: ")[1])[
        : 1 + len(entry["args"])
    ]
    assert entry.get("type") == ("stdio" if client.stdio_type else None)
    (found,) = registrations(ClientFile(client.title, path))  # as `doctor` reads it
    assert found.folders == (("--docs", str(home / "notes")),)
    before = everything(home)
    assert "already" in install(client.key, "--docs", "~/notes").stdout
    assert everything(home) == before


def test_what_others_have_there_stays_as_it_is(home):
    path = write(home, ".cursor/mcp.json", OTHERS)
    path.chmod(0o600)
    install("cursor", "--docs", "~/notes")
    text = path.read_text(encoding="utf-8")
    first, second = OTHERS.split('\n    },\n    "last"')
    assert text.startswith(f'{first},\n        "ragdocs": {{\n            "command": ')
    assert text.endswith(f'\n        }}\n    }},\n    "last"{second}')
    copy = home / ".cursor" / "mcp.json.bak"
    assert copy.read_text(encoding="utf-8") == OTHERS
    assert [stat.S_IMODE(file.stat().st_mode) for file in (path, copy)] == [0o600, 0o600]
    assert sorted(os.listdir(path.parent)) == ["mcp.json", "mcp.json.bak"]


def test_an_entry_of_ours_follows_and_a_second_name_is_a_second_server(home):
    write(home, ".cursor/mcp.json", OTHERS)
    install("cursor", "--docs", "~/notes")
    path = home / ".cursor" / "mcp.json"
    text = path.read_text(encoding="utf-8")
    write(home, ".cursor/mcp.json", text.replace('"args"', '"env": {"A": "1"}, "args"'))
    install("cursor", "--docs", "~/project", "--docs", "~/notes", "--index", "index")
    install("cursor", "--docs", "~/notes", "--name", "notes")
    servers = json.loads(path.read_text(encoding="utf-8"))["mcpServers"]
    assert list(servers) == ["other", "ragdocs", "notes"]
    assert servers["ragdocs"]["env"] == {"A": "1"}
    docs = ["--docs", str(home / "project"), "--docs", str(home / "notes")]
    index = ["--index", str(home / "project" / "index")]
    assert servers["ragdocs"]["args"] == ["mcp", *docs, *index]
    assert servers["notes"]["args"] == ["mcp", "--docs", str(home / "notes")]


def test_what_is_replaced_is_named_and_another_name_proposed(home):
    first = install("cursor", "--docs", "~/notes").stdout
    assert "It replaces" not in first
    for words in (["--dry-run"], []):
        said = install("cursor", "--docs", "~/project", *words).stdout
        old = re.search("^It replaces: (.*)$", said, re.MULTILINE)[1]
        assert shlex.split(old)[-3:] == ["mcp", "--docs", str(home / "notes")]
        assert said.count("--name ragdocs-2\n") == 1
    install("cursor", "--docs", "~/notes", "--name", "ragdocs-2")
    assert "--name ragdocs-3\n" in install("cursor", "--docs", "~/notes").stdout


def test_the_program_that_has_the_name_is_named_without_its_secrets(home):
    entry = {"command": "/opt/other", "args": ["--token", SECRET], "env": {"KEY": SECRET}}
    write(home, ".cursor/mcp.json", json.dumps({"mcpServers": {"ragdocs": entry}}))
    done = install("cursor", "--docs", "~/notes", code=1)
    assert "starts another program (/opt/other)" in done.stderr
    assert "--name ragdocs-2" in done.stderr
    assert SECRET not in done.output
    install("cursor", "--docs", "~/notes", "--name", "ragdocs-2")


REFUSED = {
    "comments": '{\n  // mine\n  "mcpServers": {}\n}\n',
    "a last comma": '{"mcpServers": {},}',
    "a list": "[]",
    "servers in a list": '{"mcpServers": []}',
    "not UTF-8": b'{"a": "\xff"}',
    "another program's": '{"mcpServers": {"ragdocs": {"command": "/opt/other"}}}',
}


@pytest.mark.parametrize("dry_run", [[], ["--dry-run"]], ids=["", "dry"])
@pytest.mark.parametrize("text", REFUSED.values(), ids=REFUSED)
def test_a_file_that_would_lose_something_is_left_alone_and_the_entry_printed(home, text, dry_run):
    write(home, ".cursor/mcp.json", text)
    before = everything(home)
    done = install("cursor", "--docs", "~/notes", *dry_run, code=1)
    assert "was left as it is" in done.stderr
    printed = json.loads(done.stdout)["mcpServers"]["ragdocs"]
    assert printed["args"] == ["mcp", "--docs", str(home / "notes")]
    assert everything(home) == before


@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo], ids=["folder", "pipe"])
def test_a_path_that_is_not_a_regular_file_is_left_alone(home, make):
    (home / ".cursor").mkdir()
    make(home / ".cursor" / "mcp.json")
    assert "not a regular file" in install("cursor", "--docs", "~/notes", code=1).stderr


def test_a_folder_that_may_not_be_written(home):
    write(home, ".cursor", "a file where a folder should be")
    done = install("cursor", "--docs", "~/notes", code=1)
    assert "could not be read or written" in done.stderr
    assert json.loads(done.stdout)


def test_a_link_stays_a_link(home):
    real = write(home, "dotfiles/mcp.json", OTHERS)
    (home / ".cursor").mkdir()
    link = home / ".cursor" / "mcp.json"
    link.symlink_to(real)
    install("cursor", "--docs", "~/notes")
    assert link.is_symlink()
    assert "ragdocs" in real.read_text(encoding="utf-8")
    assert (home / "dotfiles" / "mcp.json.bak").read_text(encoding="utf-8") == OTHERS


@pytest.mark.parametrize("text", [None, OTHERS, json.dumps(json.loads(OTHERS))])
def test_a_dry_run_shows_it_and_changes_nothing(home, text):
    if text is not None:
        write(home, ".cursor/mcp.json", text)
    before = everything(home)
    done = install("cursor", "--docs", "~/notes", "--dry-run")
    assert everything(home) == before
    assert not (home / ".cursor" / "mcp.json.bak").exists()
    assert str(home / "notes") in done.stdout
    assert SECRET not in done.output
    if text is None or "\n" in text:
        added = [line for line in done.stdout.splitlines() if line.startswith("+ ")]
        assert any('"ragdocs": {' in line for line in added)


def test_clients_that_add_it_themselves(home):
    for client in ("claude-code", "codex"):
        done = install(client, "--docs", "~/notes")
        *command, name, dashes = (*BY_KEY[client].command, "ragdocs", "--")
        words = shlex.split(done.stdout)
        assert words[: len(command) + 2] == [*command, name, dashes]
        assert words[-3:] == ["mcp", "--docs", str(home / "notes")]
    assert everything(home) == {}
    assert json.loads(install("other", "--docs", "~/notes").stdout)["mcpServers"]["ragdocs"]


@pytest.mark.parametrize(
    "client",
    [client for client in CLIENTS if client.project_file],
    ids=lambda client: client.key,
)
def test_a_projects_own_settings(home, client):
    install(client.key, "--project")
    (name,) = everything(home)
    assert name == f"project/{client.project_file}"
    entry = json.loads((home / name).read_text(encoding="utf-8"))[client.servers]["ragdocs"]
    assert entry["args"] == ["mcp", "--docs", str(home / "project")]


def test_a_client_without_settings_of_a_project(home):
    assert "leave out --project" in install("windsurf", "--project", code=2).stderr


@pytest.mark.parametrize("name", ["", "a b", "x" * 65, "../x", "ü"])
def test_a_name_no_client_would_take(home, name):
    assert "--name" in install("cursor", "--docs", "~/notes", "--name", name, code=2).output


def args(*words):
    return json.loads(install("other", *words).stdout)["mcpServers"]["ragdocs"]["args"]


def test_without_docs_the_entry_names_what_is_configured_here(home, monkeypatch):
    assert args() == ["mcp", "--docs", str(home / "project")]
    own = write(home, ".config/mcp-markdown-ragdocs/config.toml", '[tree.n]\npath = "~/notes"\n')
    assert args() == ["mcp"]
    file = write(home, "project/.ragdocs.toml", "")
    (home / "project" / "below").mkdir()
    monkeypatch.chdir(home / "project" / "below")
    # The folder, not the file: what the project writes into it later is not the user's word.
    assert args() == ["mcp", "--config", str(file.parent)]
    assert args("--config", "../.ragdocs.toml", "--docs", ".") == [
        *("mcp", "--docs", str(home / "project" / "below")),
        *("--config", str(file)),
    ]
    own.unlink()
    file.unlink()
    monkeypatch.chdir(home)
    assert "--docs DIR" in install("other", code=2).stderr


def test_a_configuration_that_cannot_be_used_is_not_given_to_a_client(home):
    write(home, "project/.ragdocs.toml", "[serach]\n")
    assert "did you mean search" in install("cursor", code=2).stderr
    assert "cannot be read" in install("cursor", "--config", "gone.toml", code=2).stderr
    assert not (home / ".cursor").exists()


def command(client, *words):
    done = run("install", "--client", client, "--docs", "~/notes", "--dry-run", *words)
    return re.search(r'"command": "(.*)"', done.stdout)[1]


def test_the_command_is_found_whatever_path_the_client_has(home, monkeypatch):
    assert PROGRAM
    assert command("cursor") == PROGRAM
    monkeypatch.setenv("PATH", f"{Path(PROGRAM).parent}:/bin")
    assert command("cursor") == PROGRAM  # a desktop's PATH is another
    assert command("cursor", "--project") == "ragdocs"
    assert command("gemini") == "ragdocs"
    (home / "bin").mkdir()
    monkeypatch.setenv("PATH", f"{home / 'bin'}:{Path(PROGRAM).parent}")
    (home / "bin" / "ragdocs").symlink_to(PROGRAM)
    assert command("cursor") == str(home / "bin" / "ragdocs")
    (home / "bin" / "ragdocs").unlink()
    write(home, "bin/ragdocs", "#!/bin/sh\n").chmod(0o755)  # another installation
    assert command("cursor", "--project") == PROGRAM
    assert command("cursor", "--uvx") == "uvx"
    assert args("--uvx", "--docs", "~/notes")[:2] == ["mcp-markdown-ragdocs", "mcp"]


def test_the_entry_starts_the_server(home):
    write(home, "notes/a.md", "# A\n\nHello.\n")
    install("cursor", "--docs", "~/notes", "--index", "~/index")
    servers = json.loads((home / ".cursor" / "mcp.json").read_text(encoding="utf-8"))["mcpServers"]
    entry = servers["ragdocs"]
    with ServerProcess(entry["command"], *entry["args"], HOME=str(home)) as server:
        assert server.initialize()["result"]["serverInfo"]["name"] == "ragdocs"


def section(title):
    return PAGE.split(f"\n## {title}\n")[1].split("\n## ")[0]


@pytest.mark.parametrize(
    "client",
    [client for client in CLIENTS if client.key not in ("vscode-insiders", "vscodium", "other")],
    ids=lambda client: client.key,
)
def test_the_page_shows_what_each_client_gets(client):
    page = section(client.title)
    arguments = ("mcp", "--docs", "/home/you/notes")
    if client.command:
        line = shlex.join((*client.command, "ragdocs", "--", "ragdocs", *arguments))
        assert f"```sh\n{line}\n```" in page
    elif "as for Cursor" in page:
        assert client.servers == BY_KEY["cursor"].servers
        assert not client.stdio_type
    else:
        launch = Launch("/home/you/.local/bin/ragdocs", arguments)
        assert f"```json\n{entry_text(client, 'ragdocs', launch)}\n```" in page
    for file in (client.file, client.project_file):
        assert file in page or client.command or client.key == "vscode"


def test_the_page_names_every_client_and_option():
    row = re.search(r"\| `--client CLIENT` \| (.*) \|", PAGE)
    assert set(re.findall(r"`([a-z-]+)`", row[1])) == set(BY_KEY)
    for option in main.commands["install"].params:
        assert option.opts[0] in PAGE or option.opts[0] == "--help"


LINES = sorted(set(re.findall(r"^\$? ?(ragdocs .*)$|`(ragdocs [a-z]+ --.*?)`", PAGE, re.MULTILINE)))


@pytest.mark.parametrize("line", ["".join(found) for found in LINES])
def test_every_command_on_the_page_runs(home, line):
    (home / "project" / "docs").mkdir()
    done = run(*[re.sub("^(~|/home/you)", str(home), word) for word in shlex.split(line)[1:]])
    assert done.exit_code == 0


def test_the_page_shows_what_is_said(home):
    shown = re.search(r"```console\n\$ (ragdocs install .*?)\n(.*?)```", PAGE, re.DOTALL)
    said = run(*shlex.split(shown[1])[1:]).stdout
    said = said.replace(shlex.quote(PROGRAM), PROGRAM)  # this folder's name may hold a blank
    said = said.replace(PROGRAM, "/home/you/.local/bin/ragdocs").replace(str(home), "/home/you")
    assert said == shown[2]


def test_what_the_registry_is_told():
    told = json.loads((PROJECT / "server.json").read_text(encoding="utf-8"))
    about = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert re.fullmatch(r"[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+", told["name"])
    assert told["name"].endswith(f"/{about['name']}")
    assert told["description"] == re.sub(r" \([A-Z]+\)", "", about["description"])
    assert len(told["description"]) <= 100
    (package,) = told["packages"]
    assert (told["version"], package["version"]) == (__version__, __version__)
    assert package["identifier"] == about["name"]
    assert package["identifier"] in about["scripts"]  # so that `uvx NAME` finds a command to run
    assert (package["registryType"], package["runtimeHint"]) == ("pypi", "uvx")
    assert package["transport"] == {"type": "stdio"}
    # By this line the registry knows that the package is ours.
    readme = (PROJECT / "README.md").read_text(encoding="utf-8")
    assert f"<!-- mcp-name: {told['name']} -->" in readme


def test_the_registrys_arguments_are_ours(tmp_path):
    told = json.loads((PROJECT / "server.json").read_text(encoding="utf-8"))
    first, folders = told["packages"][0]["packageArguments"]
    assert first == {"type": "positional", "value": serve.name}
    assert folders["isRepeated"]
    words = [f"{folders['name']}={tmp_path}", folders["name"], str(tmp_path)]
    context = serve.make_context("mcp", words)
    assert context.params["docs"] == (tmp_path.resolve(),)


def builder():
    """The script, which is no module of a package."""
    path = PROJECT / "scripts" / "build_bundle.py"
    found = importlib.util.spec_from_file_location("build_bundle", path)
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


REQUIRED = {"manifest_version", "name", "version", "description", "author", "server"}
OPTIONAL = {
    "display_name",
    "license",
    "keywords",
    "tools",
    "user_config",
    "compatibility",
}


def test_the_bundle_is_a_server_that_offers_what_its_manifest_says(tmp_path):
    bundle = builder().build(tmp_path / "dist")
    assert bundle.name == f"mcp-markdown-ragdocs-{__version__}.mcpb"
    inside = tmp_path / "inside"
    with zipfile.ZipFile(bundle) as archive:
        assert archive.testzip() is None
        archive.extractall(inside)
    manifest = json.loads((inside / "manifest.json").read_text(encoding="utf-8"))
    assert set(manifest) >= REQUIRED
    assert set(manifest) <= REQUIRED | OPTIONAL
    assert (manifest["manifest_version"], manifest["version"]) == ("0.4", __version__)
    server = manifest["server"]
    assert (server["type"], set(server)) == ("uv", {"type", "entry_point", "mcp_config"})
    assert (inside / server["entry_point"]).is_file()
    for needed in ("pyproject.toml", "README.md", "LICENSE", "src/ragdocs/embedding/probe.npy"):
        assert (inside / needed).is_file()
    assert not list(inside.rglob("__pycache__"))
    own = tomllib.loads((inside / "pyproject.toml").read_text(encoding="utf-8"))
    whole = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))
    del whole["dependency-groups"]  # else uv installs it for every user
    assert own == whole
    folders = []
    for name in ("notes", "wiki"):
        write(tmp_path, f"{name}/a.md", f"# {name}\n\nHello.\n")
        folders.append(str(tmp_path / name))
    words = expanded(server["mcp_config"]["args"], inside, folders)
    assert words[:3] == ["run", "--directory", str(inside)]
    entry_point, *given = words[3:]
    environ = {"HOME": str(tmp_path), "XDG_CACHE_HOME": "", "PYTHONPATH": str(inside / "src")}
    with ServerProcess(str(inside / entry_point), *given, **environ) as process:
        assert process.initialize()["result"]["serverInfo"]["version"] == __version__
        offered = process.ask("tools", "tools/list")["result"]["tools"]
        trees = process.call("trees", "list_documents", kind="trees")["result"]
    assert [tool["name"] for tool in manifest["tools"]] == [tool["name"] for tool in offered]
    for short, whole in zip(manifest["tools"], offered, strict=True):
        assert whole["description"].startswith(short["description"])
    names = {tree["name"] for tree in trees["structuredContent"]["trees"]}
    assert names == {"notes", "wiki"}


def expanded(arguments, folder, chosen):
    """As a host does it: a value of several is several arguments."""
    words = []
    for argument in arguments:
        if argument == "${user_config.folders}":
            words += chosen
        else:
            words.append(argument.replace("${__dirname}", str(folder)))
    return words


def test_the_same_files_make_the_same_bundle(tmp_path):
    script = builder()
    one, other = script.build(tmp_path / "one"), script.build(tmp_path / "other")
    assert one.read_bytes() == other.read_bytes()
