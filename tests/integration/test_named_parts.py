"""What the design names does what it is named for, asked as users ask: by the command line, from
Python, and of a server."""

import json
from dataclasses import fields

import pytest

from ragdocs import open_index
from ragdocs.errors import QueryError
from tests.support.indexes import write, write_all
from tests.support.machine import until
from tests.support.mcp_clients import ServerProcess
from tests.support.model_files import TinyCrossEncoder
from tests.support.processes import environment, read_json

GUIDE = """---
title: Signing in
description: How to sign in.
keywords: [login, password]
author: Ada
category: guides
aliases: [log in]
date: 2025-03-04
tags: [access]
---
# Signing in

Use the password that was sent to you. See [[tokens]] and [the tokens](tokens.md).

## Rhymes

For a rhyme see [[words]].

## Elsewhere

{filler}

See [[cash]].
"""
FILLER = "Nothing of any use stands here, and it goes on for a while. " * 20
COPY = "# Copy {0}\n\nThe heron stands in the water and waits for a frog all morning.\n"
TEXTS = {
    "sign-in.md": GUIDE.format(filler=FILLER),
    "tokens.md": "# Tokens\n\nA token is renewed every hour.\n",
    "cash.md": "# Cash\n\nThe prompt asks for the cash flow of the year.\n",
    "crash.md": "# Crash\n\nA prompt that crashes.\n",
    "words.md": "# Verse\n\nNow every few more most other need.\n",
}


@pytest.fixture(scope="module")
def docs(tmp_path_factory):
    return write_all(tmp_path_factory.mktemp("named") / "docs", TEXTS, 1_700_000_000)


def query(docs, *words, index=None, config=None):
    """What the command prints with `--json`, in a process of its own."""
    options = ["--docs", docs, "--index", index or docs.parent / "index"]
    if config:
        options += ["--config", write(docs.parent, "ragdocs.toml", config)]
    return read_json("query", *words, *options, env=environment(HOME=str(docs.parent)))


@pytest.fixture(scope="module")
def server(docs):
    index = docs.parent / "served"
    options = ("--docs", str(docs), "--index", str(index))
    with ServerProcess("-m", "ragdocs", "mcp", *options, HOME=str(docs.parent)) as process:
        process.initialize()
        until(lambda: call(process, "query_documents", query="token")["index"]["complete"], 120)
        yield process


def call(process, tool, **arguments):
    told = process.call(tool, tool, **arguments)["result"]
    assert not told.get("isError"), told
    return told["structuredContent"] | {"text": told["content"][0]["text"]}


# Metadata and statistics.

EXPECTED = {
    "description": "How to sign in.",
    "keywords": ["login", "password"],
    "tags": ["access"],
    "aliases": ["log in"],
    "author": "Ada",
    "category": "guides",
    "date": "2025-03-04T00:00:00+00:00",
    "links": ["docs:tokens.md", "docs:words.md"],
}
ASKED = "password that was sent to you"
STATS = {
    "original_count",
    "after_threshold",
    "after_content_dedup",
    "after_ngram_dedup",
    "after_dedup",
    "after_doc_limit",
    "clusters_merged",
}


def told_of(metadata):
    return {name: metadata[name] for name in EXPECTED}


def test_the_command_line_tells_metadata_when_it_is_asked_for(docs):
    answer = query(docs, ASKED, "--metadata")
    assert told_of(answer["results"][0]["metadata"]) == EXPECTED
    assert set(answer["stats"]) == STATS
    assert query(docs, ASKED)["results"][0]["metadata"] is None


def test_python_is_given_metadata_when_it_asks_for_it(docs):
    settings = {"indexing": {"index_path": str(docs.parent / "index")}}
    with open_index(docs, settings=settings) as index:
        found = index.search(ASKED, metadata=True).results[0].metadata
        assert found
        assert (found.author, found.tags) == ("Ada", ("access",))
        assert found.links == ("docs:tokens.md", "docs:words.md")
        assert index.search(ASKED).results[0].metadata is None


def test_links_are_those_of_the_cited_section(docs):
    [first, *_] = query(docs, "a rhyme", "--metadata")["results"]
    assert first["id"] == "docs:sign-in.md#rhymes"
    assert "[[tokens]]" in first["text"], "the passage has more than the section"
    assert first["metadata"]["links"] == ["docs:words.md"]


