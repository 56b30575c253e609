"""The advice to translate a question, through Python, the command line and MCP."""

import json

import pytest
from click.testing import CliRunner

from ragdocs import open_index
from ragdocs.app import App
from ragdocs.cli.main import main
from tests.support.documents import ENGLISH, PAGES, QUESTIONS, documentation
from tests.support.indexes import write_all
from tests.support.machine import move_home, until
from tests.support.mcp_clients import in_memory
from tests.support.model_files import TinyExport
from tests.support.program import config_of

ADVICE = "translate the question into English"


@pytest.fixture
def home(tmp_path, monkeypatch):
    move_home(monkeypatch, tmp_path / "home")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def advised(index, text):
    return any(ADVICE in note for note in index.search(text, top_n=1).notes)


def test_over_english_documents_every_foreign_question_gets_it_and_no_english_one(home):
    with open_index(write_all(home / "docs", documentation())) as index:
        for language, texts in QUESTIONS.items():
            assert [text for text in texts if not advised(index, text)] == [], language
        asked = [text for text in ENGLISH if text.strip()]
        assert [text for text in asked if advised(index, text)] == []
        [note] = [one for one in index.search("wie setze ich das zurück").notes if ADVICE in one]
        assert "seems to be in German" in note
        assert "all-MiniLM-L6-v2 only knows English" in note


@pytest.mark.parametrize("language", PAGES)
def test_documents_in_the_language_of_the_question_need_no_translation(home, language):
    """One page of four: the others are English."""
    texts = dict(list(documentation().items())[:3])
    page = f"# {language}\n\n{PAGES[language]}\n"
    with open_index(write_all(home / "docs", {**texts, "page.md": page})) as index:
        question = PAGES[language].partition(":")[0].partition("\u3001")[0]
        assert not advised(index, question)


def test_a_model_that_may_know_the_language_gives_no_advice(home):
    docs = write_all(home / "docs", documentation())
    for name, expected in (("multilingual-e5-tiny", False), ("bge-tiny-en", True)):
        folder = TinyExport().write(home / name)
        settings = {"embedding": {"provider": "onnx", "model": str(folder)}}
        with open_index(docs, settings=settings) as index:
            assert advised(index, "wie setze ich mein Passwort zurück?") is expected
            notes = index.search("wie setze ich mein Passwort zurück?").notes
            assert not any(str(home) in note for note in notes)


def test_the_command_line_shows_the_advice_to_translate(home, one_model):
    docs = write_all(home / "docs", documentation())
    words = ["query", "как сбросить пароль", "--docs", str(docs), "--index", str(home / "index")]
    told = CliRunner().invoke(main, words, catch_exceptions=False)
    assert ADVICE in told.output
    as_json = CliRunner().invoke(main, [*words, "--json"], catch_exceptions=False)
    assert any(ADVICE in note for note in json.loads(as_json.stdout)["notes"])


def test_a_client_is_told_in_both_forms_of_the_answer(home, one_model):
    docs = write_all(home / "docs", documentation())
    app = App(config_of(docs, home / "index"))
    app.service.start()
    until(lambda: app.index_state().complete)
    with in_memory(app) as server:
        asked = server.call("query_documents", query="如何重置密码")
        assert ADVICE in asked.text
        assert ADVICE in json.dumps(asked.data)
        asked = server.call("query_documents", query="how do I renew access tokens")
        assert ADVICE not in asked.text
