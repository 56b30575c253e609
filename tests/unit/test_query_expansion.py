"""Query expansion (P1): the documents' words near a query, by vectors that are made once."""

from dataclasses import replace

import numpy as np
import pytest

from ragdocs.indices.hits import NearTerm
from ragdocs.indices.term_vectors import TermVectors
from ragdocs.indices.vocabulary import Vocabulary, term_hash
from ragdocs.search.requests import Topic
from ragdocs.search.understanding import (
    MAX_TERMS,
    MIN_SIMILARITY,
    WordOrigin,
    added_words,
    choose_terms,
    move_vector,
)
from tests.support.engine import Engine
from tests.support.machine import ROUNDING
from tests.support.models import ConceptEmbedder, catch_up
from tests.support.stores import ANALYZER

NOTES = {
    "signin.md": "# Authentication\n\nThe login needs credentials. Logins expire in 2024.\n",
    "photo.md": "# Pictures\n\nThe image of a photo is stored. An image has a size.\n",
    "garden.md": "# Garden\n\nTomatoes need sun, and the sun needs no image.\n",
}


@pytest.fixture
def engine(tmp_path):
    texts = dict(NOTES)
    with Engine(tmp_path, texts, ConceptEmbedder(), query_expansion_enabled=True) as engine:
        engine.embed_terms()
        yield engine


def terms_of(engine, limit=10_000):
    view = TermVectors(engine.embedder, Vocabulary(ANALYZER), limit)
    return catch_up(view, engine.reader)


def understood(engine, query, meaning=None):
    return engine.find(Topic(query, meaning)).understanding


def expansion(engine, query):
    return [each.word for each in understood(engine, query).added]


def test_concept_vocabulary_extraction(engine):
    with engine.reader.snapshot() as snapshot:
        words = {known.word for known in Vocabulary(ANALYZER).most_frequent(snapshot, 100)}
    assert {"authentication", "login", "logins", "credentials", "image", "tomatoes"} <= words
    assert not {"2024", "md", "signin.md", "a"} & words


def test_stopword_filtering(engine):
    with engine.reader.snapshot() as snapshot:
        words = {known.word for known in Vocabulary(ANALYZER).most_frequent(snapshot, 100)}
    assert not {"the", "and", "of", "is", "no", "in", "has"} & words


def test_concept_vocabulary_build(engine):
    view = terms_of(engine)
    with engine.reader.snapshot() as snapshot:
        assert view.missing(snapshot) == ()
        assert len(view) == len(Vocabulary(ANALYZER).most_frequent(snapshot, 100))
        assert len(terms_of(engine, limit=3)) == 3
    (first,) = view.nearest(engine.embedder.embed("image"), 0.99, 5)
    assert (first.word, first.term) == ("image", "imag")
    assert first.similarity == pytest.approx(1.0, abs=1e-5)


def test_only_new_words_wait_for_a_vector(engine):
    engine.update({"new.md": "# Login\n\nA brandnew word for the login.\n"})
    view = terms_of(engine)
    with engine.reader.snapshot() as snapshot:
        assert {each.text for each in view.missing(snapshot)} == {"brandnew", "word", "new"}
        assert len(view.missing(snapshot, limit=1)) == 1
    engine.embed_terms()
    with engine.reader.snapshot() as snapshot:
        assert view.missing(snapshot) == ()


def test_a_view_follows_words_that_come_and_go(engine):
    view = terms_of(engine)
    before = len(view)
    engine.update({"new.md": "# Login\n\nErase what is brandnew.\n"})
    engine.embed_terms()
    catch_up(view, engine.reader)
    assert [near.word for near in view.nearest(engine.embedder.embed("delete"), 0.9, 1)] == [
        "erase"
    ]
    engine.update({}, removed=("new.md",))
    catch_up(view, engine.reader)
    assert len(view) == before
    assert view.nearest(engine.embedder.embed("delete"), 0.9, 1) == []


