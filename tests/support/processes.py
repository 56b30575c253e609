"""Other processes: this Python, or the program as a user starts it, run to its end or talked to."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

PROJECT = Path(__file__).parents[2]
PATIENCE = 480.0
"""Seconds. No process of a test takes that long on any machine, unless it hangs."""


def environment(without: tuple[str, ...] = (), **changed: str) -> dict[str, str]:
    """This process's variables, some changed, without those whose names begin with `without`."""
    kept = {name: text for name, text in os.environ.items() if not name.startswith(without)}
    return {**kept, **changed}


def with_tests() -> dict[str, str]:
    """An environment in which `tests` can be imported."""
    given = os.environ.get("PYTHONPATH")
    return environment(PYTHONPATH=os.pathsep.join(filter(None, (given, str(PROJECT)))))


def run_python(
    *words: object,
    code: int | None = 0,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    wrapper: tuple[str, ...] = (),
) -> "subprocess.CompletedProcess[str]":
    """Without input. It must end with this exit code, or with any if that is None. A `wrapper` is a
    command that starts the one after it."""
    done = subprocess.run(
        [*wrapper, sys.executable, *map(str, words)],
        cwd=cwd,
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        timeout=PATIENCE,
        check=False,
    )
    assert code in (None, done.returncode), (words, done.stdout[-3000:], done.stderr[-3000:])
    return done


def run_code(source: str, *words: object, **options) -> str:
    """What Python code prints."""
    return run_python("-c", source, *words, **options).stdout


def run_ragdocs(*words: object, **options) -> "subprocess.CompletedProcess[str]":
    """The program; it must not end with a traceback either."""
    done = run_python("-m", "ragdocs", *words, **options)
    assert "Traceback" not in done.stderr, done.stderr
    return done


def read_json(*words: object, **options) -> Any:
    """What the program prints with `--json`, whether it has found anything or not."""
    done = run_ragdocs(*words, "--json", code=None, **options)
    assert done.returncode in (0, 1), done.stderr
    return json.loads(done.stdout)


class Terminal:
    """The program in a terminal of its own, as a person uses it. `written` is all that it wrote;
    its errors too, unless they go to a file."""

    def __init__(
        self,
        *words: object,
        cwd: Path,
        env: Mapping[str, str] | None = None,
        columns: int = 80,
        errors: IO[bytes] | None = None,
        program: tuple[str, ...] = ("-m", "ragdocs"),
    ) -> None:
        import fcntl
        import pty
        import struct
        import termios

        self.written = ""
        self._fd, inner = pty.openpty()
        fcntl.ioctl(inner, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        self.process = subprocess.Popen(
            [sys.executable, *program, *map(str, words)],
            cwd=cwd,
            env=env,
            stdin=inner,
            stdout=inner,
            stderr=errors or inner,
            start_new_session=True,  # Ctrl-C is for the program that owns the terminal
            preexec_fn=lambda: fcntl.ioctl(inner, termios.TIOCSCTTY, 0),
        )
        os.close(inner)

    def type(self, text: str) -> None:
        os.write(self._fd, text.encode())

    def read_until(self, text: str) -> None:
        """Reads until the program has written this, which it must do before it ends."""
        while text not in self.written:
            assert self._read(), self.written

    def end(self) -> int:
        """Reads all that it still writes; returns its exit status."""
        while self._read():
            pass
        try:
            return self.process.wait(PATIENCE)
        finally:
            os.close(self._fd)

    def _read(self) -> bool:
        import select

        assert select.select([self._fd], [], [], PATIENCE)[0], self.written
        try:
            data = os.read(self._fd, 1 << 16)
        except OSError:  # Linux: nobody has the other end open any more
            return False
        self.written += data.decode("utf-8", "replace").replace("\r\n", "\n")
        return bool(data)


@contextmanager
def python_process(source: str, *words: object) -> Iterator["subprocess.Popen[str]"]:
    """Python code that can import `tests` and talks over its pipes; killed at the end."""
    with subprocess.Popen(
        [sys.executable, "-c", source, *map(str, words)],
        env=with_tests(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        encoding="utf-8",
    ) as process:
        try:
            yield process
        finally:
            process.kill()
            process.wait(timeout=PATIENCE)


def read_line(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def send_line(process: "subprocess.Popen[str]", line: str = "") -> None:
    assert process.stdin is not None
    process.stdin.write(f"{line}\n")
    process.stdin.flush()


def ask(process: "subprocess.Popen[str]", line: str = "") -> str:
    """The line with which it answers this one."""
    send_line(process, line)
    return read_line(process)
