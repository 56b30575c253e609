"""What a strict query or a language requires holds for every index, and is said when it cannot."""

import pytest

from ragdocs.errors import QueryError
from ragdocs.search.candidates import Strategy
from ragdocs.search.requests import Filters, QueryRequest
from ragdocs.search.responses import Readiness
from ragdocs.search.understanding import NOWHERE
from tests.support.engine import Engine

FILLER = "Other words stand here as well, so that it is not alone. " * 8
NOTES = {
    "a.md": "# Zebra migration\n\nThe zebra migration begins in spring. See [[b]].\n",
    "b.md": f"# Savannah\n\nThis is forbidden ground for lions. {FILLER}\n",
    "code.md": "# Script\n\n```python\ndef zebraMigration(report): ...\n```\n\n"
    "```ruby\ndef zebra_stripes; end\n```\n",
    "prose.md": f"---\nauthor: Will\n---\n# Report\n\nA zebra in prose. {FILLER}\n",
}
EVERY_LIST = {"cutoff_ratio": 0.0, "graph_weight": 1.0, "code_search_enabled": True}


@pytest.fixture(scope="module")
def engine(tmp_path_factory):
    with Engine(tmp_path_factory.mktemp("index"), NOTES) as engine:
        yield engine


def ask(engine, query, **request):
    return engine.answer(QueryRequest(queries=(query,), top_n=20, **request), **EVERY_LIST)


def paths(response):
    return {result.path for result in response.results}


@pytest.mark.parametrize("keyword_engine", ["fts5", "whoosh", "tantivy"])
@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("tree:nosuch zebraMigration", set()),
        ('"migration zebra report" OR author:nobody', set()),
        ("zebraMigration -report", {"a.md"}),
        ("zebra -forbidden", {"a.md", "code.md", "prose.md"}),
        ("zebra path:code", {"code.md"}),
        ("author:will zebra", {"prose.md"}),
    ],
)
def test_conditions_bind_words_meaning_code_and_links(
    tmp_path_factory, keyword_engine, query, expected
):
    folder = tmp_path_factory.mktemp("index")
    with Engine(folder, NOTES, keyword_engine=keyword_engine, **EVERY_LIST) as engine:
        request = QueryRequest(queries=(query,), top_n=20)
        assert paths(engine.orchestrator.search(request)) == expected


def test_links_bring_what_the_same_words_without_conditions_find(engine):
    """The test above would prove nothing if b.md never came along."""
    response = ask(engine, "zebra migration")
    linked = {r.path for r in response.results if Strategy.GRAPH in r.found_by}
    assert "b.md" in linked


def test_a_language_leaves_only_passages_with_such_code(engine):
    assert paths(ask(engine, "zebra", filters=Filters(language="python"))) == {"code.md"}
    assert paths(ask(engine, "zebra", filters=Filters(language=" PY "))) == {"code.md"}
    assert paths(ask(engine, "zebra", filters=Filters(language="rb"))) == {"code.md"}
    with pytest.raises(QueryError, match="no document has code in `cobol`"):
        ask(engine, "zebra", filters=Filters(language="cobol"))


def test_an_unfulfilled_query_says_so(engine):
    response = ask(engine, "tree:nosuch zebra")
    assert any("matches this query" in note for note in response.notes)
    (query,) = ask(engine, "tree:nosuch zebra", explain=True).explanation.queries
    assert any("matches this query" in note for note in query.notes)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("savannah sees zebra herds -lions", {"a.md", "code.md", "prose.md"}),
        ("okapi zebra author:nobody", set()),
    ],
)
def test_a_query_with_an_operator_need_not_have_all_its_words_in_one_passage(
    engine, query, expected
):
    response = ask(engine, query)
    assert paths(response) == expected
    assert any("only affected the ranking" in note for note in response.notes) == bool(expected)


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ('when does a "migration begins in spring" article end', "a.md"),
        ("which savannah sees zebra herds -lions", "b.md"),
        ('where is the "striped okapi" zebra', "a.md"),
    ],
)
def test_a_question_with_an_operator_is_plain_words(engine, query, first):
    response = ask(engine, query)
    assert response.results[0].path == first
    assert len(paths(response)) > 1
    assert not response.notes


@pytest.mark.parametrize("query", ['"striped okapi" zebra', '"migration zebra report"'])
def test_phrases_that_no_passage_has_are_preferences_and_noted(engine, query):
    response = ask(engine, query)
    assert response.results[0].path == "a.md"
    assert response.notes == (NOWHERE,)
    assert not paths(ask(engine, query, strict=True))


def test_plain_words_bind_where_a_passage_has_them_all(engine):
    response = ask(engine, 'spring "zebra migration"')
    assert paths(response) == {"a.md"}
    assert not response.notes


def test_a_query_that_only_filters_says_so(engine):
    assert any("only filters" in note for note in ask(engine, "path:code").notes)


def test_a_query_without_text_to_embed_is_no_degraded_index(engine):
    assert ask(engine, "-zebra").index.state is Readiness.READY


def test_a_blank_hypothesis_is_none(engine):
    response = engine.orchestrator.search(
        QueryRequest(queries=("zebra migration",), hypothesis="   ")
    )
    assert Strategy.SEMANTIC in response.results[0].found_by
    assert response.index.state is Readiness.READY
