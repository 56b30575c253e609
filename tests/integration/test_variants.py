"""Programs with other index settings, or of another version, over the same documents: none of them
shuts another one out.
"""

import gc
import json
import os
import threading
import weakref
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from ragdocs.app import App
from ragdocs.config.loading import load_config
from ragdocs.search.responses import Readiness
from ragdocs.store.variants import DAY_SECONDS, USED_FILE, siblings
from tests.support.indexes import write
from tests.support.machine import until
from tests.support.mcp_clients import PROJECT, ServerProcess
from tests.support.models import CountingEmbedder
from tests.support.processes import run_python
from tests.support.program import ServedProcess, ask, called, paths

STEADY = {"lark.md": "lark", "heron.md": "heron", "wren.md": "wren"}
QUESTIONS = 40
"""Of each server, for each of the steady notes."""
PATIENCE = 180.0


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    for path, word in STEADY.items():
        write(tmp_path / "docs", path, f"# {word.title()}\n\nThe {word} sings at dawn.\n")
    return tmp_path / "docs"


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return {"HOME": str(tmp_path / "home"), "XDG_CACHE_HOME": str(tmp_path / "cache")}


def app_of(docs: Path, environ: dict[str, str], model: CountingEmbedder, **sections) -> App:
    flags = {"indexing": {"documents_path": str(docs)}, **sections}
    return App(load_config(cwd=docs.parent, environ=environ, flags=flags), model)


def fill(app: App) -> None:
    with app.manager() as manager:
        manager.update()
        manager.fill()


def test_a_setting_that_is_changed_and_changed_back_embeds_nothing_twice(docs, environ):
    text = "\n\n".join(f"## Part {n}\n\n" + f"Sentence {n} of it. " * 40 for n in range(8))
    write(docs, "long.md", f"# Long\n\n{text}\n")
    usual, large = {}, {"chunking": {"max_leaf_chars": 2000}}
    embedded: list[str] = []
    for sections in (usual, large, usual, large):
        model = CountingEmbedder()
        with app_of(docs, environ, model, **sections) as app:
            fill(app)
            assert ask(app, "lark").index.state is Readiness.READY
        embedded += model.texts
    assert len(embedded) == len(set(embedded)) > 8


class Steady:
    """Asks one server for notes that never change, until it is ended; and keeps every answer."""

    def __init__(self, server: ServerProcess) -> None:
        self._server = server
        self.answers: list[dict[str, Any]] = []
        self.wrong: list[str] = []
        self._thread = threading.Thread(target=self._ask)
        self._thread.start()

    def end(self) -> None:
        self._thread.join()

    def _ask(self) -> None:
        for number in range(QUESTIONS):
            for path, word in STEADY.items():
                answer = self._server.call(f"{word}{number}", "query_documents", query=word)
                told = answer["result"]["structuredContent"]
                self.answers.append(told)
                found = [result["path"] for result in told["results"]][:1]
                if found != [path]:
                    self.wrong.append(f"{word}: {found}, {told['index']}")


@pytest.fixture
def servers(docs, environ) -> Iterator[list[ServerProcess]]:
    with ExitStack() as stack:
        yield [
            stack.enter_context(
                ServerProcess("-m", "ragdocs", "mcp", "--docs", str(docs), **environ, **settings)
            )
            for settings in ({}, {"RAGDOCS_CHUNKING__MAX_LEAF_CHARS": "400"})
        ]


def test_two_servers_with_other_settings_both_answer_all_the_while(docs, servers):
    """Before, the second took the index from the first, which then answered 6 of 139 questions."""
    for server in servers:
        server.initialize()
        until(lambda one=server: holds(one, len(STEADY)), PATIENCE)
    askers = [Steady(server) for server in servers]
    for number in range(10):
        write(docs, f"new {number}.md", f"# New\n\nNumber {number}: zebra{number}.\n")
    for asker in askers:
        asker.end()
    assert [asker.wrong for asker in askers] == [[], []]
    assert all(len(asker.answers) >= 100 for asker in askers)
    unavailable = [one for asker in askers for one in asker.answers if not one["results"]]
    assert unavailable == []
    for server in servers:
        until(lambda one=server: holds(one, len(STEADY) + 10), PATIENCE)
        told = server.call("zebra", "query_documents", query="zebra7")["result"][
            "structuredContent"
        ]
        assert told["results"][0]["path"] == "new 7.md"


def holds(server: ServerProcess, documents: int) -> bool:
    told = server.call("state", "query_documents", query="lark")["result"]["structuredContent"][
        "index"
    ]
    return told["summary"].startswith(f"ready: {documents} documents")


