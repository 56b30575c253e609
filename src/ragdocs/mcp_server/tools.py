"""The table of tools, and how a call of a tool or a completion runs: in a thread, with progress,
and with every error as a message.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, TypeVar

import anyio
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp.types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    CompleteRequestParams,
    CompleteResult,
    Completion,
    ContentBlock,
    ListToolsResult,
    ResourceLink,
    ResourceTemplateReference,
    TextContent,
    Tool,
    ToolAnnotations,
)

from ragdocs.errors import IndexCorrupt, RagdocsError
from ragdocs.library.requests import ListKind, ListRequest
from ragdocs.limits import MAX_ANSWER_TOKENS, MAX_COMPLETIONS, MAX_PAGE_ENTRIES
from ragdocs.mcp_server.answer import (
    Arguments,
    ToolAnswer,
    error_result,
    input_schema,
    internal_error_result,
    output_schema,
)
from ragdocs.mcp_server.host import Backend, Host
from ragdocs.mcp_server.library_tools import (
    DocumentAnswer,
    DocumentArguments,
    ListAnswer,
    ListArguments,
    RelatedAnswer,
    RelatedArguments,
    StatusAnswer,
    StatusArguments,
    find_related,
    get_document,
    index_status,
    list_documents,
)
from ragdocs.mcp_server.search_tool import HypothesisArguments, QueryArguments, SearchAnswer, search
from ragdocs.parsers.ids import decode_path
from ragdocs.text import Cleaner

# Completions of a template's variable: paths, trees and tags that start with the text or contain
# it.


async def complete(host: Host, params: CompleteRequestParams) -> CompleteResult:
    if not isinstance(params.ref, ResourceTemplateReference):
        return _result([], "")
    given = (params.context.arguments if params.context else None) or {}
    name, value = params.argument.name, params.argument.value
    try:
        names = await host.read(lambda backend: list(_names(backend, name, given.get("tree", ""))))
    except RagdocsError:  # no index, no names
        names = []
    return _result(names, value)


def _names(backend: Backend, variable: str, tree: str) -> Iterable[str]:
    match variable:
        case "path":
            ids = (doc_id.partition(":") for doc_id in backend.document_ids())
            return (decode_path(path) for of, _, path in ids if of == tree or not tree)
        case "tree":
            listing = backend.library.list(ListRequest(kind=ListKind.TREES))
            return (entry.name for entry in listing.trees)
        case "tag":
            request = ListRequest(
                kind=ListKind.TAGS, limit=MAX_PAGE_ENTRIES, max_tokens=MAX_ANSWER_TOKENS
            )
            return (entry.tag for entry in backend.library.list(request).tags)
        case _:
            return ()


def _result(names: Iterable[str], value: str) -> CompleteResult:
    wanted = value.casefold()
    clean = Cleaner().clean
    ranked = [
        (not name.casefold().startswith(wanted), name)
        for name in dict.fromkeys(names)
        # A name with invisible characters would not work as it is shown.
        if wanted in name.casefold() and clean(name) == name
    ]
    values = [name for _, name in sorted(ranked)]
    return CompleteResult(
        completion=Completion(
            values=values[:MAX_COMPLETIONS],
            total=len(values),
            has_more=len(values) > MAX_COMPLETIONS,
        )
    )


# Reports progress during a call, to a client that sent a progress token.

SECONDS_BETWEEN = 0.5

Answer = TypeVar("Answer")


async def with_progress(
    context: ServerRequestContext[Any, Any], words: Callable[[], str], work: Awaitable[Answer]
) -> Answer:
    """Reports nothing after the answer, after cancellation, or without a token.

    `work` must not raise: the task group would wrap the exception.
    """
    async with anyio.create_task_group() as group:
        group.start_soon(_report_progress, context, words)
        answer = await work
        group.cancel_scope.cancel()
        return answer
    raise AssertionError("a task group swallows no exception")


async def _report_progress(
    context: ServerRequestContext[Any, Any], words: Callable[[], str]
) -> None:
    seconds = 0.0
    while True:
        await context.session.report_progress(seconds, message=words())
        await anyio.sleep(SECONDS_BETWEEN)
        seconds += SECONDS_BETWEEN


# The tools, in the order in which they are listed.

HYPOTHESIS = "search_with_hypothesis"
_HINTS = ToolAnnotations(
    read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolKind:
    """One tool. A search is queued with other searches; the other tools are quick."""

    name: str
    description: str
    arguments: type[Arguments]
    answer: type[Any]
    give: Callable[[Backend, Any], ToolAnswer]
    is_search: bool = False

    def to_tool(self) -> Tool:
        return Tool(
            name=self.name,
            description=self.description,
            input_schema=input_schema(self.arguments),
            output_schema=output_schema(self.answer),
            annotations=_HINTS,
        )


_ALL = (
    ToolKind(
        name="query_documents",
        description=(
            "Search the user's Markdown notes and docs by meaning and words. Use it first for any "
            "question they may answer, above all when the wording is unknown (grep finds "
            "exact strings only). Gives the best passages: path:lines, heading, confidence, text; "
            "and says when nothing fits or the index is incomplete. "
            'E.g. {"query": "how do I rotate a token?", "top_n": 3}'
        ),
        arguments=QueryArguments,
        answer=SearchAnswer,
        give=search,
        is_search=True,
    ),
    ToolKind(
        name=HYPOTHESIS,
        description=(
            "Search by an imagined answer, when query_documents finds nothing certain. "
            'E.g. {"hypothesis": "Tokens are rotated with `auth rotate`; old ones expire."}'
        ),
        arguments=HypothesisArguments,
        answer=SearchAnswer,
        give=search,
        is_search=True,
    ),
    ToolKind(
        name="get_document",
        description=(
            "Read on from a result: a document, section or lines, word for word, in pages. Use "
            'outline first for long ones. E.g. {"document": "guide/auth.md#tokens"}'
        ),
        arguments=DocumentArguments,
        answer=DocumentAnswer,
        give=get_document,
    ),
    ToolKind(
        name="list_documents",
        description=(
            "What there is: documents, trees (root folders), headings or tags, in pages. Use it "
            'for an overview, not to find an answer. E.g. {"path": "guide", "kind": "outlines"}'
        ),
        arguments=ListArguments,
        answer=ListAnswer,
        give=list_documents,
    ),
    ToolKind(
        name="find_related",
        description=(
            "What goes with a document: links, backlinks, same cluster, similar text. Or, for "
            'code you work on, the documentation that matters. E.g. {"document": "guide/auth.md"} '
            'or {"files": [{"path": "src/auth.py"}]}'
        ),
        arguments=RelatedArguments,
        answer=RelatedAnswer,
        give=find_related,
        is_search=True,
    ),
    ToolKind(
        name="index_status",
        description=(
            "Whether the index is complete and what failed. Use it when answers seem to miss "
            "something. E.g. {}"
        ),
        arguments=StatusArguments,
        answer=StatusAnswer,
        give=index_status,
    ),
)

TOOLS: Mapping[str, ToolKind] = MappingProxyType({tool.name: tool for tool in _ALL})


# A call of a tool: check the arguments, run it in a thread, answer; every error becomes a message.

SECONDS_FOR_SETTINGS = 5.0
"""Reading them takes a tenth of a second, unless their disk does not answer."""


async def list_tools(host: Host) -> ListToolsResult:
    is_offered = await _offers_hypothesis(host)
    return ListToolsResult(
        tools=[tool.to_tool() for tool in TOOLS.values() if is_offered or tool.name != HYPOTHESIS]
    )


async def call_tool(
    host: Host, context: ServerRequestContext[Any, Any], params: CallToolRequestParams
) -> CallToolResult:
    tool = TOOLS.get(params.name)
    if tool is None:
        known = ", ".join(TOOLS)
        raise MCPError(
            code=INVALID_PARAMS, message=f"there is no such tool; the tools are: {known}"
        )
    try:
        arguments = tool.arguments.read(params.arguments or {})
    except RagdocsError as error:
        return error_result(error)
    return await with_progress(context, host.activity, _answer(host, tool, arguments))


async def _answer(host: Host, tool: ToolKind, arguments: Arguments) -> CallToolResult:
    run = host.search if tool.is_search else host.read

    def give(backend: Backend) -> ToolAnswer:
        try:
            return tool.give(backend, arguments)
        except IndexCorrupt as error:
            backend.report(error)
            raise

    try:
        return to_result(await run(give))
    except RagdocsError as error:
        return error_result(error)
    except Exception as error:
        return internal_error_result(error)


def to_result(answer: ToolAnswer) -> CallToolResult:
    links = (
        ResourceLink(uri=link.uri, name=link.name, mime_type="text/markdown")
        for link in answer.links
    )
    content: list[ContentBlock] = [TextContent(text=answer.text), *links]
    return CallToolResult(content=content, structured_content=answer.structured)


async def _offers_hypothesis(host: Host) -> bool:
    """True unless the settings switch it off; a client does not wait long for them."""
    with anyio.move_on_after(SECONDS_FOR_SETTINGS):
        if host.roots.may_be_needed:
            host.start()
            if await host.roots.are_awaited():
                return True
        try:
            return await host.read(lambda backend: backend.hyde_enabled)
        except Exception:  # every call reports it
            return True
    return True
