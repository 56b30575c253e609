"""A request whose indices have followed another commit than the one it is answered from."""

import shutil
from dataclasses import replace

import pytest

from ragdocs.indices.embedded import EmbeddedIndex
from ragdocs.search.orchestrator import QueryOrchestrator
from ragdocs.search.requests import QueryRequest
from ragdocs.search.responses import Readiness
from tests.support.engine import Engine
from tests.support.models import WordEmbedder
from tests.support.stores import log_into_store

BEFORE = {"dawn.md": "# Dawn\n\nThe lark sings.\n", "dusk.md": "# Dusk\n\nBats come out.\n"}


class Interrupted:
    """A keyword engine; before it searches, something happens."""

    def __init__(self, engine, happens):
        self._engine = engine
        self._happens = happens

    def __getattr__(self, name):
        return getattr(self._engine, name)

    @property
    def position(self):
        return getattr(self._engine, "position", None)

    def forget(self):
        """Never, here."""

    def search(self, *arguments):
        self._happens()
        return self._engine.search(*arguments)


class Editor:
    """Edits the note that is looked for, and asks for it: up to so many times."""

    def __init__(self, engine, times):
        self.engine = engine
        self.left = times
        self.edits = 0

    def __call__(self):
        if self.left:
            self.left -= 1
            self.edits += 1
            self.engine.update({"dawn.md": f"# Dawn\n\nThe lark sings, number {self.edits}.\n"})
            assert self.engine.paths("lark")[0] == "dawn.md"


def search_while_edited(folder, keyword_engine, times):
    with Engine(folder, BEFORE, WordEmbedder(), keyword_engine=keyword_engine) as engine:
        editor = Editor(engine, times)
        keyword = Interrupted(engine.indices.keyword, editor)
        index = EmbeddedIndex(engine.reader, replace(engine.indices, keyword=keyword))
        interrupted = QueryOrchestrator(index, engine.tools, engine.settings)
        try:
            return interrupted.search(QueryRequest(queries=("lark",))), editor.edits
        finally:
            interrupted.close()


@pytest.mark.parametrize("keyword_engine", ["fts5", "whoosh"])
@pytest.mark.parametrize("times", [1, 2])
def test_it_is_answered_from_one_commit(tmp_path, keyword_engine, times):
    response, edits = search_while_edited(tmp_path, keyword_engine, times)
    assert edits == times
    assert response.results[0].text.strip().endswith(f"number {times}.")
    assert response.index.complete


def test_an_index_that_keeps_changing_during_a_search_is_reported(tmp_path):
    response, _ = search_while_edited(tmp_path, "whoosh", times=10)
    assert response.index.state is Readiness.BUILDING
    assert "changed while" in response.index.reason


@pytest.mark.parametrize("keyword_engine", ["fts5", "whoosh"])
def test_after_an_older_copy_was_put_back_all_start_over(tmp_path, keyword_engine):
    store = tmp_path / "store.db"
    with Engine(tmp_path, BEFORE, WordEmbedder(), keyword_engine=keyword_engine) as engine:
        assert engine.ask("lark").index.complete
        log_into_store(engine.writer)
        shutil.copy(store, tmp_path / "older")
        engine.update({"dawn.md": "# Dawn\n\nThe lark sings again.\n"}, removed=("dusk.md",))
        assert engine.paths("lark") == ["dawn.md"]
        engine.writer.close()
        (tmp_path / "older").replace(store)
        for side in ("-wal", "-shm"):
            (tmp_path / f"store.db{side}").unlink(missing_ok=True)
        response = engine.ask("lark", "bats")
        assert response.index.complete
        assert {result.path: result.text for result in response.results} == BEFORE
