import pytest

from ragdocs.search.candidates import ChunkTree, Evidence, Strategy, best_first
from ragdocs.search.sections import MergeRules, merge_siblings, merged_score, names_all
from tests.support.engine import ParsedCorpus, name_of, nobody, scores, slugs

GUIDE = """# Guide

Words of welcome.

## Error Handling

### Result Type

What a result is.

### Option Type

What an option is.

### Panics

When all is lost.

## Logging

### Levels

From trace to error.

### Sinks

#### Files

Where files go.

#### Sockets

Where streams go.
"""
API = "# API\n\nWhat there is.\n\n## Error Codes\n\nFrom 400 to 599.\n"
SEED = MergeRules(threshold=2, bonus=0.1, max_depth=2, max_bytes=4_000)


def corpus():
    return ParsedCorpus().add("guide.md", GUIDE).add("api.md", API)


def found(**scored):
    """Candidates of guide.md by slug, best first."""
    guide = corpus()
    items = [guide.candidate(f"guide.md#{slug.replace('_', '-')}", s) for slug, s in scored.items()]
    return best_first(items)


def merge(items, rules=SEED, is_named=nobody):
    return merge_siblings(items, corpus().nodes_of, rules, is_named)


def words(text):
    return text.lower().replace("-", " ").replace(".", " ").split()


def about(*terms):
    return names_all(frozenset(terms), words)


def test_the_formula_of_the_seed():
    assert merged_score(max(2.1, 1.8), 2, 0.1) == pytest.approx(2.52)


def test_the_example_of_the_seed():
    """Seed 004, its scores divided by ten: ours end at 1."""
    items = [corpus().candidate("api.md#error-codes", 0.32)]
    items += found(result_type=0.21, option_type=0.18)
    merged = best_first(merge(items, is_named=about("error")))
    assert slugs(merged) == ["error-codes", "error-handling"]
    assert scores(merged) == pytest.approx([0.32, 0.252])
    assert [name_of(node) for node in merged[1].constituents] == ["result-type", "option-type"]


def test_the_merged_text_is_the_section_as_it_stands_in_the_file():
    [section] = merge(found(panics=0.5, result_type=0.4))
    start, end = GUIDE.index("## Error Handling"), GUIDE.index("## Logging")
    assert section.text == GUIDE[start:end]
    assert (section.span.byte_start, section.span.byte_end) == (start, end)
    assert section.span.line_start == GUIDE[:start].count("\n") + 1


def test_constituents_are_in_the_order_of_the_document_with_their_own_spans():
    [section] = merge(found(panics=0.5, result_type=0.4))
    assert [name_of(node) for node in section.constituents] == ["result-type", "panics"]
    first = section.constituents[0].chunk
    assert GUIDE[first.span.byte_start : first.span.byte_end] == first.text


def test_one_match_alone_stays_as_it_is():
    items = found(result_type=0.5, levels=0.4)
    assert merge(items) == items


@pytest.mark.parametrize(("threshold", "is_merged"), [(0, False), (2, True), (3, True), (4, False)])
def test_the_threshold_says_how_many_siblings_are_enough(threshold, is_merged):
    items = found(result_type=0.5, option_type=0.4, panics=0.3)
    merged = merge(items, MergeRules(threshold, 0.1, 2, 4_000))
    assert (slugs(merged) == ["error-handling"]) is is_merged
    assert is_merged or merged == items


def test_a_child_and_a_parent_that_is_named_by_the_query_give_the_parent():
    items = found(result_type=0.5)
    [named] = merge(items, is_named=about("error"))
    assert slugs([named]) == ["error-handling"]
    assert named.score == pytest.approx(0.55)
    assert merge(items, is_named=about("error", "codes")) == items


def test_the_bonus_grows_with_the_children():
    [two] = merge(found(result_type=0.5, option_type=0.1))
    [three] = merge(found(result_type=0.5, option_type=0.1, panics=0.1))
    [plain] = merge(found(result_type=0.5, option_type=0.1), MergeRules(2, 0.0, 2, 4_000))
    assert scores([two, three, plain]) == pytest.approx([0.6, 0.65, 0.5])


def test_a_merged_score_ends_at_one():
    assert scores(merge(found(result_type=0.95, option_type=0.9))) == pytest.approx([1.0])


def test_merging_goes_on_upwards():
    items = found(files=0.5, sockets=0.4, levels=0.3)
    [logging] = merge(items)
    assert slugs([logging]) == ["logging"]
    # Sinks from its two, then Logging from Sinks and Levels.
    assert logging.score == pytest.approx(0.5 * 1.2 * 1.2)
    assert [name_of(node) for node in logging.constituents] == ["levels", "files", "sockets"]


@pytest.mark.parametrize(
    ("max_depth", "expected"),
    [
        (4, ["files", "sockets", "levels"]),
        (3, ["sinks", "levels"]),
        (2, ["logging"]),
        (1, ["logging"]),
    ],
)
def test_nothing_is_merged_above_the_maximum_depth(max_depth, expected):
    items = found(files=0.5, sockets=0.4, levels=0.3)
    assert slugs(merge(items, MergeRules(2, 0.1, max_depth, 4_000))) == expected


def test_depth_zero_allows_the_document():
    text = "Words before.\n\n# One\n\nText one.\n\n# Two\n\nText two.\n"
    notes = ParsedCorpus().add("notes.md", text)
    items = [notes.candidate(f"notes.md#{slug}", 0.5) for slug in ("one", "two")]
    [document] = merge_siblings(items, notes.nodes_of, MergeRules(2, 0.1, 0, 4_000), nobody)
    assert document.id == "docs:notes.md"
    assert document.text == text
    assert merge_siblings(items, notes.nodes_of, MergeRules(2, 0.1, 1, 4_000), nobody) == items


