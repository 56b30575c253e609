"""The Python API, over real files and the built-in model or the tiny one."""

import re
import shutil
import threading
from pathlib import Path

import pytest

from ragdocs import open_index
from ragdocs.errors import ConfigError, IndexMissing, IndexStoreError, QueryError
from ragdocs.search.requests import Filters
from ragdocs.search.responses import Readiness, SearchResponse, SearchResult
from ragdocs.store.lock import try_watch_lock
from tests.support import models


class MeaningEmbedder(models.MeaningEmbedder):
    """Whole, as the indexing thread wants it."""

    def load(self):
        pass


@pytest.fixture
def docs(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "auth.md").write_text(
        "---\ntags: [access]\n---\n# Authentication\n\nHow to sign in.\n", encoding="utf-8"
    )
    (folder / "garden.md").write_text("# Garden\n\nTomatoes need sun.\n", encoding="utf-8")
    return folder


def test_a_folder_becomes_answers_in_two_lines(docs):
    with open_index("docs") as index:
        response = index.search("how do I log in?", top_n=1)
    assert isinstance(response, SearchResponse)
    (result,) = response.results
    assert isinstance(result, SearchResult)
    assert (result.path, result.line_start) == ("auth.md", 4)
    assert response.index.state is Readiness.READY


def test_opening_updates_the_index_unless_told_not_to(docs):
    with open_index(docs, embedder=MeaningEmbedder()) as index:
        assert index.state.documents == 2
    (docs / "boats.md").write_text("# Boats\n\nA storm.\n", encoding="utf-8")
    with open_index(docs, embedder=MeaningEmbedder(), update=False) as index:
        assert index.state.documents == 2
        updated = index.update()
        # One passage and its two words.
        assert (updated.files.added, updated.vectors_made, updated.problem) == (1, 3, "")
        assert index.search("tempest").results[0].path == "boats.md"
    with open_index(docs, embedder=MeaningEmbedder()) as index:
        assert index.state.documents == 3


def test_a_running_server_keeps_the_index_up_to_date(docs):
    with open_index(docs, embedder=MeaningEmbedder()) as index:
        directory = index.directory
    (docs / "boats.md").write_text("# Boats\n\nA storm.\n", encoding="utf-8")
    with try_watch_lock(directory) as lock:
        lock.say({"last_scan": "2026-11-16T12:00:00+00:00"})
        with open_index(docs, embedder=MeaningEmbedder()) as index:
            assert index.state.documents == 2
    with try_watch_lock(directory), open_index(docs, embedder=MeaningEmbedder()) as index:
        assert index.state.documents == 3  # whoever holds it has not looked at the files yet


def test_without_an_index_and_without_building_one_it_says_so(docs):
    with open_index(docs, embedder=MeaningEmbedder(), update=False) as index:
        assert index.search("tomatoes").index.state is Readiness.UNAVAILABLE
        with pytest.raises(IndexMissing):
            index.get("auth.md")


def test_filters_several_questions_and_reading_a_section(docs):
    with open_index(docs, embedder=MeaningEmbedder()) as index:
        tagged = Filters(tags=frozenset({"access"}))
        assert {r.path for r in index.search("sun sign", filters=tagged).results} == {"auth.md"}
        both = index.search(["tomatoes", "authentication"]).results
        assert {result.path for result in both} == {"auth.md", "garden.md"}
        assert "Tomatoes need sun." in index.get("garden.md#garden").text
        with pytest.raises(QueryError, match="top_n"):
            index.search("tomatoes", top_n=0)
        with pytest.raises(QueryError, match="empty"):
            index.search(" ")


@pytest.mark.parametrize(
    ("query", "options", "why"),
    [
        (5, {}, "a text, or a list of texts"),
        (None, {}, "a text, or a list of texts"),
        (b"tomatoes", {}, "a text"),
        (["tomatoes", 3], {}, "a text"),
        ("tomatoes", {"filters": {"tags": ["access"]}}, "filters is .* a Filters"),
        ("tomatoes", {"top_n": "3"}, "top_n is '3'"),
        ("tomatoes", {"min_score": 2}, "min_score is 2"),
    ],
)
def test_a_request_of_another_kind_is_refused_with_a_reason(docs, query, options, why):
    with (
        open_index(docs, embedder=MeaningEmbedder(), update=False) as index,
        pytest.raises(QueryError, match=why),
    ):
        index.search(query, **options)


