"""How a run of several workers is shared out, so that no core waits; and the same on every run.

Their files are in memory where the system offers such a folder: tens of thousands of commits wait
for the disk otherwise. `TMPDIR=/tmp make test` has them on the disk again.
"""

import ast
import inspect
import os
import shutil
import tempfile
from collections.abc import Generator
from functools import cache
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.support.systems import needs

MEMORY = Path("/dev/shm").resolve()
ENOUGH_BYTES = 4 << 30
_FOLDER = pytest.StashKey[Path]()

LONGEST = (
    "integration/test_measured_quality.py",
    "unit/test_keyword_engine_files.py",
    "integration/test_storms.py",
    "integration/test_benchmark_corpus.py",
    "integration/test_cli_indexing.py",
    "unit/test_markdown_parser.py",
    "integration/test_faults_nth.py",
    "integration/test_mcp_process.py",
    "unit/test_embedding_reference.py",
    "integration/test_faults_resources.py",
    "integration/test_index_service.py",
    "integration/test_acceptance.py",
    "integration/test_faults_damage.py",
    "unit/test_watcher.py",
)
"""One that is begun last is waited for by all the others."""

NUMERIC_MODULES = (
    "numpy",
    "ragdocs.embedding.builtin",
    "ragdocs.evaluation",
    "tests.support.engine",
    "tests.support.machine.ROUNDING",
    "tests.support.machine.assert_best",
    "tests.support.machine.assert_same_hits",
    "tests.support.machine.narrow_environment",
    "tests.support.model_files.TinyCrossEncoder",
    "tests.support.models",
)
"""Whoever imports one of these computes vectors or ranks by them."""
UNNUMERIC = {"tests.support.models.CountingEmbedder"}
"""Those that import only this index files; what they assert does not depend on its vectors."""
NUMERIC_FIXTURES = {"one_model"}
ONCE = ("integration/test_measured_quality.py",)
"""Too long for a second time; `scripts/compare_kernels.py` compares rankings instead."""


# The same examples on every run, however slow the machine is: what a run finds depends on the code
# alone. `--hypothesis-profile=default` looks for others.
settings.register_profile(
    "steady", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("steady")


@pytest.hookimpl(wrapper=True, optionalhook=True)
def pytest_xdist_auto_num_workers() -> Generator[None, int, int]:
    """One more than cores: some tests wait for a process, an event or the end of a pause."""
    cores = yield
    return cores + 1


@pytest.hookimpl(tryfirst=True)  # before `-m` chooses
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    folder = Path(__file__).parent
    places = {folder / name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: places.get(item.path, len(places)))
    if os.name == "nt":
        _skip_what_windows_lacks(items)
    for item in items:
        fixtures = set(getattr(item, "fixturenames", ()))
        is_once = item.path in {folder / name for name in ONCE}
        if not is_once and (fixtures & NUMERIC_FIXTURES or _is_numeric(item.path)):
            item.add_marker("numeric")


@cache
def _is_numeric(module: Path) -> bool:
    names: set[str] = set()
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            names.update(f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
    names -= UNNUMERIC
    return any(f"{name}.".startswith(f"{one}.") for name in names for one in NUMERIC_MODULES)


def _skip_what_windows_lacks(items: list[pytest.Item]) -> None:
    for item in items:
        function = getattr(item, "function", None)
        why = needs.missing(item.path, f"{item.name}\n{inspect.getsource(function)}")
        if why:
            item.add_marker(pytest.mark.skip(reason=f"Windows: {why}"))


def pytest_configure(config: pytest.Config) -> None:
    is_shared_out = bool(config.getoption("numprocesses", None))
    if is_shared_out and "TMPDIR" not in os.environ and _has_room(MEMORY):
        config.stash[_FOLDER] = Path(tempfile.mkdtemp(prefix="ragdocs-tests-", dir=MEMORY))
        config.stash[_FOLDER].chmod(0o1777)  # as /tmp is: some tests become another user
        os.environ["TMPDIR"] = str(config.stash[_FOLDER])
        tempfile.tempdir = None  # asked for again, in this process and by the workers


def pytest_unconfigure(config: pytest.Config) -> None:
    if folder := config.stash.get(_FOLDER, None):
        del os.environ["TMPDIR"]
        tempfile.tempdir = None
        shutil.rmtree(folder, ignore_errors=True)


def _has_room(folder: Path) -> bool:
    return os.access(folder, os.W_OK) and shutil.disk_usage(folder).free >= ENOUGH_BYTES
