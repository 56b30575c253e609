"""Pages: whatever the text and the sizes, they join to the text."""

import base64
import random
from hashlib import blake2b

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragdocs.errors import QueryError
from ragdocs.library.paging import decode_cursor, encode_cursor, page_end
from ragdocs.search.budget import tokens

TEXTS = st.text(
    st.one_of(st.sampled_from("ab \n"), st.characters(exclude_categories=["Cs"])), max_size=300
)


@given(TEXTS, st.lists(st.integers(1, 60), min_size=1, max_size=8), st.data())
def test_pages_of_any_size_join_to_the_text_and_fit(text, sizes, data):
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    at, turn, pages = start, 0, []
    while at < end:
        size = sizes[turn % len(sizes)]
        stop = page_end(text, at, end, size)
        assert at < stop <= end
        page = text[at:stop]
        assert tokens(page) <= size
        # It ends with a line, unless no line end would have fitted.
        assert stop == end or page.endswith("\n") or "\n" not in page
        # What is left out would not have fitted.
        if stop < end:
            line_end = text.find("\n", stop, end) + 1 or end
            longer = text[at:line_end] if page.endswith("\n") else text[at : stop + 1]
            assert tokens(longer) > size
        pages.append(page)
        at, turn = stop, turn + 1
    assert "".join(pages) == text[start:end]


def test_a_long_line_is_cut_between_characters():
    text = "😀" * 100
    assert page_end(text, 0, 100, 10) == 10
    assert page_end("é" * 100, 0, 100, 10) == 20


def test_a_cursor_comes_back_as_it_went():
    values = {"doc": "docs:a b#%\n.md", "at": -3, "tags": ["ü", "x"]}
    assert decode_cursor("document", encode_cursor("document", values)) == values


def test_a_cursor_is_short_and_leaves_out_what_is_empty():
    values = {"doc": "AbCdEfGh", "version": "AbCdEfGh", "at": 12_345, "line": 321}
    cursor = encode_cursor("document", values | {"part": "", "first": 0, "outline": 0})
    assert decode_cursor("document", cursor) == values
    assert len(cursor) < 90


def test_no_damage_to_a_cursor_goes_unnoticed():
    chance = random.Random(7)
    cursor = encode_cursor("document", {"doc": "docs:a.md", "at": 10})
    for _ in range(300):
        at = chance.randrange(len(cursor))
        other = chance.choice("abcXYZ019-_=? é\0")
        damaged = chance.choice(
            [cursor[:at], cursor[:at] + other + cursor[at + 1 :], cursor[:at] + other + cursor[at:]]
        )
        if damaged != cursor:
            with pytest.raises(QueryError, match="cursor"):
                decode_cursor("document", damaged)
    with pytest.raises(QueryError, match="another list"):
        decode_cursor("list", cursor)


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"\xff",
        b"5",
        b"null",
        b'["b"]',
        b'["b",[]]',
        b'["b",{"?":1}]',
        b'["b",{"a":1}]',
        b'{"b":1,"c":2}',
        b"[" * 20_000,
        b"1" * 20_000,
    ],
)
def test_a_forged_cursor_of_another_shape_is_damaged(payload):
    """The checksum is right: everybody can compute it."""
    check = blake2b(payload, digest_size=4, key=b"cursor").digest()
    cursor = base64.urlsafe_b64encode(check + payload).decode().rstrip("=")
    with pytest.raises(QueryError, match="damaged"):
        decode_cursor("list", cursor)


@pytest.mark.parametrize(
    "values",
    [
        {"kind": "nothing"},
        {"kind": ["tags"]},
        {"extent": "page"},
        {"tags": "x"},
        {"tags": [1]},
        {"at": "soon"},
        {"at": 1.5},
        {"at": True},
        {"at": -9, "outline": 1},
        {"first": [1]},
        {"part": "#\ud800"},
        {"where": {"a": 1}},
        {"after": {"a": 1}},
        {"after": [5]},
        {"after": ["a", "b"]},
        {"after": ["a"], "kind": "tags"},
        {"after": ["a", "b"], "kind": "chunks"},
        {"after": [-1, "a", 2], "kind": "tags"},
    ],
)
def test_a_forged_cursor_with_values_of_other_types_is_damaged(values):
    with pytest.raises(QueryError, match="damaged"):
        decode_cursor("list", encode_cursor("list", values))
