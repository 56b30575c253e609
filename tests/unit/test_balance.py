import pytest

from ragdocs.indices.conditions import Unit
from ragdocs.search.candidates import Strategy
from ragdocs.search.fusion import (
    FAIRLY_PROMINENT,
    FEW_CHUNKS,
    LARGEST_SHARE,
    NAME_SHARE,
    PROMINENT,
    SMALLEST_SHARE,
    Signs,
    balance,
    rare_weights,
    semantic_share,
)

EVEN = {Strategy.SEMANTIC: 1.0, Strategy.KEYWORD: 1.0, Strategy.GRAPH: 0.7, Strategy.CODE: 0.3}
USUAL = Signs(similarity=0.5, prose=0.5, code=0.0, words=5)


def share(configured=0.5, **signs):
    return semantic_share(configured, USUAL._replace(**signs))


def test_a_near_passage_speaks_for_meaning_and_a_long_query_for_words():
    assert share() == pytest.approx(0.60)
    assert share(similarity=0.6) == pytest.approx(0.70)
    assert share(words=3) > share() > share(words=10)


def test_a_passage_with_most_of_the_words_speaks_for_words():
    assert share(prose=0.7) == pytest.approx(0.50)
    assert share(code=0.7) == share(prose=0.7)
    assert share(prose=0.2) == share()


def test_that_nothing_is_near_speaks_for_nothing():
    assert share(similarity=0.1) == share()


def test_one_word_may_be_a_name_and_says_as_much_as_four():
    assert share(words=0) == share(words=1) == share(words=4)


def test_a_name_that_prose_has_limits_the_share_of_meaning():
    name = {"is_name": True, "prose": 0.3}
    assert share(similarity=0.2, **name) == share(similarity=0.4, **name) == pytest.approx(0.3)
    assert share(similarity=0.45, **name) == pytest.approx(0.45)  # more as something is near
    assert share(similarity=0.6, **name) == share(similarity=0.6, prose=0.3)


def test_a_name_that_nothing_has_is_left_to_meaning():
    assert share(similarity=0.2, is_name=True, prose=0.0) == share()


def test_both_always_have_a_say():
    assert share(similarity=1.0, prose=0.0, words=1) == LARGEST_SHARE
    assert share(similarity=0.0, prose=1.0, words=50) == SMALLEST_SHARE


def test_the_configured_weights_are_where_it_starts():
    assert share(0.6) == pytest.approx(share(0.5) + 0.1)


@pytest.mark.parametrize(("prose", "left"), [(0.0, 1.0), (0.5, 1.0), (0.6, 0.5), (0.8, 0.0)])
def test_where_prose_has_the_words_code_has_less_to_add(prose, left):
    shifted = balance(EVEN, USUAL._replace(prose=prose))
    assert shifted[Strategy.CODE] == pytest.approx(left * EVEN[Strategy.CODE])


def test_the_sum_and_the_weight_of_links_stay():
    shifted = balance(EVEN, Signs(0.65, 0.4, 0.0, 4))
    assert shifted[Strategy.GRAPH] == pytest.approx(0.7)
    assert shifted[Strategy.SEMANTIC] + shifted[Strategy.KEYWORD] == pytest.approx(2.0)


@pytest.mark.parametrize("off", [Strategy.SEMANTIC, Strategy.KEYWORD])
def test_an_index_that_is_off_stays_off(off):
    weights = {**EVEN, off: 0.0}
    assert balance(weights, Signs(0.9, 0.0, 0.0, 1)) == weights


def test_rare_words_of_one_document_take_from_meaning_where_no_passage_stands_out():
    assert share(rare=0.2) == share()
    assert share(rare=0.5) == pytest.approx(0.5)
    assert share(rare=1.0) == pytest.approx(NAME_SHARE)
    assert share(rare=1.0, prominence=FAIRLY_PROMINENT) == share(rare=1.0)
    assert share(rare=1.0, prominence=PROMINENT) == share()


def test_a_word_counts_the_more_the_rarer_it_is():
    once, often, nowhere = Unit(("once",)), Unit(("often",)), Unit(("nowhere",))
    weights = rare_weights(1000, {once: 1, often: 20, nowhere: 0})
    assert weights.keys() == {once, often}
    assert weights[once] > 2 * weights[often] > 0
    assert rare_weights(1000, {once: 1}) == pytest.approx({once: 1.0})
    assert rare_weights(1000, {often: FEW_CHUNKS + 1}) == {}
