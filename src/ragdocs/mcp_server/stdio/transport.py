"""The protocol over two descriptors, for the SDK's server.

Both ends block in a thread of their own. No more is read while many requests are unanswered: a
client that sends without reading is held back by its own pipe, not by this process's memory.
"""

import asyncio
import logging
import os
from collections.abc import AsyncGenerator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager

import anyio
from anyio.abc import TaskGroup
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import ServerMessageMetadata, SessionMessage
from mcp.types import (
    INTERNAL_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCRequest,
    JSONRPCResponse,
)

from ragdocs.mcp_server.stdio.lines import Lines, Overlong
from ragdocs.mcp_server.stdio.messages import Refused, parse
from ragdocs.mcp_server.stdio.wire import Wire

MAX_UNANSWERED = 128
_READ_BYTES = 1 << 16
_log = logging.getLogger(__name__)

Incoming = MemoryObjectReceiveStream[SessionMessage | Exception]
Outgoing = MemoryObjectSendStream[SessionMessage]


@asynccontextmanager
async def connected(
    wire: Wire, after_first_answer: Callable[[], object]
) -> AsyncGenerator[tuple[Incoming, Outgoing]]:
    """The streams that a server runs over. They end when the client is gone, however it went."""
    received, incoming = anyio.create_memory_object_stream[SessionMessage | Exception]()
    outgoing, sent = anyio.create_memory_object_stream[SessionMessage]()
    flow = _Flow()
    async with anyio.create_task_group() as group:
        reader = _Reader(wire.reading, flow, received, outgoing.clone())
        writer = _Writer(wire.writing, flow, after_first_answer)
        group.start_soon(reader.run)
        group.start_soon(writer.run, sent, group)
        yield incoming, outgoing
        # The server is done: what it said is still written, what blocks in a read not waited for.
        reader.stop()
        await writer.done.wait()


class _Flow:
    """How many requests have been read and not yet answered."""

    def __init__(self) -> None:
        self._free = anyio.Semaphore(MAX_UNANSWERED)

    async def admit(self, message: JSONRPCMessage) -> SessionMessage:
        if not isinstance(message, JSONRPCRequest):
            return SessionMessage(message)
        await self._free.acquire()
        metadata = ServerMessageMetadata(on_request_unanswered=self._settle)
        return SessionMessage(message, metadata)

    async def admit_refusal(self) -> None:
        await self._free.acquire()

    def answered(self) -> None:
        self._free.release()

    async def _settle(self) -> None:
        """A request that was cancelled gets no answer."""
        self.answered()


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
            _log.info("the client reads no more: %s", error.strerror)
            group.cancel_scope.cancel()
        finally:
            self.done.set()

    async def _write(self, message: JSONRPCMessage) -> None:
        line = _encoded(message)
        await asyncio.wrap_future(self._thread.submit(_write_all, self._descriptor, line))
        if isinstance(message, JSONRPCResponse | JSONRPCError):
            self._flow.answered()
            if (then := self._after_first_answer) is not None:
                self._after_first_answer = None
                then()


def _read_some(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, _READ_BYTES)
    except OSError:  # a terminal that hung up: as good as the end
        return b""


def _write_all(descriptor: int, line: bytes) -> None:
    left = memoryview(line)
    while left:
        left = left[os.write(descriptor, left) :]


def _encoded(message: JSONRPCMessage) -> bytes:
    try:
        return message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n"
    except ValueError:  # something that is no text slipped through: the request is still answered
        _log.exception("an answer could not be written")
        error = ErrorData(code=INTERNAL_ERROR, message="the answer could not be written as JSON")
        asked = message.id if isinstance(message, JSONRPCResponse | JSONRPCError) else None
        return _encoded(JSONRPCError(jsonrpc="2.0", id=asked, error=error))
