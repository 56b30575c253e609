"""Says how it goes while a call is waited for, to a client that gave a token for that."""

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import anyio
from mcp.server.context import ServerRequestContext

SECONDS_BETWEEN = 0.5

Answer = TypeVar("Answer")


async def told(
    context: ServerRequestContext[Any, Any], words: Callable[[], str], work: Awaitable[Answer]
) -> Answer:
    """Nothing is said after the answer, nor after the call was cancelled; nor without a token.

    The work must not raise: a group of tasks would wrap it.
    """
    async with anyio.create_task_group() as group:
        group.start_soon(_tell, context, words)
        answer = await work
        group.cancel_scope.cancel()
        return answer
    raise AssertionError("a group of tasks swallows nothing")


async def _tell(context: ServerRequestContext[Any, Any], words: Callable[[], str]) -> None:
    seconds = 0.0
    while True:
        await context.session.report_progress(seconds, message=words())
        await anyio.sleep(SECONDS_BETWEEN)
        seconds += SECONDS_BETWEEN
