"""Synonyms (P5): WordNet's own files, read in place; weaker than what was typed."""

from io import BytesIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragdocs.errors import ConfigError
from ragdocs.search.understanding import MAX_SYNONYMS, WordOrigin, synonyms
from ragdocs.search.wordnet import WordNet, find_line, wordnet_folder
from tests.support.engine import Engine
from tests.support.model_files import write_wordnet
from tests.support.stores import ANALYZER

NOTES = {
    "erase.md": "# Erasing\n\nErase what you no longer need.\n",
    "keep.md": "# Keeping\n\nKeep what you need, never remove it in a hurry.\n",
}


@pytest.fixture(params=[b"\n", b"\r\n"], ids=["lf", "crlf"])
def wordnet(tmp_path, request):
    return WordNet(write_wordnet(tmp_path / "dict", request.param))


def test_synonym_expansion_basic(wordnet):
    found = list(synonyms("remove the car", ANALYZER, wordnet))
    assert [(word.stands_for, word.word) for word in found] == [
        ("remove", "erase"),
        ("remove", "withdraw"),
        ("remove", "delete"),
        ("car", "auto"),
        ("car", "automobile"),
        ("car", "carriage"),
    ]
    assert {word.origin for word in found} == {WordOrigin.SYNONYM}
    assert all(0 < word.weight < 1 for word in found)


def test_synonym_expansion_no_matches(wordnet):
    assert list(synonyms("kubernetes 3.11 getUserById h264", ANALYZER, wordnet)) == []
    assert list(synonyms("", ANALYZER, wordnet)) == []
    assert wordnet.related("") == ()
    assert wordnet.related("s") == ()  # nothing is left without its ending
    assert wordnet.related("zzz") == ()


@pytest.mark.parametrize(
    ("word", "related"),
    [
        ("cars", ["auto", "automobile", "carriage"]),  # a regular ending; a third sense is rare
        ("removing", ["erase", "withdraw", "delete", "cancel"]),
        ("children", ["kid"]),  # an irregular form
        ("quick", ["fast", "speedy"]),  # without the marks of their place
        ("study", ["analyse", "survey"]),  # what texts use more comes first
        ("motor", []),
        ("größe", []),
    ],
)
def test_words_are_found_in_any_form(wordnet, word, related):
    assert list(wordnet.related(word)) == related


def test_a_query_is_given_at_most_three_for_each_word(wordnet):
    assert len(list(synonyms("removes", ANALYZER, wordnet))) == MAX_SYNONYMS


def test_a_missing_database_is_said_to_be_missing(tmp_path):
    with pytest.raises(ConfigError, match="WNSEARCHDIR"):
        WordNet(tmp_path).related("car")


def test_a_damaged_database_is_said_to_be_damaged(tmp_path):
    folder = write_wordnet(tmp_path)
    index = (folder / "index.noun").read_bytes()
    (folder / "index.noun").write_bytes(index.replace(b"car n", b"car x y"))
    with pytest.raises(ConfigError, match="cannot be read"):
        WordNet(folder).related("car")


def test_the_folder_is_where_wordnet_itself_would_look(tmp_path):
    search = write_wordnet(tmp_path / "search")
    home = write_wordnet(tmp_path / "home" / "dict")
    both = {"WNSEARCHDIR": str(search), "WNHOME": str(home.parent)}
    assert wordnet_folder(both) == search
    assert wordnet_folder({"WNHOME": str(home.parent)}) == home
    assert wordnet_folder({"WNSEARCHDIR": str(tmp_path), "WNHOME": str(home.parent)}) == home


WORDS = st.text("abc'.", min_size=1, max_size=4)


@given(st.lists(WORDS, unique=True), WORDS)
def test_a_line_is_found_exactly_when_it_is_there(words, key):
    lines = [f"{word} and more\n".encode() for word in sorted(words)]
    found = find_line(BytesIO(b"  head\n" + b"".join(lines)), key.encode())
    assert found == (f"{key} and more\n".encode() if key in words else None)


def test_a_query_goes_on_without_its_synonyms(tmp_path):
    with Engine(tmp_path / "index", NOTES) as engine:
        engine.orchestrator = engine.configured(WordNet(tmp_path), synonyms_enabled=True)
        response = engine.ask("remove")
    assert response.results[0].path == "keep.md"
    assert any("without synonyms" in note for note in response.notes)


def test_the_real_wordnet_is_read():
    folder = wordnet_folder()
    if folder is None:
        pytest.skip("no WordNet database here: the extra `synonyms` is not installed")
    wordnet = WordNet(folder)
    assert {"auto", "automobile"} <= set(wordnet.related("cars"))
    assert "erase" in wordnet.related("delete")
    assert "purchase" in wordnet.related("bought")
