from dataclasses import replace

import pytest

from ragdocs.search.candidates import Evidence, Strategy
from ragdocs.search.evidence import (
    LAG_WEIGHT,
    LEAD_WEIGHT,
    MAX_LEAD,
    SIMILARITY_PART,
    STRONG,
    Measures,
    with_evidence,
    worth,
)
from tests.candidates import Corpus, candidates


def judged(items, nearness, **ideals):
    known = dict(zip((item.stored.key for item in items), nearness, strict=True))
    measures = Measures(known, {Strategy(kind): ideal for kind, ideal in ideals.items()})
    return [item.relevance for item in with_evidence(items, measures)]


def alone(*nearness):
    """One passage from each of so many documents, judged by meaning alone."""
    items = candidates(*(f"text {number}" for number in range(len(nearness))))
    return judged(items, nearness)


def test_who_leads_gains_and_who_lags_loses():
    first, second, third = alone(0.5, 0.4, 0.1)
    assert first == pytest.approx(0.5 + LEAD_WEIGHT * 0.1)
    assert second == pytest.approx(0.4 - LAG_WEIGHT * 0.1)
    assert third == pytest.approx(0.1 - LAG_WEIGHT * 0.4)


def test_a_tie_changes_nothing():
    assert alone(0.4, 0.4) == pytest.approx([0.4, 0.4])


def test_a_lead_counts_only_so_far():
    assert alone(0.9, 0.1)[0] == pytest.approx(0.9 + LEAD_WEIGHT * MAX_LEAD)
    assert alone(0.9)[0] == pytest.approx(0.9 + LEAD_WEIGHT * MAX_LEAD)


@pytest.mark.parametrize("nearness", [0.05, 0.2, STRONG])
def test_a_lead_of_what_is_weak_itself_counts_less(nearness):
    lead = min(MAX_LEAD, nearness)
    assert alone(nearness)[0] == pytest.approx(
        nearness + LEAD_WEIGHT * lead * (nearness / STRONG) ** 2
    )


def test_passages_of_one_document_do_not_compete():
    corpus = Corpus().add("a.md", "# One\n\ntext\n\n# Two\n\nmore\n").add("b.md", "# Other\n\nx\n")
    items = [corpus.candidate(place) for place in ("a.md#one", "a.md#two", "b.md#other")]
    found = judged(items, [0.5, 0.5, 0.4])
    assert found[:2] == [pytest.approx(0.5 + LEAD_WEIGHT * 0.1)] * 2
    assert found[2] == pytest.approx(0.4 - LAG_WEIGHT * 0.1)


def own(similarity, coverage):
    return SIMILARITY_PART * similarity + (1 - SIMILARITY_PART) * coverage


def test_meaning_says_more_than_words_and_both_alike_make_the_lead():
    one, other = candidates("a", "b")
    one = replace(one, evidence={Strategy.KEYWORD: Evidence(1, 6.0)})
    first, second = judged([one, other], [0.4, 0.7], keyword=10.0)
    assert first == pytest.approx(own(0.4, 0.6) + LEAD_WEIGHT * (0.5 - 0.35))
    assert second == pytest.approx(own(0.7, 0.0) - LAG_WEIGHT * (0.5 - 0.35))


def test_a_name_found_in_code_is_as_good_as_one_found_in_prose():
    (item,) = candidates("a")
    prose = replace(item, evidence={Strategy.KEYWORD: Evidence(1, 6.0)})
    code = replace(item, evidence={Strategy.CODE: Evidence(1, 3.0)})
    ideals = {"keyword": 10.0, "code": 5.0}
    assert judged([prose], [0.4], **ideals) == judged([code], [0.4], **ideals)


def test_what_was_not_asked_does_not_count_against_a_passage():
    (item,) = candidates("a")
    item = replace(item, evidence={Strategy.KEYWORD: Evidence(1, 5.0)})
    (measured,) = with_evidence([item], Measures(None, {Strategy.KEYWORD: 10.0}))
    assert measured.relevance == pytest.approx(0.5 + LEAD_WEIGHT * MAX_LEAD)


def test_where_no_word_is_known_meaning_alone_counts():
    (item,) = candidates("a")
    measures = Measures({item.stored.key: 0.5}, {Strategy.KEYWORD: 10.0}, has_known_words=False)
    (measured,) = with_evidence([item], measures)
    assert measured.relevance == pytest.approx(0.5 + LEAD_WEIGHT * MAX_LEAD)
    (measured,) = with_evidence([item], replace(measures, has_known_words=True))
    assert measured.relevance == pytest.approx(own(0.5, 0.0) + LEAD_WEIGHT * MAX_LEAD)


def test_what_the_evidence_was_made_from_is_kept():
    one, other = candidates("a", "b")
    one = replace(one, evidence={Strategy.KEYWORD: Evidence(1, 6.0)})
    measures = Measures({one.stored.key: 0.4, other.stored.key: 0.2}, {Strategy.KEYWORD: 10.0})
    first, second = with_evidence([one, other], measures)
    assert first.grounds == pytest.approx((0.4, 0.6, 0.5 - 0.1))
    assert second.grounds == pytest.approx((0.2, 0.0, 0.1 - 0.5))
    assert first.relevance == worth(first.grounds)


def test_nothing_is_nothing():
    assert with_evidence([], Measures({}, {})) == []
    (item,) = with_evidence(candidates("a"), Measures(None, {}))
    assert item.relevance == pytest.approx(0.0)
