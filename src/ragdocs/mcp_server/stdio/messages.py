"""One line → one message of the protocol, or why it is none.

What cannot be text in UTF-8 (invalid bytes, half a surrogate pair) is replaced, so that a request
which carries it is answered: a client that gets no answer waits.
"""

import json
from dataclasses import dataclass
from typing import Any, cast

from mcp.types import (
    INVALID_REQUEST,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    RequestId,
    jsonrpc_message_adapter,
)


@dataclass(frozen=True, slots=True)
class Refused:
    """A line that is no message; with the id of the request it was meant to be, if it has one."""

    request_id: RequestId | None

    @property
    def answer(self) -> JSONRPCError | None:
        if self.request_id is None:
            return None
        error = ErrorData(
            code=INVALID_REQUEST, message="Invalid request: not a message of JSON-RPC 2.0"
        )
        return JSONRPCError(jsonrpc="2.0", id=self.request_id, error=error)


def parse(line: bytes) -> JSONRPCMessage | Refused:
    try:
        return jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValueError:
        return _repaired(line)


def _repaired(line: bytes) -> JSONRPCMessage | Refused:
    request_id: RequestId | None = None
    try:
        value = json.loads(line.decode("utf-8-sig", "replace"))
        request_id = _request_id(value)
        # As one text again: here half a surrogate pair becomes a question mark.
        text = json.dumps(value, ensure_ascii=False, allow_nan=False).encode("utf-8", "replace")
        return jsonrpc_message_adapter.validate_json(text, by_name=False)
    except (ValueError, RecursionError):
        return Refused(request_id)


def _request_id(value: object) -> RequestId | None:
    if not isinstance(value, dict):
        return None
    message = cast(dict[str, Any], value)
    found = message.get("id")
    is_usable = isinstance(found, int | str) and not isinstance(found, bool)
    return found if is_usable and "method" in message else None
