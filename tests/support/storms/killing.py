"""Servers are killed at random moments while files change; then the last one is given time.

The moments are chosen: before anything is there, while files are read, while vectors are made, in
the middle of a commit, and after any number of edits.
"""

import random
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from ragdocs.errors import IndexStoreError
from ragdocs.store.lock import watching, writing
from ragdocs.store.reader import Reader
from ragdocs.store.snapshot import Snapshot
from tests.support.storms.editor import Editor, paced
from tests.support.storms.oracle import MODEL, compare, on_disk
from tests.support.storms.server import Server
from tests.support.storms.settling import Settled, seconds_until, settle

LABOUR = 200
EDITS_PER_SECOND = 100.0
QUIET = "ready"
"""The moment that never comes while files change."""
WAIT_SECONDS = 4.0
"""How long a moment is waited for that may never come."""


@dataclass
class Killed:
    """What was measured; `recovery` is the longest."""

    kills: int = 0
    moments: Counter[str] = field(default_factory=Counter[str])
    recovery: float = 0.0
    missing: int = 0
    ghosts: int = 0
    stale: int = 0
    errors: list[str] = field(default_factory=list[str])


class KillStorm:
    """One folder, one index, and servers that never live long."""

    def __init__(self, place: Path, seed: int, files: int) -> None:
        self.docs, self.index, self._place = place / "docs", place / "index", place
        self.editor = Editor(self.docs, f"{seed} editor")
        self.editor.populate(files)
        self.figures = Killed()
        self._rng = random.Random(f"{seed} kills")
        self._names: list[str] = []

    def run(self, kills: int) -> None:
        """At least so many."""
        until_now = self.figures.kills
        while self.figures.kills < until_now + kills:
            with ExitStack() as stack:
                count = self._rng.choice([1, 1, 2])
                servers = [stack.enter_context(self._server()) for _ in range(count)]
                name = self._next_moment()
                has_come = self._moment(name, {one.pid for one in servers})
                came = self._edit_until(has_come, is_quiet=name == QUIET)
                self.figures.moments[name if came else "any"] += 1
                for server in servers:
                    self._kill(server)

    def check(self) -> None:
        """A last start: everything is right within the time there is, for this server too."""
        began = time.monotonic()
        with self._server() as server:
            settled = settle(self.index, on_disk(self.docs), began)
            self._note(settled)
            seconds = seconds_until(lambda: self._is_well(server), began)
            self.figures.recovery = max(self.figures.recovery, settled.seconds, seconds)
            self._ask_for_some(server)
            self.figures.errors += compare(self.docs, self.index)
            self._kill(server)

    def _is_well(self, server: Server) -> bool:
        """It has taken over from the dead, and nothing fails."""
        answer = server.ask("x")
        is_ready = answer["readiness"] == "ready" and answer["role"] == "watching"
        return is_ready and not answer["error"]

    def _server(self) -> Server:
        return Server(self.docs, self.index, labour=LABOUR)

    def _next_moment(self) -> str:
        """Each of them once, before any comes again."""
        if not self._names:
            self._names = ["at once", "reading", "embedding", "committing", QUIET]
            self._rng.shuffle(self._names)
        return self._names.pop()

    def _moment(self, name: str, pids: set[int]) -> Callable[[], bool]:
        """Any but the first begins with one of these servers at work."""

        def has_come() -> bool:
            if name == "at once":
                return True
            holder = watching(self.index)
            if holder is None or holder.pid not in pids:
                return False
            return self._is(name)

        return has_come

    def _is(self, name: str) -> bool:
        if name == "committing":
            return writing(self.index) is not None
        conditions: dict[str, Callable[[Snapshot], bool]] = {
            "reading": lambda snapshot: snapshot.waiting != 0,
            "embedding": lambda snapshot: snapshot.count_missing_embeddings(MODEL) > 0,
            QUIET: lambda snapshot: (
                snapshot.waiting == 0 and not snapshot.count_missing_embeddings(MODEL)
            ),
        }
        try:
            with Reader.open(self.index) as reader, reader.snapshot() as snapshot:
                return conditions[name](snapshot)
        except IndexStoreError:
            return False

    def _edit_until(self, has_come: Callable[[], bool], *, is_quiet: bool) -> bool:
        """Changes files until then, unless it is to be quiet, and for some edits more."""
        for _ in paced(EDITS_PER_SECOND, WAIT_SECONDS):
            if not is_quiet:
                self.editor.step()
            if has_come():
                break
        else:
            return False
        for _ in paced(EDITS_PER_SECOND, self._rng.choice([0.0, 0.0, 0.05, 0.3])):
            self.editor.step()
        return True

    def _kill(self, server: Server) -> None:
        if not server.kill():
            self.figures.errors.append("a server had ended by itself")
        if complaints := server.complaints():
            self.figures.errors.append(complaints)
        self.figures.kills += 1

    def _note(self, settled: Settled) -> None:
        for name, count in settled.figures.items():
            setattr(self.figures, name, getattr(self.figures, name) + count)
        self.figures.errors += [settled.error] if settled.error else []

    def _ask_for_some(self, server: Server) -> None:
        words = self.editor.words
        for path in self._rng.sample(list(words), min(20, len(words))):
            if (found := server.holders(words[path])) != {path}:
                self.figures.errors.append(f"{path} was asked for, and {found} given")
