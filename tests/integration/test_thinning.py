"""What is dropped on the way to an answer, in which order, and what the figures say of it.

Confidence (P10), copies by hash and wording (P12), likeness by vectors (P8, P11), places for each
document (P8).
"""

from itertools import pairwise

import numpy as np
import pytest

from ragdocs.search import dedup
from ragdocs.search.requests import Filters, QueryRequest
from ragdocs.search.stages import StageName
from tests.support.documents import copies, distractors, documentation
from tests.support.engine import Engine, mean_cosine
from tests.support.machine import record_calls
from tests.support.models import MeaningEmbedder

PLAIN = {"graph_weight": 0.0, "merge_threshold": 0, "cutoff_ratio": 0.0, "recency_bias": 0.0}
COPIES = Filters(paths=("copies",))


@pytest.fixture(scope="module")
def engine(tmp_path_factory):
    texts = documentation() | distractors() | copies()
    with Engine(tmp_path_factory.mktemp("index"), texts, **PLAIN) as engine:
        yield engine


def answer(engine, query, settings=None, **request):
    asked = QueryRequest(queries=(query,), **{"top_n": 50, **request})
    return engine.answer(asked, **PLAIN | (settings or {}))


def paths(response):
    return [result.path for result in response.results]


# P8: several documents, no repetition.


def test_results_from_multiple_documents(engine):
    """One document has the most to say, and may not say all."""
    crowding = {"semantic_weight": 0.0, "max_chunks_per_doc": 0}
    crowded = answer(engine, "retries of a failed job", crowding, top_n=3)
    limited = {"semantic_weight": 0.0, "max_chunks_per_doc": 1}
    spread = answer(engine, "retries of a failed job", limited, top_n=3)
    assert set(paths(crowded)) == {"retries.md"}
    assert len(set(paths(spread))) == 3


@pytest.mark.parametrize("query", ["webhooks receiver", "kubernetes pods", "token scopes"])
def test_diversity_multiple_docs(engine, query):
    settings = {"max_chunks_per_doc": 2, "dedup_enabled": True}
    assert len(set(paths(answer(engine, query, settings, top_n=5)))) >= 3


def test_redundant_content_deduplicated(engine):
    """Two versions of one page differ in a few words: the better match stays."""
    kept = answer(engine, "running in docker")
    raw = answer(engine, "running in docker", {"ngram_dedup_enabled": False})
    versions = {"deployment/docker.md", "deployment/docker-legacy.md"}
    assert versions <= set(paths(raw))
    assert len(versions & set(paths(kept))) == 1


SAME_MEANING = {
    "one.md": "# A\n\nThe kestrel hovers at dawn and a mouse hides.\n",
    "two.md": "# B\n\nAt sunrise some kestrel was in the air above the field.\n",
    "three.md": "# C\n\nIn a storm there is no kestrel to be seen anywhere.\n",
}


def test_semantic_dedup_removes_redundant(tmp_path):
    """Other words for the same: only vectors can tell."""
    with Engine(tmp_path, SAME_MEANING, MeaningEmbedder()) as small:
        by_wording = answer(small, "kestrel", {"ngram_dedup_enabled": True})
        by_meaning = answer(small, "kestrel", {"dedup_enabled": True})
    assert sorted(paths(by_wording)) == ["one.md", "three.md", "two.md"]
    assert len(by_meaning.results) == 2
    assert "three.md" in paths(by_meaning)
    assert by_meaning.stats.clusters_merged == 1


def test_compression_stats_populated(engine):
    settings = {
        "dedup_enabled": True,
        "dedup_similarity_threshold": 0.75,
        "max_chunks_per_doc": 1,
        "min_confidence": 0.01,
    }
    stats = answer(engine, "the kitchen rota of the server", settings).stats
    figures = [
        stats.original_count,
        stats.after_threshold,
        stats.after_content_dedup,
        stats.after_ngram_dedup,
        stats.after_dedup,
        stats.after_doc_limit,
    ]
    assert figures == sorted(figures, reverse=True)
    assert len(set(figures)) == len(figures)
    assert stats.clusters_merged == stats.after_ngram_dedup - stats.after_dedup


def test_compression_stats_accuracy(engine):
    """A note, ten copies of it and ten with a word changed: the figures can be counted."""
    response = answer(engine, "kitchen rota", {"max_chunks_per_doc": 1}, filters=COPIES)
    stats = response.stats
    assert (stats.original_count, stats.after_threshold) == (21, 21)
    assert stats.after_content_dedup == len(set(copies().values())) == 11
    assert stats.after_ngram_dedup == stats.after_dedup == stats.after_doc_limit == 1
    assert stats.clusters_merged == 0
    assert len(response.results) == 1


def test_three_stage_pipeline_order(engine):
    settings = {"dedup_enabled": True, "max_chunks_per_doc": 1, "min_confidence": 0.001}
    stages = answer(engine, "kitchen rota", settings).stages
    wanted = [
        StageName.CONFIDENCE,
        StageName.IDENTICAL,
        StageName.NGRAM,
        StageName.SEMANTIC,
        StageName.DOCUMENT_LIMIT,
    ]
    assert [stage.name for stage in stages if stage.name in wanted] == wanted
    assert all(one.after == other.before for one, other in pairwise(stages))


