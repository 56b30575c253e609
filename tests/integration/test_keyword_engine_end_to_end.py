"""The whole search with each keyword engine: index, ask, edit, delete, restart, ask again."""

import pytest

from ragdocs.config.choices import KeywordEngineName
from tests.support.engine import Engine

NOTES = {
    "guide/deploy.md": "# Deployment\n\nRoll out with `kubectl apply`. Canary first.\n",
    "guide/rollback.md": "# Rollback\n\nUndo a deployment when the canary fails.\n",
    "api/auth.md": "---\ntags: [security]\n---\n# Authentication\n\nCall `getAuthToken` once.\n",
    "cooking.md": "# Bread\n\nFlour, water, salt and patience.\n",
}


@pytest.fixture(params=[choice.value for choice in KeywordEngineName])
def engine(request, tmp_path):
    def start(texts=NOTES):
        return Engine(tmp_path, texts, keyword_engine=request.param, semantic_weight=0.0)

    return start


def asked(engine):
    return {
        "canary": set(engine.paths("canary", top_n=2)),
        "getAuthToken": engine.paths("getAuthToken")[0],
        "strict": engine.paths('"undo a deployment"'),
        "field": engine.paths("tags:security"),
        "folder": engine.paths("path:guide/ deployment -canary"),
    }


EXPECTED = {
    "canary": {"guide/deploy.md", "guide/rollback.md"},
    "getAuthToken": "api/auth.md",
    "strict": ["guide/rollback.md"],
    "field": ["api/auth.md"],
    "folder": [],
}


def test_index_ask_edit_delete_restart_ask(engine):
    with engine() as running:
        assert asked(running) == EXPECTED
        running.update(
            {"cooking.md": "# Bread\n\nA canary sings in the kitchen.\n"},
            removed=("guide/rollback.md",),
        )
        assert set(running.paths("canary", top_n=2)) == {"guide/deploy.md", "cooking.md"}
        assert running.paths('"undo a deployment"', strict=True) == []
    with engine({}) as again:
        assert set(again.paths("canary", top_n=2)) == {"guide/deploy.md", "cooking.md"}
        again.update({"guide/rollback.md": NOTES["guide/rollback.md"]})
        again.update({"cooking.md": NOTES["cooking.md"]})
        assert asked(again) == EXPECTED


def test_another_server_on_the_same_index_follows(engine):
    with engine() as first, engine({}) as second:
        assert asked(second) == EXPECTED
        first.update({"new.md": "# Quartz\n\nA zebra in the quarry.\n"})
        assert first.paths("zebra")[0] == "new.md"
        assert second.paths("zebra")[0] == "new.md"
