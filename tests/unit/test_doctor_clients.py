"""Entries of MCP clients that start this program: found, judged, and nothing else told."""

import json
import os

import pytest

from ragdocs.diagnosis.case import Level
from tests.support.indexes import Bench, levels, only, write

SECRET = "sk-do-not-tell"


@pytest.fixture
def bench(tmp_path):
    bench = Bench(tmp_path)
    program = write(bench.base, "bin/ragdocs", "#!/bin/sh\n")
    program.chmod(0o755)
    return bench


def entry(bench, *arguments, command="bin/ragdocs", **more):
    path = command if "/" not in command else str(bench.base / command)
    return {"command": path, "args": ["mcp", *arguments], **more}


def config(servers, key="mcpServers"):
    others = {"other": {"command": "/secret/tool", "env": {"KEY": SECRET}, "args": [SECRET]}}
    return json.dumps({key: {**others, **servers}})


def clients(bench, **machine):
    found = only(bench.case(machine=bench.machine(**machine)), "clients")
    told = " ".join(str(one) for one in found)
    assert SECRET not in told
    assert "/secret/tool" not in told
    return found


def test_no_client_at_all(bench):
    (found,) = clients(bench)
    assert found.level is Level.OK
    assert "ragdocs install" in found.advice


PLACES = {
    "docs/.mcp.json": ("Claude Code", "mcpServers"),
    "docs/.cursor/mcp.json": ("Cursor", "mcpServers"),
    "docs/.vscode/mcp.json": ("VS Code", "servers"),
    "home/.claude.json": ("Claude Code", "mcpServers"),
    "home/.cursor/mcp.json": ("Cursor", "mcpServers"),
    "home/.config/Code/User/mcp.json": ("VS Code", "servers"),
    "home/.config/Claude/claude_desktop_config.json": ("Claude Desktop", "mcpServers"),
}


@pytest.mark.parametrize("place", PLACES)
def test_an_entry_that_is_right_and_one_that_is_not(bench, place):
    client, key = PLACES[place]
    right = entry(bench, "--token", SECRET, "--docs", str(bench.docs), env={"TOKEN": SECRET})
    write(bench.base, place, config({"notes": right}, key))
    (found,) = clients(bench, platform="linux")
    assert found.level is Level.OK
    assert client in found.message
    assert f"--docs {bench.docs}" in found.message
    wrong = entry(bench, command="bin/gone/ragdocs")
    write(bench.base, place, config({"notes": wrong}, key))
    (found,) = clients(bench, platform="linux")
    assert found.level is Level.WARNING
    assert "there is no such command" in found.message
    assert found.repair is None


def test_on_a_mac(bench):
    support = "home/Library/Application Support"
    right = config({"notes": entry(bench)})
    write(bench.base, f"{support}/Claude/claude_desktop_config.json", right)
    write(bench.base, f"{support}/Code/User/mcp.json", config({"notes": entry(bench)}, "servers"))
    assert levels(clients(bench, platform="darwin")) == ["ok", "ok"]
    assert "no client" in clients(bench, platform="linux")[0].message


def test_projects_in_claude_codes_own_file(bench):
    inside = {str(bench.docs): {"mcpServers": {"n": entry(bench, "--docs=gone")}}, "x": 3}
    write(bench.home, ".claude.json", json.dumps({"projects": inside}))
    (found,) = clients(bench)
    assert found.level is Level.WARNING
    assert "--docs gone is not a folder" in found.message


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--docs", "gone"], "--docs gone is not a folder"),
        (["--docs=../docs", "--config", "gone.toml"], "--config gone.toml is not a file"),
        (["--docs", "."], ""),
        (["--docs", "${workspaceFolder}"], ""),
        (["--docs", "${workspaceFolder}/gone"], "is not a folder"),
        (["--docs", "${env:NOTES}"], ""),
        (["--index", "gone"], ""),
        (["--docs"], ""),
    ],
)
def test_the_folders_that_an_entry_names(bench, arguments, problem):
    write(bench.docs, ".mcp.json", config({"notes": entry(bench, *arguments)}))
    (found,) = clients(bench)
    assert found.level is (Level.WARNING if problem else Level.OK)
    assert problem in found.message


