"""The quick way to the best rows beside the plain one: the same rows, in the same order."""

import random

import pytest

from ragdocs.config.settings import BoostsConfig
from ragdocs.indices.conditions import Unit
from ragdocs.indices.fts5 import (
    UNITS_PER_STATEMENT,
    Fts5Ranking,
    Restriction,
    Share,
    most_possible,
    split_common,
)
from ragdocs.indices.keyword import FIELDS, MOST
from ragdocs.models import QueryField
from tests.support.machine import record_calls
from tests.support.stores import Corpus

WORDS = [f"w{number}x" for number in range(60)]
WEIGHTS = [getattr(BoostsConfig(), field) for field in FIELDS]
PLAIN = Fts5Ranking("keyword", WEIGHTS, few_rows=10**9)
QUICK = Fts5Ranking("keyword", WEIGHTS, few_rows=0)


def notes(count: int, seed: int) -> dict[str, str]:
    """Short texts by Zipf's law: the first words stand in most of them, and some texts twice."""
    chosen = random.Random(seed)
    chances = [1 / (rank + 1) for rank in range(len(WORDS))]
    texts = [
        f"# {' '.join(chosen.choices(WORDS, chances, k=2))}\n\n"
        + " ".join(chosen.choices(WORDS, chances, k=chosen.randint(2, 40)))
        for _ in range(count)
    ]
    return {f"{number}.md": chosen.choice(texts[: number + 1]) for number in range(count)}


def units(chosen: random.Random) -> list[Unit]:
    """Mostly words, some twice as important; phrases, and words of one field."""
    found = [Unit((word,)) for word in chosen.sample(WORDS, chosen.randint(1, 6))]
    if chosen.random() < 0.3:
        found.append(Unit((chosen.choice(WORDS[:20]),), weight=chosen.choice([0.5, 2.0, 20.0])))
    if chosen.random() < 0.2:
        found.append(Unit(tuple(chosen.choices(WORDS[:3], k=2))))
    if chosen.random() < 0.2:
        found.append(Unit((chosen.choice(WORDS[:5]),), field=QueryField.TITLE))
    return list(dict.fromkeys(found))


def assert_same(snapshot, asked, limit, only=None):
    plain = PLAIN.rank(snapshot, asked, 10**6, only)
    quick = QUICK.rank(snapshot, asked, limit, only)
    scores = dict(plain.rows)
    assert [score for _, score in quick.rows] == pytest.approx(
        [score for _, score in plain.rows[:limit]], rel=1e-9
    )
    assert dict(quick.rows) == pytest.approx({key: scores[key] for key, _ in quick.rows}, rel=1e-9)
    assert len({key for key, _ in quick.rows}) == len(quick.rows)
    assert (quick.ideal, quick.frequencies) == (plain.ideal, plain.frequencies)


@pytest.mark.parametrize("count", [1, 2, 5, 30, 250])
def test_proposed_rows_are_the_best_rows(tmp_path, count):
    chosen = random.Random(count)
    with Corpus(tmp_path, notes(count, seed=count)).snapshot() as snapshot:
        for _ in range(60):
            assert_same(snapshot, units(chosen), chosen.choice([1, 3, 10, 100]))


def test_proposed_rows_are_the_best_of_those_allowed(tmp_path):
    chosen = random.Random(7)
    with Corpus(tmp_path, notes(150, seed=7)).snapshot() as snapshot:
        keys = [row[0] for row in snapshot.select("SELECT id FROM keyword_docsize ORDER BY id")]
        for _ in range(40):
            part = ",".join(map(str, chosen.sample(keys, chosen.choice([1, 10, 75, 149]))))
            only = Restriction(f"SELECT key FROM chunks WHERE key IN ({part})", ())
            assert_same(snapshot, units(chosen), chosen.choice([3, 20]), only)