@pytest.mark.parametrize("kind", ["schema", "tables"])
def test_two_versions_in_a_named_folder_both_answer_and_neither_rebuilds(docs, index, kind):
    with ServedProcess(docs, index) as first:
        until(lambda: first.ask("lark")["readiness"] == "ready", PATIENCE)
        generation = first.ask("lark")["generation"]
        store = (index / "store.db").stat().st_ino
        with ServedProcess(docs, index, (kind,)) as second:
            until(lambda: second.ask("lark")["readiness"] == "ready", PATIENCE)
            theirs = second.ask("lark")["generation"]
            for server in (first, second) * 10:
                assert server.ask("heron")["paths"][:1] == ["heron.md"]
            assert first.ask("lark")["generation"] == generation
            assert second.ask("lark")["generation"] == theirs
            write(docs, "new.md", "# New\n\nA zebra.\n")
            for server in (first, second):
                until(lambda one=server: one.ask("zebra")["paths"][:1] == ["new.md"], PATIENCE)
            assert second.end() == 0
        assert (index / "store.db").stat().st_ino == store
        with ServedProcess(docs, index, (kind,)) as again:
            until(lambda: again.ask("zebra")["readiness"] == "ready", PATIENCE)
            assert again.ask("zebra")["generation"] > theirs


def test_after_an_upgrade_the_status_tells_that_the_index_must_be_upgraded(docs, index):
    place = ["--docs", str(docs), "--index", str(index)]
    with ServedProcess(docs, index) as first:
        until(lambda: first.ask("lark")["readiness"] == "ready", PATIENCE)
    words = ("-m", "tests.support.children", "schema", "status", "--json", *place)
    told = json.loads(run_python(*words, cwd=PROJECT, code=None).stdout)
    assert told["state"] == "unavailable"
    assert "in the format of another version of this program" in told["summary"]
    assert "no index yet" not in told["summary"]


def test_an_index_that_nobody_used_is_dropped_by_update_and_never_by_a_question(
    docs, environ, one_model
):
    place = ["--docs", str(docs)]
    called(docs, "update", *place, **environ)
    other = {**environ, "RAGDOCS_CHUNKING__MAX_LEAF_CHARS": "400"}
    called(docs, "update", *place, **other)
    told = json.loads(called(docs, "status", "--json", *place, **environ).stdout)
    (unused,) = (one for one in told["variants"] if not one["is_own"])
    assert unused["bytes"] > 0
    assert unused["last_used"]
    mark = Path(unused["path"]) / USED_FILE
    then = mark.stat().st_mtime - 31 * DAY_SECONDS
    os.utime(mark, (then, then))
    called(docs, "query", "lark", *place, **environ)
    assert mark.exists()
    found = called(docs, "doctor", *place, **environ)
    assert "not used for 30 days" in found.stdout
    assert mark.exists()
    done = json.loads(called(docs, "update", "--json", *place, **environ).stdout)
    assert done["variants_dropped"] == [unused["path"]]
    assert not mark.parent.exists()


def test_a_server_drops_what_nobody_used(docs, environ):
    with app_of(docs, environ, CountingEmbedder(), chunking={"max_leaf_chars": 400}) as other:
        fill(other)
        assert ask(other, "lark").results
        mark = other.directory / USED_FILE
    then = mark.stat().st_mtime - 31 * DAY_SECONDS
    os.utime(mark, (then, then))
    model = CountingEmbedder()
    with app_of(docs, environ, model) as app:
        app.service.start()
        until(lambda: not siblings(app.directory), PATIENCE)
        assert paths(ask(app, "lark"))[:1] == ["lark.md"]
    assert model.texts == []  # they were taken first


def test_the_graph_of_views_that_are_not_used_any_more_is_let_go(docs: Path, tmp_path: Path):
    """It was kept for its communities as long as the application lived."""
    index = {"indexing": {"documents_path": str(docs), "index_path": str(tmp_path / "index")}}
    config = load_config(cwd=tmp_path, environ={"HOME": str(tmp_path)}, flags=index)
    with App(config, CountingEmbedder()) as theirs:
        fill(theirs)
    other = {**index, "chunking": {"max_leaf_chars": 400}}
    config = load_config(cwd=tmp_path, environ={"HOME": str(tmp_path)}, flags=other)
    with App(config, CountingEmbedder()) as app:
        assert ask(app, "lark").results
        assert app.why_read_only()
        app._follow(None)  # as the indexing thread does
        first = weakref.ref(app.reading.indices.graph)
        with App(config, CountingEmbedder()) as taking, taking.manager() as manager:
            manager.update(rebuild=True)
        assert ask(app, "lark").results
        assert not app.why_read_only()
        app._follow(None)
        gc.collect()
        assert first() is None
