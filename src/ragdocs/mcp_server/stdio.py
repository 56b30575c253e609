"""The protocol over stdin and stdout: bytes, lines, messages, and the transport for the SDK."""

import asyncio
import json
import logging
import os
import re
from collections.abc import AsyncGenerator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from enum import Enum
from importlib import import_module
from typing import Any, cast

import anyio
from anyio.abc import TaskGroup
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import ServerMessageMetadata, SessionMessage
from mcp.types import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    RequestId,
    jsonrpc_message_adapter,
)

from ragdocs.limits import MAX_MESSAGE_BYTES, MAX_UNANSWERED_REQUESTS

# Bytes as they arrive → lines, with a limit on the memory for each.

HEAD_BYTES = 2**12
"""How much is kept of a line that is too long: enough to find the request's id."""


@dataclass(frozen=True, slots=True)
class Overlong:
    """A line over the limit: its beginning and its length."""

    head: bytes
    size: int


class Lines:
    """Keeps the unfinished line; of a line that is too long, only the beginning."""

    def __init__(self, limit: int = MAX_MESSAGE_BYTES) -> None:
        self._limit = limit
        self._pieces: list[bytes] = []
        self._size = 0

    def feed(self, received: bytes) -> Iterator[bytes | Overlong]:
        """Yields every line that these bytes complete, without its line end."""
        *finished, rest = received.split(b"\n")
        for piece in finished:
            self._keep(piece)
            if line := self._take():
                yield line
        self._keep(rest)

    def end(self) -> bytes | Overlong:
        """What follows the last line end."""
        return self._take()

    def _keep(self, piece: bytes) -> None:
        is_over = self._size > self._limit
        self._size += len(piece)
        if self._size <= self._limit:
            self._pieces.append(piece)
        elif not is_over:
            self._pieces = [(b"".join(self._pieces) + piece)[:HEAD_BYTES]]

    def _take(self) -> bytes | Overlong:
        kept, size = b"".join(self._pieces), self._size
        self._pieces.clear()
        self._size = 0
        return kept.strip() if size <= self._limit else Overlong(kept, size)


# One line → one message of the protocol, or the reason why it is not one.
#
# Invalid UTF-8 and lone surrogates are replaced, so that the request is answered: a client without
# an answer waits.


