"""Re-ranking on a small labelled corpus: two runs of the same search, one with the model.

Every query's words stand in documents that are about something else, and its answer uses other
words for the same thing. The first ranking, which counts words, is wrong there; the model knows the
synonyms and is right.
"""

import math
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest

from ragdocs.config.settings import SearchConfig
from ragdocs.embedding.cross_encoder import OnnxCrossEncoder, open_cross_encoder
from ragdocs.indices.vector import VectorIndex
from ragdocs.search.orchestrator import QueryOrchestrator, Surroundings
from ragdocs.search.requests import QueryRequest
from ragdocs.search.retrieval import QueryTools
from ragdocs.search.stages import Reranker, StageTools, build_stages, run_stages
from tests.support.engine import NOW, Engine, ParsedCorpus
from tests.support.model_files import TinyCrossEncoder
from tests.support.stores import ANALYZER, index_over

MODEL = TinyCrossEncoder(
    meanings=[
        "reset recover restore", "password passphrase secret", "printer", "rotate renew",
        "certificate credential", "backup copy archive", "schedule plan timetable",
        "delete erase remove", "account profile", "export download",
    ]
)  # fmt: skip
NOTES = {
    "recovery.md": "# Access\n\nRecover a lost passphrase with the code from your phone.\n",
    "password-rules.md": "# Password\n\nA password has twelve letters. One password each.\n",
    "reset-button.md": "# Reset\n\nThe reset button of the router. Reset it by a needle.\n",
    "renewal.md": "# Servers\n\nRenew each credential before it lapses in the spring.\n",
    "certificate.md": "# Certificate\n\nThe certificate on the wall is a certificate of merit.\n",
    "tyres.md": "# Rotate\n\nRotate the wheels of the van; rotate them twice a year.\n",
    "nightly.md": "# Operations\n\nThe timetable of the nightly archive is kept by the porter.\n",
    "backup-singer.md": "# Backup\n\nThe backup singer sings backup on the record.\n",
    "schedule.md": "# Schedule\n\nThe schedule of the ferry; the schedule of the bus.\n",
    "leaving.md": "# Leaving\n\nErase your profile for good from the last page of the form.\n",
    "account.md": "# Account\n\nAn account of the voyage, and an account of the war.\n",
    "delete-key.md": "# Delete\n\nThe delete key is broken; delete is beside home.\n",
}
QUERIES = {
    "reset password": "recovery.md",
    "rotate certificate": "renewal.md",
    "backup schedule": "nightly.md",
    "delete account": "leaving.md",
}
OFF = SearchConfig(min_confidence=0, merge_threshold=0, cutoff_ratio=0, rerank_top_n=20)
MIXED = OFF.model_copy(update={"rerank_enabled": True})
ON = MIXED.model_copy(update={"rerank_weight": 1.0})
"""The model's opinion alone: this one is right."""


@dataclass
class Counting:
    """A cross-encoder that also counts what it was asked; the scores are the model's."""

    encoder: OnnxCrossEncoder
    calls: list[int] = field(default_factory=list)

    @property
    def name(self):
        return self.encoder.name

    def load(self):
        self.encoder.load()

    def score(self, query, passages):
        self.calls.append(len(passages))
        return self.encoder.score(query, passages)


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    return OnnxCrossEncoder(MODEL.write(tmp_path_factory.mktemp("model")))


@pytest.fixture(scope="module")
def corpus():
    corpus = ParsedCorpus()
    for path, text in NOTES.items():
        corpus.add(path, text)
    return corpus


def first_ranking(corpus, query):
    """Every leaf, by how often it has the query's words."""
    leaves = {leaf.chunk.id: leaf for path in NOTES for leaf in corpus.leaves(path)}
    counts = {key: Counter(leaf.chunk.text.lower().split()) for key, leaf in leaves.items()}
    found = {key: sum(counts[key][word] for word in query.split()) for key in leaves}
    places = [key.removeprefix("docs:") for key in sorted(found, key=lambda key: -found[key])]
    return [
        corpus.candidate(place, 0.04 / (1 + number), relevance=0.04)
        for number, place in enumerate(places)
    ]


def paths(corpus, query, settings, judge):
    tools = StageTools(nodes_of=corpus.nodes_of, judge=judge)
    stages = build_stages(settings, QueryRequest(queries=(query,), top_n=5), tools)
    found, _ = run_stages(stages, first_ranking(corpus, query))
    return [item.document.path for item in found]


def ndcg(found, relevant, at=5):
    """One relevant document: 1 in the first place, less with every place further down."""
    places = [place for place, path in enumerate(found[:at]) if path == relevant]
    return sum(1 / math.log2(place + 2) for place in places)


