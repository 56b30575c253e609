"""As many edits as a machine can make, folders renamed among them, and a checkout at the end."""

import random
import time
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.storms.editor import Editor, paced
from tests.support.storms.oracle import compare, on_disk
from tests.support.storms.server import Server
from tests.support.storms.settling import seconds_until, settle


@dataclass
class Stormed:
    """What was measured."""

    edits: int = 0
    seconds: float = 0.0
    checked_out: int = 0
    convergence: float = 0.0
    missing: int = 0
    ghosts: int = 0
    stale: int = 0
    errors: list[str] = field(default_factory=list[str])


class EditStorm:
    """One server and one folder that is hardly ever quiet."""

    def __init__(self, place: Path, seed: int, files: int) -> None:
        self.docs, self.index = place / "docs", place / "index"
        self.editor = Editor(self.docs, f"{seed} editor")
        self.editor.populate(files)
        self.figures = Stormed()
        self._rng = random.Random(f"{seed} edits")

    def run(self, *, per_second: float, seconds: float, checkout: int) -> None:
        with Server(self.docs, self.index) as server:
            began = time.monotonic()
            seconds_until(lambda: server.ask("x")["readiness"] == "ready", began)
            self._edit(server, per_second, seconds)
            self.editor.check_out(checkout)
            self.figures.checked_out = checkout
            self._converge(server)

    def _edit(self, server: Server, per_second: float, seconds: float) -> None:
        before, began = self.editor.edits, time.monotonic()
        for number in paced(per_second, seconds):
            self.editor.step()
            if number % 25 == 0:
                self.editor.rename_folder()
            if number % 50 == 0:
                self._ask(server)
        self.figures.edits = self.editor.edits - before
        self.figures.seconds = time.monotonic() - began

    def _ask(self, server: Server) -> None:
        path, word = self._rng.choice(list(self.editor.words.items()))
        answer = server.ask(f'"{word}"')
        found = set(answer["paths"])
        if answer["readiness"] == "unavailable" or answer["error"]:
            self.figures.errors.append(f"{answer['readiness']}: {answer['error']}")
        if not found <= self.editor.history[word]:
            self.figures.errors.append(f"{path} was asked for, and {found} given")

    def _converge(self, server: Server) -> None:
        began = time.monotonic()
        settled = settle(self.index, on_disk(self.docs), began)
        ready = seconds_until(lambda: server.ask("x")["readiness"] == "ready", began)
        self.figures.convergence = max(settled.seconds, ready)
        for name, count in settled.figures.items():
            setattr(self.figures, name, count)
        self.figures.errors += [settled.error] if settled.error else []
        words = self.editor.words
        for path in self._rng.sample(list(words), 20):
            if (found := server.holders(words[path])) != {path}:
                self.figures.errors.append(f"{path} was asked for, and {found} given")
        self.figures.errors += compare(self.docs, self.index)
        self.figures.errors += filter(None, [server.complaints()])