def test_vectors_of_words_outlive_a_rebuild(engine):
    with engine.reader.snapshot() as snapshot:
        before = snapshot.ledger.count("embeddings")
    engine.update({}, removed=tuple(NOTES))
    engine.update(NOTES)
    with engine.reader.snapshot() as snapshot:
        assert terms_of(engine).missing(snapshot) == ()
        assert snapshot.ledger.count("embeddings") == before


def test_another_models_words_say_nothing(engine):
    other = ConceptEmbedder("another@1")
    view = catch_up(TermVectors(other, Vocabulary(ANALYZER), 100), engine.reader)
    assert len(view) == 0
    assert view.nearest(other.embed("image"), 0.0, 5) == []


def test_vectors_that_were_pruned_are_not_used_any_more(engine):
    view = terms_of(engine)
    with engine.writer.transaction() as transaction:
        transaction.prune_embeddings([])
    assert len(catch_up(view, engine.reader)) == 0


def test_expand_query_finds_synonyms(engine):
    assert set(expansion(engine, "auth")) <= {"authentication", "login", "logins", "credentials"}
    assert len(expansion(engine, "auth")) == MAX_TERMS
    assert expansion(engine, "picture")[0] in {"image", "photo"}


def test_query_expansion_synonyms(engine):
    """Forms of the query's own words are no expansion, whatever their vectors say."""
    assert "login" not in expansion(engine, "logins")
    assert set(expansion(engine, "login")[:2]) == {"authentication", "credentials"}
    added = understood(engine, "picture").added
    assert {word.origin for word in added} == {WordOrigin.EXPANSION}
    assert all((word.similarity or 0) >= MIN_SIMILARITY for word in added)


def test_expand_query_empty(engine):
    assert expansion(engine, "") == []
    assert expansion(engine, "-auth") == []
    assert choose_terms([], frozenset()) == []


def test_a_hypothesis_is_not_expanded(engine):
    assert understood(engine, "auth", "how to sign in").added == ()


def test_without_vectors_of_words_nothing_waits_or_changes(tmp_path):
    with Engine(tmp_path, NOTES, ConceptEmbedder(), query_expansion_enabled=True) as engine:
        assert expansion(engine, "auth") == []


def near(word, similarity, vector, term=None):
    return NearTerm(word, term or word, similarity, np.array(vector, dtype=np.float32))


def test_terms_are_the_nearest_three_above_the_threshold():
    offered = [near(f"w{n}", 0.9 - n / 10, [1, 0]) for n in range(6)]
    assert [each.word for each in choose_terms(offered, frozenset())] == ["w0", "w1", "w2"]
    assert [each.word for each in choose_terms(offered, frozenset({"w0", "w2"}))] == [
        "w1",
        "w3",
        "w4",
    ]
    assert choose_terms([near("low", 0.49, [1, 0])], frozenset()) == []
    forms = [near("runs", 0.9, [1, 0], "run"), near("run", 0.8, [1, 0], "run")]
    assert [each.word for each in choose_terms(forms, frozenset())] == ["runs"]


def test_a_mixed_vector_has_unit_length_and_lies_between():
    query = np.array([1, 0], dtype=np.float32)
    moved = move_vector(query, [near("up", 0.6, [0.6, 0.8])])
    assert np.linalg.norm(moved) == pytest.approx(1.0, abs=ROUNDING)
    assert moved.dtype == np.float32
    assert 0 < moved[1] < 0.8
    assert move_vector(query, []) is query
    both = [near("up", 0.6, [0.6, 0.8]), near("down", 0.6, [0.6, -0.8])]
    assert move_vector(query, both) == pytest.approx(query, abs=ROUNDING)


def test_nearer_words_count_more():
    first, second = added_words([near("a", 0.9, [1, 0]), near("b", 0.6, [1, 0])])
    assert first.weight > second.weight
    assert replace(first, weight=0.0).origin is WordOrigin.EXPANSION


def test_a_word_and_a_text_of_the_same_letters_have_different_vectors(engine):
    with engine.reader.snapshot() as snapshot:
        texts = {leaf.text_hash for leaf in snapshot.leaves()}
    assert term_hash("image") not in texts
