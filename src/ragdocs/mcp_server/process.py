"""The server as a process of its own, from its first line to its last."""

import logging
import os
import sys
import threading
from collections.abc import Callable

from ragdocs.collection import collect_seldom
from ragdocs.lifecycle import Ending
from ragdocs.mcp_server.backend import Backend
from ragdocs.mcp_server.stdio.wire import Wire, claim


def run(open_backend: Callable[[], Backend], log_level: str = "warning") -> None:
    """Serves until the client is gone or the process is told to end; does not return."""
    wire = claim()
    collect_seldom()
    with Ending() as ending:
        logging.basicConfig(
            stream=sys.stderr, level=log_level.upper(), format="ragdocs: %(levelname)s: %(message)s"
        )
        _serve(wire, open_backend, ending)
    logging.shutdown()
    # Threads that read, write or search may still be in a call that nothing can interrupt.
    os._exit(ending.exit_code)


def _serve(wire: Wire, open_backend: Callable[[], Backend], ending: Ending) -> None:
    import anyio
    from anyio.from_thread import BlockingPortal

    from ragdocs.mcp_server.host import Host
    from ragdocs.mcp_server.server import create_server
    from ragdocs.mcp_server.stdio.transport import connected

    host = Host(open_backend)

    main_thread = threading.get_ident()

    def call_in(portal: BlockingPortal, action: Callable[[], None]) -> None:
        """The end may have begun during imports: then this is the loop's own thread."""
        if threading.get_ident() == main_thread:
            action()
        else:
            portal.start_task_soon(action)

    async def serve() -> None:
        server = create_server(host)
        async with BlockingPortal() as portal, anyio.create_task_group() as group:
            ending.when_begun(lambda: call_in(portal, group.cancel_scope.cancel))
            async with connected(wire, host.start) as (incoming, outgoing):
                await server.run(incoming, outgoing, server.create_initialization_options())
            group.cancel_scope.cancel()

    try:
        anyio.run(serve)
    finally:
        ending.begin()
        host.close()
