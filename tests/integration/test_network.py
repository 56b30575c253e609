"""What leaves this process: nothing by default, and nothing but to the address that was set."""

import os

import pytest

from ragdocs import open_index
from ragdocs.app import App
from ragdocs.config.loading import load_config
from ragdocs.embedding.builtin import BuiltinEmbedder
from ragdocs.embedding.http import HttpEmbedder
from ragdocs.search.candidates import Strategy
from ragdocs.search.responses import Readiness
from ragdocs.store.reader import Reader
from tests.support.http_servers import EmbeddingServer
from tests.support.machine import move_home, trust_files, until
from tests.support.mcp_clients import ServerProcess
from tests.support.sockets.watched import WatchedSockets

EVERYTHING_ELSE = """
from ragdocs import open_index
from ragdocs.cli.main import main

for words in (
    ["update"],
    ["query", "how do I log in?"],
    ["query", "how do I log in?", "--json"],
    ["get", "auth.md"],
    ["status"],
    ["models"],
    ["doctor"],
):
    try:
        main(words)
    except SystemExit as ended:
        assert not ended.code, words
with open_index("docs") as index:
    response = index.search("how do I log in?")
    assert response.results[0].path == "auth.md", response
    assert response.index.complete, response.index
"""
OPENED = "import socket; socket.socket().connect_ex(('127.0.0.1', 9))"
OPENED_BY_A_LIBRARY = "import ctypes; ctypes.CDLL(None).socket(2, 1, 0)"


@pytest.fixture
def docs(tmp_path, monkeypatch):
    move_home(monkeypatch, tmp_path / "home")
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "auth.md").write_text("# Authentication\n\nHow to sign in.\n", encoding="utf-8")
    (folder / "garden.md").write_text("# Garden\n\nTomatoes need sun.\n", encoding="utf-8")
    return folder


@pytest.fixture
def sockets(tmp_path):
    return WatchedSockets(tmp_path)


def test_no_socket_is_opened_by_the_command_line_nor_in_python(docs, sockets, tmp_path):
    (tmp_path / ".ragdocs.toml").write_text(
        '[indexing]\ndocuments_path = "docs"\n', encoding="utf-8"
    )
    assert "auth.md" in sockets.run("-c", EVERYTHING_ELSE, cwd=tmp_path)
    assert sockets.seen() == []


def test_no_socket_is_opened_by_the_server(docs, sockets):
    command = ("-m", "ragdocs", "mcp", "--docs", str(docs))
    with ServerProcess(*command, **sockets.environment) as server:
        server.initialize()

        def holds(documents):
            index = server.call("state", "index_status")["result"]["structuredContent"]["index"]
            return index["summary"].startswith(f"ready: {documents} documents")

        until(lambda: holds(2), seconds=60)
        said = server.call("query", "query_documents", query="how do I log in?")["result"]
        assert said["structuredContent"]["results"][0]["path"] == "auth.md"
        (docs / "boats.md").write_text("# Boats\n\nA storm.\n", encoding="utf-8")
        until(lambda: holds(3), seconds=60)
        server.process.stdin.close()
        server.ended(60)
    assert sockets.seen() == []


def test_a_socket_would_be_seen(sockets, tmp_path):
    sockets.run("-c", OPENED, cwd=tmp_path)
    assert any(line.startswith("python connect") for line in sockets.seen())


def test_a_librarys_socket_would_be_seen(sockets, tmp_path):
    if not sockets.has_native:
        pytest.skip("native sockets are seen where there is Linux and a C compiler")
    sockets.run("-c", OPENED_BY_A_LIBRARY, cwd=tmp_path)
    assert sockets.seen() == ["native socket 2"]


def settings(server, model):
    return {"embedding": {"provider": "http", "url": server.url, "model": model, "retries": 0}}


def models_in(index):
    with Reader.open(index.directory) as reader, reader.snapshot() as snapshot:
        return {
            identity
            for (identity,) in snapshot.select(
                "SELECT DISTINCT m.identity FROM embeddings e JOIN models m ON m.key = e.model"
            )
        }


def test_a_local_endpoint_embeds_passages_and_queries(docs):
    with EmbeddingServer() as server, open_index(docs, settings=settings(server, "a")) as index:
        response = index.search("tomatoes need", top_n=1)
        sent = [text for body in server.requests for text in body["input"]]
    assert response.results[0].path == "garden.md"
    assert Strategy.SEMANTIC in response.results[0].found_by
    assert response.index.state is Readiness.READY
    assert any("Tomatoes need sun." in text for text in sent)


def test_a_model_that_replaces_another_leaves_nothing_of_it(docs):
    with EmbeddingServer() as server:
        with open_index(docs, settings=settings(server, "a")) as index:
            (first,) = models_in(index)
        with open_index(docs, settings=settings(server, "b")) as index:
            (second,) = models_in(index)
            assert index.state.vectors_pending == 0
            assert index.search("tomatoes").index.complete
        assert first != second
    with open_index(docs) as index:
        (builtin,) = models_in(index)
        assert "http" not in builtin
        assert index.search("how do I log in?").results[0].path == "auth.md"


def test_an_endpoint_that_is_gone_leaves_search_by_words_and_says_so(docs):
    with EmbeddingServer() as server:
        chosen = settings(server, "a")
        with open_index(docs, settings=chosen) as index:
            assert index.state.complete
    with open_index(docs, settings=chosen, update=False) as index:
        response = index.search("tomatoes")
    assert response.results[0].path == "garden.md"
    assert any("without vectors" in note and "cannot be reached" in note for note in response.notes)


def test_a_projects_file_cannot_send_texts_to_another_machine(docs, tmp_path):
    (docs / ".ragdocs.toml").write_text(
        '[embedding]\nprovider = "http"\nurl = "http://192.0.2.1/v1"\nallow_remote = true\n',
        encoding="utf-8",
    )
    for more in ({}, {"RAGDOCS_EMBEDDING__ALLOW_REMOTE": "true"}):
        with App(load_config(cwd=docs, environ={**os.environ, **more})) as app:
            assert isinstance(app.embedder, BuiltinEmbedder)
    trust_files(docs)
    with App(load_config(cwd=docs)) as app:
        assert isinstance(app.embedder, HttpEmbedder)
