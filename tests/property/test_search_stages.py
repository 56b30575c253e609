"""For any candidates: what every stage, and all of them together, must keep."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cache

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from ragdocs.chunking.splitting import Limits
from ragdocs.config.settings import AdvancedSearchConfig, SearchConfig
from ragdocs.indices.hits import Hit
from ragdocs.indices.ngrams import MIN_BITS_SET, estimated_jaccard, jaccard, ngram_signature, ngrams
from ragdocs.search.boosts import BoostRules, recency_factor
from ragdocs.search.candidates import ChunkTree, Strategy, best_first, rescore, take_first
from ragdocs.search.confidence import Calibration
from ragdocs.search.dedup import (
    drop_identical,
    drop_near_copies,
    drop_similar,
    limit_per_document,
    select_mmr,
)
from ragdocs.search.fusion import by_ideal, by_range, fuse_by_rank, fuse_by_score
from ragdocs.search.requests import QueryRequest, Uniqueness
from ragdocs.search.sections import MergeRules, expand_to_parents, merge_siblings
from ragdocs.search.stages import (
    CompressionStats,
    StageTools,
    build_stages,
    cut_at_elbow,
    filter_by_confidence,
    run_stages,
)
from ragdocs.search.weighing import score_aware_weights
from tests.support.engine import ParsedCorpus, scores

NOW = datetime(2026, 3, 31, tzinfo=UTC)
SEVERAL = settings(max_examples=60, deadline=None)

BODIES = (
    "One thing is said here.",
    "One thing is said here!",
    "Another thing.",
    "語 and more",
    "x",
)
OUTLINES = (
    "# A\n## B\n### C\n### D\n#### E\n## F\n",
    "# A\n# B\n## C\n## D\n### E\n",
    "Only text.\n",
)


@cache
def corpus():
    found = ParsedCorpus()
    for number, outline in enumerate(OUTLINES * 2):
        lines = [
            f"{line}\n\n{BODIES[(number + at) % 5]}\n"
            for at, line in enumerate(outline.split("\n"))
        ]
        found.add(f"{number}.md", "\n".join(lines))
    return found


@cache
def leaves():
    return [(path, leaf) for path in corpus().documents for leaf in corpus().leaves(path)]


UNIT = st.floats(0, 1)
VECTORS = st.none() | st.tuples(*[st.floats(-1, 1, width=32)] * 3)


@st.composite
def found_candidates(draw):
    """Distinct leaves of several documents, best first."""
    chosen = draw(st.lists(st.sampled_from(range(len(leaves()))), unique=True, max_size=20))
    items = []
    for place in chosen:
        _, leaf = leaves()[place]
        name = leaf.chunk.id.removeprefix("docs:")
        vector, score, confidence = draw(VECTORS), draw(UNIT), draw(UNIT)
        items.append(corpus().candidate(name, score, vector, confidence=confidence))
    return best_first(items)


def ids(items):
    return [item.id for item in items]


def is_in_order(part, whole):
    rest = iter(ids(whole))
    return all(any(other == one for other in rest) for one in ids(part))


THINNING = st.one_of(
    st.just(drop_identical),
    UNIT.map(lambda t: lambda items: drop_near_copies(items, t)),
    UNIT.map(lambda t: lambda items: drop_similar(items, t)),
    UNIT.map(lambda t: lambda items: filter_by_confidence(items, t)),
    UNIT.map(lambda t: lambda items: cut_at_elbow(items, t)),
    st.integers(1, 4).map(lambda n: lambda items: limit_per_document(items, n)),
    st.integers(0, 9).map(lambda n: lambda items: take_first(items, n)),
)


@SEVERAL
@given(found_candidates(), THINNING)
def test_a_thinning_stage_keeps_the_order_and_a_second_run_changes_nothing(items, stage):
    left = stage(items)
    assert is_in_order(left, items)
    assert ids(stage(left)) == ids(left)


@SEVERAL
@given(found_candidates(), UNIT)
def test_of_every_group_the_best_stays(items, threshold):
    for left in (drop_identical(items), drop_near_copies(items, threshold)):
        assert ids(left[:1]) == ids(items[:1])


@SEVERAL
@given(found_candidates(), UNIT, st.integers(0, 12))
def test_mmr_chooses_distinct_candidates_and_the_best_first(items, weight, top_n):
    chosen = select_mmr(items, weight, top_n)
    assert len(chosen) == min(top_n, len(items))
    assert len(set(ids(chosen))) == len(chosen)
    assert set(ids(chosen)) <= set(ids(items))
    if chosen and weight > 0:
        assert chosen[0].score == items[0].score


@SEVERAL
@given(found_candidates(), UNIT, st.integers(1, 12))
def test_mmr_with_more_places_begins_with_the_same_choices(items, weight, top_n):
    assert ids(select_mmr(items, weight))[:top_n] == ids(select_mmr(items, weight, top_n))


@SEVERAL
@given(found_candidates(), st.lists(st.floats(-5, 5), max_size=25), UNIT)
def test_a_second_opinion_loses_nobody_and_scores_never_rise(items, opinions, weight):
    left = rescore(items, opinions, weight)
    assert sorted(ids(left)) == sorted(ids(items))
    assert scores(left) == sorted(scores(left), reverse=True)


RULES = st.builds(MergeRules, st.integers(0, 4), st.floats(0, 2), st.integers(0, 4), st.just(4_000))
NAMED = st.frozensets(st.sampled_from("ABCDEF")).map(lambda titles: titles.__contains__)


@SEVERAL
@given(found_candidates(), RULES, NAMED)
def test_merging_loses_no_match_and_never_nests(items, rules, is_named):
    merged = merge_siblings(items, corpus().nodes_of, rules, is_named)
    matched = {node.chunk.id for item in merged for node in item.found}
    assert set(ids(items)) == matched
    assert {item.best.chunk.id for item in merged} <= matched
    assert all(0 <= score <= 1 for score in scores(merged))
    for item in merged:
        tree = ChunkTree(corpus().nodes_of(item.document.id))
        assert all(tree.is_inside(node.chunk.id, item.id) for node in item.found)
        assert item.stored.chunk.depth >= rules.max_depth or not item.constituents
        others = [other for other in merged if other.document.id == item.document.id]
        assert not any(tree.is_inside(item.id, other.id) for other in others if other is not item)


@SEVERAL
@given(found_candidates(), RULES, NAMED, st.randoms())
def test_merging_does_not_depend_on_the_order_of_the_matches(items, rules, is_named, random):
    shuffled = list(items)
    random.shuffle(shuffled)

    def outcome(given_items):
        merged = merge_siblings(given_items, corpus().nodes_of, rules, is_named)
        return {(item.id, item.score, item.found) for item in merged}

    assert outcome(items) == outcome(shuffled)


def is_tiling(item):
    nodes = corpus().leaves(item.document.path)
    keys = [leaf.key for leaf in nodes]
    own = [leaf.key for leaf in item.passage or (item.stored,)]
    start = keys.index(own[0])
    return keys[start : start + len(own)] == own


@SEVERAL
@given(found_candidates(), RULES, st.integers(0, 200), st.integers(1, 200), st.integers(1, 8))
def test_passages_are_whole_hold_their_matches_and_never_overlap(items, rules, low, extra, top_n):
    merged = best_first(merge_siblings(items, corpus().nodes_of, rules, lambda _: False))
    size = Limits(low, low + extra)
    passages = expand_to_parents(merged, corpus().nodes_of, size, 20, top_n)
    seen = set()
    for item in passages:
        assert is_tiling(item)
        own = {leaf.key for leaf in item.passage or (item.stored,)}
        assert {node.key for node in item.found} <= own
        assert not own & seen
        seen |= own
    assert scores(passages) == sorted(scores(passages), reverse=True)


CONFIGS = st.builds(
    SearchConfig,
    min_confidence=UNIT,
    score_calibration_threshold=UNIT,
    score_calibration_steepness=st.floats(0.01, 10_000),
    max_chunks_per_doc=st.integers(0, 3),
    dedup_enabled=st.booleans(),
    dedup_similarity_threshold=UNIT,
    ngram_dedup_enabled=st.booleans(),
    ngram_dedup_threshold=UNIT,
    mmr_enabled=st.booleans(),
    mmr_lambda=UNIT,
    rerank_enabled=st.booleans(),
    rerank_top_n=st.integers(1, 10),
    merge_threshold=st.integers(0, 3),
    merge_bonus=st.floats(0, 10),
    max_merge_depth=st.integers(0, 4),
    cutoff_ratio=UNIT,
    advanced=st.just(AdvancedSearchConfig()),
)
REQUESTS = st.builds(
    QueryRequest,
    queries=st.just(("q",)),
    top_n=st.integers(1, 50),
    min_score=st.none() | UNIT,
    uniqueness=st.none() | st.sampled_from(Uniqueness),
    similarity_threshold=st.none() | UNIT,
)


def judge(items):
    return [len(item.text) % 7 / 6 for item in items]


TOOLS = st.builds(
    StageTools,
    nodes_of=st.just(corpus().nodes_of),
    is_named=NAMED,
    boosts=st.none() | st.builds(BoostRules, now=st.just(NOW), recency_bias=UNIT),
    judge=st.none() | st.just(judge),
    parent_size=st.none() | st.builds(Limits, st.just(50), st.integers(50, 300)),
)


@settings(max_examples=150, deadline=None)
@given(found_candidates(), CONFIGS, REQUESTS, TOOLS)
def test_at_most_top_n_scores_in_range_and_never_rising(items, config, request, tools):
    stages = build_stages(config, request, tools)
    found, counts = run_stages(stages, items)
    assert len(found) <= request.top_n
    assert all(0 <= item.score <= 1 and 0 <= item.confidence <= 1 for item in found)
    assert scores(found) == sorted(scores(found), reverse=True)
    assert len(set(ids(found))) == len(found)
    assert all(count.before >= count.after for count in counts)
    assert [count.after for count in counts[:-1]] == [count.before for count in counts[1:]]
    stats = CompressionStats.from_counts(len(items), counts)
    falling = (
        stats.original_count, stats.after_threshold, stats.after_content_dedup,
        stats.after_ngram_dedup, stats.after_dedup, stats.after_doc_limit, len(found),
    )  # fmt: skip
    assert list(falling) == sorted(falling, reverse=True)
    again, _ = run_stages(build_stages(config, request, tools), items)
    assert list(again) == list(found)


HITS = st.lists(st.tuples(st.integers(1, 12), st.floats(-10, 50)), max_size=10).map(
    lambda found: [Hit(key, score) for key, score in sorted(found, key=lambda hit: -hit[1])]
)
LISTS = st.dictionaries(st.sampled_from(Strategy), HITS)
WEIGHTS = st.dictionaries(st.sampled_from(Strategy), st.floats(0, 10))
FUSIONS = st.sampled_from(
    [
        lambda lists, weights: fuse_by_rank(lists, weights, 60),
        lambda lists, weights: fuse_by_score(lists, weights, by_range),
        lambda lists, weights: fuse_by_score(lists, weights, by_ideal({Strategy.KEYWORD: 30.0})),
    ]
)


@SEVERAL
@given(LISTS, WEIGHTS, FUSIONS)
def test_fusion_is_sorted_complete_and_the_sum_of_its_parts(lists, weights, fuse):
    fused = fuse(lists, weights)
    assert [item.score for item in fused] == sorted((i.score for i in fused), reverse=True)
    live = {s: hits for s, hits in lists.items() if weights.get(s, 1.0) > 0}
    assert sorted(item.key for item in fused) == sorted(
        {h.key for hits in live.values() for h in hits}
    )
    for item in fused:
        assert item.score == sum(item.contributions.values())
        assert item.contributions.keys() == item.evidence.keys()
        for strategy, evidence in item.evidence.items():
            assert evidence.score == max(h.score for h in live[strategy] if h.key == item.key)


@SEVERAL
@given(LISTS, WEIGHTS, FUSIONS)
def test_fusion_does_not_depend_on_the_order_of_the_indices(lists, weights, fuse):
    backwards = dict(reversed(lists.items()))
    assert fuse(lists, weights) == fuse(backwards, dict(reversed(weights.items())))


@SEVERAL
@given(
    st.dictionaries(st.sampled_from(Strategy), st.lists(UNIT, max_size=6)),
    st.dictionaries(st.sampled_from(Strategy), st.floats(0.01, 10)),
    UNIT,
    st.floats(0.01, 1),
)
def test_score_aware_weights_keep_their_sum(found, weights, threshold, least):
    after = score_aware_weights(weights, found, threshold, least)
    assert after.keys() == weights.keys()
    assert np.isclose(sum(after.values()), sum(weights.values()))


@given(st.floats(-1e6, 1e6), st.floats(-1e6, 1e6), UNIT, st.floats(0.01, 10_000))
def test_calibration_keeps_the_order(one, other, threshold, steepness):
    curve = Calibration(threshold, steepness)
    low, high = sorted((one, other))
    assert 0 <= curve.of(low) <= curve.of(high) <= 1


@given(st.integers(0, 20_000), st.integers(0, 20_000), UNIT)
def test_a_newer_document_never_gains_less(one, other, bias):
    older, newer = (NOW - timedelta(days=days) for days in (max(one, other), min(one, other)))
    assert 1 <= recency_factor(older, NOW, bias) <= recency_factor(newer, NOW, bias)


@SEVERAL
@given(st.text(max_size=300), st.text(max_size=300))
def test_the_estimate_of_similarity_is_near_the_truth(one, other):
    exact = jaccard(ngrams(one), ngrams(other))
    estimate = estimated_jaccard(ngram_signature(one), ngram_signature(other))
    assert estimate == estimated_jaccard(ngram_signature(other), ngram_signature(one))
    # Below this many bits chance decides, and dedup compares the sets themselves.
    if (ngram_signature(one) | ngram_signature(other)).bit_count() >= MIN_BITS_SET:
        assert abs(estimate - exact) <= 0.1


@SEVERAL
@given(found_candidates())
def test_stages_leave_what_they_were_given_alone(items):
    before = [replace(item) for item in items]
    limit_per_document(items, 1)
    merge_siblings(items, corpus().nodes_of, MergeRules(2, 0.1, 0, 4_000), lambda _: True)
    assert items == before
