"""What a list of results shows of a passage."""

import time
from itertools import pairwise

import pytest

from ragdocs.indices.conditions import Unit
from ragdocs.indices.keyword import compile_query
from ragdocs.models import Span
from ragdocs.search.passages import Passage, match_ranges
from ragdocs.search.query_language import parse_query
from ragdocs.search.snippets import (
    SnippetMaker,
    SnippetQuery,
    Style,
    is_character_border,
    is_word_border,
    sentences,
)
from tests.support.stores import ANALYZER

FILLER = "Nothing of interest stands in this sentence at all, really. "


def asked(query, frequencies=()):
    return SnippetQuery(query, compile_query(parse_query(query), ANALYZER).units, dict(frequencies))


def snippet(text, *queries, style=None, focus=None):
    questions = [query if isinstance(query, SnippetQuery) else asked(query) for query in queries]
    passage = Passage(text, Span(0, len(text.encode()), 1, 1 + text.count("\n")))
    units = [unit for question in questions for unit in question.units]
    matches = match_ranges(passage, units, ANALYZER)
    return SnippetMaker(ANALYZER, style).of(text, matches, questions, focus)


def test_a_short_passage_is_shown_whole_with_its_matches_marked():
    made = snippet("Running a server.", "run server")
    assert made.text == "Running a server."
    assert made.highlighted == "**Running** a **server**."
    assert made.highlights == ((0, 7), (10, 16))


def test_a_long_passage_is_cut_at_words_around_its_match():
    made = snippet(FILLER * 5 + "The zebra is striped. " + FILLER * 5, "zebra")
    assert made.text.startswith("…")
    assert made.text.endswith("…")
    assert 120 <= len(made.text) <= 152
    assert abs(made.text.index("zebra") - 75) < 25
    assert set(made.text.strip("…").split()) <= set(f"{FILLER} The zebra is striped.".split())


def test_the_window_with_most_distinct_words_wins_and_of_equals_the_first():
    text = f"red red. {FILLER * 4} red and blue here. {FILLER * 4} blue and red there."
    assert "red** and **blue** here" in snippet(text, "red blue").highlighted


def test_a_rare_word_is_worth_more_than_two_common_ones():
    text = f"A common use here. {FILLER * 5} The kubelet. {FILLER}"
    plain = asked("common use kubelet")
    counts = {("common",): 900, ("use",): 800, ("kubelet",): 2}
    rare = asked("common use kubelet", {unit: counts[unit.terms] for unit in plain.units})
    assert "**common**" in snippet(text, plain).highlighted
    assert "**kubelet**" in snippet(text, rare).highlighted


def test_the_markers_are_the_callers():
    made = snippet("a zebra", "zebra", style=Style(before="<b>", after="</b>"))
    assert made.highlighted == "a <b>zebra</b>"
    assert snippet("a **zebra** b", "zebra").highlighted == "a **zebra** b"


def test_white_space_is_collapsed_and_what_is_invisible_is_left_out_and_counted():
    made = snippet("one\n\n  two\t\u202ethree\u202c z\u00adebra\U000e0041\x1b x", "zebra")
    assert made.text == "one two three zebra x"
    assert made.highlighted == "one two three **zebra** x"
    assert made.hidden == 5


def test_joiners_stay_where_they_join_and_go_where_they_hide():
    family = "👨\u200d👩\u200d👧"
    assert snippet(f"a {family} b", "a").text == f"a {family} b"
    assert snippet("می\u200cخواهم zebra", "zebra").text == "می\u200cخواهم zebra"
    assert snippet("a\u200d\u200c\u200db \u200d zebra", "zebra").text == "ab zebra"


@pytest.mark.parametrize(
    ("text", "beginning"),
    [
        ("## Setup\n\nA zebra.", "Setup A zebra."),
        ("- first\n- a zebra", "first - a zebra"),
        ("1. [ ] a zebra", "a zebra"),
        ("> quoted zebra", "quoted zebra"),
        ("```python\n# zebra\nx = 1\n```", "zebra x = 1 ```"),
        ("# 1. A zebra", "A zebra"),
    ],
)
def test_a_snippet_does_not_begin_with_marks_of_structure(text, beginning):
    assert snippet(text, "zebra").text == beginning
    assert snippet(text, SnippetQuery("striped")).text == beginning


def test_marks_that_were_looked_for_are_shown():
    assert snippet("404) a zebra", "404").highlighted == "**404**) a zebra"


def test_an_identifier_is_shown_whole_when_a_part_of_it_matches():
    made = snippet(FILLER * 4 + "calls getUserByIdentity here " + FILLER * 4, "user")
    assert "get**User**ByIdentity" in made.highlighted


