"""The eighteen languages of seed 004, from the files to the answer, and another one later."""

import pytest

from ragdocs.app import App
from ragdocs.config.choices import Stemmer
from ragdocs.config.loading import load_config
from ragdocs.search.requests import QueryRequest
from tests.support.engine import Engine
from tests.support.indexes import write
from tests.support.models import CountingEmbedder

WORDS_ONLY = {"semantic_weight": 0.0, "fuzzy_distance": 0}

# A sentence with an inflected form, and another form of the same word as it is asked for.
SPOKEN = {
    Stemmer.ARABIC: ("قرأت الكتاب أمس", "كتاب"),
    Stemmer.DANISH: ("Bilerne holder foran huset", "bil"),
    Stemmer.DUTCH: ("De boeken liggen op tafel", "boek"),
    Stemmer.ENGLISH: ("The errors were handled quickly", "handling"),
    Stemmer.FINNISH: ("Kirjat ovat talossa", "talo"),
    Stemmer.FRENCH: ("Il cherchait les maisons", "maison"),
    Stemmer.GERMAN: ("Die Katzen schlafen gern", "Katze"),
    Stemmer.GREEK: ("Η άκρη του δρόμου", "δρόμος"),
    Stemmer.HUNGARIAN: ("A könyvek az asztalon vannak", "könyv"),
    Stemmer.ITALIAN: ("I libri sono qui", "libro"),
    Stemmer.NORWEGIAN: ("Bilene står ute", "bil"),
    Stemmer.PORTUGUESE: ("Os livros novos", "livro"),
    Stemmer.ROMANIAN: ("Am văzut copilul ieri", "copil"),
    Stemmer.RUSSIAN: ("Новые книги лежат здесь", "книга"),
    Stemmer.SPANISH: ("Las canciones antiguas", "canción"),
    Stemmer.SWEDISH: ("Alla bilar stannar", "bil"),
    Stemmer.TAMIL: ("புதிய வீடுகள் உள்ளன", "வீடு"),
    Stemmer.TURKISH: ("Yeni kitaplar geldi", "kitap"),
}


def test_every_language_has_its_sentence():
    assert set(SPOKEN) == set(Stemmer)
    assert len(SPOKEN) == 18


@pytest.mark.parametrize("language", Stemmer)
def test_an_inflected_word_is_found_by_another_form(tmp_path, language):
    sentence, asked = SPOKEN[language]
    texts = {"said.md": f"# 1\n\n{sentence}.\n", "other.md": "# 2\n\n12345 67890.\n"}
    with Engine(tmp_path, texts, stemmer=language, **WORDS_ONLY) as engine:
        assert engine.paths(asked) == ["said.md"]


def test_another_language_has_an_index_of_its_own_and_embeds_nothing_again(tmp_path):
    write(tmp_path, "docs/katzen.md", "# Tiere\n\nDie Katzen schlafen.\n")
    place = {"documents_path": str(tmp_path / "docs")}

    def run(stemmer):
        flags = {"indexing": place, "search": {"stemmer": stemmer, **WORDS_ONLY}}
        config = load_config(cwd=tmp_path, environ={"HOME": str(tmp_path / "home")}, flags=flags)
        embedder = CountingEmbedder()
        with App(config, embedder) as app:
            with app.manager() as manager:
                outcome = manager.update()
                manager.fill()
            found = app.search(QueryRequest(queries=("Katze",))).results
        embedded = (len(embedder.passages), len(embedder.texts))
        return outcome.added, [result.path for result in found], embedded

    assert run("french") == (1, [], (1, 5))  # the passage, and each word of it
    assert run("french") == (0, [], (0, 0))
    assert run("german") == (1, ["katzen.md"], (0, 0))
    assert run("german") == (0, ["katzen.md"], (0, 0))
    assert run("french") == (0, [], (0, 0))