@pytest.mark.parametrize(
    ("command", "arguments", "is_ours"),
    [
        ("uvx", ["mcp-markdown-ragdocs", "mcp"], True),
        ("uvx", ["--from", "mcp-markdown-ragdocs[tantivy]==1.0", "ragdocs", "mcp"], True),
        ("/usr/bin/python3", ["-m", "ragdocs", "mcp"], True),
        ("npx", ["-y", "ragdocs-viewer"], False),
        ("cat", ["/home/me/ragdocs-notes"], False),
    ],
)
def test_which_entries_are_ours(bench, command, arguments, is_ours):
    write(bench.docs, ".mcp.json", config({"x": {"command": command, "args": arguments}}))
    (found,) = clients(bench)
    assert ("has x" in found.message) is is_ours


def test_a_bare_command_is_looked_for_on_the_path(bench):
    write(bench.docs, ".mcp.json", config({"notes": entry(bench, command="ragdocs")}))
    (found,) = clients(bench, environ={"PATH": str(bench.base / "bin")})
    assert found.level is Level.OK
    (found,) = clients(bench, environ={"PATH": "/nowhere"})
    assert "on this PATH" in found.message


def test_the_desktop_has_another_path(bench):
    place = ".config/Claude/claude_desktop_config.json"
    write(bench.home, place, config({"notes": entry(bench, command="ragdocs")}))
    (found,) = clients(bench, platform="linux", environ={"PATH": str(bench.base / "bin")})
    assert found.level is Level.NOTE
    assert "full path" in found.advice


def test_comments_and_a_last_comma_as_vs_code_allows_them(bench):
    text = f"""// servers, /* all of them */
    {{"servers": {{ /* ours
      */ "notes": {{"command": "{bench.base}/bin/ragdocs", "args": ["mcp", "--docs", ".",], }},
      "url": {{"url": "https://example.org/*x*/"}},
    }},}}"""
    write(bench.docs, ".vscode/mcp.json", text)
    (found,) = clients(bench)
    assert found.level is Level.OK
    assert "has notes" in found.message


@pytest.mark.parametrize(
    "text",
    [
        "null",
        "[]",
        '"text"',
        "3",
        '{"mcpServers": []}',
        '{"mcpServers": {"a": 3, "b": null, "c": {"command": 3}, "d": {"args": "x"}}}',
        '{"mcpServers": {"a": {"command": "x", "args": {"y": 1}}, "b": {"command": ""}}}',
        '{"projects": {"a": 3, "b": []}, "servers": "x"}',
        '{"projects": []}',
    ],
)
def test_json_of_another_shape(bench, text):
    write(bench.docs, ".mcp.json", text)
    assert levels(clients(bench)) == ["ok"]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"\xff\xfe{}",
        b"[" * 100_000,
        b'{"a": "' + b'\\"' * 200_000,
        b"/*" * 200_000,
        b'{"mcpServers": {"x": ' * 50_000,
    ],
    ids=["empty", "cut", "utf-16", "deep", "unclosed", "comments", "deep tables"],
)
def test_a_file_that_is_not_json(bench, data):
    write(bench.docs, ".mcp.json", data)
    (found,) = clients(bench)
    assert found.level is Level.NOTE
    assert "could not be read" in found.message


def test_a_pipe_a_folder_and_a_huge_file(bench):
    os.mkfifo(bench.docs / ".mcp.json")
    (bench.home / ".claude.json").mkdir()
    (bench.home / ".cursor").mkdir()
    with open(bench.home / ".cursor" / "mcp.json", "wb") as file:
        file.truncate(10**12)  # sparse
    assert levels(clients(bench)) == ["note", "note", "note"]


def test_names_cannot_speak_to_the_terminal(bench):
    write(bench.docs, ".mcp.json", config({"\x1b[31mred": entry(bench)}))
    assert "\x1b" not in clients(bench)[0].message
