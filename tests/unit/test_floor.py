"""A document that alone has the rare words of a question has a place in the answer."""

import pytest

from ragdocs.search.candidates import FLOOR_PLACE, surest_first, take_first
from tests.support.engine import ParsedCorpus


def candidates(count):
    """The first is the surest, the last the least sure."""
    corpus = ParsedCorpus()
    for at in range(count):
        corpus.add(f"{at}.md", f"# Note {at}\n\nText {at}.\n")
    return [
        corpus.candidate(f"{at}.md#note-{at}", score=0.5, confidence=0.9 - at / 50)
        for at in range(count)
    ]


def paths(items):
    return [item.document.path for item in items]


@pytest.mark.parametrize(("top_n", "place"), [(5, 5), (10, 10), (20, FLOOR_PLACE)])
def test_it_comes_last_of_the_answer_or_of_the_first_ten(top_n, place):
    items = candidates(30)
    last = items[-1]
    found = take_first(items, top_n, surest_first, floored={last.document.id})
    assert len(found) == top_n
    assert found[place - 1] is last
    assert paths(found[: place - 1]) == paths(items[: place - 1])


def test_what_is_there_anyway_stays_where_it_is():
    items = candidates(30)
    found = take_first(items, 10, surest_first, floored={items[3].document.id})
    assert paths(found) == paths(items[:10])


def test_a_document_of_which_nothing_was_found_takes_no_place():
    items = candidates(12)
    found = take_first(items[:-1], 10, surest_first, floored={items[-1].document.id})
    assert paths(found) == paths(items[:10])


def test_a_request_for_one_result_gets_the_most_confident():
    items = candidates(12)
    found = take_first(items, 1, surest_first, floored={items[-1].document.id})
    assert paths(found) == paths(items[:1])
