import pytest

from ragdocs.search.candidates import Strategy, TokenKind
from ragdocs.search.classifier import adaptive_weights, classify_query, exact_tokens, token_kind
from ragdocs.search.requests import QueryType

BASE = {Strategy.SEMANTIC: 1.0, Strategy.KEYWORD: 2.0, Strategy.GRAPH: 0.5}


@pytest.mark.parametrize(
    "query", ["getUserById function", 'the "exact phrase"', "changes in v2.10.1", "“curly quotes”"]
)
def test_classify_factual(query):
    assert classify_query(query) is QueryType.FACTUAL


@pytest.mark.parametrize("query", ["config guide", "Tutorials for beginners", "the docs on auth"])
def test_classify_navigational(query):
    assert classify_query(query) is QueryType.NAVIGATIONAL


@pytest.mark.parametrize("query", ["how does caching work", "what is a token?", "authentication"])
def test_classify_exploratory(query):
    assert classify_query(query) is QueryType.EXPLORATORY


@pytest.mark.parametrize("query", ["getUserById", "where is HTTPResponse made", "myVar"])
def test_classify_factual_camelcase(query):
    assert classify_query(query) is QueryType.FACTUAL


@pytest.mark.parametrize("query", ["parse_json_data", "MAX_FILE_BYTES", "what is rrf_k_constant?"])
def test_classify_factual_snake_case(query):
    assert classify_query(query) is QueryType.FACTUAL


def test_classify_factual_backticks():
    assert classify_query("what does `ls` do") is QueryType.FACTUAL
    assert classify_query("a lone ` is no name") is QueryType.EXPLORATORY


def test_classify_navigational_section():
    assert classify_query("in the auth section") is QueryType.NAVIGATIONAL
    assert classify_query("Chapter on errors") is QueryType.NAVIGATIONAL
    assert classify_query("intersection of sets") is QueryType.EXPLORATORY


def test_classify_navigational_wikilink():
    assert classify_query("notes near [[Login Flow]]") is QueryType.NAVIGATIONAL


def test_classify_exploratory_question():
    assert classify_query("How do I configure authentication?") is QueryType.EXPLORATORY


@pytest.mark.parametrize("query", ["", "   ", "caching", "REST APIs and their IDs"])
def test_classify_exploratory_default(query):
    assert classify_query(query) is QueryType.EXPLORATORY


# The seed's own examples, and what they have in common: the wording decides, not the subject.


def test_classify_factual_query():
    for query in ("getUserById", "set `rrf_k_constant`", "what changed in 1.4.2?"):
        assert classify_query(query) is QueryType.FACTUAL
    assert classify_query("reading a user by number") is not QueryType.FACTUAL


def test_classify_navigational_query():
    for query in ("in the auth section", "config guide", "[[Configuration]]"):
        assert classify_query(query) is QueryType.NAVIGATIONAL
    assert classify_query("auth config") is not QueryType.NAVIGATIONAL


def test_classify_exploratory_query():
    for query in ("how does fusion work", "what is recency", "why two indices?", "caching"):
        assert classify_query(query) is QueryType.EXPLORATORY
    assert classify_query("how does `fuse` work") is not QueryType.EXPLORATORY


def test_the_first_kind_that_fits_wins():
    assert classify_query("how does getUserById appear in the guide?") is QueryType.FACTUAL
    assert classify_query("how is the guide organised?") is QueryType.NAVIGATIONAL


def test_adaptive_weights_factual():
    assert adaptive_weights(BASE, QueryType.FACTUAL) == pytest.approx(
        {**BASE, Strategy.KEYWORD: 3.0}
    )


def test_adaptive_weights_navigational():
    assert adaptive_weights(BASE, QueryType.NAVIGATIONAL) == pytest.approx(
        {**BASE, Strategy.GRAPH: 0.75}
    )


def test_adaptive_weights_exploratory():
    assert adaptive_weights(BASE, QueryType.EXPLORATORY) == pytest.approx(
        {**BASE, Strategy.SEMANTIC: 1.3}
    )


def test_an_index_that_is_off_is_not_added():
    assert adaptive_weights({Strategy.KEYWORD: 1.0}, QueryType.NAVIGATIONAL) == pytest.approx(
        {Strategy.KEYWORD: 1.0}
    )


@pytest.mark.parametrize(
    "query",
    [
        'how do I rename a "daily note" in the sidebar?',
        'what does "vault" mean',
        'find all "*.txt" files, whatever their case',
        "show me everything on “merge conflicts” and how to solve them",
    ],
)
def test_a_question_that_quotes_a_few_words_is_still_a_question(query):
    """It was taken for a search for an exact phrase, and its words counted half as much again."""
    assert classify_query(query) is QueryType.EXPLORATORY


@pytest.mark.parametrize("query", ['"merge conflict"', 'error "disk is full" again', '"a b" "c d"'])
def test_a_query_that_is_mostly_quotation_is_factual(query):
    assert classify_query(query) is QueryType.FACTUAL


def test_a_name_inside_quotes_is_a_name():
    assert classify_query('what does "getUserById" do?') is QueryType.FACTUAL


def test_exact_tokens_are_what_nobody_types_by_chance():
    query = "why does `getUserById` in foo_bar.py fail with TKT-90930, ENOENT (v1.7.2) at 4030?"
    found = ["getUserById", "foo_bar.py", "TKT-90930", "ENOENT", "v1.7.2", "4030"]
    assert exact_tokens(query) == found
    assert exact_tokens("How do I set up a well-known e-mail account, i.e. one of 12?") == []
    assert exact_tokens("plain words and/or others") == []


def test_a_question_in_capitals_has_no_names_but_a_single_word_may_be_one():
    assert exact_tokens("WHERE IS THE PASSWORD MANAGER") == []
    assert exact_tokens("ENOENT") == ["ENOENT"]
    assert exact_tokens("TKT-90930 IS LATE") == ["TKT-90930"]


@pytest.mark.parametrize(
    ("token", "kind"),
    [
        ("TKT-90930", TokenKind.CODE),
        ("v1.7.2", TokenKind.CODE),
        ("foo_bar.py", TokenKind.NAME),
        ("ENOENT", TokenKind.NAME),
        ("90930", TokenKind.NAME),
        ("2031", TokenKind.NUMBER),
        ("1,500", TokenKind.NUMBER),
    ],
)
def test_a_number_is_no_code(token, kind):
    assert token_kind(token) is kind
