"""Calls every tool through the official MCP Inspector, a client that others have written.

It needs npm, which fetches the Inspector and the Node it asks for into a folder of their own.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

PROJECT = Path(__file__).parent.parent
PACKAGES = ("node@22", "@modelcontextprotocol/inspector@2.12.0")
CALLS = {
    "query_documents": {"query": "how are passages merged"},
    "search_with_hypothesis": {"hypothesis": "Sections with several hits become one result."},
    "get_document": {"document": "store.md", "outline": "true"},
    "list_documents": {},
    "find_related": {"document": "search.md"},
    "index_status": {},
}
"""A call for every tool, which must succeed over the project's own documentation."""
CONNECT_MILLISECONDS = 120_000
"""The Inspector's own 15 s are not enough on a busy machine."""


def main() -> int:
    if shutil.which("npm") is None:
        print("npm is not installed: the Inspector cannot be fetched")
        return 1
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "ragdocs-inspector"
    cache.mkdir(parents=True, exist_ok=True)
    options = ("--no-audit", "--no-fund", "--silent")
    subprocess.run(["npm", "install", *options, *PACKAGES], cwd=cache, check=True)
    with TemporaryDirectory() as index:
        inspector = Inspector(cache / "node_modules" / ".bin", Path(index))
        listed = [tool["name"] for tool in inspector.ask("tools/list")["tools"]]
        print("tools:", ", ".join(listed))
        failed = set(listed) ^ set(CALLS)
        for name, arguments in CALLS.items():
            answer = inspector.ask("tools/call", name, arguments)
            is_well = not answer.get("isError") and bool(answer.get("structuredContent"))
            print(f"{name}: {'ok' if is_well else answer}")
            failed |= set() if is_well else {name}
    print("failed: " + ", ".join(sorted(failed)) if failed else "all tools answered")
    return int(bool(failed))


class Inspector:
    """Runs the Inspector's command line, which starts a new server for each call."""

    def __init__(self, programs: Path, index: Path) -> None:
        server = [str(Path(sys.executable).with_name("ragdocs")), "mcp"]
        place = ["--docs", str(PROJECT / "docs"), "--index", str(index)]
        self._command = [str(programs / "mcp-inspector"), "--cli", *server, *place]
        self._patience = ["--connect-timeout", str(CONNECT_MILLISECONDS)]
        self._environment = {**os.environ, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}

    def ask(self, method: str, tool: str = "", arguments: dict[str, str] | None = None) -> dict:
        command = [*self._command, *self._patience, "--method", method]
        if tool:
            command += ["--tool-name", tool]
        for name, value in (arguments or {}).items():
            command += ["--tool-arg", f"{name}={value}"]
        done = subprocess.run(
            command,
            env=self._environment,
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=240,
            check=False,
        )
        if done.returncode:
            return {"isError": True, "stderr": done.stderr[-500:]}
        return json.loads(done.stdout)


if __name__ == "__main__":
    sys.exit(main())
