"""Work in a process of its own that has the shim: forked for each attempt, so that it is quick.

As a process, `python -m tests.support.faults.child`: a line of standard input says what to work on;
then each `again` is another attempt, as a server would make it, and `close` gives up what is open.
"""

import json
import os
import subprocess
import sys
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from ragdocs.errors import RagdocsError
from tests.support.faults.work import Keywords, bring_in_step, manager_of

ROOT = Path(__file__).parents[3]


class Forge:
    """The process that forks; the child of the last `begin` is asked for more attempts."""

    def __init__(self, environment: dict[str, str]) -> None:
        single = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.faults.child"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=ROOT,
            env=environment | single,
            text=True,
            encoding="utf-8",
        )
        assert self._read() == {"ready": True}

    def begin(self, docs: Path, index: Path, engine: str = "") -> dict[str, Any]:
        """The first attempt: `error`, `unexpected`, `found`; or `exit` when the child is gone."""
        return self._asked(json.dumps([str(docs), str(index), engine]))

    def again(self) -> dict[str, Any]:
        return self._asked("again")

    def close(self) -> dict[str, Any]:
        return self._asked("close")

    def end(self) -> int:
        return self._asked("end")["exit"]

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe:
                pipe.close()

    def __enter__(self) -> "Forge":
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _asked(self, line: str) -> dict[str, Any]:
        assert self._process.stdin
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()
        return self._read()

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout
        return json.loads(self._process.stdout.readline())


def _say(**what: object) -> None:
    os.write(1, json.dumps(what).encode() + b"\n")


def _line() -> str:
    """Byte by byte: what is read ahead would be lost to the others."""
    line = b""
    while not line.endswith(b"\n"):
        byte = os.read(0, 1)
        if not byte:
            break
        line += byte
    return line.decode().strip()


def _attempt(work: Callable[[], object]) -> None:
    found: object = None
    error = unexpected = ""
    try:
        found = work()
    except RagdocsError as known:
        error = f"{type(known).__name__}: {known}"
    except BaseException:
        unexpected = traceback.format_exc()
    _say(error=error, unexpected=unexpected, found=found)


def _index(docs: Path, index: Path) -> None:
    manager = manager_of(docs, index)
    _attempt(partial(bring_in_step, manager))
    while (line := _line()) != "end":
        if line == "close":
            _attempt(manager.close)
            manager = manager_of(docs, index)
        else:
            _attempt(partial(bring_in_step, manager))
    manager.close()


def _follow(index: Path, engine: str) -> None:
    keywords = Keywords(index, engine)
    _attempt(keywords.found)
    while _line() != "end":
        _attempt(keywords.found)


def _child(docs: str, index: str, engine: str) -> None:
    if engine:
        _follow(Path(index), engine)
    else:
        _index(Path(docs), Path(index))


def main() -> None:
    _say(ready=True)
    while line := _line():
        child = os.fork()
        if child == 0:
            code = 1
            try:
                _child(*json.loads(line))
                code = 0
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(code)
        _, status = os.waitpid(child, 0)
        _say(exit=os.waitstatus_to_exitcode(status))


if __name__ == "__main__":
    main()
