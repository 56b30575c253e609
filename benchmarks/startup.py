"""How soon a client has its handshake and its first answer, compared with an empty server.

Three servers are started in turns, each as a process that a client would start, and the clock runs
from the spawn: `ragdocs mcp` over an index of synthetic notes that is up to date; the SDK's
low-level server with no tools over its own stdio transport, the least that the SDK can do; and
its `MCPServer` with no tools, which its tutorial begins with. All get the same two lines; `ragdocs`
is then asked one question, for which the client waits for the handshake as clients do. CPU time is
that of the whole process up to the moment its answer is there; the index is written by this
program, with synthetic vectors (`synthetic_notes.py`), and the question is embedded by the model.

    python benchmarks/startup.py [--chunks 10000] [--rounds 15] [--folder DIR]
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections import Counter
from importlib.metadata import version
from pathlib import Path
from typing import Any, Self

from ratios import Rounds
from synthetic_notes import NoteWriter, SyntheticVectors, config_of

from ragdocs.app import App
from ragdocs.embedding.builtin import BuiltinEmbedder

SETTLED_SECONDS = 2.5
"""A file that is younger when it is read counts as uncertain and is read again next time."""
LEAN = """
import anyio
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
async def main():
    server = Server("bare")
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())
anyio.run(main)
"""
PLAIN = """
from mcp.server import MCPServer
MCPServer("bare").run("stdio")
"""
LEAN_NAME, PLAIN_NAME = "bare server, low level", "bare server, MCPServer"
HANDSHAKE, ANSWER = "ragdocs: handshake", "ragdocs: first answer"


class Spawned:
    """A server process, timed from its spawn."""

    def __init__(self, arguments: list[str]) -> None:
        environ = {key: value for key, value in os.environ.items() if "RAGDOCS" not in key}
        self._start = time.perf_counter()
        self._process = subprocess.Popen(
            arguments,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environ,
        )

    def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        self._send({"id": method, "method": method, "params": params})
        assert self._process.stdout
        while line := self._process.stdout.readline():
            message = json.loads(line)
            if message.get("id") == method:
                return message["result"]
        raise SystemExit("a server ended before it answered")

    def shake_hands(self) -> None:
        client = {"name": "benchmark", "version": "1"}
        params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client}
        assert "serverInfo" in self.ask("initialize", params)

    def begin(self) -> None:
        self._send({"method": "notifications/initialized"})

    def taken(self) -> tuple[float, float]:
        """Seconds since the spawn, by the clock and of CPU: all threads, those that ended too."""
        wall = time.perf_counter() - self._start
        # What clock_getcpuclockid(3) gives for a process, which Python has for threads only.
        return wall, time.clock_gettime((~self._process.pid << 3) | 2)

    def _send(self, message: dict[str, Any]) -> None:
        assert self._process.stdin
        self._process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self._process.stdin.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe
            pipe.close()
        self._process.wait(30)


def build(folder: Path, model: BuiltinEmbedder, chunks: int) -> None:
    if not (folder / "docs").exists():
        NoteWriter(model, 1).write(folder / "docs", chunks)
        time.sleep(SETTLED_SECONDS)
    app = App(config_of(folder), SyntheticVectors(model))
    with app, app.manager() as manager:
        manager.update()
        manager.fill()
        state = app.index_state()
    assert state.complete, state
    print(f"{state.documents} documents, {state.passages} passages with vectors", flush=True)


def run(folder: Path, rounds: int, question: str) -> None:
    taken, seen = Rounds(), Counter[str]()
    # The interpreter with -m, as for the others: the installed command differs by its few lines.
    served = [sys.executable, "-m", "ragdocs", "mcp"]
    served += ["--docs", str(folder / "docs"), "--index", str(folder / "index")]
    for number in range(rounds + 2):
        if number == 2:
            taken, seen = Rounds(), Counter[str]()  # the first ones only warmed the caches
        for name, code in ((LEAN_NAME, LEAN), (PLAIN_NAME, PLAIN)):
            with Spawned([sys.executable, "-c", code]) as bare:
                bare.shake_hands()
                taken.note(name, *bare.taken())
        with Spawned(served) as server:
            server.shake_hands()
            taken.note(HANDSHAKE, *server.taken())
            server.begin()
            seen[answer(server, question)] += 1
            taken.note(ANSWER, *server.taken())
    taken.show()
    for bare in (LEAN_NAME, PLAIN_NAME):
        taken.show_ratio(HANDSHAKE, bare, "at most 1.3")
        taken.show_ratio(ANSWER, bare, "at most 3")
    print(f"  first answers: {', '.join(f'{kind} ({count})' for kind, count in seen.items())}")


def answer(server: Spawned, question: str) -> str:
    """Whether the answer was complete."""
    arguments = {"query": question, "explain": True}
    result = server.ask("tools/call", {"name": "query_documents", "arguments": arguments})
    data = result["structuredContent"]
    assert not result.get("isError"), data
    assert data["results"], "the index gave no answer"
    found_by = {index for found in data["results"] for index in found["found_by"]}
    return f"{data['index']['state']}, found by {'+'.join(sorted(found_by))}"


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--chunks", type=int, default=10_000)
    arguments.add_argument("--rounds", type=int, default=15)
    arguments.add_argument("--folder", type=Path, help="keep the index here, and use it again")
    options = arguments.parse_args()
    model = BuiltinEmbedder()
    model.load()
    print(
        f"Python {platform.python_version()}, mcp {version('mcp')}, "
        f"onnxruntime {version('onnxruntime')}, faiss-cpu {version('faiss-cpu')}, "
        f"{platform.machine()}, {os.cpu_count()} cores, model {model.precision}, "
        f"load {os.getloadavg()[0]:.1f}",
        flush=True,
    )
    with tempfile.TemporaryDirectory() as temporary:
        folder = (options.folder or Path(temporary)).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        build(folder, model, options.chunks)
        words = NoteWriter(model, 2).words(300)
        run(folder, options.rounds, " ".join(sorted(set(words), key=words.index)[40:46]))
    print(f"load at the end {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
