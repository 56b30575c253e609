"""Questions with quotation marks, brackets and colons, asked of the whole engine and its edges."""

import json
import re

import pytest
from click.testing import CliRunner

from ragdocs.api import open_index
from ragdocs.cli.main import main
from ragdocs.errors import QueryError
from ragdocs.search.requests import Filters, QueryRequest
from tests.support.engine import Engine
from tests.support.indexes import write_all
from tests.support.mcp_clients import in_memory, indexed_app

ENGINES = ("fts5", "whoosh", "tantivy")
CROWD = 130
"""More than the hits that an index gives."""


def crowd():
    """Pages that have the question's words often, and never the phrase; one page has it, once."""
    texts = {
        f"p{number:03}.md": f"# Rotate {number}\n\nRotate window keys. Keys rotate, blue; "
        f"rotate green; keys, window {number}: rotate keys.\n"
        for number in range(CROWD)
    }
    filler = "Gardens need water, and beds need soil before summer comes. " * 12
    texts["z.md"] = f"# Notes\n\n{filler} The blue green window opens late. {filler}\n"
    return texts


@pytest.fixture(scope="module", params=ENGINES)
def engine(request, tmp_path_factory):
    settings = {"keyword_engine": request.param}
    with Engine(tmp_path_factory.mktemp("index"), crowd(), **settings) as engine:
        yield engine


def paths(response):
    return [result.path for result in response.results]


def ask(engine, query, **request):
    return engine.orchestrator.search(QueryRequest(queries=(query,), top_n=10, **request))


def test_a_phrase_that_one_passage_has_comes_first_and_the_others_follow(engine):
    question = "how do I rotate keys in the {} of {}?"
    plain = ask(engine, question.format("blue green window", "keys"))
    assert "z.md" not in paths(plain)
    wished = ask(engine, question.format('"blue green window"', "keys"))
    assert paths(wished)[0] == "z.md"
    assert len(wished.results) == 10
    assert set(paths(wished)[1:]) <= set(crowd())
    scores = [result.score for result in wished.results]
    assert scores == sorted(scores, reverse=True)


def test_the_answer_explains_how_the_question_was_read(engine):
    response = ask(
        engine, 'how do I "rotate keys" in the (late) "blue green window"?', explain=True
    )
    (query,) = response.explanation.queries
    assert not query.is_strict
    assert query.why == "it has a question word or punctuation"
    assert [(one.passages, one.strength > 0) for one in query.wishes] == [(CROWD, False), (1, True)]
    assert query.as_text == ("( )",)
    first = response.explanation.results[0]
    assert first.boosts["phrase"] > 1
    (strict,) = ask(engine, "rotate OR keys", explain=True).explanation.queries
    assert strict.is_strict
    assert "operators" in strict.why


@pytest.mark.parametrize(
    "query",
    [
        'find all "*.nosuch" files of the window (case insensitive)',
        'why is the "nowhere to be found" window green?',
        "error: window -- green?",
        '"window nowhere" green rotate',
        '("window" keys) [rotate] {green}:',
    ],
)
def test_no_question_is_left_without_an_answer(engine, query):
    assert len(ask(engine, query).results) == 10


def test_phrases_and_a_few_words_bind_where_a_passage_has_them_all(engine):
    assert paths(ask(engine, '"green window opens" late')) == ["z.md"]
    assert paths(ask(engine, '"green window"')) == ["z.md"]
    # Two common words beside others are a wish, and so is what no passage has.
    assert len(ask(engine, '"green window" late').results) == 10
    assert len(ask(engine, '"green nowhere"').results) == 10
    assert paths(ask(engine, '"green nowhere"', strict=True)) == []


def test_a_strict_request_binds_every_word(engine):
    words = "gardens window late"
    assert len(ask(engine, words).results) == 10
    assert paths(ask(engine, words, strict=True)) == ["z.md"]
    assert paths(ask(engine, "(gardens window)", strict=True)) == ["z.md"]
    # Without a request the words beside an operator give way; with one they do not.
    relaxed = ask(engine, "nosuchword -gardens rotate")
    assert len(relaxed.results) == 10
    assert "z.md" not in paths(relaxed)
    assert not ask(engine, "nosuchword -gardens rotate", strict=True).results


def test_wishes_stay_within_what_may_be_found(engine):
    asked = 'which notes on keys have a "blue green window" in them?'
    response = ask(engine, asked)
    assert paths(response)[0] == "z.md"
    filters = Filters(excluded_files=("z.md",))
    assert "z.md" not in paths(ask(engine, asked, filters=filters))
    both = engine.orchestrator.search(QueryRequest(queries=(asked, "gardens"), top_n=10))
    assert "z.md" in paths(both)[:2]


def test_only_so_many_quotations_are_looked_up(engine):
    many = (
        " ".join(f'"blue {word}"' for word in ("green", *map(str, range(30)))) + " and more text?"
    )
    (query,) = ask(engine, many, explain=True).explanation.queries
    assert len(query.wishes) == 8


