"""The server as a client starts it: what it imports, what it writes, how it ends."""

import json
import re
import signal
import subprocess
import sys
import time
from importlib.metadata import PackageNotFoundError, packages_distributions, requires

import anyio
import pytest
from mcp import Client, StdioServerParameters

from tests.support.children import ALLOWED_SECONDS
from tests.support.indexes import write_all
from tests.support.machine import until
from tests.support.mcp_clients import PROJECT, Asked, ServerProcess

TEXTS = {"auth.md": "# Signing in\n\nHow to sign in with a token.\n"}
SECONDS_TO_END = ALLOWED_SECONDS
DEADLINE = 30.0
BEHIND_THE_HANDSHAKE = (
    "app",
    "config.loading",
    "config.sections",
    "chunking",
    "embedding",
    "indexing",
    "indices",
    "parsers",
    "search",
    "store",
)
REFUSED_LINES: dict[bytes, tuple[int, int | None]] = {
    b"hello\n": (-32700, None),
    b"null\n": (-32600, None),
    b"[]\n": (-32600, None),
    b"\0\0\n": (-32700, None),
    b'{"jsonrpc":"2.0","id":901,"method":"ping"\n': (-32700, None),
    b'[{"jsonrpc":"2.0","id":902,"method":"ping"},{"jsonrpc":"2.0","id":903,"method":"ping"}]\n': (
        -32600,
        None,
    ),
    b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}\n': (-32600, None),
    b'{"jsonrpc":"2.0","id":913,"method":"ping","params":{"a":'
    + b"[" * 100_000
    + b"]" * 100_000
    + b"}}\n": (-32600, 913),
    b'{"jsonrpc":"2.0","id":914,"method":"ping","params":{"a":' + b"9" * 10_000 + b"}}\n": (
        -32600,
        914,
    ),
    b'{"jsonrpc":"2.0","id":916,"method":"ping","params":{"a":"' + b"x" * 17_000_000 + b'"}}\n': (
        -32600,
        916,
    ),
}
"""With the code and the id of the answer."""
UNANSWERED_LINES = [
    b"\n",
    b'{"jsonrpc":"2.0","method":"notifications/nope"}\n',
    b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{}}\n',
    b'{"jsonrpc":"2.0","id":12345,"result":{}}\n',
]


def server(kind, folder, *options, **environ):
    return ServerProcess("-m", "tests.support.children", kind, str(folder), *options, **environ)


def sdk_packages():
    """What the SDK is made of: its distribution, and all that it requires."""
    pending, found = ["mcp"], set()
    while pending:
        name = re.sub("[-_.]+", "-", pending.pop()).lower()
        if name not in found and (required := requirements(name)) is not None:
            found.add(name)
            pending += required
    modules = packages_distributions()
    return {
        module
        for module, owners in modules.items()
        if any(re.sub("[-_.]+", "-", owner).lower() in found for owner in owners)
    }


def requirements(name):
    try:
        return [re.match(r"[\w.-]+", line)[0] for line in requires(name) or ()]
    except PackageNotFoundError:
        return None


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)], ids=["TERM", "INT"]
)
def test_the_handshake_comes_before_all_imports_and_a_signal_ends_it_in_time(
    tmp_path, number, code
):
    with server("stuck", tmp_path) as process:
        process.initialize()
        path = tmp_path / "modules"
        modules = set(until(lambda: path.exists() and path.read_text(encoding="utf-8")).split())
        process.send(1, "tools/call", name="query_documents", arguments={"query": "token"})
        assert process.ask(2, "ping")["result"] == {}
        began = time.monotonic()
        process.process.send_signal(number)
        assert process.ended(DEADLINE) == code
        assert time.monotonic() - began < SECONDS_TO_END
    top = {name.partition(".")[0] for name in modules} - sys.stdlib_module_names
    others = {name for name in top - sdk_packages() if not name.startswith("_")}
    assert others <= {"ragdocs", "tests", "click"}
    loaded = {name.removeprefix("ragdocs.") for name in modules if name.startswith("ragdocs.")}
    assert not [name for name in loaded if name.startswith(BEHIND_THE_HANDSHAKE)]


def test_only_the_protocol_is_written_and_no_query_is_logged(tmp_path):
    write_all(tmp_path / "docs", TEXTS)
    with server(
        "noisy", tmp_path, "--log-level", "info", PYTHONWARNINGS="always", LC_ALL="C"
    ) as process:
        assert process.initialize()["result"]["serverInfo"]["name"] == "ragdocs"
        found = process.call(1, "query_documents", query="xyzzy token \ud800")
        assert not found["result"]["isError"]
        failed = process.call(2, "query_documents", query="xyzzy fail")
        assert "internal error (RuntimeError)" in failed["result"]["content"][0]["text"]
        assert process.call(3, "query_documents", query="xyzzy", nope=1)["result"]["isError"]
        before = len(process.lines)
        for line in (*REFUSED_LINES, *UNANSWERED_LINES):
            process.raw(line)
        assert process.ask(4, "ping")["result"] == {}
        errors = [json.loads(line) for line in process.lines[before:-1]]
        assert [(one["error"]["code"], one["id"]) for one in errors] == [*REFUSED_LINES.values()]
        assert process.process.stdin
        process.process.stdin.close()
        began = time.monotonic()
        assert process.ended(DEADLINE) == 0
        assert time.monotonic() - began < SECONDS_TO_END
        said = process.errors
    for line in process.lines:
        assert json.loads(line)["jsonrpc"] == "2.0"
    assert not [line for line in process.lines if b"noise" in line]
    assert said.count("noise") > 6
    assert "xyzzy" not in said
    assert "a request failed: RuntimeError" in said
    assert "closed in order" in said


