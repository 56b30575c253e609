"""The words of the documents: which there are, in how many documents, and how they are read."""

import pytest

from ragdocs.indices.vocabulary import Vocabulary, VocabularyIndex, term_hash
from ragdocs.store.writer import StoreWriter
from tests.support.stores import ANALYZER, ENGLISH, entries, put_texts, vocabulary_store

NOTES = {
    "apples.md": "---\naliases: [Pomes]\n---\n# Apples\n\nThe apple grows. Apples fall in 2024.\n",
    "deep/pears.md": "# Pears\n\nA pear grows as apples do.\n\n## Ripening\n\nCall `getPear`.\n",
}


@pytest.fixture
def store(tmp_path):
    with vocabulary_store(tmp_path, NOTES) as opened:
        yield opened


@pytest.fixture
def vocabulary():
    return Vocabulary(ANALYZER)


def test_a_word_counts_the_documents_that_have_it(store):
    _, reader = store
    found = entries(reader)
    assert found["apples"] == ("appl", 2)
    assert found["apple"] == ("appl", 1)
    assert found["grows"] == ("grow", 2)


@pytest.mark.parametrize("word", ["pomes", "deep", "pears", "ripening", "getpear", "pear", "the"])
def test_every_field_that_keyword_search_knows_counts(store, word):
    _, reader = store
    assert word in entries(reader)


def test_numbers_and_text_without_spaces_are_left_out(tmp_path):
    text = "# 42\n\n3.11 of 2024, 東京タワー, oauth2 Größe\n"
    with vocabulary_store(tmp_path, {"a.md": text}) as (_, reader):
        found = entries(reader)
    assert "oauth2" in found
    assert "grösse" in found
    assert not {"42", "3.11", "2024", "東", "東京"} & found.keys()


def test_words_go_with_the_last_document_that_has_them(store):
    writer, reader = store
    put_texts(writer, {"deep/pears.md": "# Pears\n\nNow without the others.\n"})
    found = entries(reader)
    assert found["apples"] == ("appl", 1)
    assert "getpear" not in found
    put_texts(writer, {}, removed=("apples.md", "deep/pears.md"))
    assert entries(reader) == {}


def test_a_store_without_a_vocabulary_gets_one_when_it_is_opened(tmp_path):
    with StoreWriter.open(tmp_path, "test") as writer:
        put_texts(writer, NOTES)
    with vocabulary_store(tmp_path, {}) as (_, reader):
        late = entries(reader)
    with vocabulary_store(tmp_path / "fresh", NOTES) as (_, reader):
        assert late == entries(reader)


def test_terms_are_known_by_their_stem(store, vocabulary):
    _, reader = store
    with reader.snapshot() as snapshot:
        assert vocabulary.known_terms(snapshot, ["appl", "apples"]) == {"appl"}
        assert vocabulary.known_terms(snapshot, {"grow", "shrink", "pear"}) == {"grow", "pear"}


def test_the_most_frequent_words_are_fit_to_be_added_to_a_query(store, vocabulary):
    _, reader = store
    with reader.snapshot() as snapshot:
        words = [known.word for known in vocabulary.most_frequent(snapshot, 100)]
        assert words[:2] == ["apples", "grows"]
        assert not {"the", "as", "do", "pears.md", "a"} & set(words)
        assert [known.word for known in vocabulary.most_frequent(snapshot, 1)] == ["apples"]
        assert vocabulary.most_frequent(snapshot, 0) == []


def test_what_was_read_before_a_commit_is_read_again_after_it(store, vocabulary):
    writer, reader = store
    with reader.snapshot() as snapshot:
        assert vocabulary.near_words(snapshot, "quinze", "quinz", 1) == []
    put_texts(writer, {"quince.md": "# Quince\n"})
    with reader.snapshot() as snapshot:
        assert [near.word for near in vocabulary.near_words(snapshot, "quinze", "quinz", 1)] == [
            "quince"
        ]


def test_pruning_keeps_the_vectors_of_words_that_are_still_used(store):
    writer, reader = store
    words = ["apples", "getpear"]
    with writer.transaction() as transaction:
        transaction.put_embeddings("m", [(term_hash(word), bytes(8)) for word in words])
    with writer.transaction() as transaction:
        assert transaction.prune_embeddings(["m"]) == 0
    put_texts(writer, {}, removed=("deep/pears.md",))
    with writer.transaction() as transaction:
        assert transaction.prune_embeddings(["m"]) == 1
    with reader.snapshot() as snapshot:
        assert [text for text, _ in snapshot.vectors_of("m", map_hashes(words))] == [
            term_hash("apples")
        ]


def map_hashes(words):
    return [term_hash(word) for word in words]


def test_a_vocabulary_of_another_stemmer_is_another_version():
    other = ENGLISH.__class__("german")
    assert VocabularyIndex(ENGLISH).version != VocabularyIndex(other).version
