"""What keeps the tests from depending on one processor's rounding."""

import ast
from pathlib import Path

import pytest

from tests.support.machine import narrow_environment
from tests.support.processes import PROJECT, environment, run_code

TESTS = Path(__file__).parents[1]


def holds_a_float(node: ast.expr) -> bool:
    """A literal one, also within a list, a sum or the like; not inside `approx`."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, float)
    inner = (ast.UnaryOp, ast.BinOp, ast.Tuple, ast.List, ast.Set, ast.Starred)
    children = ast.iter_child_nodes(node) if isinstance(node, inner) else ()
    if isinstance(node, ast.Dict):
        children = node.values
    return any(holds_a_float(one) for one in children if isinstance(one, ast.expr))


def exact_comparisons(source: str) -> list[int]:
    return [
        node.lineno
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Compare)
        and any(isinstance(sign, ast.Eq | ast.NotEq) for sign in node.ops)
        and any(holds_a_float(side) for side in (node.left, *node.comparators))
    ]


def test_no_test_compares_a_float_exactly():
    files = [file for file in TESTS.rglob("*.py") if "fixtures" not in file.parts]
    found = {
        str(file.relative_to(TESTS)): lines
        for file in files
        if (lines := exact_comparisons(file.read_text(encoding="utf-8")))
    }
    assert not found, "write `== pytest.approx(…)`, with `abs=ROUNDING` for float32"


@pytest.mark.parametrize(
    ("source", "is_exact"),
    [
        ("assert score == 0.5", True),
        ("assert [1, 0.5] != scores", True),
        ("assert scores == {'a': -0.5}", True),
        ("assert share == 1 - 0.5", True),
        ("assert score == pytest.approx(0.5)", False),
        ("assert 0.5 < score < 1.0", False),
        ("assert gain(0.5) == 2", False),
    ],
)
def test_an_exact_comparison_is_seen(source, is_exact):
    assert bool(exact_comparisons(source)) == is_exact


LOOK = """
import ctypes, glob, os, sys, warnings
warnings.simplefilter("error")
import faiss, numpy
from tests.support.machine import _dispatched
print(*_dispatched())
print(*sorted(name for name in sys.modules if name.startswith("faiss.swigfaiss")))
libraries = glob.glob(os.path.join(os.path.dirname(numpy.__file__), "..", "numpy.libs", "*blas*"))
if libraries:
    library = ctypes.CDLL(libraries[0])
    name = next(one for one in ("64_", "") if hasattr(library, f"scipy_openblas_get_corename{one}"))
    function = library[f"scipy_openblas_get_corename{name}"]
    function.restype = ctypes.c_char_p
    print(function().decode())
"""


def test_the_narrow_settings_are_obeyed():
    """Without a complaint of numpy, which takes only names of what the processor has."""
    told = run_code(LOOK, cwd=PROJECT, env=environment(**narrow_environment()))
    features, faiss, *core = told.splitlines()
    assert features == ""
    assert faiss == "faiss.swigfaiss"
    assert core in ([], ["Nehalem"])
