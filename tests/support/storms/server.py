"""A server in a process of its own, for storms: asked with a deadline, its complaints kept.

As a process it is `python -m tests.support.storms.server DOCS INDEX SETTINGS LABOUR`; see
`tests.support.children`.
"""

import hashlib
import json
import os
import select
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ragdocs.app import App
from tests.support.models import CountingEmbedder
from tests.support.program import ask, config_of, value

ANSWER_SECONDS = 60.0


class LabouringEmbedder(CountingEmbedder):
    """Works for its vectors, so that there is a while in which they are missing."""

    def __init__(self, labour: int) -> None:
        super().__init__()
        self._labour = labour

    def embed_documents(self, texts: Sequence[str]):
        for text in texts if self._labour else ():
            hashlib.pbkdf2_hmac("sha256", text.encode(), b"", self._labour)
        return super().embed_documents(texts)


class ServerFailed(AssertionError):
    """A server that ended, or kept silent."""


class Server:
    """To be killed, or ended by the end of a `with`, and then looked at for complaints."""

    def __init__(
        self, docs: Path, index: Path, *, labour: int = 0, **sections: dict[str, object]
    ) -> None:
        """`labour`: about how many microseconds of work a text's vector takes."""
        command = [sys.executable, "-m", "tests.support.storms.server", str(docs), str(index)]
        self._complaints = tempfile.TemporaryFile()  # noqa: SIM115
        self.process = subprocess.Popen(
            [*command, json.dumps(sections), str(labour)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._complaints,
            cwd=Path(__file__).parents[3],
            bufsize=0,
        )
        self._rest = b""

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def is_running(self) -> bool:
        return self.process.poll() is None

    def ask(self, query: str) -> dict[str, Any]:
        assert self.process.stdin
        try:
            self.process.stdin.write(query.encode() + b"\n")
        except BrokenPipeError:
            raise ServerFailed(f"it had ended: {self.complaints()}") from None
        return json.loads(self._line())

    def holders(self, word: str) -> set[str]:
        """The files that have the word, and only those: quoted, a word is a condition."""
        return set(self.ask(f'"{word}"')["paths"])

    def complaints(self) -> str:
        """What it wrote to standard error; a server that is well writes nothing."""
        self._complaints.seek(0)
        return self._complaints.read().decode(errors="replace")

    def kill(self) -> bool:
        """Whether it still ran until then."""
        was_running = self.is_running
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe:
                pipe.close()
        return was_running

    def cpu_seconds(self) -> float:
        """All it has used so far, all threads together."""
        fields = Path(f"/proc/{self.pid}/stat").read_text(encoding="utf-8").rpartition(")")[2]
        user, system = fields.split()[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")

    def __enter__(self) -> "Server":
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        self._complaints.close()

    def _line(self) -> bytes:
        assert self.process.stdout
        while b"\n" not in self._rest:
            ready, _, _ = select.select([self.process.stdout], [], [], ANSWER_SECONDS)
            if not ready:
                raise ServerFailed(f"no answer within {ANSWER_SECONDS} s: {self.complaints()}")
            read = self.process.stdout.read(1 << 16)
            if not read:
                raise ServerFailed(f"it ended instead of answering: {self.complaints()}")
            self._rest += read
        line, _, self._rest = self._rest.partition(b"\n")
        return line


def main(docs: str, index: str, sections: str, labour: str) -> None:
    config = config_of(Path(docs), Path(index), **json.loads(sections))
    with App(config, LabouringEmbedder(int(labour))) as app:
        app.service.start()
        for line in sys.stdin:
            answer = value(app, ask(app, line.strip()))
            sys.stdout.write(json.dumps(answer) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
