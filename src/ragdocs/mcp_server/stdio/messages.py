"""One line → one message of the protocol, or why it is none.

What cannot be text in UTF-8 (invalid bytes, half a surrogate pair) is replaced, so that a request
which carries it is answered: a client that gets no answer waits.
"""

import json
import re
from dataclasses import dataclass
from enum import Enum
from typing import Any, cast

from mcp.types import (
    INVALID_REQUEST,
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    RequestId,
    jsonrpc_message_adapter,
)

from ragdocs.mcp_server.stdio.lines import HEAD_BYTES, MAX_LINE_BYTES, Overlong


class Refusal(Enum):
    """Why a line is no message: the code of the answer, and its text."""

    NO_JSON = (PARSE_ERROR, "Parse error: the line is not JSON")
    TOO_LONG = (
        INVALID_REQUEST,
        f"Invalid request: the line is longer than {MAX_LINE_BYTES:,} bytes",
    )
    BEYOND_LIMITS = (
        INVALID_REQUEST,
        "Invalid request: it is nested too deeply, or a number in it has too many digits",
    )
    BATCH = (INVALID_REQUEST, "Invalid request: batches are not supported, send one message a line")
    BAD_ID = (INVALID_REQUEST, "Invalid request: an id must be a string or a whole number")
    NO_MESSAGE = (INVALID_REQUEST, "Invalid request: not a message of JSON-RPC 2.0")

    @property
    def error(self) -> ErrorData:
        code, message = self.value
        return ErrorData(code=code, message=message)


@dataclass(frozen=True, slots=True)
class Refused:
    """A line that is no message; with the id of the request it was meant to be, if that can be
    told. What was meant as a notification or a response gets no answer."""

    refusal: Refusal
    request_id: RequestId | None = None
    is_answered: bool = True

    @property
    def answer(self) -> JSONRPCError | None:
        if not self.is_answered:
            return None
        return JSONRPCError(jsonrpc="2.0", id=self.request_id, error=self.refusal.error)


def parse(line: bytes | Overlong) -> JSONRPCMessage | Refused:
    if isinstance(line, Overlong):
        return Refused(Refusal.TOO_LONG, _id_at_the_head(line.head))
    try:
        message = jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValueError:
        return _repaired(line)
    # An id that is none is dropped by the validation, and the request waited for in vain.
    if isinstance(message, JSONRPCNotification) and b'"id"' in line:
        return _repaired(line)
    return message


def _repaired(line: bytes) -> JSONRPCMessage | Refused:
    try:
        value: object = json.loads(line.decode("utf-8-sig", "replace"))
    except json.JSONDecodeError:
        return Refused(Refusal.NO_JSON)
    except (ValueError, RecursionError):
        return Refused(Refusal.BEYOND_LIMITS, _id_at_the_head(line[:HEAD_BYTES]))
    if isinstance(value, list):
        return Refused(Refusal.BATCH)
    if not isinstance(value, dict):
        return Refused(Refusal.NO_MESSAGE)
    return _validated(cast(dict[str, Any], value))


def _validated(value: dict[str, Any]) -> JSONRPCMessage | Refused:
    found = value.get("id")
    is_usable = isinstance(found, int | str) and not isinstance(found, bool)
    is_request = "method" in value or not {"result", "error"} & value.keys()
    if is_request and "id" in value and not is_usable:
        return Refused(Refusal.BAD_ID)
    is_notification = isinstance(value.get("method"), str) and "id" not in value
    refused = Refused(
        Refusal.NO_MESSAGE,
        found if is_usable else None,
        is_answered=is_request and not is_notification,
    )
    try:
        # As one text again: here half a surrogate pair becomes a question mark.
        text = json.dumps(value, ensure_ascii=False, allow_nan=False).encode("utf-8", "replace")
        return jsonrpc_message_adapter.validate_json(text, by_name=False)
    except (ValueError, RecursionError):
        return refused


_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|-?\d+(?![\d.eE])|[\[\]{}:,]|[^\s\[\]{}:,"]+')


def _id_at_the_head(head: bytes) -> RequestId | None:
    """The outermost `id` of an object of which only the beginning can be read."""
    depth, before = 0, ["", "", ""]
    for token in _TOKEN.findall(head.decode("utf-8-sig", "replace")):
        if depth == 1 and before[:2] == ['"id"', ":"]:  # and the token after it is whole, too
            return _plain_id(before[2])
        depth += (token in "[{") - (token in "]}")
        before = [*before[1:], token]
    return None


def _plain_id(token: str) -> RequestId | None:
    try:
        found: object = json.loads(token)
    except ValueError:
        return None
    is_usable = isinstance(found, int | str) and not isinstance(found, bool)
    return cast(RequestId, found) if is_usable else None
