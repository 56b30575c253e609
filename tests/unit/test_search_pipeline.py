from dataclasses import replace
from datetime import UTC, datetime

import pytest

from ragdocs.config.settings import SearchConfig
from ragdocs.search.boosts import BoostRules
from ragdocs.search.candidates import rescore
from ragdocs.search.requests import Filters, QueryRequest, Uniqueness, to_filter
from ragdocs.search.sections import names_all
from ragdocs.search.stages import CompressionStats, StageName, StageTools, build_stages, run_stages
from tests.support.engine import ParsedCorpus, candidates, places, scores, slugs

NOW = datetime(2026, 3, 31, tzinfo=UTC)
PLAIN = SearchConfig(
    ngram_dedup_enabled=False, merge_threshold=0, cutoff_ratio=0, max_chunks_per_doc=0,
    score_calibration_threshold=0.5, score_calibration_steepness=4,
)  # fmt: skip
ASKED = QueryRequest(queries=("q",), top_n=3)


def no_trees(_doc_id):
    raise AssertionError("no stage of this test may ask for a tree")


TOOLS = StageTools(nodes_of=no_trees)


def names(settings=PLAIN, request=ASKED, tools=TOOLS):
    return [stage.name for stage in build_stages(settings, request, tools)]


def run(items, settings=PLAIN, request=ASKED, tools=TOOLS):
    found, _ = run_stages(build_stages(settings, request, tools), items)
    return found


def changed(**given):
    return PLAIN.model_copy(update=given)


def asked(**given):
    return replace(ASKED, **given)


def judge(items):
    """A real, tiny second opinion: long texts first."""
    return [min(1.0, len(item.text) / 10) for item in items]


def test_a_stage_that_is_off_is_absent():
    assert names() == ["calibrate", "identical", "order", "top_n"]


def test_all_stages_run_in_the_order_of_the_design():
    settings = SearchConfig(
        candidate_limit=50, min_confidence=0.1, dedup_enabled=True, rerank_enabled=True
    )
    tools = replace(
        TOOLS,
        boosts=BoostRules(now=NOW),
        judge=judge,
        parent_size=object(),
        naming=lambda _: 0,
        within=to_filter(Filters(paths=("a",))),
    )
    request = asked()

    def without(*left_out):
        return [name for name in StageName if name not in left_out]

    assert names(settings, request, tools) == without(StageName.MMR)
    settings = settings.model_copy(update={"mmr_enabled": True})
    assert names(settings, request, tools) == without(StageName.SEMANTIC, StageName.ORDER)


@pytest.mark.parametrize(
    ("given", "stage"),
    [
        ({"min_confidence": 0.1}, "confidence"),
        ({"cutoff_ratio": 0.1}, "cutoff"),
        ({"ngram_dedup_enabled": True}, "ngram"),
        ({"dedup_enabled": True}, "semantic"),
        ({"mmr_enabled": True}, "mmr"),
        ({"max_chunks_per_doc": 1}, "document_limit"),
        ({"merge_threshold": 1}, "merge"),
    ],
)
def test_each_setting_brings_its_stage(given, stage):
    assert set(names(changed(**given))) - set(names()) == {stage}


def test_reranking_needs_a_judge():
    assert "rerank" not in names(changed(rerank_enabled=True))
    assert "rerank" not in names(tools=replace(TOOLS, judge=judge))
    assert "rerank" in names(changed(rerank_enabled=True), tools=replace(TOOLS, judge=judge))


def test_the_request_overrides_the_confidence_threshold():
    items = candidates(*"abc", scores=[0.9, 0.5, 0.1])
    assert len(run(items, changed(min_confidence=0.4))) == 2
    assert len(run(items, changed(min_confidence=0.4), asked(min_score=0.0))) == 3
    assert len(run(items, changed(min_confidence=0.4), asked(min_score=0.8))) == 1


def test_uniqueness():
    corpus = (
        ParsedCorpus().add("a.md", "# One\n\nSame.\n\n# Two\n\nOther.\n").add("b.md", "Same.\n")
    )
    one, two = corpus.candidate("a.md#one", 0.9), corpus.candidate("a.md#two", 0.8)
    copy = replace(corpus.candidate("b.md", 0.7), content_hash=b"x")
    items = [replace(one, content_hash=b"x"), two, copy]
    assert slugs(run(items)) == ["one", "two"]
    assert slugs(run(items, request=asked(uniqueness=Uniqueness.OFF))) == ["one", "two", "b.md"]
    assert slugs(run(items, request=asked(uniqueness=Uniqueness.DOCUMENT))) == ["one"]
    wanted = names(request=asked(uniqueness=Uniqueness.CONTENT))
    assert wanted == ["calibrate", "identical", "ngram", "semantic", "order", "top_n"]


