"""Where the words of a query stand in a passage, in characters, bytes and lines."""

import time

import pytest

from ragdocs.indices.conditions import Unit
from ragdocs.indices.keyword import compile_query
from ragdocs.models import QueryField, Span
from ragdocs.search.passages import Passage, densest, match_ranges
from ragdocs.search.query_language import parse_query
from tests.support.documents import parse
from tests.support.stores import ANALYZER


def whole_file(data):
    """A file as one passage, decoded as the index would."""
    source = parse(data, "note.txt").source
    return Passage(source.text, source.span(0, len(source.text)), source.encoding)


def found(text, query):
    passage = whole_file(text) if isinstance(text, bytes) else whole_file(text.encode())
    return match_ranges(passage, compile_query(parse_query(query), ANALYZER).units, ANALYZER)


def words(text, query):
    return [text[match.start : match.end] for match in found(text, query)]


def test_a_stem_marks_the_word_it_came_from():
    assert words("He runs. Running is fun; a runner ran.", "run") == ["runs", "Running"]


def test_case_and_composition_do_not_matter():
    assert words("CAFE\u0301 und café", "Café") == ["CAFE\u0301", "café"]


def test_a_phrase_marks_only_words_that_follow_one_another():
    text = "error handling, and the handling of an error; error\nhandling"
    assert words(text, '"error handling"') == ["error handling", "error\nhandling"]


def test_a_phrase_that_repeats_itself_is_found_in_every_place():
    assert words("a b a b a c", '"a b a"') == ["a b a b a"]
    assert words("x x x y x x y", '"x x y"') == ["x x y", "x x y"]


def test_a_word_too_long_to_keep_keeps_a_phrase_apart():
    assert words(f"error {'z' * 300} handling", '"error handling"') == []


def test_an_identifier_and_its_parts_are_one_range():
    text = "Call getUserById(x) or user."
    (whole, *_) = found(text, "getUserById")
    assert text[whole.start : whole.end] == "getUserById"
    assert {unit.terms for unit in whole.units} >= {("getuserbyid",), ("user",)}
    assert words(text, "user") == ["User", "user"]


def test_touching_parts_are_one_range():
    assert words("the readFile call", "read file") == ["readFile"]
    assert words("the read_file call", "read file") == ["read", "file"]


def test_scripts_without_spaces_and_from_right_to_left():
    assert words("東京都は日本の首都です。", "日本") == ["日本"]
    assert words("東京都に住む", "東京都") == ["東京都"]
    assert words("שלום עולם, שלום", "שלום") == ["שלום", "שלום"]


def test_only_units_of_the_text_mark_it():
    passage = whole_file(b"guide to the guide")
    for field, count in [
        (None, 2),
        (QueryField.CONTENT, 2),
        (QueryField.HEADERS, 2),
        (QueryField.TITLE, 0),
        (QueryField.TAGS, 0),
    ]:
        assert len(match_ranges(passage, [Unit(("guid",), field)], ANALYZER)) == count
    assert match_ranges(passage, [Unit(())], ANALYZER) == ()


def test_lines_are_the_files_own():
    passage = Passage("one\ntwo error\nhandling", Span(100, 122, 7, 9))
    (match,) = match_ranges(passage, [Unit(("error", "handl"))], ANALYZER)
    assert (match.line_start, match.line_end) == (8, 9)
    assert (match.byte_start, match.byte_end) == (108, 122)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
def test_bytes_are_exact_in_every_encoding_and_with_every_line_end(encoding, end):
    data = end.join(["élan 👍 zebra", "日本 zebra", "", "the zebra"]).encode(encoding)
    codec = whole_file(data).encoding
    matches = found(data, "zebra")
    assert [match.line_start for match in matches] == [1, 2, 4]
    for match in matches:
        assert data[match.byte_start : match.byte_end].decode(codec) == "zebra"


def test_bytes_of_latin_1_with_unix_line_ends_are_exact():
    data = "Größe\nhöher zebra\n".encode("latin-1")
    (match,) = found(data, "zebra")
    assert data[match.byte_start : match.byte_end] == b"zebra"


def test_bytes_are_exact_beside_mixed_line_ends_as_far_as_the_length_proves_them():
    data = b"zebra one\r\nzebra two\nzebra three"
    first, second, third = found(data, "zebra")
    assert data[first.byte_start : first.byte_end] == b"zebra"
    assert (second.byte_start, second.byte_end, second.line_start) == (None, None, 2)
    assert data[third.byte_start : third.byte_end] == b"zebra"


def test_a_passage_of_several_leaves_knows_where_each_begins():
    pieces = [("zebra\n", Span(0, 7, 1, 1)), ("a zebra\nb\n", Span(7, 17, 2, 3))]
    passage = Passage.of(pieces, "utf-8")
    assert passage.span == Span(0, 17, 1, 3)
    _, second = match_ranges(passage, [Unit(("zebra",))], ANALYZER)
    assert (second.byte_start, second.byte_end) == (9, 14)
    unknown = Passage("a zebra", Span(0, 7, 1, 1), "shift-jis")
    (match,) = match_ranges(unknown, [Unit(("zebra",))], ANALYZER)
    assert (match.byte_start, match.line_start) == (None, 1)


def test_a_character_cut_off_by_the_files_end_is_no_part_of_the_last_match():
    data = "a zebra".encode("utf-16") + b"\x00"
    (match,) = found(data, "zebra")
    assert (match.byte_start, match.byte_end) == (6, 16)


def test_the_densest_window_has_the_most_distinct_units_and_is_the_first_of_equals():
    text = "red red red red " + "- " * 50 + "red blue " + "- " * 50 + "blue red"
    matches = found(text, "red blue")
    best = densest(matches, 40, lambda unit: 1)
    assert [text[match.start : match.end] for match in best] == ["red", "blue"]
    assert best[0].start < 150


def test_a_long_phrase_of_one_word_takes_linear_time():
    started = time.process_time()
    assert words("a " * 20_000, f'"{"a " * 500}b"') == []
    assert len(words("a " * 20_000, f'"{"a " * 500}"')) == 1
    assert time.process_time() - started < 10
