"""The MCP server in this process, asked through the SDK's own client."""

import json
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TypeVar

import anyio
from anyio.from_thread import start_blocking_portal
from mcp import Client
from mcp.types import CallToolResult

from ragdocs.app import App
from ragdocs.mcp_server.host import Host
from ragdocs.mcp_server.served_app import ServedApp
from ragdocs.mcp_server.server import create_server
from ragdocs.search.budget import tokens
from tests.served import served
from tests.waiting import until

T = TypeVar("T")
ERAS = ("legacy", "2026-07-28")
"""By handshake, and stateless."""


class Asked:
    """One answer of a tool."""

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
        """Of the dearer form, as a client may show it."""
        content = [each.model_dump(exclude_none=True) for each in self.links]
        shown = tokens(self.text) + sum(tokens(json.dumps(each)) for each in content)
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


def written(folder: Path, texts: dict[str, str]) -> Path:
    for path, text in texts.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return folder


def indexed_app(folder: Path, texts: dict[str, str], **sections: dict[str, object]) -> App:
    """An application at work, whose index is complete."""
    app = served(written(folder / "docs", texts), folder / "index", **sections)
    app.service.start()
    until(lambda: app.index_state().complete)
    return app