@pytest.mark.parametrize(
    ("tool", "asked"),
    [
        ("query_documents", {"query": ASKED}),
        ("search_with_hypothesis", {"hypothesis": "Sign in with the password that was sent."}),
    ],
)
def test_both_searches_of_a_server_tell_metadata_and_statistics(server, tool, asked):
    answer = call(server, tool, **asked, show_stats=True, show_metadata=True)
    assert answer["results"][0]["path"] == "sign-in.md"
    assert told_of(answer["results"][0]["metadata"]) == EXPECTED
    assert set(answer["stats"]) == STATS
    assert "author: Ada" in answer["text"]
    assert "Stages: original_count " in answer["text"]
    without = call(server, tool, **asked)
    assert "metadata" not in without["results"][0]
    assert "stats" not in without
    least = call(server, tool, **asked, show_metadata=True, max_tokens=300)
    assert least["results"]


# One set of names.


def unlike(told, value, at=""):
    """Where a tool tells something else than `--json`, or by another name."""
    if isinstance(told, dict):
        for name in told:
            yield from unlike(told[name], value.get(name), f"{at}.{name}")
    elif isinstance(told, list):
        for number, one in enumerate(told):
            yield from unlike(one, dict(enumerate(value)).get(number), f"{at}[{number}]")
    elif told != (pytest.approx(value, abs=0.006) if isinstance(value, float) else value):
        yield at, told, value


def test_a_server_the_command_line_and_python_give_the_same_fields(docs, server):
    asked = {"query": "password token prompt", "explain": True, "show_metadata": True}
    asked["min_score"] = 0  # whatever the confidence, with the text
    # Communities are a generation of their own: both are to have answered from it.
    until(lambda: "community" in call(server, "query_documents", **asked)["text"], 60)
    told = call(server, "query_documents", **asked, show_stats=True)["results"]
    given = query(docs, asked["query"], "--explain", "--metadata", index=docs.parent / "served")
    assert len(told) == len(given["results"]) >= 2
    assert list(unlike(told, given["results"])) == []
    assert {"id", "doc_id", "line_start", "found_by", "matches", "score"} <= told[0].keys()
    settings = {"indexing": {"index_path": str(docs.parent / "served")}}
    with open_index(docs, settings=settings) as index:
        response = index.search(asked["query"])
    assert {field.name for field in fields(response.results[0])} == given["results"][0].keys()


def test_a_server_names_all_of_an_answer_as_the_command_line_does(docs, server):
    told = call(server, "query_documents", query="tokn", explain=True, show_stats=True)
    given = query(docs, "tokn", "--explain", index=docs.parent / "served")
    own = {"text", "left_out_total"}  # the text form; of `left_out` the server names the first ones
    assert told.keys() - own <= given.keys()
    assert told["index"].keys() - {"summary", "activity"} <= given["index"].keys()
    for name in ("queries", "results", "stages"):
        one, other = told["explanation"][name][0], given["explanation"][name][0]
        assert one.keys() <= other.keys(), name


def test_what_few_clients_need_is_given_when_it_is_asked_for(server):
    [first, *_] = call(server, "query_documents", query=ASKED)["results"]
    place = {"id", "path", "tree", "file", "heading_path", "line_start", "line_end"}
    told = place | {"confidence", "text"}
    assert (
        told <= first.keys() <= {*told, "title", "text_lines", "answer_lines", "within", "extent"}
    )


# Statistics.


def test_after_content_dedup_counts_only_copies(tmp_path):
    docs = tmp_path / "docs"
    for number in range(3):
        write(docs, f"copy-{number}.md", COPY.format(number).replace(f"Copy {number}", "Copy"))
    write(docs, "best.md", "# Heron\n\nThe heron. A heron is a heron.\n")
    write(docs, "weak.md", "# Pond\n\n" + FILLER + "And once a heron.\n" + FILLER)
    config = "[search]\ncutoff_ratio = 0.9\nngram_dedup_enabled = false\nmerge_threshold = 0\n"
    answer = query(docs, "heron", index=tmp_path / "index", config=config)
    counts = {one["name"]: one for one in answer["stages"]}
    assert counts["cutoff"]["before"] > counts["cutoff"]["after"], "the test cuts nothing off"
    stats = answer["stats"]
    copies = counts["identical"]["before"] - counts["identical"]["after"]
    assert stats["after_threshold"] - stats["after_content_dedup"] == copies
    assert stats["after_content_dedup"] == counts["identical"]["after"]


# Stop words.

_LISTED = """
a all also an and are as at be been both but by can could did do does each every few for from
had has have he her here hers him his how i in is it its just may me might more most must my
need no not now of on only or other our same shall she should so some such than that the their
them then there these they this those to too us very was we were what when where which who why
will with would you your
"""
LISTED = _LISTED.split()


