from dataclasses import replace

import pytest

from ragdocs.config.settings import SearchConfig
from ragdocs.search.candidates import Evidence, ExactToken, Grounds, Strategy
from ragdocs.search.confidence import (
    CODE_PART,
    LACK_WEIGHT,
    NAMED_WEIGHT,
    TOKEN_WEIGHT,
    UNASKED,
    WISHED,
    Measures,
    Question,
    combine,
    question_evidence,
    rarity,
    with_evidence,
    worth,
)
from tests.support.engine import candidates

QUESTION = Question(words=5, rarity=0.5, spread=0.1, passages=1000)


def measures(nearness, **ideals):
    known = {Strategy(kind): ideal for kind, ideal in ideals.items()}
    return Measures(nearness, known, question=QUESTION)


def judged(items, nearness, **ideals):
    known = dict(zip((item.stored.key for item in items), nearness, strict=True))
    return [item.relevance for item in with_evidence(items, measures(known, **ideals))]


def words(item, score, kind=Strategy.KEYWORD):
    return replace(item, evidence={kind: Evidence(1, score)})


def test_other_candidates_do_not_change_the_evidence():
    items = candidates("a", "b", "c")
    alone = [judged([item], [near])[0] for item, near in zip(items, (0.5, 0.4, 0.1), strict=True)]
    assert judged(items, [0.5, 0.4, 0.1]) == pytest.approx(alone)


def test_nearness_and_words_both_speak_for_a_passage():
    one, other = candidates("a", "b")
    first, second = judged([words(one, 6.0), other], [0.4, 0.4], keyword=10.0)
    assert first > second
    nearer, further = judged([words(one, 6.0), words(other, 6.0)], [0.5, 0.4], keyword=10.0)
    assert nearer > further


def test_words_count_for_more_in_a_longer_question():
    assert combine(0.2, 0.8, 12) > combine(0.2, 0.8, 5) > combine(0.2, 0.8, 3)
    assert combine(0.3, 0.3, 40) == pytest.approx(0.3)


def test_a_single_word_prefers_passages_that_have_it():
    assert combine(0.1, 1.0, 1) > 0.5 > combine(0.1, 1.0, 2)
    assert combine(0.9, 0.0, 1) == pytest.approx(combine(0.9, 0.0, 2))


def test_words_in_code_count_for_a_part_of_those_in_prose():
    (item,) = candidates("a")
    ideals = {"keyword": 10.0, "code": 5.0}
    (code,) = judged([words(item, 5.0, Strategy.CODE)], [0.4], **ideals)
    (prose,) = judged([words(item, 10.0 * CODE_PART)], [0.4], **ideals)
    assert code == pytest.approx(prose)


def test_what_was_not_asked_is_taken_to_be_as_usual():
    (item,) = candidates("a")
    (by_words,) = with_evidence([words(item, 5.0)], measures(None, keyword=10.0))
    known = measures({item.stored.key: 0.5 * UNASKED}, keyword=10.0)
    (by_both,) = with_evidence([words(item, 5.0)], known)
    assert by_words.relevance == pytest.approx(by_both.relevance)
    (by_meaning,) = with_evidence([item], measures({item.stored.key: 0.5}))
    assert by_meaning.relevance == pytest.approx(
        worth(Grounds(0.5, 0.5), 5) + question_evidence(QUESTION)
    )


def test_where_no_word_is_known_meaning_alone_counts():
    (item,) = candidates("a")
    known = measures({item.stored.key: 0.5}, keyword=10.0)
    (with_words,) = with_evidence([item], known)
    (without,) = with_evidence([item], replace(known, has_known_words=False))
    assert with_words.grounds.coverage == pytest.approx(0.0)
    assert without.grounds.coverage is None
    assert without.relevance > with_words.relevance


def test_rare_words_say_more_and_many_passages_less():
    assert question_evidence(QUESTION._replace(rarity=0.9)) > question_evidence(QUESTION)
    assert question_evidence(QUESTION._replace(passages=5000)) < question_evidence(QUESTION)
    assert question_evidence(QUESTION._replace(spread=0.12)) < question_evidence(QUESTION)


def test_the_spread_of_a_few_passages_says_little():
    few, many = QUESTION._replace(passages=4), QUESTION._replace(passages=1000)
    of_few = question_evidence(few) - question_evidence(few._replace(spread=0.13))
    of_many = question_evidence(many) - question_evidence(many._replace(spread=0.13))
    assert 0 < of_few < of_many / 4


