"""The client is asked for its roots once, and whoever waits for them always gets an answer."""

from threading import Thread
from types import SimpleNamespace

import anyio
import pytest
from mcp.types import ClientCapabilities, ListRootsResult, Root, RootsCapability

from ragdocs.mcp_server.roots import ClientRoots


class Client:
    """A client with a handshake, as far as the roots are concerned."""

    def __init__(self, answer):
        self.asked = 0
        self._answer = answer
        self.client_capabilities = ClientCapabilities(roots=RootsCapability())

    async def send_request(self, _request, _result_type):
        self.asked += 1
        return await self._answer()


def opened(roots):
    """The thread that opens the index, and the list that gets the folders it was told."""
    told = []
    thread = Thread(target=lambda: told.append(roots.folders()), daemon=True)
    return thread, told


def context_of(client):
    return SimpleNamespace(session=client, protocol_version="2025-06-18")


def test_calls_at_the_same_time_ask_the_client_once(tmp_path):
    async def answer():
        return ListRootsResult(roots=[Root(uri=tmp_path.as_uri())])

    client, roots = Client(answer), ClientRoots()
    roots.hear(context_of(client))
    thread, told = opened(roots)

    async def three_calls():
        async with anyio.create_task_group() as group:
            for _ in range(3):
                group.start_soon(roots.ask, context_of(client))
            await anyio.sleep(0)  # all three wait until the roots are known to be needed
            thread.start()

    anyio.run(three_calls)
    thread.join(10)
    assert client.asked == 1
    assert told == [(tmp_path.resolve(),)]


@pytest.mark.parametrize("how", ["cancelled", "failed"])
def test_a_call_that_ends_early_leaves_nobody_waiting(how):
    async def answer():
        if how == "failed":
            raise RuntimeError("the connection is gone")
        await anyio.sleep_forever()

    client, roots = Client(answer), ClientRoots()
    roots.hear(context_of(client))
    thread, told = opened(roots)

    async def call():
        thread.start()
        with anyio.move_on_after(0.2):
            await roots.ask(context_of(client))

    if how == "failed":
        with pytest.raises(RuntimeError):
            anyio.run(call)
    else:
        anyio.run(call)
    thread.join(10)
    assert client.asked == 1
    assert told == [()]
