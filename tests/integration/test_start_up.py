"""What start-up costs: nothing heavy is imported before it is needed."""

from types import ModuleType

import pytest

import ragdocs
from tests.support.processes import run_code

HEAVY = ("numpy", "faiss", "onnxruntime", "torch", "llama_index", "tokenizers", "networkx")


@pytest.mark.parametrize(
    "module",
    ["ragdocs", "ragdocs.cli", "ragdocs.cli.main", "ragdocs.store.reader", "ragdocs.store.writer"],
)
def test_importing_loads_nothing_heavy(module):
    code = f"import sys, {module}; print(*[m for m in {HEAVY} if m in sys.modules])"
    assert run_code(code).split() == []


def test_the_public_names_are_exactly_these():
    assert ragdocs.__all__ == ["__version__", "open_index"]
    assert callable(ragdocs.open_index)
    own = {name: each for name, each in vars(ragdocs).items() if not name.startswith("_")}
    # Its parts come to stand there too, once something has imported them.
    assert {name for name, each in own.items() if not isinstance(each, ModuleType)} <= {
        "TYPE_CHECKING",
        "open_index",
    }