def test_a_similarity_threshold_in_the_request_drops_what_is_as_similar():
    items = candidates(*"ab", vectors=[(1, 0), (0.6, 0.8)])
    assert places(run(items, request=asked(similarity_threshold=0.5))) == [0]
    assert places(run(items, request=asked(similarity_threshold=0.7))) == [0, 1]
    settings = changed(mmr_enabled=True)
    assert "mmr" not in names(settings, asked(similarity_threshold=0.5))


def test_filters_are_checked_again():
    tools = replace(TOOLS, within=to_filter(Filters(paths=("1.md",))))
    assert places(run(candidates(*"abc"), tools=tools)) == [1]


def test_mmr_picks_the_set_and_the_results_are_in_the_order_of_their_scores():
    vectors = [(1, 0), (0.99, 0.1), (0, 1), (-1, 0.1)]
    items = candidates(*"abcd", scores=[0.9, 0.89, 0.7, 0.6], vectors=vectors)
    found = run(items, changed(mmr_enabled=True, mmr_lambda=0.4, merge_threshold=2))
    assert places(found) == [0, 2, 3]


def test_the_document_limit_is_refilled_from_what_mmr_chose_later():
    corpus = (
        ParsedCorpus().add("a.md", "# One\n\nText.\n\n# Two\n\nText 2.\n").add("b.md", "Words.\n")
    )
    items = [
        corpus.candidate("a.md#one", 0.9, (1, 0)),
        corpus.candidate("a.md#two", 0.8, (0, 1)),
        corpus.candidate("b.md", 0.3, (1, 0.1)),
    ]
    settings = changed(mmr_enabled=True, mmr_lambda=0.5, max_chunks_per_doc=1)
    assert slugs(run(items, settings, asked(top_n=2))) == ["one", "b.md"]


def test_reranking_reorders_the_first_and_the_rest_follow_below():
    items = candidates("a", "bbb", "cc", "dddddddd", scores=[0.9, 0.8, 0.7, 0.6])
    settings = changed(rerank_enabled=True, rerank_top_n=3, rerank_weight=1.0)
    found = run(items, settings, asked(top_n=4), replace(TOOLS, judge=judge))
    assert places(found) == [1, 2, 0, 3]
    assert scores(found) == pytest.approx([0.3, 0.2, 0.1, 0.1])


def test_a_second_opinion_counts_by_its_weight_for_each_passage_alone():
    items = [
        item.with_changes(confidence=value)
        for item, value in zip(
            candidates(*"abc", scores=[0.9, 0.8, 0.7]), [0.6, 0.5, 0.4], strict=True
        )
    ]
    found = rescore(items, [0.1, 0.5], weight=0.25)
    assert places(found) == [1, 0, 2]
    assert scores(found) == pytest.approx([0.725, 0.7, 0.7])
    assert [item.confidence for item in found] == pytest.approx([0.5, 0.475, 0.4])
    other = rescore(items, [0.9, 0.5], weight=0.25)
    assert [item for item in other if item.id == items[1].id] == [found[0]]
    assert scores(rescore(items, [0.1, 0.5], weight=0.0)) == pytest.approx([0.9, 0.8, 0.7])


def test_a_second_opinion_is_brought_between_zero_and_one():
    items = candidates(*"abc", scores=[0.9, 0.8, 0.7])
    assert scores(rescore(items, [-3.0, 7.0], weight=1.0)) == pytest.approx([1.0, 0.0, 0.0])
    assert rescore(items, [], weight=1.0) == items


SECTIONS = (
    "# Top\n\n## Parts\n\n### One\n\nText one.\n\n### Two\n\nText two.\n\n## End\n\nThe end.\n"
)


def sections():
    corpus = ParsedCorpus().add("a.md", SECTIONS).add("b.md", "Words.\n")
    scored = {"b.md": 0.52, "a.md#end": 0.51, "a.md#one": 0.5, "a.md#two": 0.4}
    return corpus, [corpus.candidate(place, score) for place, score in scored.items()]


def test_a_merged_section_rises_before_the_cut():
    corpus, items = sections()
    tools = replace(TOOLS, nodes_of=corpus.nodes_of)
    settings = changed(merge_threshold=2, merge_bonus=0.1)
    assert slugs(run(items, request=asked(top_n=2))) == ["b.md", "end"]
    assert slugs(run(items, settings, asked(top_n=2), tools)) == ["parts", "b.md"]


