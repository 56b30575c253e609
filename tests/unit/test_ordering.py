import random

import pytest

from ragdocs.search.candidates import ALIKE, surest_first
from tests.support.engine import candidates


def sure(*confidences):
    items = candidates(*(f"text {number}" for number in range(len(confidences))))
    return [
        item.with_changes(confidence=confidence)
        for item, confidence in zip(items, confidences, strict=True)
    ]


def ordered(*confidences):
    return [item.confidence for item in surest_first(sure(*confidences))]


def test_the_surest_comes_first():
    assert ordered(0.2, 0.9, 0.5) == pytest.approx([0.9, 0.5, 0.2])


def test_near_ties_keep_their_order():
    assert ordered(0.86, 0.9, 0.88) == pytest.approx([0.86, 0.9, 0.88])
    assert ordered(0.84, 0.9, 0.88) == pytest.approx([0.9, 0.84, 0.88])


def test_no_result_is_clearly_surer_than_one_before_it():
    chance = random.Random(3)
    for _ in range(200):
        found = ordered(*(chance.random() for _ in range(20)))
        for place, value in enumerate(found):
            assert value <= min(found[:place], default=1.0) + ALIKE + 1e-9


def test_nothing_is_lost():
    items = sure(0.5, 0.5, 0.1)
    assert surest_first(items) == items
    assert surest_first([]) == []


def plainly_ordered(items):
    """The rule as it is told: of all within ALIKE of the surest that is left, the first."""
    left = list(enumerate(items))
    found = []
    while left:
        least = max(item.confidence for _, item in left) - ALIKE
        first = next(pair for pair in left if pair[1].confidence >= least)
        left.remove(first)
        found.append(first[1])
    return found


def test_the_quick_way_is_the_rule_as_it_is_told():
    chance = random.Random(11)
    for _ in range(200):
        spread = chance.choice([0.02, 0.2, 1.0])
        items = sure(*(round(spread * chance.random(), 2) for _ in range(chance.randint(1, 30))))
        assert [id(item) for item in surest_first(items)] == [
            id(item) for item in plainly_ordered(items)
        ]