PARENT = """
import subprocess, sys, time
child = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
hello = {hello!r}
child.stdin.write(hello); child.stdin.flush(); child.stdout.readline()
pipes = [child.stdin.fileno(), child.stdout.fileno()]
sibling = subprocess.Popen(["sleep", "60"], pass_fds=pipes, stderr=subprocess.DEVNULL)
print(sibling.pid, flush=True)
time.sleep(60)
"""


def test_it_ends_when_its_parent_is_gone_though_its_pipes_stay_open(tmp_path):
    info = {"name": "test", "version": "1"}
    params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info}
    hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
    code = PARENT.format(hello=json.dumps(hello).encode() + b"\n")
    command = [sys.executable, "-m", "tests.support.children", "stuck", str(tmp_path)]
    with subprocess.Popen(
        [sys.executable, "-c", code, *command],
        cwd=PROJECT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as parent:
        sibling = int(parent.stdout.readline())
        parent.kill()
        began = time.monotonic()
        parent.stderr.read()  # until nobody holds its other end: only the server does
        assert time.monotonic() - began < SECONDS_TO_END
    subprocess.run(["kill", str(sibling)], check=True)


def test_the_command_answers_a_real_client_over_real_files(tmp_path):
    docs = write_all(tmp_path / "docs", TEXTS)
    place = ["--docs", str(docs), "--index", str(tmp_path / "index")]
    command = StdioServerParameters(command=sys.executable, args=["-m", "ragdocs", "mcp", *place])

    async def main():
        async with Client(command, mode="2026-07-28") as client:
            assert len((await client.list_tools()).tools) == 6
            with anyio.fail_after(60):
                while True:
                    asked = Asked(await client.call_tool("query_documents", {"query": "log in"}))
                    if asked.data["results"]:
                        return asked.paths
                    assert asked.data["index"]["complete"] is False
                    await anyio.sleep(0.05)

    assert anyio.run(main) == ["auth.md"]


def served_folders(tmp_path, *folders):
    options = [option for folder in folders for option in ("--docs", str(folder))]
    return ServerProcess("-m", "ragdocs", "mcp", *options, "--index", str(tmp_path / "index"))


def answers(process, tool, **arguments):
    """The same call again and again, each with an id of its own."""
    number = 0
    while True:
        number += 1
        yield process.call(f"{tool}-{number}", tool, **arguments)["result"]["structuredContent"]


def come_as_a_folder(tmp_path, folder):
    write_all(folder, TEXTS)


def come_as_a_link(tmp_path, folder):
    """As a disk that is mounted elsewhere."""
    write_all(tmp_path / "elsewhere", TEXTS)
    folder.parent.mkdir()
    folder.symlink_to(tmp_path / "elsewhere")


@pytest.mark.parametrize("come", [come_as_a_folder, come_as_a_link])
def test_a_folder_that_is_away_at_the_start_is_said_and_served_when_it_comes(tmp_path, come):
    away = tmp_path / "disk" / "notes"
    with served_folders(tmp_path, away) as process:
        assert process.initialize()["result"]["serverInfo"]["name"] == "ragdocs"
        found = answers(process, "query_documents", query="sign in")
        listed = answers(process, "list_documents")
        status = answers(process, "index_status")
        until(lambda: next(found)["index"]["state"] != "building")  # as long as it has not looked
        for told in (next(found), next(listed)):
            assert (told["index"]["state"], told["index"]["complete"]) == ("degraded", False)
            assert "the folder of notes is missing" in told["index"]["summary"]
        told = next(status)
        assert told["state"] == "degraded"
        assert [tree["problem"] for tree in told["trees"]] == ["is missing"]
        come(tmp_path, away)
        until(lambda: next(found)["results"])
        until(lambda: next(found)["index"]["complete"])
        assert [tree["problem"] for tree in next(status)["trees"]] == [""]


def test_of_two_folders_the_one_that_is_there_answers_until_the_other_comes(tmp_path):
    here = write_all(tmp_path / "here", {"noon.md": "# Noon\n\nLizards bask at noon.\n"})
    away = tmp_path / "away"
    with served_folders(tmp_path, here, away) as process:
        process.initialize()
        lizards = answers(process, "query_documents", query="lizards")
        until(lambda: next(lizards)["results"])
        until(lambda: next(lizards)["index"]["state"] != "building")
        index = next(lizards)["index"]
        assert (index["state"], index["complete"]) == ("degraded", False)
        assert "the folder of away is missing" in index["summary"]
        write_all(away, TEXTS)
        tokens = answers(process, "query_documents", query="token")
        until(lambda: [one["id"].split(":")[0] for one in next(tokens)["results"][:1]] == ["away"])
        until(lambda: next(lizards)["index"]["complete"])


def test_a_file_in_place_of_the_folder_is_refused_by_a_server_too(tmp_path):
    (tmp_path / "notes").write_text("no folder", encoding="utf-8")
    with served_folders(tmp_path, tmp_path / "notes") as process:
        assert process.ended(DEADLINE) == 2
        assert "is not a folder" in process.errors