def test_the_scores_that_a_ranking_brought_are_those_that_are_asked_for(tmp_path):
    chosen = random.Random(3)
    with Corpus(tmp_path, notes(150, seed=3)).snapshot() as snapshot:
        keys = [row[0] for row in snapshot.select("SELECT id FROM keyword_docsize ORDER BY id")]
        for _ in range(20):
            asked = units(chosen)
            brought = PLAIN.rank(snapshot, asked, 5).scores
            assert brought is not None
            known = PLAIN.scores(snapshot, asked, brought, keys)
            assert known == pytest.approx(QUICK.scores(snapshot, asked, None, keys), rel=1e-9)
            assert len(known) > 5


def test_within_a_restriction_or_of_many_rows_not_all_scores_are_known(tmp_path):
    with Corpus(tmp_path, notes(50, seed=3)).snapshot() as snapshot:
        asked = [Unit((WORDS[0],)), Unit((WORDS[1],))]
        only = Restriction("SELECT 1", ())
        assert PLAIN.rank(snapshot, asked, 5, only).scores is None
        assert QUICK.rank(snapshot, asked, 5).scores is None


def test_both_ways_of_scoring_are_used(tmp_path, monkeypatch):
    """Else the tests above would compare the plain way with itself."""
    from ragdocs.indices.fts5 import _Search

    taken = record_calls(monkeypatch, _Search, "score_all")
    chosen = random.Random(250)
    with Corpus(tmp_path, notes(250, seed=250)).snapshot() as snapshot:
        for _ in range(100):
            QUICK.rank(snapshot, units(chosen), 5)
    assert 10 < len(taken) < 90


@pytest.mark.parametrize("ranking", [PLAIN, QUICK])
def test_equal_rows_are_in_the_order_of_their_numbers(tmp_path, ranking):
    rare = {f"a{n}.md": "rare word" for n in range(20)}
    corpus = Corpus(tmp_path, rare | {f"b{n}.md": "other word text" for n in range(60)})
    with corpus.snapshot() as snapshot:
        found = ranking.rank(snapshot, [Unit(("rare",)), Unit(("word",))], 15).rows
        keys = [row[0] for row in snapshot.select("SELECT key FROM chunks ORDER BY key")]
    assert [key for key, _ in found] == [key for key in keys[:20] if key][:15]
    assert len({score for _, score in found}) == 1


def test_more_units_than_a_statement_can_hold(tmp_path):
    many = [f"u{number}x" for number in range(3 * UNITS_PER_STATEMENT)]
    corpus = Corpus(tmp_path, {"all.md": " ".join(many), "some.md": " ".join(many[::2])})
    asked = [Unit((word,)) for word in many]
    with corpus.snapshot() as snapshot:
        for ranking in (PLAIN, QUICK):
            found = ranking.rank(snapshot, asked, 10).rows
            parts = [PLAIN.rank(snapshot, asked[n : n + 100], 10).rows for n in range(0, 600, 100)]
            expected = {}
            for key, score in [row for part in parts for row in part]:
                expected[key] = expected.get(key, 0.0) + score
            assert dict(found) == pytest.approx(expected)


def share(frequency: int, idf: float, fts5_idf: float) -> Share:
    return Share(Unit((str(frequency),)), frequency, idf, fts5_idf)


def test_a_row_is_worth_most_where_its_score_is_undervalued_most():
    shares = [share(10, 4.0, 3.9), share(900, 0.7, 1e-6)]
    assert most_possible(0.0, shares) == pytest.approx(0.0)
    assert most_possible(MOST * 1e-6, shares) == pytest.approx(MOST * 0.7)
    assert most_possible(3.9 + MOST * 1e-6, shares) == pytest.approx(4.0 + MOST * 0.7)


def test_common_units_are_those_that_cannot_carry_a_row_alone():
    shares = [share(10, 5.0, 5.0), share(20, 4.0, 4.0), share(900, 0.7, 0.1), share(500, 1.2, 0.8)]
    rare, common = split_common(shares)
    assert [item.frequency for item in common] == [900, 500]
    assert {item.frequency for item in rare} == {10, 20}
    assert split_common(shares[:2])[1] == []
