"""Awkward Markdown that others have collected, read where it is: it is no part of the project."""

import time
from pathlib import Path

from ragdocs.store.reader import Reader
from tests.support.storms.server import Server
from tests.support.storms.settling import seconds_until

NASTY = Path(__file__).parents[3] / ".." / "shared" / "nasty"


def nasty_problems(index: Path) -> tuple[int, list[str]]:
    """How many files there are, and what became of them that should not have."""
    root = NASTY.resolve()
    files = {file.relative_to(root).as_posix() for file in root.rglob("*.md")}
    with Server(root, index) as server:
        seconds_until(lambda: server.ask("x")["readiness"] == "ready", time.monotonic())
        problems = [complaint for complaint in [server.complaints()] if complaint]
        with Reader.open(index) as reader, reader.snapshot() as snapshot:
            known = {entry.path for entry in snapshot.manifest().values()}
            problems += [failure.reason for failure in snapshot.failures()]
            snapshot.verify(deep=True)
    return len(files), problems + sorted(files - known)
