"""The whole way from a request to a response, with every index real."""

from datetime import UTC, datetime

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ragdocs.errors import ModelMissing
from ragdocs.search.candidates import ALIKE, Strategy
from ragdocs.search.requests import Filters, QueryType
from tests.support.engine import Engine
from tests.support.models import WordEmbedder

LONG = "Tokens expire after an hour and must be refreshed with care. " * 25
NOTES = {
    "guide/auth.md": f"---\ntags: [security/tokens]\nauthor: Ada\n---\n# Authentication\n\n"
    f"How to sign in.\n\n## Token refresh\n\n{LONG}\n\n## Logout\n\nEnd the session. {LONG}\n",
    "guide/cache.md": "---\ncategory: guide\n---\n# Caching\n\nKeep answers. See [[auth]].\n",
    "api/http.md": "---\ndate: 2020-01-01\n---\n# HTTP\n\n```py\ndef getAuthToken(): ...\n```\n",
    "api/errors.md": "# Errors\n\nEvery error has a code and a message.\n",
    "notes/garden.md": "# Garden\n\nTomatoes need sun and water.\n",
}


@pytest.fixture(scope="module")
def engine(tmp_path_factory):
    with Engine(tmp_path_factory.mktemp("index"), NOTES) as engine:
        yield engine


def test_a_question_finds_its_document(engine):
    assert engine.paths("how do I refresh a token?")[0] == "guide/auth.md"
    assert engine.paths("tomatoes")[0] == "notes/garden.md"


def test_a_result_says_which_indices_found_it(engine):
    response = engine.ask("tomatoes need sun and water", explain=True)
    (first, *_) = response.explanation.results
    assert {Strategy.KEYWORD, Strategy.SEMANTIC} <= set(response.results[0].found_by)
    assert first.id == response.results[0].id
    assert first.evidence[Strategy.KEYWORD].rank == 1
    assert sum(first.contributions.values()) > 0


def test_text_is_the_files_text_at_the_span(engine):
    for result in engine.ask("token session error water", top_n=50).results:
        data = NOTES[result.path].encode()
        assert data[slice(*result.text_bytes)].decode() == result.text


QUERIES = st.sampled_from(
    [
        "token",
        "error code",
        "sun OR message",
        '"end the session"',
        "-token water",
        "?!",
        "getAuthToken",
        "guide on caching",
        "what is http?",
        "title:errors code",
        "((",
        "tokens expire tokens",
    ]
)


@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(st.lists(QUERIES, min_size=1, max_size=3), st.integers(1, 50))
def test_invariants_of_every_answer(engine, queries, top_n):
    response = engine.ask(*queries, top_n=top_n)
    scores = [result.score for result in response.results]
    assert len(scores) <= top_n
    assert all(0 <= score <= 1 for score in scores)
    sure = [result.confidence for result in response.results]
    assert all(now <= min(sure[:at]) + ALIKE + 1e-9 for at, now in enumerate(sure) if at)
    ids = [result.id for result in response.results]
    assert len(set(ids)) == len(ids)
    assert engine.ask(*queries, top_n=top_n) == response


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        (Filters(paths=("guide",)), {"guide/auth.md", "guide/cache.md"}),
        (Filters(tags=frozenset({"security"})), {"guide/auth.md"}),
        (Filters(author="ada"), {"guide/auth.md"}),
        (Filters(category="Guide"), {"guide/cache.md"}),
        (Filters(modified_after=datetime(2019, 1, 1, tzinfo=UTC)), {"api/http.md"}),
        (Filters(trees=frozenset({"other"})), set()),
        (Filters(excluded_files=("guide/auth.md",)), None),
    ],
)
def test_filters_restrict_every_index(engine, filters, expected):
    found = set(engine.paths("token error water answers http", top_n=50, filters=filters))
    if expected is None:
        assert "guide/auth.md" not in found
        assert found
    else:
        assert found == expected


def test_a_strict_query_binds_what_is_found_by_meaning_too(engine):
    assert set(engine.paths("tomatoes -water", top_n=50)) == set()
    assert set(engine.paths('"every error"', top_n=50)) == {"api/errors.md"}


def test_several_queries_are_one_answer(engine):
    found = engine.paths("tomatoes", "error code", top_n=50)
    assert {"notes/garden.md", "api/errors.md"} <= set(found[:3])


def test_the_kind_of_query_is_told_and_can_be_given(engine):
    assert engine.ask("what is `getAuthToken`").query_types == (QueryType.FACTUAL,)
    given_type = engine.ask("token", query_type=QueryType.NAVIGATIONAL)
    assert given_type.query_types == (QueryType.NAVIGATIONAL,)


def test_statistics_say_what_each_stage_left(engine):
    response = engine.ask("token", top_n=2)
    assert response.stats.original_count >= response.stats.after_doc_limit >= 2
    assert response.stages[-1].after == len(response.results) == 2


def test_a_linked_document_comes_along(tmp_path):
    texts = {"a.md": "# Zebra\n\nStripes. See [[b]].\n", "b.md": "# Other\n\nNothing in common.\n"}
    filler = {f"f{n}.md": f"# Filler {n}\n\nWords {n} of no use.\n" for n in range(150)}
    with Engine(tmp_path, texts | filler) as engine:
        graph = engine.ask("zebra", top_n=50).results
        linked = [result for result in graph if Strategy.GRAPH in result.found_by]
    assert "b.md" in {result.path for result in linked}


def test_code_search_finds_the_block_when_it_is_on(tmp_path):
    with Engine(tmp_path, NOTES, code_search_enabled=True) as engine:
        (first, *_) = engine.ask("getAuthToken").results
    assert first.path == "api/http.md"
    assert Strategy.CODE in first.found_by


def test_an_edit_is_seen_by_the_next_query(tmp_path):
    with Engine(tmp_path, NOTES) as engine:
        engine.update({"notes/garden.md": "# Garden\n\nCucumbers now.\n"}, removed=("api/http.md",))
        assert engine.paths("cucumbers")[0] == "notes/garden.md"
        assert "api/http.md" not in engine.paths("getAuthToken", top_n=50)


class NoModel(WordEmbedder):
    def embed_query(self, text):
        raise ModelMissing("there is none")


def test_without_a_model_keyword_search_goes_on_and_says_so(tmp_path):
    with Engine(tmp_path, NOTES, NoModel()) as engine:
        response = engine.ask("tomatoes")
    assert response.results[0].path == "notes/garden.md"
    assert any("without vectors" in note for note in response.notes)


@pytest.mark.parametrize("fusion", ["rrf", "score"])
def test_both_kinds_of_fusion_answer(tmp_path, fusion):
    with Engine(tmp_path, NOTES, fusion=fusion) as engine:
        assert engine.paths("error code")[0] == "api/errors.md"
