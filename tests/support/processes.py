"""Other processes: this Python, or the program as a user starts it, run to its end or talked to."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

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
