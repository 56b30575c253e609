"""Typing errors are forgiven in words that the documents do not have, and only there."""

import pytest

from ragdocs.models import And, Boost, Field, Not, Or, Phrase, QueryField, Term
from ragdocs.search.requests import Topic
from ragdocs.search.spelling import FILTERS, Spelling, allow_misspellings, did_you_mean
from ragdocs.search.understanding import WordOrigin
from tests.support.engine import Engine
from tests.support.stores import ANALYZER, index_over, vocabulary_store

NOTES = {
    "mail.md": "# Mail\n\nHow to receive mail and handle errors. Which database is used?\n",
    "fox.md": "# Fox\n\nThe quick fox meets a cat.\n",
    "car.md": "# Car\n\nA car with a cart for mail, version 3.11, h264 video.\n",
    "code.md": "# Code\n\nOpen the node in code mode.\n",
}


@pytest.fixture(scope="module")
def reader(tmp_path_factory):
    with vocabulary_store(tmp_path_factory.mktemp("words"), NOTES) as (_, reader):
        yield reader


@pytest.fixture(scope="module")
def engine(tmp_path_factory):
    with Engine(tmp_path_factory.mktemp("index"), NOTES, cutoff_ratio=0) as engine:
        yield engine


def spelled(reader, text, most=1):
    with index_over(reader).view(for_search=False) as view:
        return Spelling(ANALYZER, most).read(view, text)


def corrections(reader, text, most=1):
    return spelled(reader, text, most).corrections


def near(reader, text, most=1):
    return [word.word for each in corrections(reader, text, most) for word in each.near]


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("foz", "fox"),  # the three examples of seed 004
        ("hadle", "handle"),
        ("recieve", "receive"),
        ("Recieve", "receive"),
        ("mali", "mail"),
        ("oepn", "open"),  # the first two letters changed places
        ("atabase", "database"),  # a long word may lack its first letter
        ("recieved", "receive"),  # by its stem
        ("hadling", "handle"),
    ],
)
def test_a_typing_error_leads_to_the_word(reader, typed, meant):
    assert near(reader, typed)[0] == meant


@pytest.mark.parametrize(
    "typed",
    [
        "cat",  # a known word, although `car` is near
        "carts",  # known by its stem
        "cra mail",  # three letters beside a known word
        "ca",
        "bode",  # another first letter in a short word
        "3.12",
        "h265",
        "2024",
        "the",
        "receivxyz",
        "path:recieve fox",
        "tree:maill fox",
        "aliases:fox",
        "",
        "東京",
    ],
)
def test_nothing_is_corrected_without_need_or_grounds(reader, typed):
    assert corrections(reader, typed) == ()


@pytest.mark.parametrize(
    "typed",
    [
        "last",  # `list`, by the stem of `listed`
        "food",  # `fold`
        "dinner",  # `inner`
        "passport",  # `password`
        "weather",  # `whether`
    ],
)
def test_a_word_of_the_language_is_no_typing_error(tmp_path, typed):
    text = "# Note\n\nThe listed items fold. An inner password, whether or not.\n"
    with vocabulary_store(tmp_path, {"a.md": text}) as (_, reader):
        assert corrections(reader, typed, most=2) == ()
        assert corrections(reader, f"{typed} items", most=2) == ()


@pytest.mark.parametrize(
    "typed",
    ["podman", "joplin"],  # two errors from `perman` and `join`, the stems of permanent and joins
)
def test_a_stem_forgives_less_than_a_word(tmp_path, typed):
    texts = {"a.md": "# Note\n\nA permanent poster joins.\n"}
    with vocabulary_store(tmp_path, texts) as (_, reader):
        assert corrections(reader, typed, most=2) == ()


def test_a_query_of_unknown_words_only_is_told_the_nearest_the_documents_have(reader):
    assert spelled(reader, "datab").nearest == ("database",)  # begins like it
    assert spelled(reader, "databaseish").nearest == ("database",)
    assert spelled(reader, "receptive handl").nearest == ()  # by its stem, one is known
    assert spelled(reader, "mailbox").nearest == ()  # `mail` stands within too many words
    assert spelled(reader, "databusacs").nearest == ("database",)  # most of its letters
    assert spelled(reader, "xyzzy plugh 42").nearest == ()
    assert spelled(reader, "recieve xyzzy").nearest == ()  # did_you_mean says more