class Refusal(Enum):
    """Why a line is not a message: the error code and text of the answer."""

    NO_JSON = (PARSE_ERROR, "Parse error: the line is not JSON")
    TOO_LONG = (
        INVALID_REQUEST,
        f"Invalid request: the line is longer than {MAX_MESSAGE_BYTES:,} bytes",
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
    """A line that is not a message, with the id of the request if it can be found. Something meant
    as a notification or a response gets no answer."""

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
        return _repair(line)
    # The validation drops an invalid id, so the client would wait for an answer forever.
    if isinstance(message, JSONRPCNotification) and b'"id"' in line:
        return _repair(line)
    return message


def _repair(line: bytes) -> JSONRPCMessage | Refused:
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
    return _validate(cast(dict[str, Any], value))


def _validate(value: dict[str, Any]) -> JSONRPCMessage | Refused:
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
    """The outermost `id` of an object, from its beginning alone."""
    depth, before = 0, ["", "", ""]
    for token in _TOKEN.findall(head.decode("utf-8-sig", "replace")):
        if depth == 1 and before[:2] == [
            '"id"',
            ":",
        ]:  # the next token shows that this one is complete
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


# The protocol's two descriptors, moved to where nothing else can reach them.
#
# Afterwards anything a library prints goes to stderr, and standard input is empty.

_FIRST_PRIVATE = 3


@dataclass(frozen=True, slots=True)
class Wire:
    """The descriptors that carry the protocol."""

    reading: int
    writing: int


def claim() -> Wire:
    """Reserves standard input and output for the protocol, for the rest of the process."""
    wire = Wire(_make_private(0, os.O_RDONLY), _make_private(1, os.O_WRONLY))
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    try:
        os.dup2(2, 1)
    except OSError:  # started without stderr
        os.dup2(nothing, 1)
    if nothing >= _FIRST_PRIVATE:
        os.close(nothing)
    return wire


def _make_private(descriptor: int, flags: int) -> int:
    try:
        os.fstat(descriptor)
    except OSError:  # it is closed: nobody is at the other end
        return _duplicate_above(os.open(os.devnull, flags))
    with suppress(ImportError):  # Windows would change line ends and stop at ^Z
        system: Any = import_module("msvcrt")
        system.setmode(descriptor, getattr(os, "O_BINARY", 0))
    return _duplicate_above(descriptor)


def _duplicate_above(descriptor: int) -> int:
    """A duplicate above the three standard descriptors; no child inherits it."""
    lower: list[int] = []
    try:
        while (found := os.dup(descriptor)) < _FIRST_PRIVATE:
            lower.append(found)
        return found
    finally:
        for each in lower:
            os.close(each)


# The protocol over two descriptors, for the SDK's server.
#
# Each end blocks in its own thread. Reading stops while too many requests are unanswered, so that a
# client which sends without reading fills its own pipe, not this process's memory.

_READ_BYTES = 1 << 16
_log = logging.getLogger(__name__)

Incoming = MemoryObjectReceiveStream[SessionMessage | Exception]
Outgoing = MemoryObjectSendStream[SessionMessage]


@asynccontextmanager
async def connect(
    wire: Wire, after_first_answer: Callable[[], object]
) -> AsyncGenerator[tuple[Incoming, Outgoing]]:
    """The streams that a server runs over; they end when the client is gone for any reason."""
    received, incoming = anyio.create_memory_object_stream[SessionMessage | Exception]()
    outgoing, sent = anyio.create_memory_object_stream[SessionMessage]()
    flow = _Flow()
    async with anyio.create_task_group() as group:
        reader = _Reader(wire.reading, flow, received, outgoing.clone())
        writer = _Writer(wire.writing, flow, after_first_answer)
        group.start_soon(reader.run)
        group.start_soon(writer.run, sent, group)
        yield incoming, outgoing
        # The server is done: its answers are still written, but a blocked read is not waited for.
        reader.stop()
        await writer.done.wait()


class _Flow:
    """Counts requests that have been read and not yet answered."""

    def __init__(self) -> None:
        self._free = anyio.Semaphore(MAX_UNANSWERED_REQUESTS)

    async def admit(self, message: JSONRPCMessage) -> SessionMessage:
        if not isinstance(message, JSONRPCRequest):
            return SessionMessage(message)
        await self._free.acquire()
        metadata = ServerMessageMetadata(on_request_unanswered=self._settle)
        return SessionMessage(message, metadata)

    async def admit_refusal(self) -> None:
        await self._free.acquire()

    def mark_answered(self) -> None:
        self._free.release()

    async def _settle(self) -> None:
        """A cancelled request gets no answer."""
        self.mark_answered()


class _Reader:
    """Standard input → messages."""

    def __init__(
        self,
        descriptor: int,
        flow: _Flow,
        received: MemoryObjectSendStream[SessionMessage | Exception],
        outgoing: Outgoing,
    ) -> None:
        self._descriptor = descriptor
        self._flow = flow
        self._received = received
        self._outgoing = outgoing
        self._scope = anyio.CancelScope()
        self._thread = ThreadPoolExecutor(1, "mcp-read")

    async def run(self) -> None:
        async with self._received, self._outgoing:
            with self._scope:
                try:
                    await self._read_all()
                except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                    _log.debug("the server stopped listening")

    def stop(self) -> None:
        self._scope.cancel()

    async def _read_all(self) -> None:
        lines = Lines()
        while received := await self._read():
            for line in lines.feed(received):
                await self._take(line)
        if line := lines.end():
            await self._take(line)

    async def _read(self) -> bytes:
        return await asyncio.wrap_future(self._thread.submit(_read_some, self._descriptor))

    async def _take(self, line: bytes | Overlong) -> None:
        message = parse(line)
        if not isinstance(message, Refused):
            await self._received.send(await self._flow.admit(message))
            return
        size = line.size if isinstance(line, Overlong) else len(line)
        _log.warning("a line of %d bytes was refused: %s", size, message.refusal.error.message)
        if message.answer is not None:
            await self._flow.admit_refusal()
            await self._outgoing.send(SessionMessage(message.answer))


class _Writer:
    """Messages → standard output, one line each."""

    def __init__(
        self, descriptor: int, flow: _Flow, after_first_answer: Callable[[], object]
    ) -> None:
        self.done = anyio.Event()
        self._descriptor = descriptor
        self._flow = flow
        self._after_first_answer: Callable[[], object] | None = after_first_answer
        self._thread = ThreadPoolExecutor(1, "mcp-write")

    async def run(self, sent: MemoryObjectReceiveStream[SessionMessage], group: TaskGroup) -> None:
        try:
            async with sent:
                async for each in sent:
                    await self._write(each.message)
        except OSError as error:
            _log.info("the client has stopped reading: %s", error.strerror)
            group.cancel_scope.cancel()
        finally:
            self.done.set()

    async def _write(self, message: JSONRPCMessage) -> None:
        line = _encode(message)
        await asyncio.wrap_future(self._thread.submit(_write_all, self._descriptor, line))
        if isinstance(message, JSONRPCResponse | JSONRPCError):
            self._flow.mark_answered()
            if (then := self._after_first_answer) is not None:
                self._after_first_answer = None
                then()


def _read_some(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, _READ_BYTES)
    except OSError:  # a terminal that hung up, which is the end of input
        return b""


def _write_all(descriptor: int, line: bytes) -> None:
    left = memoryview(line)
    while left:
        left = left[os.write(descriptor, left) :]


def _encode(message: JSONRPCMessage) -> bytes:
    try:
        return message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n"
    except ValueError:  # invalid text slipped through; the request still gets an answer
        _log.exception("an answer could not be written")
        error = ErrorData(code=INTERNAL_ERROR, message="the answer could not be written as JSON")
        asked = message.id if isinstance(message, JSONRPCResponse | JSONRPCError) else None
        return _encode(JSONRPCError(jsonrpc="2.0", id=asked, error=error))