def test_a_document_whose_file_name_is_the_query_is_given_whole_when_several_passages_match():
    rules = MergeRules(2, 0.1, 0, 4_000)
    text = "# One\n\nText one.\n\n## Deep\n\nText two.\n\n# Three\n\nText three.\n"
    notes = ParsedCorpus().add("error-handling.md", text)
    deep, three, one = (
        notes.candidate(f"error-handling.md#{slug}", 0.5) for slug in ("deep", "three", "one~1")
    )
    strict = MergeRules(3, 0.1, 0, 4_000)
    whole = merge_siblings([deep, three, one], notes.nodes_of, strict, about("error"))
    assert slugs(whole) == ["error-handling.md"]
    assert len(merge_siblings([deep, three, one], notes.nodes_of, strict, nobody)) == 3
    assert merge_siblings([three], notes.nodes_of, rules, about("error")) == [three]


def test_slugs_that_begin_alike_are_not_ancestors():
    text = "# A\n\n## API\n\n### One\n\nText.\n\n### Two\n\nText.\n\n## API Errors\n\nText.\n"
    notes = ParsedCorpus().add("n.md", text)
    items = [notes.candidate(f"n.md#{slug}", 0.5) for slug in ("one", "two", "api-errors")]
    merged = merge_siblings(items, notes.nodes_of, SEED, nobody)
    assert slugs(merged) == ["api", "api-errors"]


def test_a_merged_section_takes_in_all_that_was_found_in_it():
    # Files is in Sinks, and so no child of Logging: it counts for the score, not for the bonus.
    [logging] = merge(found(files=0.8, levels=0.5), is_named=about("logging"))
    assert slugs([logging]) == ["logging"]
    assert logging.score == pytest.approx(0.88)
    assert [name_of(node) for node in logging.constituents] == ["levels", "files"]


def test_a_section_that_was_found_itself_takes_in_its_children():
    guide = corpus()
    sinks = guide.candidate("guide.md#sinks", 0.4, passage=tuple(guide.leaves("guide.md")[-2:]))
    [merged] = merge([*found(files=0.9), sinks])
    assert slugs([merged]) == ["sinks"]


def test_of_a_passage_and_one_inside_it_the_better_stays_when_they_may_not_merge():
    guide = corpus()
    sinks = guide.candidate("guide.md#sinks", 0.4, passage=tuple(guide.leaves("guide.md")[-2:]))
    items = found(files=0.9)
    rules = MergeRules(2, 0.1, 6, 4_000)
    assert slugs(merge([*items, sinks], rules)) == ["files"]


def test_a_merged_result_stands_where_its_first_child_stood():
    items = found(levels=0.9, result_type=0.8, files=0.7, option_type=0.6)
    assert slugs(merge(items)) == ["levels", "error-handling", "files"]


def test_a_larger_section_than_the_cap_is_not_merged_into():
    items = found(result_type=0.5, option_type=0.4)
    size = GUIDE.index("## Logging") - GUIDE.index("## Error Handling")
    assert slugs(merge(items, MergeRules(2, 0.1, 2, size))) == ["error-handling"]
    assert merge(items, MergeRules(2, 0.1, 2, size - 1)) == items


def test_the_match_is_the_best_of_what_was_found_not_of_what_was_merged_before():
    [section] = merge(found(levels=0.5, files=0.46, sockets=0.45))
    assert slugs([section]) == ["logging"]
    assert name_of(section.best) == "levels"


def test_the_best_place_of_each_index_is_kept_and_the_best_confidence():
    guide = corpus()
    one = guide.candidate(
        "guide.md#result-type", 0.5, confidence=0.2, evidence={Strategy.KEYWORD: Evidence(4, 1.0)}
    )
    two = guide.candidate(
        "guide.md#option-type",
        0.4,
        confidence=0.7,
        evidence={Strategy.KEYWORD: Evidence(2, 3.0), Strategy.SEMANTIC: Evidence(9, 0.4)},
    )
    [section] = merge([one, two])
    assert section.evidence == {
        Strategy.KEYWORD: Evidence(2, 3.0),
        Strategy.SEMANTIC: Evidence(9, 0.4),
    }
    assert section.confidence == pytest.approx(0.7)


def test_trees_are_not_fetched_where_nothing_can_merge():
    fetched = []
    items = [*found(result_type=0.5, levels=0.4), corpus().candidate("api.md#error-codes", 0.3)]
    merge_siblings(items, fetched.append, SEED, nobody)
    assert fetched == []


def test_the_tree_knows_what_is_inside_what():
    guide = corpus()
    tree = ChunkTree(guide.nodes_of("docs:guide.md"))
    files, logging = guide.node("guide.md#files"), guide.node("guide.md#logging")
    assert [node.chunk.slug for node in tree.ancestors(files.chunk.id)] == [
        "sinks", "logging", "guide", "",
    ]  # fmt: skip
    assert tree.is_inside(files.chunk.id, logging.chunk.id)
    assert not tree.is_inside(logging.chunk.id, files.chunk.id)
    assert [name_of(leaf) for leaf in tree.leaves(logging.chunk.id)] == [
        "levels", "files", "sockets",
    ]  # fmt: skip
    assert tree.leaves(files.chunk.id) == (guide.leaf("guide.md#files"),)


def test_a_query_without_words_names_nothing():
    assert not about()("Anything")
