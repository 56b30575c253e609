"""Whether Python, SQLite and the libraries can do what the program needs."""

import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing
from importlib.util import find_spec

from ragdocs import __version__
from ragdocs.diagnosis.case import Case
from ragdocs.diagnosis.findings import Finding, Level

LIBRARIES = {
    "faiss": "faiss-cpu",
    "markdown_it": "markdown-it-py",
    "mcp": "mcp",
    "networkx": "networkx",
    "numpy": "numpy",
    "onnxruntime": "onnxruntime",
    "rapidfuzz": "rapidfuzz",
    "Stemmer": "pystemmer",
    "tokenizers": "tokenizers",
    "watchdog": "watchdog",
    "yaml": "pyyaml",
}
"""Module → the package that brings it."""


def check_platform(_: Case) -> Iterator[Finding]:
    python = ".".join(map(str, sys.version_info[:3]))
    if not has_fts5():
        yield Finding(
            Level.ERROR,
            f"Python's SQLite {sqlite3.sqlite_version} has no FTS5, which keyword search needs",
            "use a Python whose sqlite3 module has it; that of python.org has",
        )
        return
    missing = [package for module, package in LIBRARIES.items() if find_spec(module) is None]
    if missing:
        yield Finding(
            Level.ERROR,
            f"not installed: {', '.join(missing)}",
            f"pip install {' '.join(missing)}",
        )
        return
    versions = f"Python {python}, SQLite {sqlite3.sqlite_version} with FTS5"
    yield Finding(Level.OK, f"ragdocs {__version__}, {versions}")


def has_fts5() -> bool:
    with closing(sqlite3.connect(":memory:")) as connection:
        try:
            connection.execute("CREATE VIRTUAL TABLE t USING fts5(x)")
        except sqlite3.Error:
            return False
    return True
