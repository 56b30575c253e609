"""From a configuration to an answer: files in, passages out, and back in step after an edit."""

import pytest

from ragdocs.app import App
from ragdocs.config.loading import load_config
from ragdocs.embedding.builtin import BuiltinEmbedder
from ragdocs.errors import ConfigError, OtherSettings
from ragdocs.search.requests import QueryRequest
from ragdocs.search.responses import Readiness


@pytest.fixture
def docs(tmp_path):
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "auth.md").write_text("# Authentication\n\nHow to sign in.\n", encoding="utf-8")
    (folder / "garden.md").write_text("# Garden\n\nTomatoes need sun.\n", encoding="utf-8")
    return folder


def config_of(docs, **sections):
    place = {"documents_path": str(docs), "index_path": str(docs.parent / "index")}
    environ = {"HOME": str(docs.parent / "home")}
    return load_config(cwd=docs, environ=environ, flags={"indexing": place, **sections})


def update(app):
    with app.manager() as manager:
        outcome = manager.update()
        manager.fill()
    return outcome


def found(app, query):
    return [result.path for result in app.search(QueryRequest(queries=(query,))).results]


@pytest.mark.parametrize("engine", ["fts5", "whoosh", "tantivy"])
def test_files_become_answers_and_stay_up_to_date(docs, engine):
    with App(config_of(docs, search={"keyword_engine": engine})) as app:
        update(app)
        response = app.search(QueryRequest(queries=("how do I log in?",)))
        assert response.results[0].path == "auth.md"
        assert response.index.state is Readiness.READY
        assert found(app, "tomatoes")[0] == "garden.md"
        (docs / "garden.md").unlink()
        (docs / "boats.md").write_text("# Boats\n\nTomatoes sink.\n", encoding="utf-8")
        update(app)
        assert found(app, "tomatoes")[0] == "boats.md"
        assert "garden.md" not in found(app, "tomatoes")


def test_before_anything_is_indexed_it_says_so(docs):
    with App(config_of(docs)) as app:
        response = app.search(QueryRequest(queries=("tomatoes",)))
    assert (response.results, response.index.state) == ((), Readiness.UNAVAILABLE)
    assert "build it first" in response.index.reason


def test_an_index_of_other_settings_is_read_as_it_is(docs):
    with App(config_of(docs)) as app:
        update(app)
    with App(config_of(docs, chunking={"max_leaf_chars": 900})) as app:
        with pytest.raises(OtherSettings):
            update(app)
        assert found(app, "tomatoes")[0] == "garden.md"


def test_a_provider_without_an_address_is_refused(docs):
    app = App(config_of(docs, embedding={"provider": "http"}))
    with app, pytest.raises(ConfigError, match=r"embedding\.url"):
        app.manager()


def test_another_model_than_the_built_in_one_is_not_quietly_replaced(docs):
    app = App(config_of(docs, embedding={"model": "BAAI/bge-small-en-v1.5"}))
    with pytest.raises(ConfigError, match="huggingface"):
        app.embedder.load()


def test_the_model_is_looked_for_in_the_folder_that_is_named_first(docs, tmp_path):
    found = BuiltinEmbedder().find()
    folder = tmp_path / "model"
    folder.mkdir()
    for one in found.tokenizer.parent.iterdir():
        (folder / one.name).symlink_to(one)
    app = App(config_of(docs, embedding={"model": str(folder)}))
    assert app.embedder.find().tokenizer.parent == folder


def test_what_was_written_is_in_the_stores_own_file_afterwards(docs):
    with App(config_of(docs)) as app:
        with app.manager() as manager:
            manager.update()
            app.search(QueryRequest(queries=("tomatoes",)))  # a reader that outlives the writer
            manager.fill()
        index = app.directory
        assert (index / "store.db").stat().st_size > 20_000


def test_an_answer_does_not_say_where_the_index_is_kept(docs):
    with App(config_of(docs)) as app:
        response = app.search(QueryRequest(queries=("tomatoes",)))
    assert str(docs.parent) not in response.index.reason
    assert "store.db" in response.index.reason
