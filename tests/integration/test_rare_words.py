"""What only one document has leads to it, and every index has its say on every passage."""

import random
import re
from collections import Counter
from dataclasses import replace
from itertools import pairwise

import pytest

from ragdocs.search.candidates import Strategy
from ragdocs.search.requests import Filters, QueryRequest
from tests.support.documents import distractors, documentation
from tests.support.engine import DefaultEngine, Engine
from tests.support.models import RememberingEmbedder

FIRST, TEN = 3, 10


@pytest.fixture(scope="module")
def texts():
    return documentation() | distractors()


@pytest.fixture(scope="module")
def engine(tmp_path_factory, texts):
    model = RememberingEmbedder("acceptance")
    with DefaultEngine(tmp_path_factory.mktemp("index"), texts, model) as engine:
        yield engine


def own_words(texts):
    """By path: the words that no other text has."""
    words = {path: set(re.findall(r"[a-z]{4,}", text.lower())) for path, text in texts.items()}
    counts = Counter(word for found in words.values() for word in found)
    return {path: sorted(w for w in found if counts[w] == 1) for path, found in words.items()}


def place_of(engine, path, query):
    paths = [result.path for result in engine.ask(query, top_n=20).results]
    found = list(dict.fromkeys(paths))
    return found.index(path) + 1 if path in found else 99


def test_two_words_that_one_document_alone_has_bring_it_to_the_first(engine, texts):
    pairs = [
        (path, f"{first} {second}")
        for path, words in own_words(texts).items()
        for first, second in list(pairwise(words[::5]))[:2]
    ]
    assert len(pairs) >= 80
    missed = [(path, query) for path, query in pairs if place_of(engine, path, query) > FIRST]
    assert len(missed) <= 0.03 * len(pairs), missed


def test_rare_words_bring_their_document_into_a_short_answer_full_of_surer_passages(engine, texts):
    """Beside words that many pages have, and of which a model thinks that they are meant."""
    asked = [
        (path, f"{first} {second} configuration")
        for path, words in own_words(texts).items()
        for first, second in list(pairwise(words[::5]))[:2]
    ]
    missed = [
        (path, query)
        for path, query in asked
        if path not in [result.path for result in engine.ask(query, top_n=5).results]
    ]
    assert len(missed) <= 0.02 * len(asked), missed


def test_two_words_as_typed_lead_to_the_one_document_that_has_them_in_this_form(tmp_path):
    """The stems of both are everywhere, also in titles; `publisher` and `limitedly` are not."""
    notes = {
        f"{at}.md": f"# Publish limits {at}\n\nPublishing has a limit, and limits are {at}.\n"
        for at in range(40)
    }
    story = "Much else was told about gardens, rivers and old houses. " * 12
    notes["story.md"] = f"# A story\n\n{story}A publisher, limitedly known, came by. {story}\n"
    with Engine(tmp_path, notes) as engine:
        assert place_of(engine, "story.md", "publisher limitedly") <= TEN
        assert place_of(engine, "story.md", "publishing limits") > TEN


NOTE = (
    "# The {kind} was slow\n\nTicket {ticket}: the {kind} was slow with the error {error} after "
    "commit {commit}. We cleared the cache, looked at {file} and restarted the {kind}; version "
    "{version} has the repair, and the {kind} runs again.\n"
)
NUMBERS = [10_007 + 37 * number for number in range(120)]


def tokens_of(number):
    return {
        "ticket": f"TKT-{number}",
        "error": f"ERR_IO_{number:X}",
        "commit": f"{number * 7_919 % 16**7:07x}c{number % 7}",
        "file": f"job_mail_{number}.py",
        "version": f"4.{number // 100}.{number % 100}",
    }


@pytest.fixture(scope="module")
def incidents(tmp_path_factory):
    """Notes that are alike but for their tokens."""
    notes = {
        f"{number}.md".replace("1", "a"): NOTE.format(
            kind=("export", "index", "mail gateway")[number % 3], **tokens_of(number)
        )
        for number in NUMBERS
    }
    with Engine(tmp_path_factory.mktemp("index"), notes) as engine:
        yield engine


