"""What the seeds promise, with the built-in model and the product's own settings.

One index for all: an invented product's documentation among texts on other subjects. The labelled
queries are in `fixtures/expected_results`.
"""

import re

import numpy as np
import pytest

from ragdocs.chunking.splitting import Limits
from ragdocs.embedding.builtin import BuiltinEmbedder
from ragdocs.errors import ModelMissing
from ragdocs.search.candidates import Strategy
from ragdocs.search.orchestrator import Surroundings
from ragdocs.search.requests import Filters, QueryRequest
from ragdocs.search.stages import StageName
from tests.support.documents import copies, distractors, documentation, expected, rank_of
from tests.support.engine import NOW, DefaultEngine, mean_cosine
from tests.support.models import RememberingEmbedder, WordEmbedder

LOW = 0.3
"""The seeds' own `min_confidence`: what is below it is said to be a guess."""
MADE_UP = "vrondelklip"


@pytest.fixture(scope="module")
def engine(tmp_path_factory):
    texts, model = documentation() | distractors() | copies(), RememberingEmbedder("acceptance")
    with DefaultEngine(tmp_path_factory.mktemp("index"), texts, model) as engine:
        engine.embed_terms()
        engine.find_communities()
        yield engine


def labelled(kind):
    return pytest.mark.parametrize("label", expected(kind), ids=lambda label: label.query)


def assert_found(engine, label):
    results = engine.ask(label.query).results
    rank = rank_of(label.place, results)
    found = [(result.id, round(result.confidence, 2)) for result in results]
    assert rank is not None, found
    assert rank <= label.within, found
    return results[rank - 1]


def test_there_are_enough_texts_on_other_subjects():
    assert len(distractors()) >= 30
    assert len(documentation()) >= 12
    assert len(set(copies().values())) == 11


@labelled("title")
def test_a_title_match_comes_first(engine, label):
    assert_found(engine, label)


@labelled("header")
def test_a_heading_match_is_among_the_first_three(engine, label):
    assert_found(engine, label)


@labelled("keyword")
def test_front_matter_keywords_lead_into_the_first_five(engine, label):
    body = documentation()[label.place].partition("\n---\n")[2].lower()
    assert label.query not in body
    assert_found(engine, label)


@labelled("code")
def test_a_name_in_code_finds_the_chunk_that_holds_the_block(engine, label):
    result = assert_found(engine, label)
    blocks = "".join(re.findall(r"^```.*?^```", result.text, re.DOTALL | re.MULTILINE))
    assert label.query.lower().replace("_", "") in blocks.lower().replace("_", "")


@labelled("question")
def test_a_question_in_other_words_finds_its_answer(engine, label):
    assert_found(engine, label)


def test_auth_finds_a_document_that_only_says_authentication(engine):
    words = set(re.findall(r"[a-z]+", documentation()["signing-in.md"].lower()))
    assert "authentication" in words
    assert "auth" not in words
    assert "signing-in.md" in engine.paths("auth")


@labelled("broad")
def test_the_first_five_are_of_three_documents_when_there_are_so_many(engine, label):
    assert_found(engine, label)
    request = QueryRequest(queries=(label.query,), top_n=5)
    results = engine.answer(request, max_chunks_per_doc=2).results
    assert len({result.path for result in results}) >= 3


def test_what_both_indices_put_first_is_first(engine):
    """`Jobs stay in waiting`: no links to other pages, and the best by words and by meaning."""
    response = engine.ask("jobs waiting in a queue", explain=True, min_score=0, top_n=50)
    leaders = [
        result.id
        for result in response.explanation.results
        if {strategy for strategy, found in result.evidence.items() if found.rank == 1}
        >= {Strategy.KEYWORD, Strategy.SEMANTIC}
    ]
    assert leaders == ["docs:troubleshooting.md#jobs-stay-in-waiting"]
    assert response.results[0].id == leaders[0]


def test_ngram_dedup_removes_copies_before_the_semantic_stage(engine):
    request = QueryRequest(
        queries=("who is on duty in the kitchen?",),
        top_n=50,
        min_score=0,
        filters=Filters(paths=("copies",)),
    )
    response = engine.answer(request, dedup_enabled=True, cutoff_ratio=0)
    counts = {count.name: count for count in response.stages}
    everything = len(copies())
    assert counts[StageName.IDENTICAL].before == everything
    left = counts[StageName.NGRAM].after - 1
    assert 1 - left / (everything - 1) > 0.9
    assert counts[StageName.SEMANTIC].before == counts[StageName.NGRAM].after


def test_mmr_is_more_diverse_than_threshold_dedup(engine):
    plain = {"merge_threshold": 0, "cutoff_ratio": 0}
    cosines = {"threshold": [], "mmr": []}
    for label in expected("broad") + expected("keyword"):
        request = QueryRequest(queries=(label.query,), top_n=5, min_score=0)
        by_threshold = engine.answer(request, **plain, dedup_enabled=True).results
        by_mmr = engine.answer(request, **plain, mmr_enabled=True, mmr_lambda=0.5).results
        assert len(by_threshold) == len(by_mmr) == 5
        cosines["threshold"].append(mean_cosine(engine, by_threshold))
        cosines["mmr"].append(mean_cosine(engine, by_mmr))
    assert np.mean(cosines["mmr"]) < np.mean(cosines["threshold"]) - 0.05, cosines


