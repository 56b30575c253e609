import numpy as np
import pytest

from ragdocs.search.dedup import MAX_CANDIDATES, select_mmr
from tests.support.engine import candidates, places, scores

# Two close ones lead, a third that is quite different follows.
CLOSE = candidates(*"abc", scores=[0.9, 0.85, 0.5], vectors=[(1, 0), (0.98, 0.2), (0, 1)])


def reference(items, weight, top_n):
    """The formula, written out."""
    low, high = min(scores(items)), max(scores(items))
    relevance = [(item.score - low) / (high - low) if high > low else 1.0 for item in items]

    def cosine(one, other):
        product = np.linalg.norm(one.vector) * np.linalg.norm(other.vector)
        return float(one.vector @ other.vector) / product

    chosen = []
    while len(chosen) < min(top_n, len(items)):
        rest = [place for place in range(len(items)) if place not in chosen]

        def value(place):
            nearest = max((cosine(items[place], items[other]) for other in chosen), default=0.0)
            return weight * relevance[place] - (1 - weight) * nearest

        chosen.append(max(rest, key=value))
    return chosen


def test_mmr_selects_diverse():
    assert places(select_mmr(CLOSE, 0.3, 2)) == [0, 2]


def test_mmr_respects_lambda_high():
    assert places(select_mmr(CLOSE, 1.0)) == [0, 1, 2]
    assert places(select_mmr(CLOSE, 0.9, 2)) == [0, 1]


def test_mmr_respects_lambda_low():
    assert places(select_mmr(CLOSE, 0.0)) == [0, 2, 1]


def test_mmr_empty_candidates():
    assert select_mmr([], 0.5) == []


def test_mmr_single_candidate():
    assert select_mmr(CLOSE[:1], 0.5) == CLOSE[:1]
    assert select_mmr(CLOSE[:1], 0.5, 0) == []


def test_mmr_all_identical():
    same = candidates(*"abcd", scores=[0.5] * 4, vectors=[(1, 0)] * 4)
    assert places(select_mmr(same, 0.5)) == [0, 1, 2, 3]
    falling = candidates(*"abcd", vectors=[(1, 0)] * 4)
    assert places(select_mmr(falling, 0.5)) == [0, 1, 2, 3]


@pytest.mark.parametrize("weight", [0.0, 0.3, 0.5, 0.7, 1.0])
def test_mmr_agrees_with_the_formula(weight):
    generator = np.random.default_rng(7)
    vectors = generator.normal(size=(12, 4))
    found = sorted(generator.uniform(size=12).tolist(), reverse=True)
    items = candidates(*map(str, range(12)), scores=found, vectors=list(vectors))
    assert places(select_mmr(items, weight, 8)) == reference(items, weight, 8)


def test_scores_stay_as_they_were():
    assert scores(select_mmr(CLOSE, 0.3)) == pytest.approx([0.9, 0.5, 0.85])


def test_relevance_is_scaled_so_that_lambda_means_the_same_for_low_scores():
    vectors = [(1, 0), (0.98, 0.2), (0, 1)]
    low = candidates(*"abc", scores=[0.009, 0.0085, 0.005], vectors=vectors)
    for weight in (0.2, 0.5, 0.9):
        assert places(select_mmr(low, weight)) == places(select_mmr(CLOSE, weight))


def test_without_vectors_only_relevance_counts():
    items = candidates(*"abc", vectors=[None, None, None])
    assert places(select_mmr(items, 0.1)) == [0, 1, 2]


def test_only_the_first_fifty_are_considered():
    items = candidates(*(str(n) for n in range(60)))
    assert len(select_mmr(items, 0.5)) == MAX_CANDIDATES == 50


def test_mmr_respects_lambda():
    """The more relevance counts, the later the different one comes."""
    places_of_the_third = [
        places(select_mmr(CLOSE, weight)).index(2) for weight in (0.0, 0.3, 0.5, 0.9, 1.0)
    ]
    assert places_of_the_third == sorted(places_of_the_third)
    assert (places_of_the_third[0], places_of_the_third[-1]) == (1, 2)