@pytest.mark.parametrize("wrong", [{"tags": "access"}, {"tags": ["access"]}, {"paths": "guides"}])
def test_a_filter_of_another_kind_is_refused_and_not_taken_by_letters(wrong):
    with pytest.raises(QueryError, match=r"filters\.(tags|paths) is .*it must be a"):
        Filters(**wrong)


def test_a_closed_index_says_so(docs):
    index = open_index(docs, embedder=MeaningEmbedder())
    index.close()
    index.close()
    asked = (lambda: index.search("x"), lambda: index.get("auth.md"), index.update)
    for ask in (*asked, lambda: index.state, lambda: index.library):
        with pytest.raises(IndexStoreError, match="closed"):
            ask()


def test_settings_are_those_of_a_configuration_file(docs, tmp_path):
    place = tmp_path / "elsewhere"
    settings = {"indexing": {"index_path": str(place)}, "search": {"max_chunks_per_doc": 1}}
    with open_index(docs, settings=settings, embedder=MeaningEmbedder()) as index:
        assert index.directory == place
        assert index.config.search.max_chunks_per_doc == 1
        assert index.state.documents == 2
    with pytest.raises(ConfigError, match=r"^settings: search\.max_chunks_per_dok"):
        open_index(docs, settings={"search": {"max_chunks_per_dok": 1}})
    file = tmp_path / "own.toml"
    file.write_text('[indexing]\ndocuments_path = "docs"\n', encoding="utf-8")
    with open_index(config_file=file, embedder=MeaningEmbedder()) as index:
        assert [tree.root for tree in index.config.trees] == [docs]


@pytest.mark.parametrize(("name", "why"), [("nowhere", "does not exist"), ("f.md", "not a folder")])
def test_a_path_that_is_not_a_folder_is_refused(docs, name, why):
    (docs.parent / "f.md").write_text("# F\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=why):
        open_index(name)
    with pytest.raises(ConfigError, match="table"):
        open_index(docs, settings={"indexing": 3})


def test_several_threads_may_ask_at_once(docs):
    found = []
    with open_index(docs, embedder=MeaningEmbedder()) as index:

        def ask():
            found.append(index.search("tomatoes", top_n=1).results[0].path)

        threads = [threading.Thread(target=ask) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
    assert found == ["garden.md"] * 6


def test_what_the_page_shows_runs(docs, capsys):
    page = Path(__file__).parents[2] / "docs" / "python-api.md"
    shown = re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.M | re.S)
    here = [code for code in shown if "ragdocs.integrations" not in code]
    assert (len(here), len(shown)) == (2, 3)  # the other one is run by tests/extras
    for code in here:
        exec(compile(code, str(page), "exec"), {})
    assert capsys.readouterr().out.startswith("auth.md:4 ")


def test_an_older_copy_put_in_its_place_is_not_told_as_complete(docs, tmp_path):
    """There is no thread here that would look: it had answered from the old one, as complete."""
    with open_index(docs, embedder=MeaningEmbedder()) as index:
        place = index.directory
    shutil.copy(place / "store.db", tmp_path / "older")
    (docs / "boats.md").write_text("# Boats\n\nA storm.\n", encoding="utf-8")
    with open_index(docs, embedder=MeaningEmbedder()) as index:
        assert index.state.complete
        assert index.state.documents == 3
    with open_index(docs, embedder=MeaningEmbedder(), update=False) as index:
        assert index.state.complete
        (tmp_path / "older").replace(place / "store.db")
        for state in (index.state, index.search("tempest").index, index.state):
            assert not state.complete
            assert "copied, or changed by another program" in state.reason
        index.update()
        assert index.search("tempest").results[0].path == "boats.md"
        assert index.state.complete
