"""Programs that tests start as processes: `python -m tests.support.children KIND WORDS...`.

- `served DOCS INDEX [SETTINGS]`: a server with a tiny model. For each line of standard input, a
  query, it writes one line of JSON; for `!status`, the status of `index_status`.
- `tiny WORDS...`: `ragdocs WORDS...` with the same tiny model.
- `noisy FOLDER`, `stuck FOLDER`: the real MCP command, with a backend that prints wherever it can,
  or one that records which modules are imported when it is opened, and then hangs.
- `schema WORDS...`, `tables WORDS...`: another version of the program, with another
  store schema or other tables: `ragdocs WORDS...`, or `served` with its words.

Modules are imported inside functions, because some of these programs check what is imported when.
"""

import json
import os
import subprocess
import sys
import threading
import warnings
from pathlib import Path
from typing import Any

PROMISED_SECONDS = 2.0
ALLOWED_SECONDS = 5 * PROMISED_SECONDS
"""The promise holds where threads get their turns. On a busy machine one may wait for its turn
longer than the whole end is meant to take."""
LATE_SECONDS = 60.0
"""Later than any test waits."""


def end_in_order() -> None:
    """Delays the forced end, so that this process must end by itself."""
    from ragdocs import shutdown

    shutdown.Ending.__init__.__kwdefaults__["limit"] = LATE_SECONDS


def end_by_thread() -> None:
    """Delays the kernel's alarm, so that the ending thread must end this process."""
    from ragdocs import shutdown

    shutdown.ALARM_SECONDS = LATE_SECONDS


def serve(docs: str, index: str, sections: str = "{}") -> None:
    from tests.support.program import STATUS, ask, served, status_of, value

    with served(Path(docs), Path(index), **json.loads(sections)) as app:
        app.service.start()
        for line in sys.stdin:
            asks_status = line.strip() == STATUS
            answer = status_of(app) if asks_status else value(app, ask(app, line.strip()))
            sys.stdout.write(json.dumps(answer) + "\n")
            sys.stdout.flush()


def run_with_tiny_model(*words: str) -> None:
    from ragdocs.app import Assembly
    from ragdocs.cli.main import main as program
    from ragdocs.config.resolved import Config
    from ragdocs.embedding.base import Embedder
    from tests.support.models import CountingEmbedder

    end_in_order()
    usual = Assembly.__init__

    def made(self: Assembly, config: Config, embedder: Embedder | None = None) -> None:
        usual(self, config, embedder or CountingEmbedder())

    Assembly.__init__ = made
    program(words)


def run_another_version(kind: str, *words: str) -> None:
    """Changes the number before any other module reads it."""
    from ragdocs.indices import analysis
    from ragdocs.store import schema

    if kind == "schema":
        schema.SCHEMA_VERSION += 1
    else:
        analysis.ANALYSIS_VERSION = "another"
    if words[0] == "served":
        serve(*words[1:])
    else:
        from ragdocs.cli.main import main as program

        program(words, prog_name="ragdocs")


def serve_backend(kind: str, folder: str, *options: str) -> None:
    from ragdocs.cli import main as serving
    from ragdocs.cli.main import main as program

    open_backend = {"noisy": _noisy, "stuck": _stuck}[kind]
    # Both for a busy machine: one closes in order, the other cannot.
    end_in_order() if kind == "noisy" else end_by_thread()
    serving._open = lambda *_: open_backend(Path(folder))  # pyright: ignore[reportPrivateUsage]
    program(["mcp", *options])


def _noisy(folder: Path) -> Any:
    from ragdocs.mcp_server.host import ServedApp
    from tests.support.program import served

    class Noisy(ServedApp):
        """Each search writes to every stream."""

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


def main(kind: str, *words: str) -> None:
    if kind == "served":
        serve(*words)
    elif kind == "tiny":
        run_with_tiny_model(*words)
    elif kind in ("schema", "tables"):
        run_another_version(kind, *words)
    else:
        serve_backend(kind, *words)


if __name__ == "__main__":
    main(*sys.argv[1:])
