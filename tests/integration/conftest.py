"""The real model for commands that are called one after the other."""

import pytest

from ragdocs.assembly import Assembly
from ragdocs.embedding.builtin import BuiltinEmbedder


@pytest.fixture(scope="session")
def _model() -> BuiltinEmbedder:
    return BuiltinEmbedder()


@pytest.fixture
def one_model(_model: BuiltinEmbedder, monkeypatch: pytest.MonkeyPatch) -> None:
    """Loaded once, and not by each command: that takes most of its time."""
    monkeypatch.setattr(Assembly, "embedder", _model)
