"""Many servers on one index, all asked while files change; then some are killed."""

import random
import threading
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ragdocs.store.lock import watching
from tests.support.indexes import write
from tests.support.storms.editor import Editor, paced
from tests.support.storms.oracle import compare, on_disk
from tests.support.storms.server import Server, ServerFailed
from tests.support.storms.settling import seconds_until, settle
from tests.support.storms.words import Words

EDITS_PER_SECOND = 50.0
QUERIES_PER_SECOND = 5.0
STEADY_NOTES = 10


@dataclass
class Served:
    """What was measured."""

    answers: int = 0
    take_over: float = 0.0
    convergence: float = 0.0
    missing: int = 0
    ghosts: int = 0
    stale: int = 0
    errors: list[str] = field(default_factory=list[str])


class ServerStorm:
    """Used in a `with`. Some notes are never touched: everyone finds them at any time."""

    def __init__(self, place: Path, seed: int, files: int) -> None:
        self.docs, self.index = place / "docs", place / "index"
        self.editor = Editor(self.docs, f"{seed} editor")
        self.editor.populate(files)
        self.figures = Served()
        self.steady: dict[str, str] = {}
        self.servers: list[Server] = []
        self._rng = random.Random(f"{seed} servers")
        self._stack = ExitStack()
        words = Words(random.Random(f"{seed} steady"))
        for number in range(STEADY_NOTES):
            path, word = f"steady/note {number}.md", words.new()
            write(self.docs, path, words.note(word, "steady"))
            self.steady[path] = word

    def start(self, servers: int) -> None:
        """All at once, on an index that is not there yet."""
        self.servers = [self._server() for _ in range(servers)]
        for server in self.servers:
            seconds_until(lambda one=server: one.ask("x")["readiness"] == "ready", 0)

    def edit(self, seconds: float, killing: int = 0) -> None:
        """All are asked meanwhile; half way, some are killed, among them the one that watches."""
        half = round(EDITS_PER_SECOND * seconds / 2)
        askers = {server: Asker(self, server) for server in self.servers}
        try:
            for number in paced(EDITS_PER_SECOND, seconds):
                self.editor.step()
                if killing and number == half:
                    self._kill(killing, askers)
        finally:
            for asker in askers.values():
                asker.end()
                self.figures.answers += asker.answers
                self.figures.errors += asker.errors

    def converge(self) -> None:
        """Everyone that is left has seen the last edit."""
        began = time.monotonic()
        settled = settle(self.index, on_disk(self.docs), began)
        self.figures.errors += [settled.error] if settled.error else []
        newest = {path for path in self.editor.newest if path in self.editor.words}
        words = {self.editor.words[path]: path for path in sorted(newest)[-10:]}
        seconds_until(lambda: self._agree(words), began)
        self.figures.convergence = time.monotonic() - began
        for name, count in settled.figures.items():
            setattr(self.figures, name, count)
        self.figures.errors += compare(self.docs, self.index)
        self.figures.errors += filter(None, (server.complaints() for server in self.servers))

    def __enter__(self) -> "ServerStorm":
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _server(self) -> Server:
        return self._stack.enter_context(Server(self.docs, self.index))

    def _kill(self, count: int, askers: "dict[Server, Asker]") -> None:
        holder = watching(self.index)
        assert holder, "nobody watches"
        watcher = next(server for server in self.servers if server.pid == holder.pid)
        others = [server for server in self.servers if server is not watcher]
        killed = [*self._rng.sample(others, count - 1), watcher]
        for server in killed:
            askers[server].end()
            self.servers.remove(server)
            if not server.kill():
                self.figures.errors.append("a server had ended by itself")
        left = {server.pid for server in self.servers}
        self.figures.take_over = seconds_until(
            lambda: (now := watching(self.index)) is not None and now.pid in left, time.monotonic()
        )

    def _agree(self, words: dict[str, str]) -> bool:
        """One generation, and the right answer of each to each question."""
        answers = [server.ask("x") for server in self.servers]
        if len({answer["generation"] for answer in answers}) > 1:
            return False
        return all(answer["readiness"] == "ready" for answer in answers) and all(
            server.holders(word) == {path}
            for server in self.servers
            for word, path in words.items()
        )


class Asker:
    """Asks one server again and again, on a thread."""

    def __init__(self, storm: ServerStorm, server: Server) -> None:
        self.answers = 0
        self.errors: list[str] = []
        self._storm = storm
        self._server = server
        self._rng = random.Random(f"{server.pid}")
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"asks {server.pid}")
        self._thread.start()

    def end(self) -> None:
        self._end.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._end.wait(1 / QUERIES_PER_SECOND):
            try:
                self._ask_one(self._storm.steady, is_steady=True)
                self._ask_one(self._storm.editor.words, is_steady=False)
            except ServerFailed as error:
                self.errors.append(str(error))
                return

    def _ask_one(self, words: dict[str, str], *, is_steady: bool) -> None:
        path, word = self._rng.choice(list(words.items()))
        answer = self._server.ask(f'"{word}"')
        self.answers += 1
        found = set(answer["paths"])
        history = {path} if is_steady else self._storm.editor.history[word]
        if answer["readiness"] == "unavailable" or answer["error"]:
            self.errors.append(_shortened(answer))
        elif not found <= history or (is_steady and not found):
            self.errors.append(f"{path} was asked for, and {found} given")


def _shortened(answer: dict[str, Any]) -> str:
    return str({name: answer[name] for name in ("readiness", "reason", "role", "error")})
