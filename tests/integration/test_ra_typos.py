"""Typing errors, from the files to the answer, by every keyword engine (seed 004)."""

import pytest

from tests.support.engine import Engine

NOTES = {
    "mail.md": "# Post\n\nWe receive letters on Mondays.\n",
    "doors.md": "# Doors\n\nTurn the handle to the left.\n",
    "forest.md": "# Woods\n\nA fox lives there.\n",
    "pets.md": "# Pets\n\nThe cat sleeps all day.\n",
    "garage.md": "# Garage\n\nThe car stands outside, a car.\n",
}
WORDS_ONLY = {"semantic_weight": 0.0, "graph_weight": 0.0, "cutoff_ratio": 0.0}


@pytest.fixture(scope="module", params=["fts5", "whoosh", "tantivy"])
def engine(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param)
    with Engine(folder, NOTES, keyword_engine=request.param, **WORDS_ONLY) as engine:
        yield engine


@pytest.mark.parametrize(
    ("typed", "path", "meant"),
    [
        ("recieve", "mail.md", "receive"),
        ("hadle", "doors.md", "handle"),
        ("foz", "forest.md", "fox"),
    ],
)
def test_one_wrong_letter_finds_what_was_meant(engine, typed, path, meant):
    response = engine.ask(typed)
    assert [result.path for result in response.results] == [path]
    assert response.did_you_mean == meant


def test_a_word_that_is_there_drags_in_no_other(engine):
    response = engine.ask("cat")
    assert [result.path for result in response.results] == ["pets.md"]
    assert response.did_you_mean is None


def test_an_exact_hit_is_above_a_forgiven_one(engine):
    assert engine.paths("letters hadle") == ["mail.md", "doors.md"]
