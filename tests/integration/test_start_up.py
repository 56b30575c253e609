"""What start-up costs: nothing heavy is imported before it is needed."""

from types import ModuleType

import pytest

import ragdocs
from tests.support.processes import run_code

UNASKED = (
    "ragdocs.diagnosis.probes",
    "ragdocs.diagnosis.status",
    "ragdocs.health",
    "ragdocs.indexing.service",
    "ragdocs.indices.tantivy_engine",
    "ragdocs.indices.vector",
    "ragdocs.indices.view",
    "ragdocs.indices.whoosh_engine",
    "ragdocs.library",
    "ragdocs.mcp_server",
    "ragdocs.search",
)
"""What answers a question, or watches, and is of no use to a command that only indexes."""
HEAVY = ("numpy", "faiss", "onnxruntime", "torch", "llama_index", "tokenizers", "networkx")


@pytest.mark.parametrize(
    "module",
    ["ragdocs", "ragdocs.cli", "ragdocs.cli.main", "ragdocs.store.reader", "ragdocs.store.writer"],
)
def test_importing_loads_nothing_heavy(module):
    code = f"import sys, {module}; print(*[m for m in {HEAVY} if m in sys.modules])"
    assert run_code(code).split() == []


@pytest.mark.parametrize("command", ["update", "rebuild-index"])
def test_indexing_imports_nothing_that_only_answers_need(command, tmp_path):
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "a.md").write_text("# A\n\nSome [[b]] words.\n", encoding="utf-8")
    code = (
        "import atexit, sys\n"
        "from ragdocs.__main__ import main\n"
        f"atexit.register(lambda: print('imported', *[m for m in sys.modules if m in {UNASKED}]))\n"
        f"sys.argv = ['ragdocs', {command!r}, '--docs', {str(docs)!r}, '--index', "
        f"{str(tmp_path / 'index')!r}]\n"
        "sys.exit(main())\n"
    )
    assert run_code(code).splitlines()[-1] == "imported"


def test_the_public_names_are_exactly_these():
    assert ragdocs.__all__ == ["__version__", "open_index"]
    assert callable(ragdocs.open_index)
    own = {name: each for name, each in vars(ragdocs).items() if not name.startswith("_")}
    # Its parts come to stand there too, once something has imported them.
    assert {name for name, each in own.items() if not isinstance(each, ModuleType)} <= {
        "TYPE_CHECKING",
        "open_index",
    }