def test_inline_code_is_not_cut_when_that_can_be_avoided():
    for shift in range(60):
        text = "x " * 90 + "y" * shift + " `some code of many words` zebra " + "z" * shift
        text += " `and code behind it` " + FILLER * 3
        assert snippet(text, "zebra").text.count("`") % 2 == 0


def test_a_table_row_stays_readable():
    text = "| Name | Use |\n|---|---|\n| zebra | an   animal |\n"
    assert snippet(text, "zebra").text == "| Name | Use | |---|---| | zebra | an animal |"


def test_text_without_spaces_is_cut_between_characters():
    made = snippet("日本語の文章がここに続く" * 40 + "東京" + "まだまだ続いていく" * 40, "東京")
    assert "**東京**" in made.highlighted
    assert 140 <= len(made.text) <= 152


def test_text_from_right_to_left():
    made = snippet("זה משפט ארוך מאוד. " * 20 + "הזברה כאן. " + "ועוד משפט. " * 20, "הזברה")
    assert "**הזברה**" in made.highlighted
    assert len(made.text) <= 152


def test_several_queries_join_their_stretches_in_the_order_of_the_text():
    text = f"The logging part. {FILLER * 6} The error part. {FILLER * 6}"
    made = snippet(text, "error", "logging")
    assert made.text.startswith("The logging part.")
    assert made.text.index("logging") < made.text.index(" … ") < made.text.index("error")
    assert [made.text[slice(*at)] for at in made.highlights] == ["logging", "error"]


def test_overlapping_stretches_are_one_and_repeats_are_left_out():
    assert snippet("An error was logged.", "error", "log").highlighted == (
        "An **error** was **logged**."
    )
    line = f"{FILLER * 4} The zebra and the lion. {FILLER * 4}"
    assert snippet(line, "zebra", "zebra").text == snippet(line, "zebra").text


def test_a_query_without_matches_adds_nothing_beside_one_that_has():
    text = f"{FILLER * 6} The zebra."
    assert snippet(text, "zebra", "lion").text == snippet(text, "zebra").text


def test_a_semantic_hit_shows_the_sentence_with_the_most_alike_words():
    text = f"# Guide\n\n{FILLER * 4}\n\nEdit the config before you start. {FILLER * 4}"
    made = snippet(text, SnippetQuery("where are configurations edited"))
    assert made.text.startswith("…Edit the config before")
    assert made.highlights == ()


def test_where_nothing_is_alike_the_beginning_stands_for_the_passage():
    made = snippet(f"## Guide\n\nFirst of all. {FILLER * 5}", SnippetQuery("xylophone"))
    assert made.text.startswith("Guide First of all.")


def test_the_best_sentence_is_looked_for_where_the_vectors_found_it():
    text = f"Alpha begins. {FILLER * 4} Beta begins. {FILLER * 4}"
    focus = text.index("Beta"), len(text)
    assert snippet(text, SnippetQuery("xylophone"), focus=focus).text.startswith("…Beta begins.")


def test_sentences_end_at_marks_headings_items_and_blank_lines():
    text = "# A heading. Yes\nOne. Two!\n- item\n- more\n\nlast 終わり。次"
    assert [text[slice(*at)] for at in sentences(text, 0, len(text))] == [
        "# A heading. Yes",
        "One.",
        "Two!",
        "- item",
        "- more",
        "last 終わり。",
        "次",
    ]


def test_an_empty_text_or_query_has_no_snippet_to_choose():
    assert snippet("", "x").text == ""
    assert snippet(" \n ", "x").text == ""
    assert snippet("some text", SnippetQuery("")).text == "some text"


def test_borders_keep_together_what_is_seen_as_one_character():
    text = "a👨\u200d👩\u200d👧e\u0301🇩🇪🇫🇷👍🏽"
    borders = [at for at in range(len(text) + 1) if is_character_border(text, at)]
    pieces = [text[a:b] for a, b in pairwise(borders)]
    assert pieces == ["a", "👨\u200d👩\u200d👧", "e\u0301", "🇩🇪", "🇫🇷", "👍🏽"]
    assert not is_word_border("e\u0301t", 2)


@pytest.mark.parametrize(
    "text",
    [
        "x" * 1_000_000,
        "word " * 200_000 + "needle",
        "`" * 300_000,
        "." * 300_000,
        "\n" * 300_000,
        " " * 300_000 + "x",
        "# " * 150_000,
        "\n> " * 100_000,
        "e" + "\u0301" * 300_000,
        "👨\u200d" * 100_000,
        "🇩🇪" * 100_000,
    ],
    ids=lambda text: repr(text[:3]),
)
def test_monstrous_passages_take_linear_time(text):
    started = time.process_time()
    for query in (asked("needle"), SnippetQuery("something else", (Unit(("x",)),))):
        assert len(snippet(text, query).text) <= 152
    assert time.process_time() - started < 20