def test_parents_contain_the_matched_chunk(engine):
    request = QueryRequest(queries=("exponential backoff",), top_n=3, min_score=0)
    small = engine.answer(request, first_result_tokens=0).results
    around = Surroundings(clock=lambda: NOW, parent_size=Limits(1500, 2000))
    large = engine.answer(request, surroundings=around).results
    first, parent = small[0], large[0]
    assert first.matched.id in [part.id for part in parent.parts]
    assert (parent.matched, parent.id) == (first.matched, first.id)
    assert parent.parent_chunk_id
    assert first.text in parent.text
    assert len(first.text) < len(parent.text) <= 2000
    texts = documentation() | distractors() | copies()
    for result in large:
        shown = slice(*result.text_bytes)
        assert texts[result.path].encode()[shown].decode() == result.text


def best_confidence(engine, query):
    return max((result.confidence for result in engine.ask(query).results), default=0.0)


def test_an_exact_identifier_that_only_keyword_search_knows_is_returned(engine):
    occurrences = [path for path, text in documentation().items() if MADE_UP in text.lower()]
    assert occurrences == ["troubleshooting.md"]
    first = engine.ask(MADE_UP).results[0]
    assert first.id == "docs:troubleshooting.md#fault-hl-7731"
    without_answer = max(best_confidence(engine, label.query) for label in expected("unanswerable"))
    assert first.confidence > without_answer + 0.4


def test_a_name_at_the_end_of_a_long_passage_comes_first(tmp_path):
    """What a model finds nearest to a name that it does not know may have nothing of it."""
    names = ("zz41c9e07b", "retry_budget_ms", "QX-20417", "getShardOwner", "flumbert")
    longest = sorted(distractors().items(), key=lambda item: len(item[1]))[-len(names) :]
    named = {
        path: f"{text.rstrip()} {name}\n" for (path, text), name in zip(longest, names, strict=True)
    }
    texts, model = documentation() | distractors() | named, RememberingEmbedder("acceptance")
    with DefaultEngine(tmp_path, texts, model) as engine:
        first = {name: engine.ask(name).results[0].path for name in names}
    assert first == dict(zip(names, named, strict=True))


class NoModel(WordEmbedder):
    """As on a machine where no model is to be had."""

    def embed_query(self, text):
        raise ModelMissing("there is none")


def test_without_a_model_the_identifier_is_returned_all_the_same(tmp_path):
    texts = documentation() | distractors()
    with DefaultEngine(tmp_path, texts, NoModel()) as engine:
        first = engine.ask(MADE_UP).results[0]
        nothing = engine.ask("zxqwv plorb").results
    assert first.id == "docs:troubleshooting.md#fault-hl-7731"
    assert first.confidence >= LOW
    assert nothing == ()


@labelled("unanswerable")
def test_a_query_that_nothing_answers_gives_nothing_or_only_guesses(engine, label):
    """Below 0.3 at the most, on this corpus; the later queries share words with it."""
    found = engine.ask(label.query).results
    assert [(item.id, item.confidence) for item in found if item.confidence >= LOW] == []


WORKSHOP = {
    "brakes.md": """# Brakes

The brakes of a bicycle wear out. New pads and a new cable for the brakes take half an hour; the
brakes must not rub on the wheel.
""",
    "chain.md": """# Chain

Oil the chain of the bicycle every month. A dry chain wears the sprockets of the wheel. Keep oil
away from the brakes.
""",
    "lights.md": """# Lights

A bicycle needs a white light in front and a red one behind. The cable runs along the frame, away
from the brakes.
""",
    "tyres.md": """# Tyres

Pump up the tyres of the bicycle before a long ride. To change one, open the brakes and lift the
wheel out.
""",
    "saddle.md": "# Saddle\n\nSet the saddle of the bicycle so that the leg is nearly straight.\n",
}


@pytest.fixture(scope="module")
def workshop(tmp_path_factory):
    with DefaultEngine(tmp_path_factory.mktemp("five"), WORKSHOP, BuiltinEmbedder()) as engine:
        engine.embed_terms()
        yield engine


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("brakes", "brakes.md"),  # in four of the five
        ("bicycle brakes", "brakes.md"),  # and one word in all
        ("bicycle chain", "chain.md"),
        ("cable of the lights", "lights.md"),
        ("wheel tyres", "tyres.md"),
        ("how high should the saddle of my bicycle be?", "saddle.md"),
    ],
)
def test_a_folder_of_five_files_ranks_sensibly(workshop, query, first):
    response = workshop.ask(query)
    assert response.results[0].path == first
    assert response.results[0].confidence >= LOW


HOUSE = {
    "plan.md": "# Plan\n\nAsk the landlord for the deposit before the lease ends.\n",
    "garden.md": "# Garden\n\nWater the tomatoes in the evening, and the beans in the morning.\n",
    "boat.md": "# Boat\n\nThe mast is stepped with two people and a rope.\n",
}


def test_a_query_of_typing_errors_alone_is_read_as_it_was_meant(tmp_path):
    """As typed it means nothing, and is near some note by chance."""
    with DefaultEngine(tmp_path, HOUSE, BuiltinEmbedder()) as engine:
        meant, typed = engine.ask("landlord deposit"), engine.ask("landlrod deposti")
    assert typed.did_you_mean == "landlord deposit"
    assert [result.path for result in typed.results] == [result.path for result in meant.results]
    assert typed.results[0].path == "plan.md"
    assert typed.results[0].confidence >= LOW


@pytest.mark.parametrize(
    "query", ["zebra crossing", "quantum chromodynamics", "who won the match?"]
)
def test_what_a_small_folder_cannot_answer_is_told_as_a_guess(tmp_path, query):
    """In three notes something is always far ahead of the others."""
    short = {"boat.md": "# Boat\n\nThe mast is stepped with two people. See [[garden]].\n"}
    with DefaultEngine(tmp_path, HOUSE | short, BuiltinEmbedder()) as engine:
        found = engine.ask(query).results
    assert all(result.confidence < LOW for result in found), found