def test_the_setting_says_how_many_errors_are_forgiven(reader):
    assert near(reader, "recieve", most=0) == []
    assert near(reader, "databsae", most=1) == ["database"]
    assert near(reader, "datbsae", most=1) == []
    assert near(reader, "datbsae", most=2) == ["database"]
    assert near(reader, "cdoes", most=2)[0] == "code"  # short words: one error whatever is set
    assert near(reader, "hxdlx", most=2) == []


def test_the_nearest_come_first_then_the_more_frequent_and_at_most_three(tmp_path):
    texts = {f"{n}.md": f"# Note\n\n{words}\n" for n, words in enumerate(["stone store", "store"])}
    texts["more.md"] = "# Note\n\nstole stove stores\n"
    with vocabulary_store(tmp_path, texts) as (_, reader):
        found = near(reader, "stoqe")
        assert found[0] == "store"
        assert len(found) == 3
        assert "stores" not in found  # the same word in another form


def test_did_you_mean_changes_only_what_is_unknown(reader):
    def meant(text):
        return did_you_mean(text, corrections(reader, text))

    assert meant("recieve mail") == "receive mail"
    assert meant("(Recieve OR hadle) -title:foxx^2") == "(Receive OR handle) -title:fox^2"
    assert meant('"recieve mail" tags:RECIEVE') == '"receive mail" tags:RECEIVE'
    assert meant("  recieve,\tmail? ") == "  receive,\tmail? "
    assert meant("receive mail") is None


def alternatives(reader, text):
    return {each.word: each.near for each in corrections(reader, text)}


def test_a_strict_term_may_be_fulfilled_by_what_is_near_it(reader):
    known = alternatives(reader, "recieve hadle-erorrs")
    loose = allow_misspellings(And((Term("recieve"), Term("mail"))), known, ANALYZER)
    assert loose == And((Or((Term("recieve"), Term("receive"))), Term("mail")))
    boosted = Boost(Field(QueryField.TITLE, Term("recieve")), 2.0)
    either = Or((Term("recieve"), Term("receive")))
    assert allow_misspellings(boosted, known, ANALYZER) == Boost(
        Field(QueryField.TITLE, either), 2.0
    )
    flat = allow_misspellings(Or((Term("recieve"), Term("mail"))), known, ANALYZER)
    assert flat == Or((Term("recieve"), Term("receive"), Term("mail")))


def test_phrases_exclusions_and_filters_stay_exact(reader):
    known = alternatives(reader, "recieve")
    kept = [Phrase("recieve"), Not(Term("recieve"))]
    kept += [Field(name, Term("recieve")) for name in FILTERS]
    for expression in kept:
        assert allow_misspellings(expression, known, ANALYZER) == expression


def test_a_misspelt_query_finds_by_words_what_was_meant(engine):
    def found(query, is_strict=False, **settings):
        lists = engine.find(Topic(query, is_strict=is_strict), **settings).lists
        with engine.index.view() as view:
            chunks = view.chunks_by_key([hit.key for hit in lists["keyword"]])
            return [chunks[hit.key].chunk.doc_id for hit in lists["keyword"]]

    assert found("hadle") == ["docs:mail.md"]
    assert found("hadle", fuzzy_distance=0) == []
    assert found("(hadle recieve mail)", is_strict=True) == ["docs:mail.md"]
    assert found("title:foxx OR tags:x") == ["docs:fox.md"]
    assert found('"hadle errors"', is_strict=True) == []
    assert found("cart hadle") == ["docs:car.md", "docs:mail.md"]


def test_the_answer_asks_what_was_meant_and_explains_what_was_added(engine):
    response = engine.ask("recieve mail")
    assert response.did_you_mean == "receive mail"
    assert engine.ask("receive mail").did_you_mean is None
    found = engine.find(Topic("recieve mail"))
    (added,) = found.understanding.added
    assert (added.word, added.stands_for, added.origin) == ("receive", "recieve", WordOrigin.FUZZY)
    assert added.distance == 1
    assert [unit.terms for unit in found.understanding.query.units] == [("reciev",), ("mail",)]


def test_a_mistyped_stop_word_drags_in_nothing(tmp_path):
    texts = {
        "a.md": "# Wishes\n\nWhich wish is it? Which which fish.\n",
        "b.md": "# Which\n\nWhich.\n",
    }
    with Engine(tmp_path, texts) as engine:
        assert engine.ask("wwhich fish").did_you_mean == "which fish"
        found = engine.find(Topic("wwhich fish"))
        assert [word.word for word in found.understanding.added] == []