def test_merging_counts_what_the_document_limit_left_out():
    corpus, items = sections()
    tools = replace(TOOLS, nodes_of=corpus.nodes_of)
    items = [items[2], items[3], items[0]]
    settings = changed(merge_threshold=2, max_chunks_per_doc=1)
    found = run(items, settings, tools=tools)
    assert slugs(found) == ["parts", "b.md"]
    assert len(found[0].constituents) == 2


def test_a_title_that_the_query_names_merges_its_section():
    corpus, items = sections()
    tools = replace(TOOLS, nodes_of=corpus.nodes_of, is_named=names_all({"parts"}, str.split))
    assert slugs(run(items[2:3], changed(merge_threshold=2), tools=tools)) == ["one"]
    tools = replace(
        tools, is_named=names_all(frozenset({"parts"}), lambda title: title.lower().split())
    )
    assert slugs(run(items[2:3], changed(merge_threshold=2), tools=tools)) == ["parts"]


def test_every_stage_is_counted_with_what_fell_there():
    items = candidates("a", "b", "a", "c", scores=[0.9, 0.8, 0.7, 0.1])
    stages = build_stages(changed(min_confidence=0.3), asked(top_n=1), TOOLS)
    ticks = iter(range(100))
    found, counts = run_stages(stages, items, explain=True, clock=lambda: next(ticks))
    assert places(found) == [0]
    assert [(count.name, count.before, count.after) for count in counts] == [
        ("calibrate", 4, 4),
        ("confidence", 4, 3),
        ("identical", 3, 2),
        ("order", 2, 2),
        ("top_n", 2, 1),
    ]
    fallen = [(fall.id, fall.reason) for count in counts for fall in count.fallen]
    assert fallen == [
        (items[3].id, "confidence 0.17 is below 0.3"),
        (items[2].id, f"the same text as {items[0].id}"),
        (items[1].id, "not among the first 1"),
    ]
    assert [count.seconds for count in counts] == [1, 1, 1, 1, 1]
    assert CompressionStats.from_counts(4, counts) == CompressionStats(4, 3, 2, 2, 2, 2, 0)


def test_an_empty_list_stays_empty():
    tools = replace(TOOLS, judge=judge, boosts=BoostRules(now=NOW))
    settings = SearchConfig(mmr_enabled=True, rerank_enabled=True, max_chunks_per_doc=1)
    assert run([], settings, tools=tools) == []


def spread_out():
    """a and b say the same, and are the best; c and d are others."""
    vectors = [(1, 0, 0), (0.99, 0.14, 0), (0, 1, 0), (0, 0, 1)]
    return candidates("aa", "bbbb", "c", "ddd", scores=[0.9, 0.85, 0.5, 0.4], vectors=vectors)


@pytest.mark.parametrize("judged", [judge, lambda items: []])
def test_a_second_opinion_orders_what_mmr_chose_and_chooses_nothing_else(judged):
    settings = changed(mmr_enabled=True, mmr_lambda=0.4, rerank_enabled=True)
    tools = replace(TOOLS, judge=judged)
    without = run(spread_out(), changed(mmr_enabled=True, mmr_lambda=0.4), asked(top_n=2))
    found = run(spread_out(), settings, asked(top_n=2), tools)
    assert {item.id for item in found} == {item.id for item in without}
    assert "bbbb" not in {item.text.strip() for item in found}


def test_what_was_not_judged_never_passes_what_was():
    corpus = ParsedCorpus().add("a.md", "# A\n\n## One\n\nfirst\n\n## Two\n\nsecond\n")
    corpus.add("b.md", "# B\n\nlong enough\n").add("c.md", "# C\n\nsomewhat\n")
    places_in_order = ["b.md#b", "c.md#c", "a.md#one", "a.md#two"]
    items = [corpus.candidate(place, score=0.9 - n / 10) for n, place in enumerate(places_in_order)]
    tools = StageTools(nodes_of=corpus.nodes_of, judge=lambda those: [0.8, 0.75][: len(those)])
    settings = changed(
        rerank_enabled=True,
        rerank_top_n=2,
        rerank_weight=1.0,
        merge_threshold=2,
        merge_bonus=0.5,
        max_merge_depth=1,
    )
    found = run(items, settings, asked(top_n=4), tools)
    assert slugs(found) == ["b", "c", "a"]
    assert scores(found) == pytest.approx([0.8, 0.75, 0.75])
