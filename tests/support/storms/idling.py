"""What a server costs that has nothing to do."""

import time
from pathlib import Path

from ragdocs.store.lock import watching
from tests.support.storms.editor import Editor, paced
from tests.support.storms.server import Server
from tests.support.storms.settling import seconds_until

FILES = 1000
CALM = 0.02
"""Below this share of a core the last of the work is done."""


def idle_share(place: Path, seed: int, seconds: float) -> tuple[float, float]:
    """The share of one core that the one that watches takes, and one that stands by."""
    docs, index = place / "docs", place / "index"
    Editor(docs, f"{seed} editor").populate(FILES)
    with Server(docs, index) as first, Server(docs, index) as second:
        for server in (first, second):
            seconds_until(lambda one=server: one.ask("x")["readiness"] == "ready", 0)
        for server in (first, second):
            seconds_until(lambda one=server: _share(one, 3) < CALM, 0)
        holder = watching(index)
        assert holder, "nobody watches"
        shares = {server.pid: share for server, share in _shares([first, second], seconds)}
        standby = next(server.pid for server in (first, second) if server.pid != holder.pid)
        return shares[holder.pid or 0], shares[standby]


def _share(server: Server, seconds: float) -> float:
    ((_, share),) = _shares([server], seconds)
    return share


def _shares(servers: list[Server], seconds: float) -> list[tuple[Server, float]]:
    began, before = time.monotonic(), [server.cpu_seconds() for server in servers]
    for _ in paced(1, seconds + 1):
        pass
    took = time.monotonic() - began
    return [
        (server, (server.cpu_seconds() - used) / took)
        for server, used in zip(servers, before, strict=True)
    ]