def mean(values):
    values = list(values)
    return sum(values) / len(values)


def test_rerank_improves_precision(corpus, encoder):
    def precision(settings):
        return mean(
            paths(corpus, query, settings, Reranker(encoder, [query]))[0] == relevant
            for query, relevant in QUERIES.items()
        )

    assert precision(OFF) == 0
    assert precision(ON) == 1


def test_rerank_improves_ndcg(corpus, encoder):
    def quality(settings):
        return mean(
            ndcg(paths(corpus, query, settings, Reranker(encoder, [query])), relevant)
            for query, relevant in QUERIES.items()
        )

    assert quality(ON) == 1
    assert quality(ON) > quality(OFF)


def test_rerank_latency_under_100ms(corpus, encoder):
    """The seed's name. Times are not asserted: they are the machine's and the model's. What they
    depend on is: no more pairs than `rerank_top_n`, and all of them in one call."""
    for first in (1, 5, 10):
        counting = Counting(encoder)
        settings = ON.model_copy(update={"rerank_top_n": first})
        paths(corpus, "reset password", settings, Reranker(counting, ["reset password"]))
        assert counting.calls == [first]


@pytest.fixture(scope="module")
def engine(tmp_path_factory):
    with Engine(tmp_path_factory.mktemp("index"), NOTES) as engine:
        yield engine


@contextmanager
def searching(engine, settings, encoder):
    """The whole search over the engine's index, with the cross-encoder given."""
    index = index_over(engine.reader, vector=VectorIndex(engine.embedder))
    tools = QueryTools(analyzer=ANALYZER, embedder=engine.embedder, cross_encoder=encoder)
    surroundings = Surroundings(clock=lambda: NOW)
    orchestrator = QueryOrchestrator(index, tools, settings, surroundings)
    yield lambda *queries, **given: orchestrator.search(QueryRequest(queries=queries, **given))
    orchestrator.close()


def ranked(response):
    return [(result.path, result.score) for result in response.results]


def test_the_switch_alone_improves_a_whole_search(engine, encoder):
    quality = {}
    for settings in (OFF, ON):
        with searching(engine, settings, encoder) as ask:
            quality[settings.rerank_enabled] = mean(
                ndcg([result.path for result in ask(query).results], relevant)
                for query, relevant in QUERIES.items()
            )
    assert quality[True] == 1
    assert quality[True] > quality[False]


def test_a_whole_search_asks_the_model_once_for_the_first_candidates(engine, encoder):
    counting = Counting(encoder)
    with searching(engine, ON.model_copy(update={"rerank_top_n": 4}), counting) as ask:
        response = ask("reset password", top_n=10)
    assert counting.calls == [4]
    scores = [result.score for result in response.results]
    assert len(scores) > 4
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 for score in scores)
    assert response.notes == ()


def test_a_search_with_the_switch_off_never_asks_the_model(engine, encoder):
    counting = Counting(encoder)
    with searching(engine, OFF, counting) as ask:
        ask("reset password")
    assert counting.calls == []


def test_the_number_is_changed_by_the_opinion_on_this_passage_alone(engine, encoder):
    told = {}
    for settings in (OFF, MIXED, ON):
        with searching(engine, settings, encoder) as ask:
            found = ask("reset password", top_n=50).results
        told[settings.rerank_weight if settings.rerank_enabled else 0.0] = {
            result.id: result.confidence for result in found
        }
    own, opinion = told[0.0], told[1.0]
    weight = MIXED.rerank_weight
    assert 0 < weight < 1
    mixed = {key: (1 - weight) * own[key] + weight * opinion[key] for key in own}
    assert told[weight] == pytest.approx(mixed)
    assert opinion["docs:recovery.md#access"] > 0.5 > own["docs:recovery.md#access"]


def test_without_a_usable_model_a_whole_search_answers_as_before_and_says_so(engine):
    by_name = open_cross_encoder(ON.rerank_model)
    with searching(engine, OFF, by_name) as ask:
        plain = ask("reset password")
    with searching(engine, ON, by_name) as ask:
        response = ask("reset password")
    assert ranked(response) == ranked(plain)
    (note,) = response.notes
    assert note.startswith("not re-ranked: the cross-encoder cross-encoder/ms-marco-MiniLM-L-6-v2")


def test_a_hypothesis_without_a_question_is_what_the_model_judges_by(engine, encoder):
    with searching(engine, ON, encoder) as ask:
        response = ask(hypothesis="To reset the password, ask for a code.")
    assert response.results[0].path == "recovery.md"
