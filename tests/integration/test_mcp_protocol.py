"""The protocol itself, message by message, in both eras; the backend's searches can be held up."""

import threading
from contextlib import asynccontextmanager

import anyio
import pytest
from mcp.shared.memory import create_client_server_memory_streams
from mcp.shared.message import SessionMessage
from mcp.types import JSONRPCNotification, JSONRPCRequest

from ragdocs.errors import ConfigError
from ragdocs.limits import SEARCHES_AT_ONCE
from ragdocs.mcp_server import tools
from ragdocs.mcp_server.host import Host, ServedApp
from ragdocs.mcp_server.server import create_server
from tests.support.indexes import write_all
from tests.support.machine import until
from tests.support.mcp_clients import ERAS, InMemory, in_memory, indexed_app
from tests.support.program import served

LEGACY, MODERN = ERAS
TEXTS = {"auth.md": "# Signing in\n\nHow to sign in with a token.\n"}
ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
}
QUERY = {"name": "query_documents", "arguments": {"query": "token"}}


@pytest.fixture(scope="module")
def app(tmp_path_factory):
    with indexed_app(tmp_path_factory.mktemp("mcp"), TEXTS) as app:
        yield app


class Held(ServedApp):
    """Its searches wait until they are let go."""

    def __init__(self, app):
        super().__init__(app)
        self.go = threading.Event()
        self.running = 0
        self.most = 0
        self._lock = threading.Lock()

    def search(self, request):
        with self._lock:
            self.running += 1
            self.most = max(self.most, self.running)
        assert self.go.wait(120)
        with self._lock:
            self.running -= 1
        return super().search(request)

    def close(self):
        """The application is the fixture's."""


class Wire:
    """The messages of one connection, as they are."""

    def __init__(self, read, write, era):
        self._read, self._write, self._era = read, write, era
        self.seen = []

    async def send(self, request_id, method, **params):
        if self._era == MODERN:
            params["_meta"] = {**ENVELOPE, **params.get("_meta", {})}
        message = JSONRPCRequest(jsonrpc="2.0", id=request_id, method=method, params=params)
        await self._write.send(SessionMessage(message))

    async def tell(self, method, **params):
        message = JSONRPCNotification(jsonrpc="2.0", method=method, params=params)
        await self._write.send(SessionMessage(message))

    async def receive(self):
        return (await self._read.receive()).message

    async def answer(self, request_id, seconds=60):
        """What came before it is in `seen`."""
        with anyio.fail_after(seconds):
            while True:
                message = await self.receive()
                self.seen.append(message)
                if getattr(message, "id", None) == request_id:
                    return message


@asynccontextmanager
async def connected(host, era):
    server = create_server(host)
    async with (
        create_client_server_memory_streams() as (client, ours),
        anyio.create_task_group() as group,
    ):
        group.start_soon(server.run, *ours, server.create_initialization_options())
        wire = Wire(*client, era)
        if era == LEGACY:
            await wire.send("hello", "initialize", **hello("2025-11-25"))
            await wire.answer("hello")
        yield wire
        group.cancel_scope.cancel()


def hello(version):
    info = {"name": "test", "version": "1"}
    return {"protocolVersion": version, "capabilities": {}, "clientInfo": info}


def run(host, era, work):
    async def main():
        async with connected(host, era) as wire:
            return await work(wire)

    return anyio.run(main)


@pytest.mark.parametrize("era", ERAS)
def test_a_cancelled_call_gets_no_answer_and_frees_its_place(app, era):
    held = Held(app)
    host = Host(lambda: held)

    async def work(wire):
        for number in range(SEARCHES_AT_ONCE + 2):
            await wire.send(number, "tools/call", **QUERY, _meta={"progressToken": number})
        while held.running < SEARCHES_AT_ONCE:
            await anyio.sleep(0.01)
        for number in range(SEARCHES_AT_ONCE + 1):
            await wire.tell("notifications/cancelled", requestId=number)
        await wire.send("after", "tools/list")
        await wire.answer("after")
        quiet_from = len(wire.seen)
        held.go.set()
        last = SEARCHES_AT_ONCE + 1
        answer = await wire.answer(last)
        assert answer.result["structuredContent"]["results"]
        await wire.send("end", "tools/list")
        await wire.answer("end")
        about = {
            getattr(each, "params", {}).get("progressToken")
            for each in wire.seen[quiet_from:]
            if hasattr(each, "method")
        }
        answered = {each.id for each in wire.seen if hasattr(each, "result")}
        assert about <= {last}
        assert not answered & set(range(last))

    run(host, era, work)


def test_pings_and_looks_are_answered_while_searches_run(app):
    held = Held(app)

    async def work(wire):
        for number in range(10):
            await wire.send(number, "tools/call", **QUERY)
        while held.running < SEARCHES_AT_ONCE:
            await anyio.sleep(0.01)
        await wire.send("ping", "ping")
        await wire.answer("ping")
        await wire.send("status", "tools/call", name="index_status", arguments={})
        await wire.answer("status")
        assert held.most == SEARCHES_AT_ONCE
        held.go.set()
        for number in range(10):
            if not any(getattr(each, "id", None) == number for each in wire.seen):
                await wire.answer(number)
        assert held.most == SEARCHES_AT_ONCE

    run(Host(lambda: held), LEGACY, work)