# P10: fewer results rather than noise.


def test_low_confidence_query_returns_fewer_results(tmp_path):
    texts = {f"{n}.md": f"# Note {n}\n\nWords on subject{n} and a storm.\n" for n in range(9)}
    texts["dawn.md"] = "# Dawn\n\nThe dawn chorus of the birds at dawn.\n"
    with Engine(tmp_path, texts, MeaningEmbedder()) as small:
        counts = {}
        for query in ("dawn chorus of the birds", "trombone lessons"):
            for threshold in (0.0, 0.3):
                settings = {"min_confidence": threshold, "ngram_dedup_enabled": False}
                response = answer(small, query, settings)
                counts[query, threshold] = len(response.results)
    assert counts["dawn chorus of the birds", 0.0] == counts["trombone lessons", 0.0] == 10
    assert counts["dawn chorus of the birds", 0.3] >= 1
    assert counts["trombone lessons", 0.3] == 0


def test_threshold_before_dedup_pipeline(engine):
    """What is too doubtful is gone before anything is compared."""
    strict = answer(engine, "kitchen rota", {"min_confidence": 0.5, "dedup_enabled": True})
    counts = {stage.name: stage for stage in strict.stages}
    assert counts[StageName.CONFIDENCE].before == strict.stats.original_count
    assert counts[StageName.CONFIDENCE].after < counts[StageName.CONFIDENCE].before
    assert counts[StageName.IDENTICAL].before == counts[StageName.CONFIDENCE].after
    names = [stage.name for stage in strict.stages]
    assert names.index(StageName.CONFIDENCE) < names.index(StageName.IDENTICAL)


# P11: the most relevant that are not alike.

DEDUP = {"dedup_enabled": True}
MMR = {"mmr_enabled": True, "mmr_lambda": 0.5}
QUERIES = ("webhooks receiver", "kubernetes pods", "token scopes", "retries of jobs", "schedules")


def test_mmr_improves_diversity_over_dedup(engine):
    by_threshold = answer(engine, "kubernetes pods", DEDUP, top_n=5).results
    by_mmr = answer(engine, "kubernetes pods", MMR, top_n=5).results
    assert len(by_threshold) == len(by_mmr) == 5
    assert by_mmr[0] == by_threshold[0]
    assert mean_cosine(engine, by_mmr) < mean_cosine(engine, by_threshold)


def test_mmr_vs_threshold_diversity(engine):
    cosines = [
        [mean_cosine(engine, answer(engine, query, each, top_n=5).results) for query in QUERIES]
        for each in (DEDUP, MMR)
    ]
    assert np.mean(cosines[1]) < np.mean(cosines[0]) - 0.05


# P12: wording before meaning, because it is cheaper.


def test_ngram_before_semantic(tmp_path):
    """Copies fall by their wording, and only paraphrases are left for the vectors."""
    texts = {**SAME_MEANING, "copy.md": SAME_MEANING["one.md"].replace("mouse", "vole")}
    with Engine(tmp_path, texts, MeaningEmbedder()) as small:
        settings = {**DEDUP, "ngram_dedup_threshold": 0.7}
        response = answer(small, "kestrel", settings, explain=True)
    fallen = {stage.name: {each.id for each in stage.fallen} for stage in response.stages}
    by_wording, by_meaning = fallen[StageName.NGRAM], fallen[StageName.SEMANTIC]
    assert len(by_wording) == len(by_meaning) == 1
    assert by_wording < {"docs:one.md#a", "docs:copy.md#a"}
    assert not by_meaning & {"docs:three.md#c"}


def test_ngram_dedup_before_semantic(engine):
    counts = {
        stage.name: stage for stage in answer(engine, "kitchen rota", DEDUP, filters=COPIES).stages
    }
    assert counts[StageName.NGRAM].after == counts[StageName.SEMANTIC].before == 1
    off = {"ngram_dedup_enabled": False, **DEDUP}
    alone = {
        stage.name: stage for stage in answer(engine, "kitchen rota", off, filters=COPIES).stages
    }
    assert alone[StageName.SEMANTIC].before == 11


def test_ngram_dedup_performance(engine, monkeypatch):
    """The seed's name. Times are not asserted: they are the machine's. What they depend on is: the
    signatures were stored with the index, so that a query makes none; and trigrams are compared as
    sets only for the few pairs whose signatures leave a doubt.
    """
    made = record_calls(monkeypatch, dedup, "ngram_signature")
    compared = record_calls(monkeypatch, dedup, "ngrams")
    response = answer(engine, "kitchen rota of the server")
    [count] = [stage for stage in response.stages if stage.name == StageName.NGRAM]
    assert count.before >= 60
    assert made == []
    assert len(compared) < count.before / 2
