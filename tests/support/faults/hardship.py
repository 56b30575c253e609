"""A server in trouble: it lives, says so, answers what it can, and heals when the trouble ends."""

import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support.faults.notes import (
    WORDS,
    heal,
    path_of,
    question,
    questions,
    text_of,
    write_notes,
)
from tests.support.faults.trouble import Trouble, cpu_seconds
from tests.support.indexes import write
from tests.support.machine import until
from tests.support.program import ServedProcess, ask, served, value


class Hardship:
    """Known notes, and a server for them."""

    def __init__(self, folder: Path, index: Path, patience: float = 30.0) -> None:
        """`patience`: the seconds that a server has to heal."""
        self._patience = patience
        self._docs, self._index = folder / "docs", index
        self._asked = questions()
        self._turn = 0
        write_notes(self._docs)

    def index_now(self) -> None:
        """Before the server is started."""
        with served(self._docs, self._index) as app:
            app.service.start()
            heal(lambda query: value(app, ask(app, query)), self._asked, self._docs, seconds=60)

    @contextmanager
    def server(self, environment: Mapping[str, str] | None = None) -> Generator[ServedProcess]:
        class Server(ServedProcess):
            pass

        Server.environment = environment
        with Server(self._docs, self._index) as started:
            yield started
            assert started.end() == 0

    def settle(self, server: ServedProcess) -> None:
        """After a start, which takes as long as it takes."""
        heal(server.ask, self._asked, self._docs, seconds=60)
        until(lambda: server.ask("x")["role"] == "watching")

    def edit(
        self, server: ServedProcess, dated: Callable[[Path], None] = lambda path: None
    ) -> float:
        """A note is changed and another one comes, with the times that `dated` gives them. How
        long it takes until both are found."""
        self._turn += 1
        word, began = f"turn{self._turn}", time.monotonic()
        dated(write(self._docs, path_of(0), f"{text_of(0)}\nEdit {self._turn}.\n"))
        dated(write(self._docs, f"{word}.md", f"# Turn\n\nAll of {word}.\n"))
        self._asked[question(word)] = [f"{word}.md"]
        for path, asked in ((path_of(0), question(WORDS[0])), (f"{word}.md", question(word))):
            until(lambda path=path, asked=asked: self._is_found(server.ask(asked), path), 60)
        return time.monotonic() - began

    def _is_found(self, answer: Mapping[str, Any], path: str) -> bool:
        text = (self._docs / path).read_text(encoding="utf-8")
        is_right = answer["paths"] == [path] and answer["texts"][0].strip() == text.strip()
        return bool(is_right and answer["complete"])

    def endure(
        self,
        server: ServedProcess,
        trouble: Trouble,
        *,
        is_answered: bool,
        seconds: float = 1.0,
    ) -> dict[str, float]:
        """A file comes while the trouble lasts. What was measured: the CPU seconds that were spent
        in so many seconds without a question, and the seconds to heal."""
        self._turn += 1
        word = f"turn{self._turn}"
        write(self._docs, f"{word}.md", f"# Turn\n\nAll of {word}.\n")
        self._asked[question(word)] = [f"{word}.md"]
        self._is_declared(server, is_answered=is_answered)
        before, began = cpu_seconds(server), time.monotonic()
        _pass(seconds)
        # A busy machine may have let more time pass than that.
        spent = (cpu_seconds(server) - before) * seconds / (time.monotonic() - began)
        trouble.end(server)
        healed = heal(server.ask, self._asked, self._docs, self._patience)
        assert server.ask("x")["error"] == ""
        return {"cpu_seconds": spent, "healed_seconds": healed}

    def _is_declared(self, server: ServedProcess, *, is_answered: bool) -> None:
        said = until(lambda: (now := server.ask("x"))["error"] and now)
        assert said["role"] in ("failing", "starting", "watching"), said
        query, paths = next(iter(self._asked.items()))
        answer = server.ask(query)
        assert not answer["complete"], answer
        assert answer["reason"], answer
        assert answer["paths"] == (paths if is_answered else []), answer


def _pass(seconds: float) -> None:
    """Time in which nothing is asked: what is spent then is spent in vain."""
    until_then = time.monotonic() + seconds
    until(lambda: time.monotonic() >= until_then, seconds + 1)