@pytest.mark.parametrize("era", ERAS)
def test_progress_is_told_to_who_gave_a_token_and_to_nobody_else(app, era):
    held = Held(app)

    async def work(wire):
        for number in range(SEARCHES_AT_ONCE + 1):
            token = {"_meta": {"progressToken": number}} if number else {}
            await wire.send(number, "tools/call", **QUERY, **token)
        told = []
        while len(told) < 6:
            message = await wire.receive()
            assert message.method == "notifications/progress"
            told.append(message.params)
        held.go.set()
        assert {each["progressToken"] for each in told} == {1, 2, 3}
        assert f"{SEARCHES_AT_ONCE + 1} searches waiting or running" in {
            each["message"] for each in told
        }
        for token in (1, 2, 3):
            steps = [each["progress"] for each in told if each["progressToken"] == token]
            assert steps == sorted(set(steps))

    run(Host(lambda: held), era, work)


def test_lists_may_be_kept_for_a_while_by_a_client(app):
    async def work(wire):
        await wire.send(1, "server/discover")
        found = (await wire.answer(1)).result
        assert MODERN in found["supportedVersions"]
        assert {"tools", "resources", "completions"} <= set(found["capabilities"])
        for number, method in enumerate(
            ("tools/list", "resources/list", "resources/templates/list"), start=2
        ):
            await wire.send(number, method)
            result = (await wire.answer(number)).result
            assert result["ttlMs"] > 0
            assert result["cacheScope"] in ("public", "private")
            assert result["resultType"] == "complete"

    run(Host(lambda: Held(app)), MODERN, work)


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
def test_every_version_with_a_handshake_is_spoken(app, version):
    async def work(wire):
        await wire.send(1, "initialize", **hello(version))
        assert (await wire.answer(1)).result["protocolVersion"] == version
        await wire.send(2, "tools/list")
        assert len((await wire.answer(2)).result["tools"]) == 6

    async def main():
        async with connected(Host(lambda: Held(app)), "none yet") as wire:
            await work(wire)

    anyio.run(main)


@pytest.mark.parametrize("era", ERAS)
def test_what_is_not_there_is_an_error_of_the_protocol(app, era):
    async def work(wire):
        await wire.send(1, "no/such")
        assert (await wire.answer(1)).error.code == -32601
        await wire.send(2, "tools/call", name="no_such_tool", arguments={})
        answer = await wire.answer(2)
        assert answer.error.code == -32602
        assert "query_documents" in answer.error.message

    run(Host(lambda: Held(app)), era, work)


def test_a_configuration_that_cannot_be_used_is_said_and_then_mended(app):
    problems = [ConfigError("config.toml, line 3: unknown setting"), MemoryError("secret")]

    def open_backend():
        if problems:
            raise problems.pop(0)
        return ServedApp(app)

    with InMemory(Host(open_backend)) as server:
        said = server.call("query_documents", query="token")
        assert said.is_error
        assert "config.toml, line 3: unknown setting" in said.text
        broken = server.call("query_documents", query="token")
        assert broken.is_error
        assert "internal error (MemoryError)" in broken.text
        assert "secret" not in broken.text
        found = server.call("query_documents", query="token")
        assert found.paths == ["auth.md"]


def test_the_tools_are_listed_even_if_the_settings_cannot_be_read(app, monkeypatch):
    monkeypatch.setattr(tools, "SECONDS_FOR_SETTINGS", 0.1)
    readable = threading.Event()

    def open_backend():
        readable.wait(120)
        return Held(app)

    with InMemory(Host(open_backend)) as server:
        assert len(server.use(lambda client: client.list_tools()).tools) == 6
        readable.set()


def test_search_by_a_hypothesis_can_be_switched_off(tmp_path):
    search = {"advanced": {"hyde_enabled": False}}
    with in_memory(indexed_app(tmp_path, TEXTS, search=search)) as server:
        listed = server.use(lambda client: client.list_tools()).tools
        assert "search_with_hypothesis" not in [tool.name for tool in listed]
        assert len(listed) == 5
        asked = server.call("search_with_hypothesis", hypothesis="One signs in with a token.")
        assert asked.is_error
        assert "hyde_enabled = true" in asked.text


def test_before_there_is_an_index_it_is_said_and_nothing_waits(tmp_path):
    app = served(write_all(tmp_path / "docs", TEXTS), tmp_path / "index")
    with in_memory(app) as server:
        asked = server.call("query_documents", query="token")
        assert not asked.is_error
        assert asked.data["results"] == []
        assert asked.data["index"]["state"] == "unavailable"
        assert asked.data["index"]["complete"] is False
        assert "Index unavailable: " in asked.text
        assert "(incomplete: ask again later" in asked.text
        for tool, arguments in (
            ("get_document", {"document": "auth.md"}),
            ("list_documents", {}),
            ("find_related", {"document": "auth.md"}),
        ):
            early = server.call(tool, **arguments)
            assert early.is_error
            assert "it is being built, so ask again" in early.text
        assert server.call("index_status").data["index"]["state"] == "unavailable"
        assert server.use(lambda client: client.list_resources()).resources == []
        app.service.start()
        until(lambda: server.call("query_documents", query="token").data["index"]["complete"])
        assert server.call("query_documents", query="token").paths == ["auth.md"]


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [("query_documents", {"query": "token"}), ("get_document", {"document": "auth.md"})],
)
def test_the_first_question_waits_briefly_for_the_first_documents(tmp_path, tool, arguments):
    app = served(write_all(tmp_path / "docs", TEXTS), tmp_path / "index")
    with InMemory(Host(lambda: ServedApp(app, patience=60))) as server:
        app.service.start()
        asked = server.call(tool, **arguments)
        assert not asked.is_error
        assert "sign in with a token" in asked.text
    never = served(tmp_path / "docs", tmp_path / "other")
    with InMemory(Host(lambda: ServedApp(never, patience=0.2))) as server:
        assert "sign in with a token" not in server.call(tool, **arguments).text
