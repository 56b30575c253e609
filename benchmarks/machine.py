"""The machine and versions of a benchmark run, which may explain its numbers."""

import os
import platform
import sqlite3
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

LIBRARIES = (
    "faiss-cpu",
    "markdown-it-py",
    "mcp",
    "networkx",
    "numpy",
    "onnxruntime",
    "tantivy",
    "tokenizers",
    "whoosh",
)


def versions() -> dict[str, str]:
    """Of Python, SQLite, the libraries that count, and this project."""
    found = {"Python": platform.python_version(), "SQLite": sqlite3.sqlite_version}
    for name in LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    return found | {"ragdocs": f"{version('mcp-markdown-ragdocs')}, commit {_commit()}"}


def description() -> str:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    return f"{processor()}, {os.cpu_count()} cores, {memory:.0f} GB, {platform.system()}"


def processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    model = next((line.partition(":")[2].strip() for line in lines if "model name" in line), "?")
    wide = [flag for flag in ("avx2", "avx512_vnni", "avx_vnni") if f" {flag}" in "\n".join(lines)]
    return f"{model} ({', '.join(wide)})"


def load() -> float:
    """The load: above the number of cores, wall-clock times cannot be trusted."""
    return os.getloadavg()[0]


def _commit() -> str:
    """With a `+` if files differ from the commit."""
    here = Path(__file__).parent
    try:
        commit = _git(here, "rev-parse", "--short", "HEAD")
        changed = _git(here, "status", "--porcelain", "--", "../src")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return commit + ("+" if changed else "")


def _git(folder: Path, *words: str) -> str:
    done = subprocess.run(
        ["git", *words], cwd=folder, capture_output=True, encoding="utf-8", check=True
    )
    return done.stdout.strip()
