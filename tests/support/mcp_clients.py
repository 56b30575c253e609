"""The MCP server, asked in this process through the SDK's own client, or as another process through
its pipes.
"""

import json
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TypeVar

import anyio
from anyio.from_thread import start_blocking_portal
from mcp import Client
from mcp.types import CallToolResult

from ragdocs.app import App
from ragdocs.mcp_server.host import Host, ServedApp
from ragdocs.mcp_server.server import create_server
from ragdocs.search.budget import tokens
from tests.support.indexes import write_all
from tests.support.machine import until
from tests.support.program import served

T = TypeVar("T")
ERAS = ("legacy", "2026-07-28")
"""By handshake, and stateless."""


class Asked:
    """A tool's answer."""

    def __init__(self, result: CallToolResult) -> None:
        self.result = result
        self.is_error = result.is_error
        self.data: dict[str, Any] = result.structured_content or {}
        self.text: str = result.content[0].text
        self.links = [each for each in result.content if each.type == "resource_link"]

    @property
    def paths(self) -> list[str]:
        return [found["path"] for found in self.data["results"]]

    @property
    def tokens(self) -> int:
        """Tokens of the longer of the two forms: a client may show either."""
        links = (each.model_dump_json(by_alias=True, exclude_none=True) for each in self.links)
        shown = tokens(self.text) + sum(map(tokens, links))
        return max(shown, tokens(json.dumps(self.data, ensure_ascii=False, separators=(",", ":"))))


class InMemory:
    """A server over one host, in a thread; one connection for each era."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self._stack = ExitStack()
        self._portal = self._stack.enter_context(start_blocking_portal())
        self._clients: dict[str, Client] = {}

    def client(self, era: str) -> Client:
        if era not in self._clients:
            made = Client(create_server(self.host), mode=era, cache=None)
            opened = self._portal.wrap_async_context_manager(made)
            self._clients[era] = self._stack.enter_context(opened)
        return self._clients[era]

    def use(self, work: Callable[[Client], Awaitable[T]], era: str = ERAS[0]) -> T:
        async def timed() -> T:
            with anyio.fail_after(90):
                return await work(client)

        client = self.client(era)
        return self._portal.call(timed)

    def call(self, tool: str, era: str = ERAS[0], **arguments: Any) -> Asked:
        return Asked(self.use(lambda client: client.call_tool(tool, arguments), era))

    def __enter__(self) -> "InMemory":
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()
        self.host.close()


def in_memory(app: App) -> InMemory:
    """Closes the application too."""
    return InMemory(Host(lambda: ServedApp(app)))


def indexed_app(folder: Path, texts: dict[str, str], **sections: dict[str, object]) -> App:
    """A running application with a complete index."""
    app = served(write_all(folder / "docs", texts), folder / "index", **sections)
    app.service.start()
    until(lambda: app.index_state().complete)
    return app


PROJECT = Path(__file__).parents[2]


class ServerProcess:
    """A server process; keeps every line that it writes."""

    def __init__(self, *command: str, **environ: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=PROJECT,
            env={**os.environ, **environ},
        )
        self.lines: list[bytes] = []
        self._arrived: queue.Queue[bytes] = queue.Queue()
        self._errors: list[bytes] = []
        self._threads = [
            threading.Thread(target=self._read_lines, daemon=True),
            threading.Thread(target=self._read_errors, daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    def raw(self, line: bytes) -> None:
        assert self.process.stdin
        self.process.stdin.write(line)
        self.process.stdin.flush()

    def send(self, request_id: int | str, method: str, **params: Any) -> None:
        message = {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}
        self.raw(json.dumps(message).encode() + b"\n")

    def answer(self, request_id: int | str, seconds: float = 180) -> dict[str, Any]:
        deadline = time.monotonic() + seconds
        while True:
            line = self._arrived.get(timeout=max(0.01, deadline - time.monotonic()))
            assert line, f"it ended: {self.errors}"
            message = json.loads(line)
            if message.get("id") == request_id:
                return message

    def ask(self, request_id: int | str, method: str, **params: Any) -> dict[str, Any]:
        self.send(request_id, method, **params)
        return self.answer(request_id)

    def call(self, request_id: int | str, tool: str, **arguments: Any) -> dict[str, Any]:
        return self.ask(request_id, "tools/call", name=tool, arguments=arguments)

    def initialize(self) -> dict[str, Any]:
        info = {"name": "test", "version": "1"}
        version = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info}
        return self.ask("initialize", "initialize", **version)

    def ended(self, seconds: float) -> int:
        """Waits for the exit status."""
        return self.process.wait(seconds)

    @property
    def errors(self) -> str:
        """All of standard error, once the process has ended."""
        self._threads[1].join(60)
        return b"".join(self._errors).decode()

    def __enter__(self) -> "ServerProcess":
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        for thread in self._threads:
            thread.join(10)
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            if pipe and not pipe.closed:
                pipe.close()

    def _read_lines(self) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            self.lines.append(line)
            self._arrived.put(line)
        self._arrived.put(b"")

    def _read_errors(self) -> None:
        assert self.process.stderr
        self._errors += iter(lambda: self.process.stderr.read1(65536), b"")  # type: ignore[union-attr]
