"""What a reader with little room is given, and what is said of the rest."""

import time

import pytest

from ragdocs.indices.keyword import compile_query
from ragdocs.models import ChunkId, DocId, TreeName
from ragdocs.search.budget import CITATION_TOKENS, Extent, Item, fences, pack, tokens
from ragdocs.search.passages import Passage, match_ranges
from ragdocs.search.query_language import parse_query
from ragdocs.search.responses import least_to_read
from tests.support.documents import parse
from tests.support.stores import ANALYZER

SENTENCE = "Some words are said here, and more of them follow. "


def item(text, query="", name="a"):
    data = text if isinstance(text, bytes) else text.encode()
    source = parse(data, "note.txt").source
    passage = Passage(source.text, source.span(0, len(source.text)), source.encoding)
    units = compile_query(parse_query(query), ANALYZER).units
    return Item(
        chunk_id=ChunkId(f"docs:{name}.md"),
        doc_id=DocId(f"docs:{name}.md"),
        tree=TreeName("docs"),
        path=f"{name}.md",
        heading_path=("Title",),
        passage=passage,
        matches=match_ranges(passage, units, ANALYZER),
    )


def room(given, text_tokens):
    """Room for so much of the text of one item."""
    return given.citation_tokens + text_tokens


def only(given, text_tokens):
    (packed,) = pack([given], room(given, text_tokens)).results
    return packed


def test_tokens_are_a_quarter_of_the_bytes_rounded_up():
    assert [tokens(text) for text in ("", "a", "abcd", "abcde", "日本")] == [0, 1, 1, 2, 2]


def test_a_result_costs_its_text_and_its_citation():
    given = item("abcd" * 10)
    assert given.tokens == 10 + CITATION_TOKENS + tokens("a.md") + tokens("Title")


def test_all_that_fits_is_kept_whole():
    items = [item("one"), item("two")]
    made = pack(items, 100)
    assert [(packed.place, packed.text) for packed in made.results] == [(0, "one"), (1, "two")]
    assert made.left_out == ()
    assert made.tokens == sum(given.tokens for given in items)


def test_the_first_that_does_not_fit_is_shortened_and_smaller_ones_behind_it_are_kept():
    items = [
        item("First.", name="a"),
        item("\n\n".join([SENTENCE * 4] * 6), name="b"),
        item(SENTENCE * 40, name="c"),
        item("Last.", name="d"),
    ]
    made = pack(items, 275)
    assert [(packed.place, packed.extent) for packed in made.results] == [
        (0, Extent.WHOLE),
        (1, Extent.SHORTENED),
        (3, Extent.WHOLE),
    ]
    assert [(gone.path, gone.extent) for gone in made.left_out] == [
        ("b.md", Extent.SHORTENED),
        ("c.md", Extent.LEFT_OUT),
    ]
    assert made.tokens <= 275


def test_what_is_missing_is_reported_with_a_way_to_get_it():
    made = pack([item("x\n" * 500, name='no"tes/a')], 60)
    (gone,) = made.left_out
    assert gone.fetch.arguments == {
        "document": 'docs:no"tes/a.md',
        "start_line": 1,
        "end_line": 500,
    }
    assert gone.id == 'docs:no"tes/a.md'
    assert gone.tokens == 250 + tokens('no"tes/a.md') + tokens("Title") + CITATION_TOKENS


def test_a_passage_is_cut_between_paragraphs():
    paragraphs = [f"Paragraph {number}. {SENTENCE * 2}".strip() for number in range(6)]
    packed = only(item("\n\n".join(paragraphs)), 100)
    assert packed.text == "\n\n".join(paragraphs[:3])
    assert (packed.span.line_start, packed.span.line_end) == (1, 5)


def test_a_paragraph_too_long_is_cut_between_sentences():
    packed = only(item(SENTENCE * 20), 60)
    assert packed.text == (SENTENCE * 4).strip()


def test_a_sentence_too_long_is_cut_between_words():
    packed = only(item("word " * 200), 30)
    assert packed.text == ("word " * 24).strip()


def test_text_without_spaces_is_cut_between_characters():
    packed = only(item("日本語の文章が続く" * 50), 30)
    assert 110 <= len(packed.text.encode()) <= 120
    thai = only(item("สวัสดี" * 50), 30).text
    assert thai
    assert set(thai.replace("สวัสดี", "")) <= set("สวั")
    assert not thai.endswith(("สว", "สวัสด"))  # their vowels stand above them


def test_what_was_looked_for_stays_in_the_middle():
    text = "\n\n".join([SENTENCE] * 8 + ["The zebra stands here."] + [SENTENCE] * 8)
    packed = only(item(text, "zebra"), 60)
    assert "zebra" in packed.text
    assert [packed.text[match.start : match.end] for match in packed.matches] == ["zebra"]
    assert 10 < packed.text.index("zebra") < len(packed.text) - 30
    data = text.encode()
    assert data[packed.span.byte_start : packed.span.byte_end].decode() == packed.text
    assert packed.matches[0].byte_start == data.index(b"zebra")


