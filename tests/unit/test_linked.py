import pytest

from ragdocs.indices.hits import Hit
from ragdocs.search.candidates import Evidence, Strategy
from ragdocs.search.fusion import Fused, with_links

KEYWORD, GRAPH = Strategy.KEYWORD, Strategy.GRAPH


def fused(*scores):
    return [
        Fused(number, score, {KEYWORD: Evidence(number, score)}, {KEYWORD: score})
        for number, score in enumerate(scores, start=1)
    ]


def scores(found):
    return {item.key: item.score for item in found}


def test_a_linked_passage_comes_nearer_to_the_best():
    found = with_links(fused(0.8, 0.4, 0.4), [Hit(3, 0.4)], 0.5)
    assert [item.key for item in found] == [1, 3, 2]
    assert scores(found)[3] == pytest.approx(0.4 + 0.4 * (0.5 * 0.4 / 0.8))


def test_links_never_lift_a_passage_past_the_best():
    found = with_links(fused(0.8, 0.7), [Hit(2, 1.0), Hit(9, 1.0)], 100.0)
    assert found[0].key == 1
    assert max(scores(found).values()) == pytest.approx(0.8)


def test_the_best_gains_nothing():
    assert scores(with_links(fused(0.8, 0.4), [Hit(1, 1.0)], 1.0))[1] == pytest.approx(0.8)


def test_a_passage_that_only_links_know_comes_along():
    (*_, last) = with_links(fused(0.8), [Hit(5, 0.3)], 1.0)
    assert (last.key, last.evidence) == (5, {GRAPH: Evidence(1, 0.3)})
    assert last.score == pytest.approx(0.3) == sum(last.contributions.values())


@pytest.mark.parametrize(
    ("linked", "weight"), [([], 1.0), ([Hit(2, 0.5)], 0.0), ([Hit(2, 0.5)], -1.0)]
)
def test_without_links_or_weight_nothing_changes(linked, weight):
    assert with_links(fused(0.8, 0.4), linked, weight) == fused(0.8, 0.4)


def test_nothing_found_by_text_leaves_nothing_to_come_near_to():
    assert with_links([], [Hit(1, 1.0)], 1.0) == []
