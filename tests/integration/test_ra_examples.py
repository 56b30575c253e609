"""Seed 004's worked examples of searching, over a real index."""

import pytest

from ragdocs.search.requests import QueryRequest
from ragdocs.search.sections import merged_score
from tests.support.engine import SMALL, Engine

GUIDE = """# Guide

Words of welcome to whoever reads this.

## Error Handling

### Result Type

A result is an error or a value.

### Option Type

An option is a value, and never an error.

## Logging

What is written down, and where.
"""
NOTES = {
    "guide.md": GUIDE,
    "api.md": "# API\n\n## Error Codes\n\nEvery error has a code.\n",
    "docs/api/handlers.md": "# Requests\n\nHow they are taken.\n",
    "rust.md": "# Rust\n\nAsync tasks in rust. Nothing else.\n",
    "go.md": "# Go\n\nA goroutine of go, which is deprecated here.\n",
    "old.md": "# Old\n\nRust, deprecated long ago. Error handling, the legacy way.\n",
    "new.md": "# New\n\nThe error handling and the logging patterns of today.\n",
}
WORDS_ONLY = {
    "semantic_weight": 0.0,
    "graph_weight": 0.0,
    "cutoff_ratio": 0.0,
    "max_chunks_per_doc": 0,
    "ngram_dedup_enabled": False,
    "recency_bias": 0.0,
}


@pytest.fixture(scope="module")
def engine(tmp_path_factory):
    folder = tmp_path_factory.mktemp("examples")
    with Engine(folder, NOTES, sizes=SMALL, **WORDS_ONLY) as engine:
        yield engine


def answer(engine, *queries, **settings):
    request = QueryRequest(queries=queries, top_n=20)
    return engine.answer(request, **(WORDS_ONLY | settings)).results


def ids(results):
    return [result.id.removeprefix("docs:") for result in results]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("rust -deprecated", {"rust.md"}),
        ("rust OR goroutine", {"rust.md", "old.md", "go.md"}),
        ('"error handling" -legacy', {"guide.md", "new.md"}),
        ("title:rust async", {"rust.md"}),
        ("tree:docs goroutine", {"go.md"}),
        ("tree:elsewhere goroutine", set[str]()),
        ("path:docs/ requests", {"docs/api/handlers.md"}),
        ("(rust async) OR (go goroutine)", {"rust.md", "go.md"}),
        ('"error handling" logging', {"new.md"}),
    ],
)
def test_operators_and_their_precedence_decide_what_is_found(engine, query, found):
    assert {result.path for result in answer(engine, query, merge_threshold=0)} == found


@pytest.mark.parametrize("part", ["docs", "api", "handlers"])
def test_a_part_of_the_path_finds_the_file(engine, part):
    assert "docs/api/handlers.md" in {result.path for result in answer(engine, part)}


def test_two_siblings_and_a_named_parent_give_the_parent_with_its_parts(engine):
    """The seed's example: the children become one result, scored from the better one, which is
    cited under its own heading, and within their parent."""
    apart = answer(engine, "error", merge_threshold=0)
    together = answer(engine, "error", merge_threshold=2, merge_bonus=0.1, first_result_tokens=0)
    children = {"guide.md#result-type", "guide.md#option-type"}
    assert children <= set(ids(apart))
    assert len(children & set(ids(together))) == 1
    [section] = [one for one in together if one.parts]
    assert section.within.id == "docs:guide.md#error-handling"
    best = max(one.score for one in apart if ids([one])[0] in children)
    assert section.score == pytest.approx(min(1.0, merged_score(best, 2, 0.1)))
    assert [part.id for part in section.parts] == [
        "docs:guide.md#error-handling~1",  # with the headings above it
        "docs:guide.md#option-type",
    ]
    for part in section.parts:
        text = GUIDE[part.byte_start : part.byte_end]
        assert "Type\n" in text
        assert text[text.index("### ") :] in section.text


def test_the_numbers_of_the_seed():
    assert merged_score(2.1, 2, 0.1) == pytest.approx(2.52)
    assert merged_score(2.1, 2, 0.1) < 3.2  # so `#error-codes` stays first


def test_a_file_named_as_the_query_is_given_whole_only_where_that_is_allowed(tmp_path):
    parts = "".join(f"## Part {n}\n\nThe heron and its wing {n}.\n\n" for n in range(3))
    texts = {"heron.md": f"# Book of birds\n\n{parts}", "other.md": "# Other\n\nA heron.\n"}
    with Engine(tmp_path, texts, sizes=SMALL, **WORDS_ONLY) as engine:
        request = QueryRequest(queries=("heron",), top_n=20)
        usual = ids(engine.answer(request, **WORDS_ONLY, max_merge_depth=2).results)
        whole = engine.answer(request, **WORDS_ONLY, max_merge_depth=0).results
    assert len([one for one in usual if one.startswith("heron.md")]) > 1
    [heron] = [result for result in whole if result.path == "heron.md"]
    assert heron.within.id == "docs:heron.md#book-of-birds"
    assert heron.id == heron.matched.id


def test_several_topics_are_searched_apart_and_merged(engine):
    """Each chunk once, with the better of its scores, and the matches of both marked."""
    one = {r.id: r.score for r in answer(engine, "error handling", merge_threshold=0)}
    two = {r.id: r.score for r in answer(engine, "logging patterns", merge_threshold=0)}
    results = answer(engine, "error handling", "logging patterns", merge_threshold=0)
    found = [result.id for result in results]
    assert len(found) == len(set(found))
    assert set(found) == set(one) | set(two)
    [both] = [result for result in results if result.path == "new.md"]
    better = max(one[both.id], two[both.id])
    assert both.score == pytest.approx(better)
    marked = {
        NOTES["new.md"].encode()[match.byte_start : match.byte_end].decode()
        for match in both.matches
    }
    assert marked == {"error", "handling", "logging", "patterns"}