@pytest.mark.parametrize("kind", ["ticket", "error", "commit", "file", "version"])
@pytest.mark.parametrize(
    "form", ["{}", "what does {} mean", "how do I use `{}` in the mail gateway?"]
)
def test_an_exact_token_leads_to_the_one_document_that_has_it(incidents, kind, form):
    for number in NUMBERS[::12]:
        path = f"{number}.md".replace("1", "a")
        asked = form.format(tokens_of(number)[kind])
        assert place_of(incidents, path, asked) <= FIRST, asked


def test_a_filter_holds_for_exact_tokens_too(incidents):
    first, second = (f"{number}.md".replace("1", "a") for number in NUMBERS[:2])
    asked = f"what does TKT-{NUMBERS[0]} mean"
    only = QueryRequest(queries=(asked,), filters=Filters(paths=(second,)))
    assert {result.path for result in incidents.answer(only).results} <= {second}
    assert place_of(incidents, first, asked) == 1


def test_a_token_written_in_another_way_elsewhere_is_still_that_of_one_document(tmp_path):
    notes = {
        f"{at}.md": f"# Level {at}\n\nThe level of IL 10 rose {at} times.\n" for at in range(9)
    }
    notes["exact.md"] = "# A long story\n\n" + "Much else was measured. " * 30 + "So was IL-10.\n"
    with Engine(tmp_path, notes) as engine:
        assert place_of(engine, "exact.md", "why did IL-10 rise in the end?") == 1


@pytest.mark.parametrize("chosen", ["fts5", "whoosh", "tantivy"])
def test_every_candidate_is_scored_by_every_index(tmp_path, chosen):
    """More notes have the word than an index gives, and the best by meaning are others."""
    notes = {
        f"{at}.md": f"# Part {at}\n\n" + "engine " * (1 + at % 7) + f"filler{at} " * (at % 11)
        for at in range(240)
    }
    with Engine(tmp_path, notes, keyword_engine=chosen) as engine:
        request = QueryRequest(queries=("engine parts",), top_n=50, explain=True)
        response = engine.answer(request, keyword_engine=chosen)
    results = response.explanation.results
    assert len(results) == 50
    for result in results:
        assert {Strategy.SEMANTIC, Strategy.KEYWORD} <= result.evidence.keys(), result.id


def test_a_token_stays_first_among_passages_that_have_all_the_other_words(tmp_path):
    words = "configure the garden water pump schedule in winter"
    rng = random.Random(1)
    syllables = [f"w{a}{b}" for a in "bcdfghjklm" for b in ("ando", "ilex", "oral", "umba")]

    def filler(count):
        return " ".join(rng.choice(syllables) for _ in range(count))

    def section(number):
        lines = (f"how to {words} {filler(14)}." for _ in range(6))
        return f"## Part {number}\n\n" + "\n\n".join(lines)

    texts = {f"{n}.md": "\n\n".join(map(section, range(45))) for n in range(3)}
    texts["1.md"] += f"\n\n## Odd place\n\n{filler(100)} TKT-90930 {filler(100)}\n"
    with DefaultEngine(tmp_path, texts, RememberingEmbedder("pump")) as engine:
        for top_n in (3, 10):
            request = QueryRequest(queries=(f"how to {words} TKT-90930",), top_n=top_n)
            results = engine.answer(request).results
            assert "Odd place" in [result.heading_path[-1] for result in results[:FIRST]]
            # Words that stand together would raise others above it: it is told what kept it first.
            explained = replace(request, explain=True)
            told = engine.answer(explained, closeness_weight=1.0).explanation.results
            kept = [one.boosts.keys() for one in told if "#odd-place" in one.id]
            assert kept
            assert "exact" in kept[0]