def test_a_fence_is_kept_whole_or_not_at_all():
    code = "```python\n" + "call(1, 2)\n\n" * 30 + "```"
    packed = only(item(f"Before the code. {SENTENCE}\n\n{code}\n\nAfter."), 60)
    assert packed.text == f"Before the code. {SENTENCE}".strip()
    packed = only(item(f"```\nshort()\n```\n\n{SENTENCE * 20}"), 50)
    assert packed.text.startswith("```\nshort()\n```")


def test_a_match_in_a_fence_that_is_too_long_gives_what_stands_before_it():
    code = "~~~\n" + "zebra(1, 2)\n" * 30 + "~~~"
    packed = only(item(f"Before the code.\n\n{code}", "zebra"), 50)
    assert packed.text == "Before the code."


def test_one_fence_or_one_word_that_is_too_long_is_cited_only():
    for text in ("```\n" + "call()\n" * 90 + "```", "x" * 5000):
        made = pack([item(text)], 100)
        (packed,) = made.results
        assert (packed.extent, packed.text) == (Extent.CITED, "")
        assert packed.tokens <= 100
        assert [gone.extent for gone in made.left_out] == [Extent.CITED]


def test_a_table_row_is_never_cut():
    rows = "".join(f"| name {number} | the use of it |\n" for number in range(40))
    packed = only(item(f"| a | b |\n|---|---|\n{rows}"), 50)
    assert packed.text.endswith(" |")
    assert packed.text.count("\n") >= 3


def test_a_heading_is_not_the_last_that_is_kept():
    packed = only(item(f"{SENTENCE * 2}\n\n## Next\n\n{'word' * 200}"), 60)
    assert packed.text == (SENTENCE * 2).strip()


def test_at_least_one_result_is_given_even_over_the_budget():
    made = pack([item(SENTENCE), item("b")], 1)
    assert [(packed.place, packed.extent) for packed in made.results] == [(0, Extent.CITED)]
    assert [gone.extent for gone in made.left_out] == [Extent.CITED, Extent.LEFT_OUT]
    assert pack([], 1).results == ()


def test_of_a_brief_result_only_the_place_is_kept_and_it_is_not_called_missing():
    items = [item(SENTENCE), item(SENTENCE * 40), item("b")]
    made = pack(items, 100, brief={1, 2})
    assert [(packed.extent, packed.text) for packed in made.results] == [
        (Extent.WHOLE, items[0].passage.text),
        (Extent.BRIEF, ""),
        (Extent.BRIEF, ""),
    ]
    assert made.left_out == ()
    assert made.tokens == items[0].tokens + items[1].place_tokens + items[2].place_tokens
    crowded = pack(items, items[0].tokens + items[1].place_tokens, brief={1, 2})
    assert [gone.extent for gone in crowded.left_out] == [Extent.LEFT_OUT]


@pytest.mark.parametrize(
    ("confidences", "least"),
    [
        ((0.9, 0.3, 0.2), 0.3),
        ((0.28, 0.29, 0.1, 0.09), 0.1),
        ((0.09, 0.05), 0.1),
        ((0.0, 0.0), 0.1),
        ((), 0.1),
    ],
)
def test_what_is_worth_reading_depends_on_the_best(confidences, least):
    assert least_to_read(confidences) == pytest.approx(least)


def test_text_is_cut_only_where_its_bytes_are_certain():
    mixed = b"One line. \r\nTwo words\nare there. " + SENTENCE.encode() * 10 + b"\r\nend"
    packed = only(item(mixed, "words"), 40)
    raw = mixed[packed.span.byte_start : packed.span.byte_end].decode()
    assert raw.replace("\r\n", "\n") == packed.text


def test_windows_line_ends_are_cut_at_the_right_bytes():
    data = f"{SENTENCE}\r\n\r\n".encode() * 9
    packed = only(item(data), 60)
    raw = data[packed.span.byte_start : packed.span.byte_end].decode()
    assert raw.replace("\r\n", "\n") == packed.text
    assert packed.extent is Extent.SHORTENED


def test_fences_by_the_rules_of_markdown():
    text = "````\n```\n````\nx\n~~~ a\n```\n~~~\n- ```py\n  x\n  ```\n``` a`b\n```\nopen"
    assert [text[slice(*at)] for at in fences(text)] == [
        "````\n```\n````",
        "~~~ a\n```\n~~~",
        "- ```py\n  x\n  ```",
        "```\nopen",
    ]


def test_monstrous_passages_take_linear_time():
    started = time.process_time()
    for text in (
        "x" * 2_000_000,
        "word " * 400_000,
        "\n" * 1_000_000,
        "```\n" * 200_000,
        "| " * 9**6,
    ):
        made = pack([item(text)], 5000)
        assert made.tokens <= 5000
    assert time.process_time() - started < 30
