"""The real model for commands that are called one after the other; applications that end with the
test.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from ragdocs.app import App, Assembly
from ragdocs.embedding.builtin import BuiltinEmbedder


@pytest.fixture(scope="session")
def _model() -> BuiltinEmbedder:
    return BuiltinEmbedder()


@pytest.fixture
def one_model(_model: BuiltinEmbedder, monkeypatch: pytest.MonkeyPatch) -> None:
    """Loaded once, and not by each command: that takes most of its time."""
    monkeypatch.setattr(Assembly, "embedder", _model)


@pytest.fixture
def apps() -> Iterator[Callable[[App], App]]:
    """Closes those that it is given."""
    with ExitStack() as stack:
        yield stack.enter_context


@pytest.fixture
def index(tmp_path: Path) -> Path:
    return tmp_path / "index"
