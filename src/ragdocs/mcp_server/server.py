"""The server process: the SDK's server with our handlers, which import the rest at the first
call."""

import logging
import os
import sys
import threading
from collections.abc import Callable
from importlib import import_module
from typing import Any

import anyio.to_thread
from mcp.server.caching import CacheHint
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.types import (
    CallToolRequestParams,
    CallToolResult,
    CompleteRequestParams,
    CompleteResult,
    Completion,
    GetPromptRequestParams,
    GetPromptResult,
    InputRequiredResult,
    ListPromptsResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ListToolsResult,
    NotificationParams,
    PaginatedRequestParams,
    ReadResourceRequestParams,
    ReadResourceResult,
)

from ragdocs import __version__
from ragdocs.mcp_server.host import Backend, Host
from ragdocs.mcp_server.instructions import BASE, SummaryFile, instructions
from ragdocs.mcp_server.roots import ClientRoots, is_modern
from ragdocs.mcp_server.stdio import Wire, claim
from ragdocs.memory import collect_seldom
from ragdocs.shutdown import Ending

# The SDK's server with our handlers. Until the first request, only the SDK is imported.

NAME = "ragdocs"
_HOUR = 3_600_000
_SECONDS = 5_000
_Context = ServerRequestContext[Any, Any]


def create_server(host: Host, instructions: str = BASE) -> Server[Any]:
    handlers = _Handlers(host)
    server: Server[Any] = Server(
        NAME,
        version=__version__,
        instructions=instructions,
        cache_hints={
            "server/discover": CacheHint(_HOUR, "private"),
            "prompts/list": CacheHint(_HOUR, "public"),
            "tools/list": CacheHint(_HOUR, "private"),
            "resources/templates/list": CacheHint(_HOUR, "public"),
            "resources/list": CacheHint(_SECONDS, "private"),
            "resources/read": CacheHint(0, "private"),
        },
        on_list_tools=handlers.list_tools,
        on_call_tool=handlers.call_tool,
        on_list_resources=handlers.list_resources,
        on_list_resource_templates=handlers.list_templates,
        on_read_resource=handlers.read_resource,
        on_completion=handlers.complete,
        on_list_prompts=handlers.list_prompts,
        on_get_prompt=handlers.get_prompt,
    )
    server.middleware.append(handlers.hear)
    server.add_notification_handler("notifications/initialized", NotificationParams, handlers.begin)
    return server


