"""Documents as resources: a list, reading by address, and address templates."""

from typing import Any

from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp.types import (
    INVALID_PARAMS,
    Annotations,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ReadResourceResult,
    Resource,
    ResourceTemplate,
    TextResourceContents,
)
from mcp.types.version import MODERN_PROTOCOL_VERSIONS

from ragdocs.errors import IndexStoreError, QueryError, RagdocsError
from ragdocs.library.answers import DocumentEntry, DocumentText
from ragdocs.library.requests import DocumentRequest, ListRequest
from ragdocs.limits import MAX_ANSWER_TOKENS
from ragdocs.mcp_server.addresses import Address, AddressKind, document_uri, parse_address
from ragdocs.mcp_server.answer import error_text, one_line
from ragdocs.mcp_server.host import Backend, Host
from ragdocs.mcp_server.library_tools import ListArguments, list_documents, resolve
from ragdocs.text import Cleaner

MARKDOWN = "text/markdown"
DOCUMENT = "ragdocs://doc/{tree}/{+path}"
TREE = "ragdocs://tree/{tree}"
TAG = "ragdocs://tag/{tag}"
_NOT_FOUND = -32002
"""The code until protocol 2025-11-25; since then it is INVALID_PARAMS."""


async def list_resources(host: Host, cursor: str | None) -> ListResourcesResult:
    try:
        return await host.read(lambda backend: _list(backend, cursor))
    except QueryError as error:
        raise MCPError(code=INVALID_PARAMS, message=error_text(error)) from None


async def read_resource(
    host: Host, context: ServerRequestContext[Any, Any], uri: str
) -> ReadResourceResult:
    try:
        address = parse_address(uri)
        return await host.read(lambda backend: _read(backend, address, uri))
    except RagdocsError as error:
        is_modern = context.protocol_version in MODERN_PROTOCOL_VERSIONS
        code = INVALID_PARAMS if is_modern else _NOT_FOUND
        raise MCPError(code=code, message=error_text(error), data={"uri": uri}) from None


def list_templates() -> ListResourceTemplatesResult:
    return ListResourceTemplatesResult(
        resource_templates=[
            ResourceTemplate(
                name="document",
                uri_template=DOCUMENT,
                mime_type=MARKDOWN,
                description="A document; #heading-slug or #L10-L40 at the end is a part of it.",
            ),
            ResourceTemplate(
                name="tree", uri_template=TREE, description="The documents of a tree, as a list."
            ),
            ResourceTemplate(
                name="tag", uri_template=TAG, description="The documents with a tag, as a list."
            ),
        ]
    )


def _list(backend: Backend, cursor: str | None) -> ListResourcesResult:
    request = ListRequest(max_tokens=MAX_ANSWER_TOKENS, cursor=cursor or "")
    try:
        listing = backend.library.list(request)
    except IndexStoreError:
        return ListResourcesResult(resources=[])
    return ListResourcesResult(
        resources=list(map(_resource, listing.documents)), next_cursor=listing.cursor
    )


def _resource(entry: DocumentEntry) -> Resource:
    clean = Cleaner().clean
    return Resource(
        uri=document_uri(entry.id),
        name=one_line(clean(entry.path)),
        title=one_line(clean(entry.title)),
        mime_type=MARKDOWN,
        size=entry.bytes,
        annotations=Annotations(last_modified=entry.modified.isoformat()),
    )


def _read(backend: Backend, address: Address, uri: str) -> ReadResourceResult:
    if address.kind is AddressKind.DOCUMENT:
        where = resolve(uri)
        request = DocumentRequest(
            reference=where.reference,
            start_line=where.start_line,
            end_line=where.end_line,
            max_tokens=MAX_ANSWER_TOKENS,
        )
        return ReadResourceResult(contents=list(_contents(backend.library.get(request), uri)))
    wanted = {"tree": address.name} if address.kind is AddressKind.TREE else {"tags": address.name}
    text = list_documents(backend, ListArguments.read(wanted)).text
    return ReadResourceResult(contents=[TextResourceContents(uri=uri, text=text)])


def _contents(found: DocumentText, uri: str) -> list[TextResourceContents]:
    cleaner = Cleaner()
    text = cleaner.clean(found.text)
    meta = {"hiddenCharacters": cleaner.removed, "textState": found.state.value}
    contents = [TextResourceContents(uri=uri, mime_type=MARKDOWN, text=text, _meta=meta)]
    if found.cursor:
        left = found.total_tokens - found.tokens
        rest = f"{document_uri(found.doc_id)}#L{found.line_end}-L{found.total_lines}"
        said = f"Cut here; {left:,} tokens left out. Continue at {rest}"
        contents.append(TextResourceContents(uri=rest, mime_type="text/plain", text=said))
    return contents
