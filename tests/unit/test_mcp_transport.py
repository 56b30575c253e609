"""The protocol over two real pipes: what goes in, what comes out, and when it stops."""

import json
import os
from contextlib import asynccontextmanager, suppress

import anyio
import pytest
from mcp.shared.message import SessionMessage
from mcp.types import JSONRPCResponse

from ragdocs.limits import MAX_UNANSWERED_REQUESTS
from ragdocs.mcp_server.stdio import Wire, connect


class Pipes:
    """A client's ends of the pipes; both are closed at the end."""

    def __init__(self):
        self.server_reads, self.client_writes = os.pipe()
        self.client_reads, self.server_writes = os.pipe()

    def send(self, *requests):
        lines = (json.dumps({"jsonrpc": "2.0", "id": i, "method": "ping"}) for i in requests)
        os.write(self.client_writes, "".join(f"{line}\n" for line in lines).encode())

    def close(self, *ends):
        for end in ends or vars(self).values():
            with suppress(OSError):
                os.close(end)


@pytest.fixture
def pipes():
    made = Pipes()
    yield made
    made.close(made.client_writes)  # a thread may still be reading from it
    made.close()


@asynccontextmanager
async def opened(pipes, after=lambda: None):
    with anyio.fail_after(60):
        wire = Wire(pipes.server_reads, pipes.server_writes)
        async with connect(wire, after) as (incoming, outgoing), outgoing, incoming:
            yield incoming, outgoing
            pipes.close(pipes.client_writes)


def answer(request):
    return SessionMessage(JSONRPCResponse(jsonrpc="2.0", id=request.message.id, result={}))


def test_lines_become_messages_and_answers_lines(pipes):
    started = []

    async def main():
        async with opened(pipes, lambda: started.append(True)) as (incoming, outgoing):
            os.write(pipes.client_writes, b'hello\n{"jsonrpc":"2.0","id":7,"method":5}\n')
            pipes.send("a", "b")
            pipes.close(pipes.client_writes)
            asked = [each async for each in incoming]
            assert [each.message.id for each in asked] == ["a", "b"]
            while not started:  # by the answer to what was refused, which a thread writes
                await anyio.sleep(0.01)
            for each in asked:
                await outgoing.send(answer(each))

    anyio.run(main)
    lines = os.read(pipes.client_reads, 1 << 16).splitlines()
    assert [json.loads(line)["id"] for line in lines] == [None, 7, "a", "b"]
    assert started == [True]


def test_a_client_that_only_sends_is_held_back(pipes):
    async def main():
        async with opened(pipes) as (incoming, outgoing):
            pipes.send(*range(2 * MAX_UNANSWERED_REQUESTS))
            held = [await incoming.receive() for _ in range(MAX_UNANSWERED_REQUESTS)]
            with anyio.move_on_after(0.2) as waited:
                held.append(await incoming.receive())
            assert waited.cancelled_caught
            await outgoing.send(answer(held[0]))
            held.append(await incoming.receive())
            # A request that was cancelled gets no answer, but frees its place too.
            await held[1].metadata.on_request_unanswered()
            held.append(await incoming.receive())
            assert len(held) == MAX_UNANSWERED_REQUESTS + 2

    anyio.run(main)


def test_a_client_that_reads_no_more_is_survived(pipes):
    async def main():
        async with opened(pipes) as (incoming, outgoing):
            pipes.send(1)
            request = await incoming.receive()
            pipes.close(pipes.client_reads)
            await outgoing.send(answer(request))
            await anyio.sleep_forever()

    anyio.run(main)


def test_an_answer_that_is_not_json_is_an_error(pipes):
    async def main():
        async with opened(pipes) as (incoming, outgoing):
            pipes.send(1, 2)
            first, second = await incoming.receive(), await incoming.receive()
            broken = JSONRPCResponse(jsonrpc="2.0", id=first.message.id, result={"a": "\ud800"})
            await outgoing.send(SessionMessage(broken))
            await outgoing.send(answer(second))

    anyio.run(main)
    first, second = map(json.loads, os.read(pipes.client_reads, 1 << 16).splitlines())
    assert (first["id"], first["error"]["code"]) == (1, -32603)
    assert second == {"jsonrpc": "2.0", "id": 2, "result": {}}
