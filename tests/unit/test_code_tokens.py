"""Code is read by its names: each as it is written, and by its parts."""

import pytest

from ragdocs.config.choices import Stemmer
from ragdocs.indices.analysis import code_analyzer, identifier_parts, text_analyzer

CODE = code_analyzer()

# The tables of seeds 000 to 002, compared without case as every term is. For `std::vector` they
# list `::` as a token; we keep the whole name in its place, which finds exactly that and no other.
SEEDS = {
    "getUserById": ["getuserbyid", "get", "user", "by", "id"],
    "parse_json_data": ["parse_json_data", "parse", "json", "data"],
    "parse_json": ["parse_json", "parse", "json"],
    "HTTPResponse": ["httpresponse", "http", "response"],
    "HTTPResponseError": ["httpresponseerror", "http", "response", "error"],
    "std::vector": ["std::vector", "std", "vector"],
    "C++": ["c++"],
    "myVar123": ["myvar123", "my", "var", "123"],
}


@pytest.mark.parametrize("written", SEEDS)
def test_the_tables_of_the_seeds(written):
    assert CODE.terms(written) == SEEDS[written]


def test_code_tokenization_camelcase():
    assert CODE.terms("getUserById(userId)")[-3:] == ["userid", "user", "id"]


def test_code_splits_snake_case():
    assert CODE.terms("MAX_RETRY_COUNT") == ["max_retry_count", "max", "retry", "count"]


def test_code_preserves_punctuation():
    assert CODE.terms("C# .NET Node.js g++") == [
        "c#",
        ".net",
        "net",
        "node.js",
        "node",
        "js",
        "g++",
    ]


def test_camel_case_finds_snake_case():
    camel, snake = CODE.streams("getUserById"), CODE.streams("get_user_by_id")
    assert camel.plain == snake.plain == ["get", "user", "by", "id"]
    assert camel.wholes != snake.wholes


def test_code_has_no_stems_and_no_stop_words():
    assert CODE.terms("for the handlers") == ["for", "the", "handlers"]
    assert [t.term for t in CODE.query("for the")] == ["for", "the"]


def test_underscores_around_a_name_belong_to_it_in_code():
    assert CODE.terms("__init__ _private") == ["__init__", "init", "_private", "private"]


def test_a_chain_of_names_gives_every_level():
    assert CODE.terms("self.getUser") == ["self.getuser", "self", "getuser", "get", "user"]
    assert [t.position for t in CODE.tokens("self.getUser")] == [0, 0, 1, 1, 2]


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("getUserById", ["get", "User", "By", "Id"]),
        ("HTTPServer2", ["HTTP", "Server", "2"]),
        ("getAPIs", ["get", "APIs"]),
        ("toJSON", ["to", "JSON"]),
        ("OAuth2Token", ["O", "Auth", "2", "Token"]),
        ("x86_64", ["x86", "64"]),
        ("größeÄndern", ["größe", "Ändern"]),
        ("e\u0301coleE\u0301te\u0301", ["e\u0301cole", "E\u0301te\u0301"]),
        ("__a__", ["a"]),
        ("word", ["word"]),
        ("TypeScript", ["TypeScript"]),
        ("deadbeef01", ["deadbeef", "01"]),
        ("a1b2c3", ["a1b2c3"]),
    ],
)
def test_identifier_parts(name, parts):
    assert [name[start:end] for start, end in identifier_parts(name)] == parts


def test_prose_finds_what_code_says():
    prose = text_analyzer(Stemmer.ENGLISH)
    assert set(prose.terms("user")) <= set(prose.terms("see `getUserById` there"))