class _Handlers:
    """Each handler imports what it needs at its first call, in a thread, so that pings are still
    answered."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._roots = host.roots
        self._imported = set[str]()

    async def hear(self, ctx: _Context, call_next: CallNext) -> HandlerResult:
        self._roots.hear(ctx)
        return await call_next(ctx)

    async def begin(self, context: _Context, _params: NotificationParams | None) -> None:
        """After the handshake."""
        await self._roots.ask(context)

    async def _import(self, name: str) -> None:
        if name not in self._imported:
            await anyio.to_thread.run_sync(import_module, f"ragdocs.mcp_server.{name}")
            self._imported.add(name)

    async def list_tools(
        self, _context: _Context, _params: PaginatedRequestParams | None
    ) -> ListToolsResult:
        await self._import("tools")
        from ragdocs.mcp_server.tools import list_tools

        return await list_tools(self._host)

    async def call_tool(
        self, context: _Context, params: CallToolRequestParams
    ) -> CallToolResult | InputRequiredResult:
        await self._import("tools")
        from ragdocs.mcp_server.tools import call_tool

        if question := await self._ask_first(context, params):
            return question
        return await call_tool(self._host, context, params)

    async def list_resources(
        self, context: _Context, params: PaginatedRequestParams | None
    ) -> ListResourcesResult:
        await self._import("resources")
        from ragdocs.mcp_server.answer import guard
        from ragdocs.mcp_server.resources import list_resources

        if await self._is_without_documents(context):
            return ListResourcesResult(resources=[])
        return await guard(list_resources(self._host, params.cursor if params else None))

    async def list_templates(
        self, _context: _Context, _params: PaginatedRequestParams | None
    ) -> ListResourceTemplatesResult:
        await self._import("resources")
        from ragdocs.mcp_server.resources import list_templates

        return list_templates()

    async def read_resource(
        self, context: _Context, params: ReadResourceRequestParams
    ) -> ReadResourceResult | InputRequiredResult:
        await self._import("resources")
        from ragdocs.mcp_server.answer import guard
        from ragdocs.mcp_server.resources import read_resource

        if question := await self._ask_first(context, params):
            return question
        return await guard(read_resource(self._host, context, params.uri))

    async def complete(self, context: _Context, params: CompleteRequestParams) -> CompleteResult:
        await self._import("tools")
        from ragdocs.mcp_server.answer import guard
        from ragdocs.mcp_server.tools import complete

        if await self._is_without_documents(context):
            return CompleteResult(completion=Completion(values=[]))
        return await guard(complete(self._host, params))

    async def list_prompts(
        self, _context: _Context, _params: PaginatedRequestParams | None
    ) -> ListPromptsResult:
        from ragdocs.mcp_server.prompts import list_prompts

        return list_prompts()

    async def get_prompt(
        self, _context: _Context, params: GetPromptRequestParams
    ) -> GetPromptResult:
        from ragdocs.mcp_server.prompts import get_prompt

        return get_prompt(params.name, params.arguments or {})

    async def _ask_first(
        self, context: _Context, params: CallToolRequestParams | ReadResourceRequestParams
    ) -> InputRequiredResult | None:
        """For the client's roots, if they are needed and not known."""
        if not self._roots.may_be_needed:
            return None
        self._host.start()
        await self._roots.ask(context)
        return await self._roots.question(context, params.input_responses)

    async def _is_without_documents(self, context: _Context) -> bool:
        """Until a client that cannot be asked now has listed its roots."""
        if not (is_modern(context) and self._roots.may_be_needed):
            return False
        self._host.start()
        return await self._roots.are_awaited()


# The server process, from start to exit.


def run(
    open_backend: Callable[[], Backend],
    log_level: str = "warning",
    roots: ClientRoots | None = None,
    summary: SummaryFile | None = None,
) -> None:
    """Serves until the client disconnects or the process is asked to end; does not return.

    `roots` are what `open_backend` may ask the client for; the instructions are from `summary`.
    """
    wire = claim()
    collect_seldom()
    with Ending() as ending:
        logging.basicConfig(
            stream=sys.stderr, level=log_level.upper(), format="ragdocs: %(levelname)s: %(message)s"
        )
        about = instructions(summary.read() if summary else ())
        _serve(wire, Host(open_backend, roots), about, ending)
    logging.shutdown()
    # A thread may still be inside a read, write or search that cannot be interrupted.
    os._exit(ending.exit_code)


def _serve(wire: Wire, host: Host, about: str, ending: Ending) -> None:
    import anyio
    from anyio.from_thread import BlockingPortal

    from ragdocs.mcp_server.stdio import connect

    main_thread = threading.get_ident()

    def call_in(portal: BlockingPortal, action: Callable[[], None]) -> None:
        """If shutdown began during imports, this already is the event loop's thread."""
        if threading.get_ident() == main_thread:
            action()
        else:
            portal.start_task_soon(action)

    async def serve() -> None:
        server = create_server(host, about)
        async with BlockingPortal() as portal, anyio.create_task_group() as group:
            ending.when_begun(lambda: call_in(portal, group.cancel_scope.cancel))
            async with connect(wire, host.start) as (incoming, outgoing):
                await server.run(incoming, outgoing, server.create_initialization_options())
            group.cancel_scope.cancel()

    try:
        anyio.run(serve)
    finally:
        ending.begin()
        host.close()
