"""Bulk embedding behind queries: however long a piece of it takes, no query waits for it."""

import threading

from ragdocs.app import App
from ragdocs.embedding.builtin import BuiltinEmbedder
from ragdocs.search.responses import Readiness
from tests.support.indexes import write
from tests.support.machine import until
from tests.support.program import ask, config_of, paths

QUERIES = 20
DEADLINE_SECONDS = 30.0


class StuckEmbedder(BuiltinEmbedder):
    """The built-in model, whose bulk work takes as long as it is told to."""

    def __init__(self) -> None:
        super().__init__(threads=1)
        self.begun, self.may_end = threading.Event(), threading.Event()
        self.may_end.set()

    def embed_documents(self, texts):
        self.begun.set()
        assert self.may_end.wait(4 * DEADLINE_SECONDS)
        return super().embed_documents(texts)


def test_no_query_waits_for_a_piece_of_bulk_work_that_does_not_end(
    tmp_path,
):
    docs = tmp_path / "docs"
    write(docs, "garden.md", "# Garden\n\nTomatoes need a lot of sun.\n")
    model = StuckEmbedder()
    with App(config_of(docs, tmp_path / "index"), model) as app:
        app.service.start()
        until(lambda: ask(app, "tomatoes").index.state is Readiness.READY)
        model.begun.clear()
        model.may_end.clear()
        new = tmp_path / "new"
        for number in range(60):
            write(new, f"{number}.md", f"# Note {number}\n\nAll that is known of word{number}.\n")
        new.rename(docs / "new")  # all of them at once
        try:
            until(model.begun.is_set, DEADLINE_SECONDS)
            answered = _asked_beside(app)
            assert answered == QUERIES
            response = ask(app, "which vegetables like bright light")
            assert response.index.state is Readiness.BUILDING
            assert response.index.vectors_pending == 60
            assert paths(response)[0] == "garden.md"
            assert paths(ask(app, "word33"))[0] == "new/33.md"
        finally:
            model.may_end.set()
        until(lambda: ask(app, "tomatoes").index.complete, DEADLINE_SECONDS)


def _asked_beside(app: App) -> int:
    """How many queries were answered in time, in a thread that may be left behind."""
    answered: list[int] = []

    def ask_all() -> None:
        for number in range(QUERIES):
            response = ask(app, f"vegetables in the light of word{number}")
            answered.append(len(response.results))

    thread = threading.Thread(target=ask_all, daemon=True)
    thread.start()
    thread.join(DEADLINE_SECONDS)
    return len(answered)