def test_half_of_the_passages_change_little():
    """Ten points at most, where the curve is steepest."""
    half = question_evidence(QUESTION._replace(passages=500)) - question_evidence(QUESTION)
    assert 0 < SearchConfig().score_calibration_steepness * half / 4 < 0.1


def test_a_tiny_folder_does_not_raise_confidence():
    smallest = question_evidence(QUESTION._replace(passages=1))
    assert smallest == pytest.approx(question_evidence(QUESTION._replace(passages=100)))


def test_rarity_is_the_mean_of_the_words():
    assert rarity(800, [1]) == pytest.approx(1.0)
    assert rarity(800, [0, 1]) == pytest.approx(1.0)
    assert rarity(100_000, [100_000]) < 0.01
    assert rarity(800, [1, 800]) == pytest.approx((1 + rarity(800, [800])) / 2)


def test_a_word_that_is_as_frequent_in_more_documents_is_as_rare():
    assert rarity(20_000, [400]) == pytest.approx(rarity(10_000, [200]), abs=0.01)


def test_a_copy_in_a_small_folder_makes_no_word_common():
    assert rarity(5, [2]) > 0.65
    assert rarity(5, [1]) - rarity(5, [2]) < 0.1


@pytest.mark.parametrize("unknown", [[], [0], [0, 0]])
def test_words_that_nobody_has_say_nothing_by_being_rare(unknown):
    assert rarity(1000, unknown) == pytest.approx(Question().rarity)
    assert rarity(0, unknown) == pytest.approx(Question().rarity)


def test_a_heading_that_is_the_question_speaks_for_its_passage():
    (item,) = candidates("a")
    known = measures({item.stored.key: 0.5})
    (plain,) = with_evidence([item], known)
    (named,) = with_evidence([item], replace(known, naming=lambda title: 1))
    assert named.relevance - plain.relevance == pytest.approx(NAMED_WEIGHT)


def test_a_rare_code_is_there_or_it_is_missed():
    one, other = candidates("a", "b")
    known = measures({one.stored.key: 0.5, other.stored.key: 0.5})
    (plain, _) = with_evidence([one, other], known)
    there = replace(known, tokens=(ExactToken(frozenset({one.stored.key}), 1),))
    has, lacks = with_evidence([one, other], there)
    assert has.relevance - plain.relevance == pytest.approx(TOKEN_WEIGHT)
    assert lacks.relevance - plain.relevance == pytest.approx(-LACK_WEIGHT)
    nowhere = with_evidence([one, other], replace(known, tokens=(ExactToken(frozenset(), 0),)))
    assert [item.grounds.token for item in nowhere] == pytest.approx([-1, -1])


def test_a_code_that_several_documents_have_tells_less():
    (item,) = candidates("a")
    known = measures({item.stored.key: 0.5})

    def told(documents):
        token = ExactToken(frozenset({item.stored.key}), documents)
        (found,) = with_evidence([item], replace(known, tokens=(token,)))
        return found.grounds.token

    assert told(1) > told(2) > told(3) == pytest.approx(0.0)


def test_a_passage_counts_by_the_most_telling_code_that_it_has():
    (item,) = candidates("a")
    known = measures({item.stored.key: 0.5})
    own, other = ExactToken(frozenset({item.stored.key}), 2), ExactToken(frozenset(), 0)
    (found,) = with_evidence([item], replace(known, tokens=(other, own)))
    assert found.grounds.token == pytest.approx(own.strength)


def test_a_quotation_counts_as_far_as_it_is_rare():
    one, other = candidates("a", "b")
    known = measures({one.stored.key: 0.5, other.stored.key: 0.5})
    wished = replace(known, wishes=((frozenset({one.stored.key}), 0.5),))
    has, lacks = with_evidence([one, other], wished)
    half = (WISHED - worth(lacks.grounds, 5)) / 2
    assert has.relevance - lacks.relevance == pytest.approx(half)


def test_what_the_evidence_was_made_from_is_kept():
    (item,) = candidates("a")
    known = measures({item.stored.key: 0.4}, keyword=10.0)
    (found,) = with_evidence([words(item, 6.0)], known)
    assert found.grounds == Grounds(pytest.approx(0.4), pytest.approx(0.6))
    assert found.relevance == pytest.approx(worth(found.grounds, 5) + question_evidence(QUESTION))


def test_candidates_without_measures_get_the_questions_evidence():
    assert with_evidence([], Measures({}, {})) == []
    (item,) = with_evidence(candidates("a"), Measures(None, {}))
    assert item.relevance == pytest.approx(question_evidence(Question()))
