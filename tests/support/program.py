"""The program with a tiny real model: a command called in this process, or a server that runs in
this process or in another.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import chdir
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from ragdocs.app import App
from ragdocs.cli.main import main
from ragdocs.config.loading import load_config
from ragdocs.config.resolved import Config
from ragdocs.diagnosis.collector import collect_status
from ragdocs.search.requests import QueryRequest
from ragdocs.search.responses import SearchResponse
from tests.support.models import CountingEmbedder


def called(folder: Path, *arguments: str, **environ: str) -> "subprocess.CompletedProcess[str]":
    """Calls a command as if in `folder`, with no RAGDOCS_ variables but those given."""
    ours: dict[str, str | None] = {name: None for name in os.environ if name.startswith("RAGDOCS_")}
    with chdir(folder):
        done = CliRunner(env={**ours, **environ}).invoke(main, arguments, catch_exceptions=False)
    return subprocess.CompletedProcess(arguments, done.exit_code, done.stdout, done.stderr)


def run(*words: str, code: int = 0) -> Result:
    """Calls a command with this process's folder and environment; it must end with this code."""
    done = CliRunner().invoke(main, words, catch_exceptions=False)
    assert done.exit_code == code, done.output
    return done


QUICK = {"debounce_seconds": 0.05}
STATUS = "!status"


def config_of(docs: Path, index: Path, **sections: dict[str, object]) -> Config:
    place = {"documents_path": str(docs), "index_path": str(index), **QUICK}
    indexing = {**place, **sections.pop("indexing", {})}
    environ = {"HOME": str(index.parent / "home")}
    return load_config(cwd=docs.parent, environ=environ, flags={"indexing": indexing, **sections})


def served(docs: Path, index: Path, **sections: dict[str, object]) -> App:
    """An application whose service is not started."""
    return App(config_of(docs, index, **sections), CountingEmbedder())


def started(
    keep: Callable[[App], App], docs: Path, index: Path, **sections: dict[str, object]
) -> App:
    """The same with its service started; `keep` closes it."""
    app = keep(served(docs, index, **sections))
    app.service.start()
    return app


def ask(app: App, query: str, top_n: int = 10) -> SearchResponse:
    """A quoted query is strict."""
    is_quoted = query.startswith('"')
    return app.search(QueryRequest(queries=(query,), top_n=top_n, strict=is_quoted))


def paths(response: SearchResponse) -> list[str]:
    return [result.path for result in response.results]


def value(app: App, response: SearchResponse) -> dict[str, Any]:
    state = app.service.state
    return {**told(response), "role": state.role, "error": state.error}


def told(response: SearchResponse) -> dict[str, Any]:
    """The fields of an answer that tests compare."""
    index = response.index
    return {
        "paths": paths(response),
        "texts": [result.text for result in response.results],
        "readiness": index.state,
        "complete": index.complete,
        "reason": index.reason,
        "generation": index.generation,
        "documents": index.documents,
        "pending": index.vectors_pending,
        "notes": list(response.notes),
    }


def status_of(app: App) -> dict[str, Any]:
    """The status that a server reports about itself."""
    status = collect_status(app, app.service.state)
    return {"state": status.state, "summary": status.summary, "notes": status.notes}


class ServedProcess:
    """A server in a process of its own, asked through its pipes."""

    environment: Mapping[str, str] | None = None
    """The environment of the process; by default, this one's."""

    def __init__(
        self, docs: Path, index: Path, version: tuple[str, ...] = (), **sections: dict[str, object]
    ) -> None:
        """`version`: the kind of another version of the program, see `children`."""
        words = ("served", str(docs), str(index), json.dumps(sections))
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.children", *version, *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=Path(__file__).parents[2],
            env=self.environment,
            text=True,
            encoding="utf-8",
        )

    def ask(self, query: str) -> dict[str, Any]:
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.write(query + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def kill(self) -> None:
        self.process.kill()
        self._close()

    def end(self, timeout: float = 60.0) -> int:
        """Closes its input, and waits until it has ended."""
        assert self.process.stdin
        self.process.stdin.close()
        try:
            return self.process.wait(timeout)
        finally:
            self._close()

    def __enter__(self) -> "ServedProcess":
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def _close(self) -> None:
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe:
                pipe.close()
