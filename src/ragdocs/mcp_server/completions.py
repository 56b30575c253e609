"""What may stand for a template's variable: paths, trees and tags that begin with, or have, it."""

from collections.abc import Iterable

from mcp.types import CompleteRequestParams, CompleteResult, Completion, ResourceTemplateReference

from ragdocs.errors import RagdocsError
from ragdocs.mcp_server.backend import Backend
from ragdocs.mcp_server.host import Host
from ragdocs.mcp_server.visible import Cleaner
from ragdocs.parsers.identity import decode_path
from ragdocs.search.library.requests import MAX_ENTRIES, MAX_TOKENS, ListKind, ListRequest

MAX_VALUES = 100
"""The protocol's own limit."""


async def complete(host: Host, params: CompleteRequestParams) -> CompleteResult:
    if not isinstance(params.ref, ResourceTemplateReference):
        return _result([], "")
    given = (params.context.arguments if params.context else None) or {}
    name, value = params.argument.name, params.argument.value
    try:
        names = await host.look(lambda backend: list(_names(backend, name, given.get("tree", ""))))
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
            request = ListRequest(kind=ListKind.TAGS, limit=MAX_ENTRIES, max_tokens=MAX_TOKENS)
            return (entry.tag for entry in backend.library.list(request).tags)
        case _:
            return ()


def _result(names: Iterable[str], value: str) -> CompleteResult:
    wanted = value.casefold()
    clean = Cleaner().clean
    ranked = [
        (not name.casefold().startswith(wanted), name)
        for name in dict.fromkeys(names)
        # One that cannot be shown as it is could not be used as it was shown.
        if wanted in name.casefold() and clean(name) == name
    ]
    values = [name for _, name in sorted(ranked)]
    return CompleteResult(
        completion=Completion(
            values=values[:MAX_VALUES], total=len(values), has_more=len(values) > MAX_VALUES
        )
    )
