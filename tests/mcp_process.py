"""An MCP server as a process of its own, spoken to through its pipes.

As a program, `python -m tests.mcp_process KIND FOLDER`, it is such a server: the real command, with
a backend that a test needs: `noisy` prints wherever it can, `stuck` writes down what was imported
when it was to be opened, and then never opens.
"""

import json
import os
import queue
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).parents[1]


class ServerProcess:
    """Every line that it writes is kept."""

    def __init__(self, *command: str, **environ: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=PROJECT,
            env={**os.environ, **environ},
        )
        self.lines: list[bytes] = []
        self._arrived: queue.Queue[bytes] = queue.Queue()
        self._errors: list[bytes] = []
        self._threads = [
            threading.Thread(target=self._read_lines, daemon=True),
            threading.Thread(target=self._read_errors, daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    def raw(self, line: bytes) -> None:
        assert self.process.stdin
        self.process.stdin.write(line)
        self.process.stdin.flush()

    def send(self, request_id: int | str, method: str, **params: Any) -> None:
        message = {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}
        self.raw(json.dumps(message).encode() + b"\n")

    def answer(self, request_id: int | str, seconds: float = 180) -> dict[str, Any]:
        deadline = time.monotonic() + seconds
        while True:
            line = self._arrived.get(timeout=max(0.01, deadline - time.monotonic()))
            assert line, f"it ended: {self.errors}"
            message = json.loads(line)
            if message.get("id") == request_id:
                return message

    def ask(self, request_id: int | str, method: str, **params: Any) -> dict[str, Any]:
        self.send(request_id, method, **params)
        return self.answer(request_id)

    def call(self, request_id: int | str, tool: str, **arguments: Any) -> dict[str, Any]:
        return self.ask(request_id, "tools/call", name=tool, arguments=arguments)

    def initialize(self) -> dict[str, Any]:
        info = {"name": "test", "version": "1"}
        version = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info}
        return self.ask("initialize", "initialize", **version)

    def ended(self, seconds: float) -> int:
        """The exit status, if it comes in time."""
        return self.process.wait(seconds)

    @property
    def errors(self) -> str:
        """All of standard error, once the process has ended."""
        self._threads[1].join(60)
        return b"".join(self._errors).decode()

    def __enter__(self) -> "ServerProcess":
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        for thread in self._threads:
            thread.join(10)
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            if pipe and not pipe.closed:
                pipe.close()

    def _read_lines(self) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            self.lines.append(line)
            self._arrived.put(line)
        self._arrived.put(b"")

    def _read_errors(self) -> None:
        assert self.process.stderr
        self._errors += iter(lambda: self.process.stderr.read1(65536), b"")  # type: ignore[union-attr]


def _noisy(folder: Path) -> Any:
    from ragdocs.mcp_server.served_app import ServedApp
    from tests.served import served

    class Noisy(ServedApp):
        """Its searches speak to everybody."""

        def search(self, request: Any) -> Any:
            _make_noise()
            if "fail" in request.queries[0]:
                raise RuntimeError(request.queries[0])
            return super().search(request)

        def close(self) -> None:
            super().close()
            sys.stderr.write("closed in order\n")

    _make_noise()
    app = served(folder / "docs", folder / "index")
    app.service.start()
    return Noisy(app)


def _make_noise() -> None:
    sys.stdout.write("noise\n")
    sys.stdout.flush()
    os.write(1, b"noise\n")
    subprocess.run(["echo", "noise"], check=True)
    warnings.warn("noise", stacklevel=1)


def _stuck(folder: Path) -> Any:
    (folder / "modules").write_text("\n".join(sys.modules), encoding="utf-8")
    threading.Event().wait()


def main(kind: str, folder: str, *options: str) -> None:
    from ragdocs.cli import main as serve
    from ragdocs.cli.main import main as program
    from tests import endings

    open_backend = {"noisy": _noisy, "stuck": _stuck}[kind]
    # Both for a busy machine: one closes in order, the other cannot.
    endings.by_itself() if kind == "noisy" else endings.by_its_thread()
    serve._open = lambda _place: open_backend(Path(folder))  # pyright: ignore[reportPrivateUsage]
    program(["mcp", *options])


if __name__ == "__main__":
    main(*sys.argv[1:])
