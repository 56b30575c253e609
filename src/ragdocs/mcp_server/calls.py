"""A call of a tool: checked, run in a thread, answered; whatever goes wrong is said in words."""

from typing import Any

import anyio
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp.types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    ContentBlock,
    ListToolsResult,
    ResourceLink,
    TextContent,
)

from ragdocs.errors import RagdocsError
from ragdocs.mcp_server.failures import broken, failed
from ragdocs.mcp_server.host import Host
from ragdocs.mcp_server.progress import told
from ragdocs.mcp_server.tools.answering import Given
from ragdocs.mcp_server.tools.arguments import Arguments
from ragdocs.mcp_server.tools.catalogue import HYPOTHESIS, TOOLS, ToolKind

SECONDS_FOR_SETTINGS = 5.0
"""To read them takes a tenth of a second; the disk they are on may not answer."""


async def list_tools(host: Host) -> ListToolsResult:
    is_offered = await _offers_hypothesis(host)
    return ListToolsResult(
        tools=[tool.listed() for tool in TOOLS.values() if is_offered or tool.name != HYPOTHESIS]
    )


async def call_tool(
    host: Host, context: ServerRequestContext[Any, Any], params: CallToolRequestParams
) -> CallToolResult:
    tool = TOOLS.get(params.name)
    if tool is None:
        known = ", ".join(TOOLS)
        raise MCPError(code=INVALID_PARAMS, message=f"there is no such tool; there are: {known}")
    try:
        arguments = tool.arguments.read(params.arguments or {})
    except RagdocsError as error:
        return failed(error)
    return await told(context, host.activity, _answer(host, tool, arguments))


async def _answer(host: Host, tool: ToolKind, arguments: Arguments) -> CallToolResult:
    run = host.search if tool.is_search else host.look
    try:
        return given(await run(lambda backend: tool.give(backend, arguments)))
    except RagdocsError as error:
        return failed(error)
    except Exception as error:
        return broken(error)


def given(answer: Given) -> CallToolResult:
    links = (
        ResourceLink(uri=link.uri, name=link.name, mime_type="text/markdown")
        for link in answer.links
    )
    content: list[ContentBlock] = [TextContent(text=answer.text), *links]
    return CallToolResult(content=content, structured_content=answer.structured)


async def _offers_hypothesis(host: Host) -> bool:
    """Unless the settings say that it does not; a client is not kept waiting for them."""
    with anyio.move_on_after(SECONDS_FOR_SETTINGS):
        try:
            return await host.look(lambda backend: backend.hyde_enabled)
        except Exception:  # every call says it
            return True
    return True
