import pytest

from ragdocs.config.choices import Stemmer
from ragdocs.indices.analysis import text_analyzer
from ragdocs.search.candidates import Evidence, Strategy
from ragdocs.search.weighing import NEAR, READ, with_closeness
from tests.support.engine import ParsedCorpus

ENGLISH = text_analyzer(Stemmer.ENGLISH)
FOUND = {Strategy.KEYWORD: Evidence(1, 1.0)}
FAR = "and then, after a long while and much else"


def candidates(*texts, score=0.5, evidence=FOUND):
    corpus = ParsedCorpus()
    for number, text in enumerate(texts):
        corpus.add(f"{number}.md", f"{text}\n")
    leaves = [leaf for number in range(len(texts)) for leaf in corpus.leaves(f"{number}.md")]
    places = [leaf.chunk.id.removeprefix("docs:") for leaf in leaves]
    return [corpus.candidate(place, score, evidence=evidence) for place in places]


def gains(query, *texts, weight=1.0, **given):
    terms = [token.term for token in ENGLISH.query(query)]
    found = with_closeness(candidates(*texts, **given), terms, ENGLISH, weight)
    return {item.text.strip(): (item.score - 0.5) / 0.5 for item in found}


def test_words_that_follow_one_another_count_in_full_and_near_ones_by_half():
    beside, near, far = "A rotating log.", "The log is rotating.", f"Rotating {FAR} a log."
    assert gains("rotate logs", beside, near, far) == pytest.approx(
        {beside: 1.0, near: NEAR, far: 0.0}
    )


def test_the_best_place_of_a_pair_counts():
    text = f"A log {FAR} a rotating thing, then: rotating log."
    assert gains("rotate logs", text) == pytest.approx({text: 1.0})


def test_it_is_the_mean_of_all_pairs():
    text = f"Rotating logs {FAR} daily."
    assert gains("rotate logs daily", text, weight=0.3) == pytest.approx({text: 0.15})


def test_the_parts_of_a_name_stand_together():
    text = "Call getShardOwner here."
    assert gains("getShardOwner", text) == pytest.approx({text: 1.0})


@pytest.mark.parametrize("query", ["logs", "logs logs", ""])
def test_a_query_without_two_words_says_nothing(query):
    text = "A log, a log."
    assert gains(query, text) == pytest.approx({text: 0.0})


def test_what_was_not_found_by_its_words_is_not_read():
    text = "A rotating log."
    assert gains("rotate logs", text, evidence={}) == pytest.approx({text: 0.0})


def test_only_the_first_are_read():
    texts = [f"Rotating logs {number}." for number in range(READ + 2)]
    assert list(gains("rotate logs", *texts).values()) == pytest.approx([1.0] * READ + [0.0] * 2)


def test_candidates_are_reordered_and_the_gain_is_recorded():
    first, second = candidates("Nothing of it.", "A rotating log.")
    first, second = first.with_changes(score=0.6), second.with_changes(score=0.5)
    terms = ["rotat", "log"]
    found = with_closeness([first, second], terms, ENGLISH, 0.4)
    assert [item.id for item in found] == [second.id, first.id]
    assert found[0].boosts == {"closeness": pytest.approx(0.7 / 0.5)}