def test_the_listed_stop_words_are_not_looked_for(docs):
    question = " ".join(LISTED[:60]) + " token"
    for text in (question, " ".join(LISTED[60:]) + " token"):
        (explained,) = query(docs, text, "--explain")["explanation"]["queries"]
        assert explained["terms"] == ["token"]


def test_stop_words_alone_still_find_what_has_them(docs):
    answer = query(docs, "every few more")
    assert answer["results"][0]["path"] == "words.md"


# Spelling.


@pytest.mark.parametrize("text", ["prompt caching", "caching", "cached prompts"])
def test_a_form_of_an_english_word_is_no_typing_error(docs, text):
    """`prompt caching` was answered with: did you mean `prompt cash`?"""
    assert query(docs, text)["did_you_mean"] is None


def test_a_typing_error_still_is_one(docs):
    assert query(docs, "tokne")["did_you_mean"] == "token"


def test_a_proposal_has_only_words_that_the_documents_have(docs):
    assert query(docs, "tokne pasword")["did_you_mean"] == "token password"
    for unknown in ("gramophone", "qwrtplk"):
        assert query(docs, f"tokne {unknown}")["did_you_mean"] is None


# Strict queries.


def test_a_strict_query_without_operators_does_not_blame_operators(docs):
    [note] = query(docs, "token cash", "--strict")["notes"]
    assert note == "no passage has every word of this query, and strict requires all of them"
    [note] = query(docs, "title:token cash", "--strict")["notes"]
    assert note.endswith("because of its operators, all of it is required")


# Models and hypotheses: the settings act by every way in.

NIGHT = {
    "dusk.md": "# Dusk\n\nThe heron rests at dusk.\n",
    "owl.md": "# Owl\n\nAn owl wakes.\n",
}


@pytest.fixture
def night(tmp_path):
    return write_all(tmp_path / "docs", NIGHT, 1_700_000_000)


@pytest.fixture
def reader(tmp_path):
    """Settings that turn re-ranking on, with a real cross-encoder."""
    folder = TinyCrossEncoder(meanings=("heron", "dusk")).write(tmp_path / "reader")
    return {"rerank_enabled": True, "rerank_model": str(folder)}


def as_toml(section, settings):
    return "\n".join([f"[{section}]", *(f"{k} = {json.dumps(v)}" for k, v in settings.items())])


def ask_server(docs, config, tool, **arguments):
    """What a server with this configuration answers as a whole."""
    file = write(docs.parent, "server.toml", config)
    options = ("--docs", str(docs), "--index", str(docs.parent / "served"), "--config", str(file))
    with ServerProcess("-m", "ragdocs", "mcp", *options, HOME=str(docs.parent)) as process:
        process.initialize()
        until(lambda: call(process, "query_documents", query="owl")["index"]["complete"], 120)
        return process.call(tool, tool, **arguments)


def is_reranked(explanation):
    return any("rerank" in one["boosts"] for one in explanation["results"])


@pytest.mark.parametrize("is_on", [True, False])
def test_re_ranking_is_switched_by_every_way_in(night, reader, is_on):
    settings = reader | {"rerank_enabled": is_on}
    config = as_toml("search", settings)
    told = query(night, "heron", "--explain", config=config)
    assert is_reranked(told["explanation"]) is is_on
    with open_index(night, settings={"search": settings}) as opened:
        explanation = opened.search("heron", explain=True).explanation
    assert any("rerank" in one.boosts for one in explanation.results) is is_on
    answer = ask_server(night, config, "query_documents", query="heron", explain=True)
    assert is_reranked(answer["result"]["structuredContent"]["explanation"]) is is_on


@pytest.mark.parametrize("is_on", [True, False])
def test_hypotheses_are_switched_in_python_and_in_a_server(night, is_on):
    advanced = {"hyde_enabled": is_on}
    with open_index(night, settings={"search": {"advanced": advanced}}) as opened:
        if is_on:
            assert opened.search("", hypothesis="a bird rests in the evening").results
        else:
            with pytest.raises(QueryError, match="hyde_enabled"):
                opened.search("", hypothesis="a bird rests in the evening")
    config = as_toml("search.advanced", advanced)
    asked = {"hypothesis": "a bird rests in the evening"}
    answer = ask_server(night, config, "search_with_hypothesis", **asked)
    is_answered = "error" not in answer and not answer["result"].get("isError")
    assert is_answered is is_on
