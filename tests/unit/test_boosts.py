from datetime import UTC, datetime, timedelta, timezone

import pytest

from ragdocs.search.boosts import (
    BoostKind,
    BoostRules,
    apply_boosts,
    locality_factors,
    raised_documents,
    recency_factor,
)
from tests.support.engine import ParsedCorpus, scores

NOW = datetime(2026, 3, 31, 12, tzinfo=UTC)


def days(number):
    return NOW - timedelta(days=number)


@pytest.mark.parametrize(
    ("age", "factor"), [(0, 1.2), (7, 1.2), (7.01, 1.1), (30, 1.1), (30.01, 1.0), (9000, 1.0)]
)
def test_recency_tiers(age, factor):
    assert recency_factor(days(age), NOW, 0.5) == pytest.approx(factor)


@pytest.mark.parametrize(("bias", "factor"), [(0.0, 1.0), (0.25, 1.1), (0.5, 1.2), (1.0, 1.4)])
def test_recency_bias_scales_the_gain(bias, factor):
    assert recency_factor(days(3), NOW, bias) == pytest.approx(factor)


def test_a_date_in_the_future_is_a_broken_clock_and_gains_nothing():
    assert recency_factor(days(-0.5), NOW, 0.5) == pytest.approx(1.2)
    assert recency_factor(days(-3650), NOW, 0.5) == pytest.approx(1.0)


def test_recency_knows_time_zones():
    tokyo = timezone(timedelta(hours=9))
    assert recency_factor(days(7).astimezone(tokyo), NOW, 0.5) == pytest.approx(1.2)


def test_documents_of_the_leading_community_are_raised():
    communities = {"auth": 3, "login": 3, "sessions": 3, "cooking": 8, "b": 5, "c": 6}
    raised = raised_documents(["auth", "b", "c", "login", "cooking", "sessions"], communities)
    assert raised == {"auth", "login", "sessions"}


def test_a_community_without_a_leader_or_without_followers_raises_nobody():
    alone = {"a": 1, "b": 2, "c": 3, "d": 4, "e": 4}
    assert raised_documents(["a", "b", "c", "d", "e"], alone) == frozenset()
    assert raised_documents(["a", "x"], {}) == frozenset()


def test_several_passages_of_a_document_are_one_member():
    assert raised_documents(["a", "a", "b"], {"a": 1, "b": 2}) == frozenset()


def test_local_trees_are_preferred_to_others():
    local = frozenset({"project"})
    assert locality_factors(["project", "notes"], local, 1.5) == pytest.approx(
        {"project": 1.5, "notes": 1.0}
    )
    assert locality_factors(["project"], local, 1.5) == pytest.approx({"project": 1.0})
    assert locality_factors(["notes"], local, 1.5) == pytest.approx({"notes": 1.0})


def corpus():
    found = ParsedCorpus()
    found.add("old.md", "---\ndate: 2020-01-01\n---\nOld words.\n")
    found.add("new.md", "---\ndate: 2026-03-29\n---\nNew words.\n")
    return found


def test_boosts_multiply_the_score_are_named_and_leave_the_relevance():
    found = corpus()
    old, new = found.candidate("old.md", 0.4), found.candidate("new.md", 0.38)
    rules = BoostRules(
        now=NOW,
        recency_bias=0.5,
        communities={old.document.id: 1, new.document.id: 1},
        community_factor=1.1,
    )
    first, second = apply_boosts([old, new], rules)
    assert first.id == new.id
    assert scores([first, second]) == pytest.approx([0.38 * 1.2 * 1.1, 0.4 * 1.1])
    assert first.boosts == pytest.approx({BoostKind.RECENCY: 1.2, BoostKind.COMMUNITY: 1.1})
    assert first.relevance == pytest.approx(0.38)


def test_without_boosts_candidates_stay_as_they_are():
    found = corpus()
    items = [found.candidate("old.md", 0.4), found.candidate("new.md", 0.4)]
    assert apply_boosts(items, BoostRules(now=NOW)) == items
    assert apply_boosts([], BoostRules(now=NOW)) == []


def test_the_projects_own_tree_comes_first():
    found = (
        ParsedCorpus().add("a.md", "# A\n\nWords.\n").add("b.md", "# B\n\nWords.\n", tree="project")
    )
    items = [found.candidate("a.md#a", 0.5), found.candidate("b.md#b", 0.4)]
    rules = BoostRules(now=NOW, local_trees=frozenset({"project"}), local_factor=1.5)
    assert [item.document.path for item in apply_boosts(items, rules)] == ["b.md", "a.md"]
