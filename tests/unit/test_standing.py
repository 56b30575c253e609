from dataclasses import replace

import pytest

from ragdocs.search.standing import LAG_WEIGHT, LEAD_WEIGHT, MAX_LEAD, with_standing
from tests.candidates import Corpus, candidates


def standing(*relevance):
    """Of one passage from each of so many documents."""
    items = candidates(*(f"text {number}" for number in range(len(relevance))))
    given = [replace(item, relevance=r) for item, r in zip(items, relevance, strict=True)]
    return [item.relevance for item in with_standing(given)]


def test_who_leads_gains_and_who_lags_loses():
    first, second, third = standing(0.5, 0.4, 0.1)
    assert first == pytest.approx(0.5 + LEAD_WEIGHT * 0.1)
    assert second == pytest.approx(0.4 - LAG_WEIGHT * 0.1)
    assert third == pytest.approx(0.1 - LAG_WEIGHT * 0.4)


def test_a_tie_changes_nothing():
    assert standing(0.4, 0.4) == [0.4, 0.4]


def test_a_lead_counts_only_so_far():
    assert standing(0.9, 0.1)[0] == pytest.approx(0.9 + LEAD_WEIGHT * MAX_LEAD)
    assert standing(0.9)[0] == pytest.approx(0.9 + LEAD_WEIGHT * MAX_LEAD)
    assert standing(0.05)[0] == pytest.approx(0.05 + LEAD_WEIGHT * 0.05)


def test_passages_of_one_document_do_not_compete():
    corpus = Corpus().add("a.md", "# One\n\ntext\n\n# Two\n\nmore\n").add("b.md", "# Other\n\nx\n")
    one, two = (
        replace(corpus.candidate(place), relevance=0.5) for place in ("a.md#one", "a.md#two")
    )
    other = replace(corpus.candidate("b.md#other"), relevance=0.4)
    found = [item.relevance for item in with_standing([one, two, other])]
    assert found[:2] == [pytest.approx(0.5 + LEAD_WEIGHT * 0.1)] * 2
    assert found[2] == pytest.approx(0.4 - LAG_WEIGHT * 0.1)


def test_nothing_is_nothing():
    assert with_standing([]) == []
