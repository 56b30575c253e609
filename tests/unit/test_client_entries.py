"""An entry in a client's JSON: put there, and not a character beside it touched."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragdocs.cli.edit_files import NotPlain, Taken, read_kept, with_entry
from ragdocs.diagnosis.clients import CLIENTS, starts_this_program, user_place
from ragdocs.errors import FileKept

ENTRY = {"command": "/bin/ragdocs", "args": ["mcp", "--docs", "/notes/ä"]}
LIST = ("mcpServers", "ragdocs")

KEYS = st.sampled_from(["other", "a b", "ü", "{", '"', "x:y", ",", "\\", "mcpServers"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(KEYS, VALUES, max_size=4)


def put(text, entry=ENTRY, path=LIST):
    return with_entry(text, *path, entry, starts_this_program)


def same_at_the_beginning(one, other):
    pairs = enumerate(zip(one, other, strict=False))
    return next((n for n, (a, b) in pairs if a != b), len(one))


@st.composite
def files(draw):
    """A client's file with servers of others, written in any of many ways."""
    whole = draw(OBJECTS)
    if draw(st.booleans()):
        whole["mcpServers"] = draw(OBJECTS)
    else:
        whole.pop("mcpServers", None)
    indent = draw(st.sampled_from([None, 1, 2, 4, "\t"]))
    colon = draw(st.sampled_from([":", ": ", " : "]))
    text = json.dumps(
        whole,
        indent=indent,
        separators=("," if indent else draw(st.sampled_from([",", ", "])), colon),
        ensure_ascii=draw(st.booleans()),
    )
    text = draw(st.sampled_from(["", "\n", " \n"])) + text + draw(st.sampled_from(["", "\n"]))
    return text.replace("\n", draw(st.sampled_from(["\n", "\r\n"])))


@settings(max_examples=150, deadline=None)
@given(files())
def test_whatever_the_file_says_and_however_it_is_written_only_the_entry_is_added(text):
    new = put(text)
    before, after = json.loads(text), json.loads(new)
    servers = {**before.get("mcpServers", {}), "ragdocs": ENTRY}
    wanted = {**before, "mcpServers": servers}
    assert json.dumps(after) == json.dumps(wanted)  # so that the order counts as well
    kept = same_at_the_beginning(text, new)
    kept += same_at_the_beginning(text[kept:][::-1], new[kept:][::-1])
    assert kept == len(text)
    assert put(new) == new
    assert ("\r\n" in new) == ("\r\n" in text)
    assert "\n" not in new.replace("\r\n", "") or "\r\n" not in text


@settings(max_examples=60, deadline=None)
@given(files())
def test_an_entry_of_ours_is_brought_up_to_date_and_keeps_what_it_has_besides(text):
    first = put(text, {**ENTRY, "env": {"A": "1"}})
    changed = {"command": "/opt/ragdocs", "args": ["mcp"]}
    after = json.loads(put(first, changed))
    wanted = json.loads(first)
    wanted["mcpServers"]["ragdocs"] |= changed
    assert json.dumps(after) == json.dumps(wanted)


def test_the_indentation_is_the_files_own():
    text = '{\n    "theme": "dark",\n    "mcpServers": {\n        "x": {"command": "y"}\n    }\n}\n'
    assert put(text, {"command": "ragdocs", "args": []}) == (
        '{\n    "theme": "dark",\n    "mcpServers": {\n        "x": {"command": "y"},\n'
        '        "ragdocs": {\n            "command": "ragdocs",\n            "args": []\n'
        "        }\n    }\n}\n"
    )


@pytest.mark.parametrize("text", ["", "\n", "{}", "{ }", "{\n}\n"])
def test_a_file_with_nothing_in_it(text):
    assert json.loads(put(text)) == {"mcpServers": {"ragdocs": ENTRY}}


NOT_PLAIN = {
    "a comment": '{\n  // mine\n  "mcpServers": {}\n}',
    "a last comma": '{"mcpServers": {},}',
    "a list": "[]",
    "a text": '"x"',
    "cut short": '{"mcpServers": {"a": {"command"',
    "a list of servers": '{"mcpServers": []}',
    "null": '{"mcpServers": null}',
    "twice the same": '{"mcpServers": {}, "mcpServers": {}}',
    "twice our name": '{"mcpServers": {"ragdocs": {}, "ragdocs": {}}}',
    "too deep": "[" * 100_000,
    "too large a number": '{"a": ' + "1" * 5000 + "}",
}


@pytest.mark.parametrize("text", NOT_PLAIN.values(), ids=NOT_PLAIN)
def test_what_is_not_plain_is_refused(text):
    with pytest.raises(NotPlain):
        put(text)


@pytest.mark.parametrize(
    "other", ['{"command": "/bin/ragdocs-but-other"}', "{}", "null", '"ragdocs"']
)
def test_an_entry_of_somebody_else_is_not_taken_over(other):
    with pytest.raises(Taken):
        put(f'{{"mcpServers": {{"ragdocs": {other}}}}}')


def test_where_the_files_are():
    home = Path("/home/me")
    clients = {client.key: client for client in CLIENTS}

    def place(key, platform, **environ):
        path = user_place(clients[key], home, platform, environ)
        return path and path.as_posix().removeprefix("/home/me/")

    support = "Library/Application Support"
    desktop = "Claude/claude_desktop_config.json"
    assert place("claude-desktop", "darwin") == f"{support}/{desktop}"
    assert place("claude-desktop", "linux") == f".config/{desktop}"
    assert place("claude-desktop", "linux", XDG_CONFIG_HOME="/etc/mine") == f"/etc/mine/{desktop}"
    assert place("claude-desktop", "darwin", XDG_CONFIG_HOME="/etc/mine") == f"{support}/{desktop}"
    assert place("vscode-insiders", "darwin") == f"{support}/Code - Insiders/User/mcp.json"
    assert place("vscode", "linux") == ".config/Code/User/mcp.json"
    assert place("windsurf", "linux") == ".codeium/windsurf/mcp_config.json"
    assert place("zed", "darwin") == ".config/zed/settings.json"
    assert place("cursor", "linux", XDG_CONFIG_HOME="/etc/mine") == ".cursor/mcp.json"
    assert place("codex", "linux") is None


def test_a_file_that_changed_meanwhile_is_not_replaced(tmp_path):
    path = tmp_path / "mcp.json"
    path.write_text("{}", encoding="utf-8")
    read = read_kept(path)
    path.write_text('{"of": "somebody"}', encoding="utf-8")
    with pytest.raises(FileKept, match="changed at this moment"):
        read.replace("{}")
    absent = read_kept(tmp_path / "new.json")
    (tmp_path / "new.json").write_text("{}", encoding="utf-8")
    with pytest.raises(FileKept, match="changed at this moment"):
        absent.replace("[]")
    assert path.read_text(encoding="utf-8") == '{"of": "somebody"}'
    assert sorted(file.name for file in tmp_path.iterdir()) == ["mcp.json", "new.json"]
