"""Text at the server's edge: cleaned, fenced, addressed."""

import pytest

from ragdocs.errors import QueryError
from ragdocs.mcp_server.addresses import (
    Address,
    AddressKind,
    document_of,
    document_uri,
    lines_uri,
    parse_address,
    reference,
)
from ragdocs.mcp_server.answer import (
    BriefIndexNote,
    fence,
    heading_line,
    map_ranges,
    without_home,
    without_places,
)
from ragdocs.models import TreeName
from ragdocs.parsers.ids import document_id
from ragdocs.text import Cleaner


@pytest.mark.parametrize(
    ("text", "shown", "removed"),
    [
        ("plain\ttext\r\n", "plain\ttext\r\n", 0),
        ("élan, naïve, 日本", "élan, naïve, 日本", 0),
        ("a\u200bb", "ab", 1),
        ("a\u200b\u200c\u200db", "ab", 3),
        ("\u202eevil\u202c", "evil", 2),
        ("\u2066x\u2069", "x", 2),
        ("".join(map(chr, range(0xE0041, 0xE0051))), "", 16),
        ("a\x00b\x1bc\x7f", "abc", 3),
        ("👩\u200d👩\u200d👧", "👩\u200d👩\u200d👧", 0),
        ("नम\u200cस्ते", "नम\u200cस्ते", 0),
        ("end\u200d", "end", 1),
        ("a \u200d b", "a  b", 1),
        ("❤\ufe0f", "❤\ufe0f", 0),
        ("x\ufe01\ufe02\U000e0100", "x", 3),
        ("half \ud800 pair", "half ? pair", 0),
    ],
)
def test_what_cannot_be_seen_is_left_out_and_counted(text, shown, removed):
    cleaner = Cleaner()
    assert cleaner.clean(text) == shown
    assert cleaner.removed == removed


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("press the button", ["press", "button"]),
        ("\u202epress\u200b\u200b the\n\u202dbutton", ["press", "button"]),
        ("but\u200b\u200bton", ["but\u200b\u200bton"]),
        ("\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645 button", ["button"]),
    ],
)
def test_matches_are_found_again_in_what_is_shown(text, words):
    ranges = [(text.index(word), text.index(word) + len(word)) for word in words]
    shown = Cleaner().clean(text)
    found = [shown[start:end] for start, end in map_ranges(text, ranges)]
    assert found == [Cleaner().clean(word) for word in words]


def test_a_match_outside_the_shown_text_is_dropped():
    assert map_ranges("a\u200b\u200bb", [(1, 3), (3, 4)]) == ((1, 2),)


@pytest.mark.parametrize("text", ["", "plain", "```\ncode\n```", "`````", "`" * 50 + "x"])
def test_a_fence_is_longer_than_any_within(text):
    first, *inside, last = fence("label", text).split("\n")
    assert first == f"{last}label"
    assert set(last) == {"`"}
    assert all(last not in line for line in inside)


def test_a_title_is_not_said_twice():
    assert heading_line("Guide", ("Guide", "Set up")) == "Guide > Set up"
    assert heading_line("Guide", ("Set\nup",)) == "Guide > Set up"
    assert heading_line("Guide", ()) == "Guide"


@pytest.mark.parametrize(
    ("state", "complete", "said"),
    [
        ("ready", True, ""),
        ("building", False, "ask again later"),
        ("unavailable", False, "ask again later"),
        ("degraded", False, "waiting does not help"),
        ("ready", False, "waiting does not help"),
    ],
)
def test_an_agent_is_told_to_wait_only_where_that_helps(state, complete, said):
    line = BriefIndexNote(state=state, complete=complete, summary="as it is").line()
    assert said in line
    assert ("incomplete" in line) is not complete


def test_the_home_folder_is_not_named(monkeypatch):
    monkeypatch.setenv("HOME", "/home/ines")
    assert without_home("no index at /home/ines/x") == "no index at ~/x"
    assert without_places("no index at /home/ines/x/y.db yet") == "no index at ~/x/y.db yet"
    assert without_places("/var/cache/ragdocs/i1/store.db: damaged") == "…/i1/store.db: damaged"
    assert without_places("a/b/c.md and ragdocs://doc/a/b/c.md stay") == (
        "a/b/c.md and ragdocs://doc/a/b/c.md stay"
    )
    for place in (
        r"C:\Users\Ines Maria\My Index\store.db",
        r"\\server\Ines Maria\My Index\store.db",
    ):
        said = without_places(f"{place}: damaged", known=[place])
        assert said == "…/My Index/store.db: damaged"
    monkeypatch.setenv("HOME", "/")
    assert without_home("at /x") == "at /x"


NAMES = ["a.md", "a b/ü#x.md", "100%~1.md", "q?.md", "new\nline.md", "caf\udce9.md", "日本/語.md"]


@pytest.mark.parametrize("path", NAMES)
def test_an_address_stands_for_exactly_one_file(path):
    doc_id = document_id(TreeName("my docs"), path)
    kind = AddressKind.DOCUMENT
    assert document_uri(doc_id).isascii()
    assert parse_address(document_uri(doc_id)) == Address(kind, doc_id)
    assert parse_address(f"{document_uri(doc_id)}#%C3%BCber-uns") == Address(
        kind, doc_id, "über-uns"
    )
    assert parse_address(lines_uri(doc_id, 3, 9)) == Address(kind, doc_id, "", 3, 9)
    assert document_of(f"{doc_id}#slug~2") == document_of(f"{doc_id}~2") == doc_id


def test_an_address_of_a_tree_or_a_tag():
    assert parse_address("ragdocs://tree/docs") == Address(AddressKind.TREE, "docs")
    assert parse_address("ragdocs://tag/work%2Fnow") == Address(AddressKind.TAG, "work/now")


@pytest.mark.parametrize(
    "uri", ["file:///etc/passwd", "ragdocs://nope/x", "ragdocs:doc", "", "ragdocs://doc/a/b?x=1"]
)
def test_what_is_no_address_is_refused(uri):
    with pytest.raises(QueryError, match="ragdocs://doc/TREE/PATH"):
        parse_address(uri)


def test_an_id_that_must_not_be_shown_is_given_as_an_address():
    assert reference("docs:a.md") == "docs:a.md"
    assert reference("docs:a\u202e.md") == "ragdocs://doc/docs/a%E2%80%AE.md"
