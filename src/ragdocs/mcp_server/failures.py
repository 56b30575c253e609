"""What went wrong, in words: for whoever asked, and for the log."""

import logging
from collections.abc import Awaitable
from typing import TypeVar

from mcp.shared.exceptions import MCPError
from mcp.types import INTERNAL_ERROR, CallToolResult, TextContent

from ragdocs.errors import IndexMissing, RagdocsError
from ragdocs.mcp_server.tools.quoting import without_places
from ragdocs.mcp_server.visible import Cleaner

MAX_ERROR_CHARS = 2_000
_NO_INDEX = "there is no index yet: it is being built, ask again in a few seconds"
_log = logging.getLogger(__name__)
_Answer = TypeVar("_Answer")


async def guarded(work: Awaitable[_Answer]) -> _Answer:
    """For requests that are not calls of tools: an error of the protocol, without details."""
    try:
        return await work
    except MCPError:
        raise
    except RagdocsError as error:
        raise MCPError(code=INTERNAL_ERROR, message=error_text(error)) from None
    except Exception as error:
        raise MCPError(code=INTERNAL_ERROR, message=_logged(error)) from None


def failed(error: Exception) -> CallToolResult:
    """An expected error: its message says what to do."""
    return CallToolResult(content=[TextContent(text=error_text(error))], is_error=True)


def broken(error: Exception) -> CallToolResult:
    """A mistake of ours."""
    said = f"{_logged(error)}: try again; index_status says how the index is"
    return CallToolResult(content=[TextContent(text=said)], is_error=True)


def error_text(error: Exception) -> str:
    if isinstance(error, IndexMissing):
        return _NO_INDEX
    text = without_places(Cleaner().clean(str(error)))
    return text if len(text) <= MAX_ERROR_CHARS else f"{text[:MAX_ERROR_CHARS]}…"


def _logged(error: Exception) -> str:
    """What its message says may be text of a query or a document: that is for debugging only."""
    name = type(error).__name__
    _log.error("a request failed: %s", name)
    _log.debug("a request failed", exc_info=error)
    return f"internal error ({name})"
