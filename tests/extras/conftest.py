"""These tests need the extras: without them they are skipped, and say so."""

from importlib.util import find_spec

import pytest

from tests.support.machine import move_home
from tests.support.model_files import make_cross_encoder, make_embedding_model

PACKAGES = ("sentence_transformers", "llama_index")
MISSING = [name for name in PACKAGES if find_spec(name) is None]


def pytest_collection_modifyitems(items):
    if MISSING:
        reason = f"needs the extras huggingface and llama-index (make test-extras): no {MISSING}"
        for item in items:
            if "tests/extras/" in item.path.as_posix():
                item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(scope="session")
def models(tmp_path_factory):
    """Folders of tiny models: `a` and `b` have the same dimension, `wide` has another."""
    root = tmp_path_factory.mktemp("models")
    make_embedding_model(root / "a", seed=1)
    make_embedding_model(root / "b", seed=2)
    make_embedding_model(root / "wide", dimension=48, seed=3)
    make_cross_encoder(root / "reader", seed=4)
    make_cross_encoder(root / "two-labels", labels=2, seed=5)
    make_cross_encoder(root / "three-labels", labels=3, seed=6)
    return root


@pytest.fixture
def docs(tmp_path, monkeypatch):
    move_home(monkeypatch, tmp_path / "home")
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "auth.md").write_text(
        "---\ntags: [access]\n---\n# Authentication\n\nHow to sign in.\n", encoding="utf-8"
    )
    (folder / "garden.md").write_text("# Garden\n\nTomatoes need sun.\n", encoding="utf-8")
    (folder / "boats.md").write_text("# Boats\n\nBoats sink in a storm.\n", encoding="utf-8")
    return folder
