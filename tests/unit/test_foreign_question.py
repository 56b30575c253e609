"""Questions that an English model does not know are told from English ones, with names and code."""

import pytest

from ragdocs.embedding.base import is_english_only
from ragdocs.search.classifier import foreign_question
from tests.support.documents import ENGLISH, QUESTIONS

EVERY = [(language, text) for language, texts in QUESTIONS.items() for text in texts]


@pytest.mark.parametrize(("language", "text"), EVERY)
def test_a_question_in_another_language_is_noticed(language, text):
    found = foreign_question(text)
    assert found is not None
    assert found.words
    if language in ("Russian", "Japanese"):
        assert language in found.language


@pytest.mark.parametrize("language", ["German", "French", "Spanish"])
def test_the_language_is_named_where_common_words_show_it(language):
    named = [foreign_question(text) for text in QUESTIONS[language]]
    assert sum(one is not None and one.language == language for one in named) >= 8


@pytest.mark.parametrize("text", ENGLISH)
def test_english_with_names_and_code_is_english(text):
    assert foreign_question(text) is None


def test_documents_in_the_language_are_told_by_what_they_have():
    common, letters, accents = (
        foreign_question(text)
        for text in ("wie setze ich es zurück", "как сбросить пароль", "Kündigungsfrist Verträge")
    )
    assert common
    assert letters
    assert accents
    assert common.is_spoken({"wie": 5, "ich": 0}, 100)
    assert not common.is_spoken({"wie": 4, "ich": 4}, 100)
    assert letters.is_spoken({"как": 1, "сбросить": 0, "пароль": 0}, 100)
    assert not letters.is_spoken({"как": 0, "сбросить": 0, "пароль": 0}, 100)
    assert accents.is_spoken({"kündigungsfrist": 1, "verträge": 0}, 100)
    assert not accents.is_spoken({"kündigungsfrist": 0, "verträge": 0}, 100)


@pytest.mark.parametrize(
    "name",
    [
        "all-MiniLM-L6-v2",
        "BAAI/bge-small-en-v1.5",
        "/models/bge-small",
        "thenlper/gte-small",
        "intfloat/e5-base-v2",
        "nomic-ai/nomic-embed-text-v1.5",
        "minishlab/potion-base-8M",
        "mixedbread-ai/mxbai-embed-large-v1",
    ],
)
def test_models_for_english_alone(name):
    assert is_english_only(name)


@pytest.mark.parametrize(
    "name",
    [
        "intfloat/multilingual-e5-small",
        "BAAI/bge-m3",
        "paraphrase-multilingual-MiniLM-L12-v2",
        "Alibaba-NLP/gte-multilingual-base",
        "minishlab/potion-multilingual-128M",
        "jinaai/jina-embeddings-v2-base-de-en",
        "nomic-ai/nomic-embed-text-v2-moe",
        "Snowflake/snowflake-arctic-embed-l-v2.0",
        "Qwen/Qwen3-Embedding-0.6B",
        "someone/unknown",
    ],
)
def test_models_that_may_know_more(name):
    assert not is_english_only(name)


def test_of_a_very_long_text_only_the_beginning_is_read():
    long = foreign_question("привет" * 1_300)
    assert long is not None
    assert sum(map(len, long.words)) <= 500
    assert foreign_question("the " * 200 + "привет " * 1_000) is None
