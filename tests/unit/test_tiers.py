"""Words that were guessed find more, and never outrank words that were typed."""

from dataclasses import replace
from functools import partial

import pytest

from ragdocs.indices.conditions import Unit
from ragdocs.indices.keyword import KeywordQuery, search_in_tiers
from tests.support.stores import Corpus, keyword_engine

NOTES = {
    "both.md": "# One\n\napple pear and many other words that make this note a little longer\n",
    "typed.md": "# Two\n\napple and many other words that make this note a little longer\n",
    "guessed.md": "# Pear\n\npear pear pear\n",
    "weak.md": "# Four\n\npear and many other words that make this note a little longer\n",
    "neither.md": "# Five\n\nnothing of interest\n",
}


class Counted:
    """The real engine, and how often it was asked."""

    def __init__(self):
        self.engine = keyword_engine()
        self.searches = 0

    def search(self, *args):
        self.searches += 1
        return self.engine.search(*args)


@pytest.fixture(scope="module")
def notes(tmp_path_factory):
    return Corpus(tmp_path_factory.mktemp("notes"), NOTES)


def found(notes, query, limit=10, engine=None):
    with notes.snapshot() as snapshot:
        search = partial((engine or keyword_engine()).search, snapshot)
        hits = search_in_tiers(search, query, limit)
        chunks = snapshot.chunks_by_key([hit.key for hit in hits.hits])
        return hits, [chunks[hit.key].chunk.doc_id.partition(":")[2] for hit in hits.hits]


def words(*terms, weight=1.0):
    return tuple(Unit((term,), None, weight) for term in terms)


def test_a_passage_found_by_guesses_alone_ranks_below_every_other(notes):
    query = KeywordQuery(words("appl"), weaker=words("pear"))
    hits, paths = found(notes, query)
    assert paths == ["both.md", "typed.md", "guessed.md", "weak.md"]
    scores = [hit.score for hit in hits.hits]
    assert scores == sorted(scores, reverse=True)
    assert scores[1] > scores[2] > 0


def test_a_typed_passage_gains_by_what_was_guessed(notes):
    alone, _ = found(notes, KeywordQuery(words("appl")))
    both, _ = found(notes, KeywordQuery(words("appl"), weaker=words("pear")))
    heavy, _ = found(notes, KeywordQuery(words("appl", "pear")))
    plain = {hit.key: hit.score for hit in alone.hits}
    gained = {hit.key: hit.score for hit in both.hits if hit.key in plain}
    assert sorted(gained[key] > plain[key] for key in plain) == [False, True]
    assert max(gained.values()) == pytest.approx(
        next(hit.score for hit in heavy.hits if hit.key == both.hits[0].key)
    )


def test_the_ideal_is_that_of_the_typed_words(notes):
    alone, _ = found(notes, KeywordQuery(words("appl", "unknown")))
    both, _ = found(notes, KeywordQuery(words("appl", "unknown"), weaker=words("pear")))
    assert both.ideal == alone.ideal


def test_guesses_alone_keep_their_scores(notes):
    guessed, paths = found(notes, KeywordQuery(words("unknown"), weaker=words("pear", weight=0.5)))
    typed, _ = found(notes, KeywordQuery(words("pear", weight=0.5)))
    assert paths[0] == "guessed.md"
    assert guessed.hits == typed.hits


def test_a_condition_holds_for_guesses_too(notes):
    query = KeywordQuery(words("unknown"), Unit(("note",)), words("pear"))
    assert sorted(found(notes, query)[1]) == ["both.md", "weak.md"]


def test_the_limit_cuts_guesses_first(notes):
    query = KeywordQuery(words("appl"), weaker=words("pear"))
    assert found(notes, query, limit=2)[1] == ["both.md", "typed.md"]
    assert found(notes, query, limit=0)[1] == []


def test_without_guesses_it_is_one_search_and_nothing_else(notes):
    query = KeywordQuery(words("appl", "pear"))
    engine = Counted()
    hits, _ = found(notes, query, engine=engine)
    assert engine.searches == 1
    with notes.snapshot() as snapshot:
        assert hits == keyword_engine().search(snapshot, query, 10)
    found(notes, replace(query, weaker=words("nothing")), engine=engine)
    assert engine.searches == 3
