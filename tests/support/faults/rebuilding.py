"""`rebuild-index` in a terminal while `ragdocs mcp` servers run: real processes, real commands.

The servers are asked all the time: never an empty answer, never a wrong one.
"""

import json
import subprocess
import sys
import threading
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ragdocs.store.lock import watching, writing
from tests.support.machine import until
from tests.support.mcp_clients import PROJECT, ServerProcess
from tests.support.storms.editor import Editor
from tests.support.storms.oracle import compare
from tests.support.storms.settling import seconds_until

PROGRAM = ("-m", "tests.support.children", "tiny")
REBUILD_SECONDS = 120.0


@dataclass
class Rebuilt:
    """What was measured. `answers`: while the command ran; `seconds`: the longest run; `follow`:
    after the last one, until every server had all of it; `wrote`: who was seen to write."""

    answers: int = 0
    seconds: float = 0.0
    follow: float = 0.0
    wrote: set[int] = field(default_factory=set[int])
    wrong: list[str] = field(default_factory=list[str])


class Rebuilding:
    """Used in a `with`. Without `watch`, what is edited gets in by the command alone."""

    def __init__(self, place: Path, seed: int, files: int, *, watch: bool) -> None:
        self.docs, self.index = place / "docs", place / "index"
        self.editor = Editor(self.docs, f"{seed} rebuild")
        self.editor.populate(files)
        self.steady = dict(list(self.editor.words.items())[: files // 2])
        self.figures = Rebuilt()
        self._place = ("--docs", str(self.docs), "--index", str(self.index))
        self._environ = {
            "RAGDOCS_INDEXING__WATCH": "true" if watch else "false",
            "XDG_CONFIG_HOME": str(place / "none"),
        }
        self._stack = ExitStack()
        self.servers: list[Asked] = []

    def start(self, servers: int) -> None:
        self.servers = [self._server() for _ in range(servers)]
        for server in self.servers:
            until(lambda one=server: self._is_known(one, self.editor.words), 60)

    def edit(self, edits: int) -> dict[str, str]:
        """Other notes than the steady ones; says what they had before."""
        others = [path for path in self.editor.words if path not in self.steady]
        before = {path: self.editor.words[path] for path in others[:edits]}
        for path in before:
            self.editor.rewrite(path)
        return before

    def rebuild(self) -> dict[str, Any]:
        """What the command says of itself, as JSON; `progress` is what it showed meanwhile."""
        began = time.monotonic()
        askers = [Asker(server, self.steady) for server in self.servers]
        command = [sys.executable, *PROGRAM, "rebuild-index", "--json", *self._place]
        with subprocess.Popen(
            command, cwd=PROJECT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8"
        ) as process:
            self._look_on(process)
            said, shown = process.communicate(timeout=REBUILD_SECONDS)
        self.figures.seconds = max(self.figures.seconds, time.monotonic() - began)
        for asker in askers:
            asker.end()
            self.figures.answers += asker.answers
            self.figures.wrong += asker.wrong
        assert process.returncode == 0, shown
        return json.loads(said) | {"pid": process.pid, "progress": shown}

    def follow(self) -> None:
        """Until every server has what the files are now."""
        began = time.monotonic()
        for server in self.servers:
            seconds_until(lambda one=server: self._is_known(one, self.editor.words), began)
        self.figures.follow = time.monotonic() - began

    def holders(self, word: str) -> list[set[str]]:
        return [server.holders(word) for server in self.servers]

    def end(self) -> list[tuple[int, str]]:
        """How each server ended, and its complaints."""
        return [server.end() for server in self.servers]

    def differences(self) -> list[str]:
        return compare(self.docs, self.index)

    def __enter__(self) -> "Rebuilding":
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _server(self) -> "Asked":
        command = (*PROGRAM, "mcp", *self._place)
        process = self._stack.enter_context(ServerProcess(*command, **self._environ))
        process.initialize()
        return Asked(process)

    def _look_on(self, process: "subprocess.Popen[str]") -> None:
        """Who writes while it runs; whoever watched before goes on to watch."""
        watched = watching(self.index)
        pause = threading.Event()
        while process.poll() is None:
            if (holder := writing(self.index)) and holder.pid:
                self.figures.wrote.add(holder.pid)
            now = watching(self.index)
            if watched and (now is None or now.pid != watched.pid):
                self.figures.wrong.append(f"{watched} watched, and then {now}")
                watched = now
            pause.wait(0.002)

    def _is_known(self, server: "Asked", words: dict[str, str]) -> bool:
        some = list(words.items())[:3] + list(words.items())[-3:]
        return server.is_complete() and all(server.holders(word) == {at} for at, word in some)


class Asked:
    """A server, asked for words by its tool."""

    def __init__(self, process: ServerProcess) -> None:
        self.process = process
        self._number = 0

    def holders(self, word: str) -> set[str]:
        """The files that have the word: quoted, it is a condition."""
        found = self._query(f'"{word}"', strict=True)["results"]
        return {result["path"] for result in found}

    def is_complete(self) -> bool:
        return self._query("x")["index"]["complete"]

    def end(self) -> tuple[int, str]:
        assert self.process.process.stdin
        self.process.process.stdin.close()
        return self.process.ended(30), self.process.errors

    def _query(self, query: str, *, strict: bool = False) -> dict[str, Any]:
        self._number += 1
        arguments = {"query": query, "strict": strict}
        answer = self.process.call(self._number, "query_documents", **arguments)["result"]
        assert not answer["isError"], answer
        return answer["structuredContent"]


class Asker:
    """Asks one server again and again for what must always be found, on a thread."""

    def __init__(self, server: Asked, words: dict[str, str]) -> None:
        self.answers = 0
        self.wrong: list[str] = []
        self._server = server
        self._words = words
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, name="asks")
        self._thread.start()

    def end(self) -> None:
        self._end.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._end.is_set():
            for path, word in self._words.items():
                self._ask(path, word)
                if self._end.wait(0.03):
                    return

    def _ask(self, path: str, word: str) -> None:
        try:
            found = self._server.holders(word)
        except Exception as error:
            self.wrong.append(repr(error))
            self._end.set()
            return
        self.answers += 1
        if found != {path}:
            self.wrong.append(f"{path} was asked for, and {found} given")
