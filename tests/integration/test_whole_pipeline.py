"""Parents (P13), and everything on at once."""

import pytest

from ragdocs.chunking.chunker import ChunkSizes
from ragdocs.chunking.splitting import Limits
from ragdocs.config.settings import ChunkingConfig
from ragdocs.embedding.cross_encoder import OnnxCrossEncoder
from ragdocs.search.candidates import Strategy
from ragdocs.search.orchestrator import Surroundings
from ragdocs.search.requests import QueryRequest, QueryType
from ragdocs.search.stages import StageName
from tests.support.documents import copies, distractors, documentation
from tests.support.engine import NOW, Engine
from tests.support.model_files import TinyCrossEncoder
from tests.support.models import ConceptEmbedder

CHUNKING = ChunkingConfig(parent_retrieval_enabled=True)
PARENTS = Surroundings(
    clock=lambda: NOW,
    parent_size=Limits(CHUNKING.parent_chunk_min_chars, CHUNKING.parent_chunk_max_chars),
)
TEXTS = documentation() | distractors() | copies()


@pytest.fixture(scope="module")
def engine(tmp_path_factory):
    """Child sizes: what is found is small."""
    folder = tmp_path_factory.mktemp("index")
    sizes = ChunkSizes.from_settings(CHUNKING)
    with Engine(folder, TEXTS, ConceptEmbedder(), sizes=sizes) as engine:
        engine.embed_terms()
        yield engine


WORDS_ONLY = {
    "semantic_weight": 0.0,
    "graph_weight": 0.0,
    "merge_threshold": 0,
    "code_search_enabled": False,
}


def answer(engine, query, **settings):
    return engine.answer(QueryRequest(queries=(query,)), **WORDS_ONLY | settings).results


@pytest.mark.parametrize("query", ["dead letter queue", "health probes", "compact_at"])
def test_parent_retrieval_returns_larger_context(engine, query):
    child = answer(engine, query, first_result_tokens=0)[0]
    parent = answer(engine, query, surroundings=PARENTS)[0]
    assert parent.path == child.path
    assert len(child.text) <= CHUNKING.child_chunk_max_chars
    assert len(child.text) < len(parent.text) <= CHUNKING.parent_chunk_max_chars


@pytest.mark.parametrize("query", ["dead letter queue", "health probes", "compact_at"])
def test_parent_returns_context(engine, query):
    """What is returned holds the chunk that was found, and says where in it that stands."""
    child = answer(engine, query, first_result_tokens=0)[0]
    parent = answer(engine, query, surroundings=PARENTS)[0]
    assert child.text in parent.text
    assert child.matched.id in [part.id for part in parent.parts]
    inside = range(*parent.text_bytes)
    assert all(part.byte_start in inside for part in parent.parts)


EVERYTHING = {
    "fusion": "score",
    "min_confidence": 0.001,
    "code_search_enabled": True,
    "graph_weight": 0.5,
    "graph_depth": 2,
    "recency_bias": 0.5,
    "cutoff_ratio": 0.01,
    "candidate_limit": 1000,
    "adaptive_weights_enabled": True,
    "query_expansion_enabled": True,
    "dedup_enabled": True,
    "ngram_dedup_enabled": True,
    "mmr_enabled": True,
    "max_chunks_per_doc": 2,
    "rerank_enabled": True,
    "merge_threshold": 2,
    "max_merge_depth": 1,
    "surroundings": PARENTS,
    "advanced": {
        "community_detection_enabled": True,
        "dynamic_weights_enabled": True,
        "hyde_enabled": True,
    },
}
MODEL = TinyCrossEncoder(meanings=["credentials secret token", "page browser", "short brief"])


def check(response, top_n):
    """What holds for every answer."""
    scores = [result.score for result in response.results]
    assert 0 < len(scores) <= top_n
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 for score in scores)
    spans = []
    for result in response.results:
        start, end = result.text_bytes
        assert TEXTS[result.path].encode()[start:end].decode() == result.text
        spans += [(result.path, start, end)]
    for path, start, end in spans:
        others = [each for each in spans if each[0] == path and each != (path, start, end)]
        assert all(end <= low or high <= start for _, low, high in others)


def test_full_pipeline_with_all_features(engine, tmp_path):
    encoder = OnnxCrossEncoder(MODEL.write(tmp_path))
    request = QueryRequest(queries=("getAuthToken short credentials",), top_n=5, explain=True)
    response = engine.answer(request, communities=True, cross_encoder=encoder, **EVERYTHING)
    check(response, 5)

    # Every stage but the one that MMR stands in for.
    names = [stage.name for stage in response.stages]
    absent = {StageName.SEMANTIC, StageName.FILTERS, StageName.ORDER}
    assert names == [name for name in StageName if name not in absent]
    assert response.stats.original_count > response.stats.after_doc_limit >= 5

    # The block is found, by the code index too, and returned with its surroundings.
    first = response.results[0]
    assert first.path == "typescript-client.md"
    assert "function getAuthToken(" in first.text
    assert first.parts
    assert len(first.text) > CHUNKING.child_chunk_max_chars
    assert {Strategy.KEYWORD, Strategy.SEMANTIC, Strategy.CODE} <= set(first.found_by)

    # All is explained.
    [asked] = response.explanation.queries
    assert asked.query_type is QueryType.FACTUAL
    assert set(asked.weights) == set(Strategy)
    assert asked.hits[Strategy.GRAPH] > 0
    assert response.notes == ()
    fallen = [each for stage in response.explanation.stages for each in stage.fallen]
    assert all(each.reason for each in fallen)

    # The same again is the same again.
    again = engine.answer(request, communities=True, cross_encoder=encoder, **EVERYTHING)
    assert again == response

    # And by a hypothetical answer.
    supposed = QueryRequest(
        queries=("getAuthToken short credentials",),
        hypothesis="The page asks for short credentials of the visitor.",
        top_n=5,
    )
    by_answer = engine.answer(supposed, communities=True, cross_encoder=encoder, **EVERYTHING)
    check(by_answer, 5)
    assert by_answer.results[0].path == "typescript-client.md"
