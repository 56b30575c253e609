import pytest

from ragdocs.indices.hits import Hit
from ragdocs.search.candidates import Evidence, Strategy
from ragdocs.search.fusion import Wanted, by_ideal, by_range, fuse_by_rank, fuse_by_score
from ragdocs.store.records import ChunkKey

SEMANTIC, KEYWORD, CODE, GRAPH = Strategy
AUTH, API, SECURITY, OAUTH, DEPLOY = map(ChunkKey, range(1, 6))


def hits(*found):
    return [Hit(ChunkKey(key), score) for key, score in found]


def keys(fused):
    return [item.key for item in fused]


# Seed 001, the worked example of fusion.
EXAMPLE = {
    SEMANTIC: hits((AUTH, 0.92), (SECURITY, 0.85), (API, 0.78)),
    KEYWORD: hits((API, 15.3), (AUTH, 12.7), (OAUTH, 8.4)),
    GRAPH: hits((DEPLOY, 0.5)),
}


def test_ranks_count_from_one():
    [only] = fuse_by_rank({KEYWORD: hits((AUTH, 9.9))}, {}, k=60)
    assert only.score == 1 / 61
    assert only.evidence == {KEYWORD: Evidence(1, 9.9)}


def test_the_worked_example_of_the_seed():
    fused = fuse_by_rank(EXAMPLE, {GRAPH: 0.5}, k=60)
    assert keys(fused) == [AUTH, API, SECURITY, OAUTH, DEPLOY]
    assert [round(item.score, 4) for item in fused] == pytest.approx(
        [0.0325, 0.0323, 0.0161, 0.0159, 0.0082]
    )


def test_weights_multiply_each_part_and_the_parts_make_the_score():
    fused = {item.key: item for item in fuse_by_rank(EXAMPLE, {SEMANTIC: 1.2, KEYWORD: 0.8}, k=10)}
    assert fused[AUTH].contributions == pytest.approx({SEMANTIC: 1.2 / 11, KEYWORD: 0.8 / 12})
    assert fused[AUTH].score == sum(fused[AUTH].contributions.values())


def test_a_smaller_k_gives_the_first_places_more_say():
    lists = {SEMANTIC: hits((1, 0.9), (2, 0.8), (3, 0.7)), KEYWORD: hits((9, 5), (3, 4), (2, 1))}
    agreed, first = fuse_by_rank(lists, {}, k=60), fuse_by_rank(lists, {}, k=0)
    assert set(keys(agreed)[:2]) == {2, 3}
    assert keys(first)[:2] == [1, 9]


def test_an_index_of_weight_zero_has_no_say_at_all():
    assert keys(fuse_by_rank(EXAMPLE, {KEYWORD: 0.0, GRAPH: 0.0})) == [AUTH, SECURITY, API]


def test_equal_scores_are_ordered_by_best_place_then_key():
    lists = {SEMANTIC: hits((7, 0.9), (3, 0.5)), KEYWORD: hits((5, 2.0), (4, 1.0))}
    assert keys(fuse_by_rank(lists, {})) == [5, 7, 3, 4]


def test_a_chunk_that_stands_twice_in_a_list_counts_once_at_its_better_place():
    fused = fuse_by_rank({CODE: hits((1, 3.0), (1, 2.0), (2, 1.0))}, {}, k=60)
    assert [(item.key, item.score) for item in fused] == [(1, 1 / 61), (2, 1 / 62)]
    assert fused[0].evidence[CODE].score == pytest.approx(3.0)


def test_score_fusion_is_the_weighted_mean_of_cosine_and_bm25_over_ideal():
    fused = fuse_by_score(EXAMPLE, {GRAPH: 0.0}, by_ideal({KEYWORD: 20.0}))
    by_key = {item.key: item for item in fused}
    assert by_key[AUTH].score == pytest.approx(0.5 * 0.92 + 0.5 * 12.7 / 20)
    assert by_key[AUTH].contributions == pytest.approx({SEMANTIC: 0.46, KEYWORD: 0.3175})
    assert by_key[OAUTH].score == pytest.approx(0.5 * 8.4 / 20)


def test_the_weights_are_the_a_of_score_fusion():
    weights = {SEMANTIC: 0.3 * 5, KEYWORD: 0.7 * 5, GRAPH: 0.0}
    by_key = {i.key: i.score for i in fuse_by_score(EXAMPLE, weights, by_ideal({KEYWORD: 20.0}))}
    assert by_key[API] == pytest.approx(0.3 * 0.78 + 0.7 * 15.3 / 20)


def test_poor_coverage_of_the_words_gives_keyword_search_less_say():
    lists = {SEMANTIC: hits((1, 0.6), (2, 0.5)), KEYWORD: hits((2, 4.0), (1, 2.0))}
    assert keys(fuse_by_score(lists, {}, by_ideal({KEYWORD: 5.0})))[0] == 2
    assert keys(fuse_by_score(lists, {}, by_ideal({KEYWORD: 50.0})))[0] == 1
    assert keys(fuse_by_score(lists, {}, by_range)) == [1, 2]


def test_code_and_graph_add_to_a_score_and_take_nothing_when_absent():
    plain = {SEMANTIC: hits((1, 0.5)), KEYWORD: hits((1, 5.0))}
    more = {**plain, CODE: hits((2, 1.0)), GRAPH: hits((1, 0.2))}
    scale = by_ideal({KEYWORD: 10.0})
    [alone] = fuse_by_score(plain, {}, scale)
    by_key = {item.key: item.score for item in fuse_by_score(more, {}, scale)}
    assert alone.score == pytest.approx(0.5)
    assert by_key == pytest.approx({1: 0.6, 2: 0.5})


def test_an_index_that_found_nothing_keeps_its_part_of_the_score():
    [asked] = fuse_by_score({SEMANTIC: hits((1, 0.8)), KEYWORD: []}, {}, by_ideal({}))
    [alone] = fuse_by_score({SEMANTIC: hits((1, 0.8))}, {}, by_ideal({}))
    assert (asked.score, alone.score) == (pytest.approx(0.4), pytest.approx(0.8))


def test_scales_stay_between_zero_and_one():
    assert by_ideal({KEYWORD: 10.0})(KEYWORD, [12.0, 5.0, -1.0]) == pytest.approx([1.0, 0.5, 0.0])
    assert by_ideal({KEYWORD: 0.0})(KEYWORD, [1.0]) == pytest.approx([0.0])
    assert by_range(KEYWORD, [8.0, 6.0, 4.0]) == pytest.approx([1.0, 0.5, 0.0])
    assert by_range(KEYWORD, [3.0]) == pytest.approx([1.0])
    assert by_range(KEYWORD, []) == []


def test_fusing_empty_lists_gives_an_empty_list():
    assert fuse_by_rank({}, {}) == []
    assert fuse_by_score({SEMANTIC: [], KEYWORD: []}, {}, by_range) == []


def test_what_is_wanted_is_as_it_stands_among_all():
    scale = by_ideal({KEYWORD: 20.0, CODE: 1.0})
    every = fuse_by_score(EXAMPLE, {}, scale)
    some = fuse_by_score(EXAMPLE, {}, scale, Wanted(2, frozenset({OAUTH})))
    assert some == [every[0], every[1], *(item for item in every[2:] if item.key == OAUTH)]
    assert len(some) == 3