def test_quoted_stop_words_are_looked_for(tmp_path):
    texts = {"a.md": "# Play\n\nTo be or not to be, he said.\n", "b.md": "# Tool\n\nA hammer.\n"}
    with Engine(tmp_path, texts) as engine:
        assert paths(ask(engine, 'who has "to be or not to be"?'))[0] == "a.md"


def test_strict_must_be_true_or_false():
    with pytest.raises(QueryError, match="strict is 'yes': it must be true or false"):
        QueryRequest(queries=("x",), strict="yes")
    with pytest.raises(QueryError, match="strict has 2 values, but there are 1 queries"):
        QueryRequest(queries=("x",), strict=(True, False))


NOTES = {
    "a.md": "# Zebra\n\nThe zebra migration begins in spring.\n",
    "b.md": "# Lions\n\nA lion sees a zebra.\n",
}
QUESTION = 'when does the "zebra migration" (or lion) begin?'


def test_the_tool_explains_and_takes_strict(tmp_path):
    with in_memory(indexed_app(tmp_path, NOTES)) as server:
        asked = server.call("query_documents", query=QUESTION, explain=True)
        (query,) = asked.data["explanation"]["queries"]
        assert query["is_strict"] is False
        (wish,) = query["wishes"]
        assert wish == {"phrase": "zebra migrat", "passages": 1, "strength": pytest.approx(1)}
        assert query["as_text"] == ["( )"]
        assert "plain, because it has a question word or punctuation" in asked.text
        assert "preferred: 'zebra migrat', in 1 passages" in asked.text
        assert asked.paths[0] == "a.md"
        strict = server.call("query_documents", query="zebra lion", strict=True, explain=True)
        assert strict.paths == ["b.md"]
        assert "strict, because the request asks for it" in strict.text


@pytest.fixture
def run(tmp_path, one_model):
    docs = write_all(tmp_path / "docs", NOTES)
    runner = CliRunner(env={"HOME": str(tmp_path)})

    def invoke(*words):
        where = ["--docs", str(docs), "--index", str(tmp_path / "index")]
        return runner.invoke(main, [*words, *where], catch_exceptions=False)

    return invoke


def test_the_command_line_explains_and_takes_strict(run):
    explained = " ".join(run("query", QUESTION, "--explain").stdout.split())
    assert "plain words, because it has a question word or punctuation" in explained
    assert "preferred: zebra migrat (in 1 passage; raised by 1.00)" in explained
    assert "read as text: ( )" in explained
    found = json.loads(run("query", "zebra lion", "--strict", "--json").stdout)
    assert [each["path"] for each in found["results"]] == ["b.md"]


def test_inspecting_a_query_shows_the_same(run):
    lines = run("inspect", "query", QUESTION).stdout.splitlines()
    said = {re.split(r"\s{2,}", line)[0]: line[12:] for line in lines}
    assert said["because"] == "it has a question word or punctuation"
    assert said["preferred"] == "zebra migrat (in 1 passage; raised by 1.00)"
    assert said["as text"] == "( )"
    assert said["meaning"] == "when does the zebra migration or lion begin?"
    nowhere = json.loads(run("inspect", "query", '"lion migration" zebra', "--json").stdout)
    assert not nowhere["is_strict"]
    (wish,) = nowhere["wishes"]
    assert wish == {"phrase": "lion migrat", "passages": 0, "strength": pytest.approx(0)}
    assert json.loads(run("inspect", "query", '"zebra migration" spring', "--json").stdout)[
        "is_strict"
    ]
    data = json.loads(run("inspect", "query", "zebra lion", "--strict", "--json").stdout)
    assert (data["is_strict"], data["why"]) == (True, "the request asks for it")


def test_the_python_interface_takes_strict(tmp_path, one_model):
    write_all(tmp_path, NOTES)
    with open_index(
        tmp_path, settings={"indexing": {"index_path": str(tmp_path / ".ix")}}
    ) as index:
        assert paths(index.search("zebra lion", strict=True)) == ["b.md"]
        assert set(paths(index.search("zebra lion"))) == {"a.md", "b.md"}


@pytest.mark.parametrize("quotation", ["before the", "at the", "in the"])
def test_a_quotation_that_hardly_tells_anything_brings_little_forward(tmp_path, quotation):
    """Common words stand side by side in any text; whoever quotes them wants something else."""
    texts = {
        "caraway.md": "# Rye loaf\n\nTwo spoons of caraway go into a rye tin loaf, with malt.\n",
        "oven.md": f"# Oven\n\nHeat it an hour {quotation} bread, and keep the door shut.\n",
        "garden.md": "# Garden\n\nWater beds early, and cover them from frost each night.\n",
    }
    question = f"How much caraway goes {{}}{quotation}{{}} rye tin loaf?"
    with Engine(tmp_path, texts) as small:
        plain = ask(small, question.format("", ""))
        quoted = ask(small, question.format('"', '"'), explain=True)
    assert paths(plain)[0] == paths(quoted)[0] == "caraway.md"
    (wish,) = quoted.explanation.queries[0].wishes
    assert 0 < wish.strength < 0.25
