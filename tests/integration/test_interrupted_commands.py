"""Ctrl-C and every command: exit status 130, in time, whatever is being imported or done."""

import os
import subprocess
import sys

import pytest

from tests.support.indexes import write
from tests.support.mcp_clients import PROJECT

DEADLINE = 60.0
AT_IMPORT = """
import os, signal, sys

module, *arguments = sys.argv[1:]

class Finder:
    '''The signal comes while this module is looked for, once.'''

    @staticmethod
    def find_spec(name, path=None, target=None):
        global module
        if name == module:
            module = None
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Finder)
sys.argv = ["ragdocs", *arguments]
from ragdocs.__main__ import main
main()
"""
CASES = [
    ("threading", ["ls"]),
    ("ragdocs.shutdown", ["ls"]),
    ("ragdocs.cli.main", ["ls"]),
    ("click", ["query", "lark"]),
    ("click", ["mcp"]),
    ("ragdocs.cli.query", ["query", "lark"]),
    ("pydantic", ["query", "lark"]),
    ("numpy", ["query", "lark"]),
    ("onnxruntime", ["query", "lark"]),
    ("ragdocs.search.orchestrator", ["query", "lark"]),
    ("ragdocs.cli.indexing", ["update"]),
    ("ragdocs.config.loading", ["update"]),
    ("numpy", ["update"]),
    ("ragdocs.store.writer", ["update"]),
    ("ragdocs.config.loading", ["rebuild-index"]),
    ("ragdocs.store.writer", ["rebuild-index"]),
    ("ragdocs.mcp_server.server", ["mcp"]),
    ("anyio", ["mcp"]),
    ("mcp", ["mcp"]),
    ("ragdocs.diagnosis.doctor", ["doctor"]),
    ("ragdocs.diagnosis.collector", ["status"]),
]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("interrupted")
    write(folder / "docs", "dawn.md", "# Dawn\n\nThe lark sings at dawn.\n")
    return folder


def environment(folder):
    kept = {name: value for name, value in os.environ.items() if not name.startswith("RAGDOCS_")}
    return {**kept, "HOME": str(folder), "XDG_CACHE_HOME": "", "XDG_CONFIG_HOME": ""}


@pytest.mark.parametrize(
    ("module", "arguments"), CASES, ids=[f"{words[0]}, {module}" for module, words in CASES]
)
def test_ctrl_c_during_an_import_ends_with_130(place, tmp_path, module, arguments):
    where = ["--docs", str(place / "docs"), "--index", str(tmp_path / "index")]
    process = subprocess.Popen(
        [sys.executable, "-c", AT_IMPORT, module, *arguments, *where],
        cwd=PROJECT,
        env=environment(place),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    )
    with process:
        try:
            _, said = process.communicate(timeout=DEADLINE)  # closes the input, too
        finally:
            process.kill()
    assert process.returncode == 130, said
    assert "Traceback" not in said
