"""What start-up costs: nothing heavy is imported before it is needed."""

import subprocess
import sys

import pytest

import ragdocs

HEAVY = ("numpy", "faiss", "onnxruntime", "torch", "llama_index", "tokenizers", "networkx")


@pytest.mark.parametrize(
    "module",
    ["ragdocs", "ragdocs.cli", "ragdocs.cli.main", "ragdocs.store.reader", "ragdocs.store.writer"],
)
def test_importing_loads_nothing_heavy(module):
    code = f"import sys, {module}; print(*[m for m in {HEAVY} if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, encoding="utf-8", check=True, timeout=60
    )
    assert done.stdout.split() == []


def test_the_public_names_are_exactly_these():
    assert ragdocs.__all__ == ["__version__", "open_index"]
    assert callable(ragdocs.open_index)
    assert {name for name in vars(ragdocs) if not name.startswith("_")} <= {
        "TYPE_CHECKING",
        "api",
        "app",
        "assembly",
        "chunking",
        "cli",
        "config",
        "diagnosis",
        "embedding",
        "errors",
        "evaluation",
        "indexing",
        "indices",
        "integrations",
        "lifecycle",
        "mcp_server",
        "models",
        "parsers",
        "search",
        "store",
    }
