"""Names in code, and queries that look like names (P3, P7)."""

import pytest

from ragdocs.config.choices import Fusion
from ragdocs.search.candidates import Strategy
from ragdocs.search.classifier import classify_query
from ragdocs.search.requests import Filters, QueryRequest, QueryType
from tests.support.documents import distractors, documentation, expected, rank_of
from tests.support.engine import Engine

PLAIN = {
    "graph_weight": 0.0,
    "merge_threshold": 0,
    "cutoff_ratio": 0.0,
    "balance_enabled": False,
}
FACTUAL = QueryType.FACTUAL


@pytest.fixture(scope="module")
def engine(tmp_path_factory):
    texts = documentation() | distractors()
    with Engine(tmp_path_factory.mktemp("index"), texts, **PLAIN) as engine:
        yield engine


def answer(engine, query, filters=None, **settings):
    request = QueryRequest(queries=(query,), top_n=50, filters=filters or Filters(), explain=True)
    return engine.answer(request, **PLAIN | settings)


CODE = {"code_search_enabled": True, "semantic_weight": 0.0}


def test_code_search_exact_match(engine):
    first = answer(engine, "getAuthToken", **CODE).results[0]
    assert first.id == "docs:typescript-client.md#short-credentials-for-a-page"
    assert "function getAuthToken(" in first.text


def test_code_search_finds_function(engine):
    """By the code index itself: it puts the block's own chunk first."""
    response = answer(engine, "getAuthToken", **CODE)
    [best] = [
        result
        for result in response.explanation.results
        if Strategy.CODE in result.evidence and result.evidence[Strategy.CODE].rank == 1
    ]
    assert best.id == "docs:typescript-client.md#short-credentials-for-a-page"


@pytest.mark.parametrize("label", expected("code"), ids=lambda label: label.query)
def test_code_search_finds_function_names(engine, label):
    results = answer(engine, label.query, **CODE).results
    assert rank_of(label.place, results) == 1
    assert Strategy.CODE in results[0].found_by


def by_code(results):
    return {result.path for result in results if Strategy.CODE in result.found_by}


def test_code_search_language_filtering(engine):
    everywhere = by_code(answer(engine, "client payload result", **CODE).results)
    assert {"python-client.md", "cpp-worker.md"} <= everywhere
    for language, path in (("python", "python-client.md"), ("Cpp", "cpp-worker.md")):
        wanted = Filters(language=language)
        filtered = answer(engine, "client payload result", wanted, **CODE).results
        assert by_code(filtered) == {path}


def reciprocal_ranks(engine, **settings):
    """1 for the first place, less for every place further down. By rank fusion: in score fusion a
    name that one document alone has is first with any weights.
    """
    names = [label for label in expected("code") if classify_query(label.query) is FACTUAL]
    assert len(names) >= 4
    found = [
        rank_of(
            label.place,
            answer(engine, label.query, semantic_weight=3.0, fusion=Fusion.RRF, **settings).results,
        )
        for label in names
    ]
    return [1 / rank if rank else 0.0 for rank in found]


def test_adaptive_weights_improve_factual(engine):
    """A name is looked for by its letters: what only means something like it falls behind."""

    def lead(is_on):
        settings = {"semantic_weight": 3.0, "adaptive_weights_enabled": is_on}
        results = answer(engine, "getAuthToken", **settings).results
        place = "docs:typescript-client.md#short-credentials-for-a-page"
        scores = {result.id: result.score for result in results}
        return scores.pop(place) - max(scores.values())

    assert lead(True) > lead(False)


def test_adaptive_weights_improve_factual_queries(engine):
    off = reciprocal_ranks(engine, adaptive_weights_enabled=False)
    on = reciprocal_ranks(engine, adaptive_weights_enabled=True)
    assert all(one >= other for one, other in zip(on, off, strict=True))
    assert sum(on) > sum(off)
