"""Canvases: the text of their cards is found, and cited by the card and its bytes in the file."""

import json
import time
from pathlib import Path
from typing import Any

import pytest

from ragdocs.errors import SourceBinary
from ragdocs.models import Document, TreeName
from ragdocs.parsers.canvas import MAX_CARDS, parse_canvas
from ragdocs.parsers.markdown import Origin
from tests.support.indexes import write
from tests.support.machine import until
from tests.support.mcp_clients import in_memory, indexed_app
from tests.support.program import ask, called, started

BOARD = r"""{
	"nodes":[
		{"id":"8132d4d894c80022","type":"text","text":"# Greenhouse\n\nTomatoes need \"drip\" irrigation, see [[auth]] and #garden","x":-160},
		{"id":"f1","type":"file","file":"auth.md","subpath":"#Sign in","x":1},
		{"id":"g1","type":"group","label":"Äpfel","x":1e400,"y":12345678901234567890},
		{"id":"f1","type":"text","text":"Cucumbers \ud83c\udf45 climb\r\nstrings."}
	],
	"edges":[{"id":"e1","fromNode":"f1","toNode":"g1","label":"feeds water"}]
}"""  # noqa: E501


def parse(text: str | bytes) -> Document:
    data = text.encode("utf-8") if isinstance(text, str) else text
    return parse_canvas(data, Origin(TreeName("t"), "a/board.canvas", 0))


def texts(document: Document) -> list[str]:
    return [document.source.text[card.start : card.end] for card in document.cards]


def test_the_text_of_every_kind_of_card():
    document = parse(BOARD)

    assert document.title == "board"
    assert [card.heading.slug for card in document.cards] == [
        "8132d4d894c80022",
        "f1",
        "g1",
        "f1-1",
        "e1",
    ]
    assert texts(document)[1:] == [
        "auth.md",
        "Äpfel",
        "Cucumbers 🍅 climb\nstrings.",
        "feeds water",
    ]
    assert document.tags == ("garden",)
    assert [(link.target, link.anchor) for link in document.links] == [
        ("auth", ""),
        ("auth.md", "Sign in"),
    ]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("ensure_ascii", [True, False])
def test_a_card_is_cited_by_the_bytes_of_its_string(encoding, ensure_ascii):
    cards = ["plain", 'with "quotes" and \\', "line\nline\ttab", "Grüße 🍅", "\x00 nul"]
    nodes = [{"id": f"n{at}", "type": "text", "text": text} for at, text in enumerate(cards)]
    data = json.dumps({"nodes": nodes}, ensure_ascii=ensure_ascii, indent=1).encode(encoding)

    document = parse(data)

    bare = encoding.replace("utf-16", "utf-16-le").replace("-sig", "")
    for card, text in zip(document.cards, cards, strict=True):
        span = card.heading.span
        raw = data[span.byte_start : span.byte_end].decode(bare)
        assert json.loads(f'"{raw}"') == text
        assert f'"text": "{raw}"' in data.decode(encoding).splitlines()[span.line_start - 1]
        assert span.line_start == span.line_end


def test_a_part_of_a_card_is_cited_by_its_own_bytes(tmp_path):
    paragraphs = [f'Paragraph {at} about "item{at}".\n\n' * 5 for at in range(30)]
    nodes = [{"id": "long", "type": "text", "text": "".join(paragraphs)}]
    data = json.dumps({"nodes": nodes})
    write(tmp_path / "docs", "long.canvas", data)

    found = searched(tmp_path, "item17")[0]

    first, end = found["text_bytes"]
    shown = json.loads(f'"{data.encode()[first:end].decode()}"')
    assert found["text"].strip() in shown
    assert "item17" in shown
    assert end - first < len(data) / 2
    whole = data.encode()[found["byte_start"] : found["byte_end"]].decode()
    assert json.loads(f'"{whole}"') == "".join(paragraphs)
    assert found["slug"] == "long"


def searched(folder: Path, query: str) -> list[dict[str, Any]]:
    done = called(folder, "query", query, "--json", "--docs", "docs", "--index", "ix")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["results"]


def test_a_search_cites_the_card_and_get_shows_it(tmp_path):
    write(tmp_path / "docs", "board.canvas", BOARD)
    write(tmp_path / "docs", "auth.md", "# Sign in\n\nWith a token.\n")

    found = searched(tmp_path, "drip irrigation")[0]
    other = searched(tmp_path, "cucumbers climb")[0]

    assert found["id"] == "docs:board.canvas#8132d4d894c80022"
    assert (found["line_start"], found["line_end"]) == (3, 3)
    raw = BOARD.encode()[found["byte_start"] : found["byte_end"]]
    assert raw.startswith(b"# Greenhouse\\n")
    assert raw.endswith(b"#garden")
    assert all(each["line_start"] == 3 for each in found["matches"])
    assert other["id"] == "docs:board.canvas#f1-1"

    def get(reference: str, code: int = 0) -> str:
        done = called(tmp_path, "get", reference, "--docs", "docs", "--index", "ix")
        assert done.returncode == code, done.stderr
        return done.stdout

    assert get("board.canvas#g1") == "Äpfel\n"
    assert get("board.canvas:4-5") == "auth.md\n\nÄpfel\n"
    assert get("board.canvas").startswith("# Greenhouse\n\nTomatoes")
    assert get("board.canvas").endswith("strings.\n\nfeeds water\n")
    related = called(tmp_path, "related", "auth.md", "--docs", "docs", "--index", "ix").stdout
    assert "board.canvas:4" in related


def test_a_canvas_on_a_single_line_is_cited_by_its_cards(tmp_path):
    write(tmp_path / "docs", "flat.canvas", json.dumps(json.loads(BOARD.replace("1e400", "1"))))

    for query, card in (("drip irrigation", "8132d4d894c80022"), ("cucumbers", "f1-1")):
        found = searched(tmp_path, query)[0]
        assert found["slug"] == card
        assert (found["line_start"], found["line_end"]) == (1, 1)
        assert query.split()[0] in found["text"].lower()


@pytest.fixture(scope="module")
def board(tmp_path_factory):
    """A server over a canvas on one line."""
    cards = json.dumps(json.loads(BOARD.replace("1e400", "1")))
    texts = {"board.canvas": cards, "auth.md": "# Sign in\n\nWith a token.\n"}
    with in_memory(indexed_app(tmp_path_factory.mktemp("board"), texts)) as server:
        yield server


@pytest.mark.parametrize("path", ["", "BOARD.canvas", "board.canvas"])
def test_a_client_is_told_the_card_not_the_line(board, path):
    asked = board.call("query_documents", query="drip irrigation", path=path)

    assert "[1] board.canvas#8132d4d894c80022 · " in asked.text
    assert "the text of a canvas: " in asked.text
    assert asked.links[0].name == "board.canvas#8132d4d894c80022"
    got = board.call("get_document", document="board.canvas#8132d4d894c80022")
    assert "Cucumbers" not in got.text


def test_a_card_that_does_not_fit_is_fetched_alone(tmp_path):
    cards = [f"Tomatoes number {at}. " + f"Water them {at} times. " * 40 for at in range(4)]
    nodes = [{"id": f"n{at}", "type": "text", "text": text} for at, text in enumerate(cards)]
    app = indexed_app(tmp_path, {"flat.canvas": json.dumps({"nodes": nodes})})
    with in_memory(app) as server:
        options = {"uniqueness": "off", "min_score": 0}
        asked = server.call("query_documents", query="tomatoes water", max_tokens=600, **options)
        gone = asked.data["left_out"][0]
        got = server.call("get_document", **gone["fetch"]["arguments"])
    assert got.data["text"].count("Tomatoes") == 1


def test_a_person_is_told_the_card_not_the_line(tmp_path):
    write(tmp_path / "docs", "board.canvas", BOARD)

    done = called(tmp_path, "query", "drip", "--docs", "docs", "--index", "ix")

    assert done.stdout.startswith("1. docs/board.canvas#8132d4d894c80022  ")


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ('{"nodes": [', "not JSON (line 1)"),
        ("[1, 2]", "not an object"),
        ('{"nodes": NaN}', "not JSON"),
        ("[" * 200_000, "nested too deeply"),
        ('{"nodes":' + "[" * 100_000 + "]" * 100_000 + "}", "nested too deeply"),
    ],
)
def test_what_is_not_a_canvas_is_refused(data, said):
    with pytest.raises(SourceBinary) as refused:
        parse(data)

    assert str(refused.value).startswith("not a canvas: ")
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ("", []),
        ("{}", []),
        ('{"nodes": {"a": 1}, "edges": null}', []),
        ('{"nodes": "text", "edges": 5}', []),
        ('{"nodes": [null, 1, [], {"type": 1, "text": 2}, {"type": "text"}]}', []),
        ('{"nodes": [{"type": "text", "text": "   "}]}', []),
        (
            '{"nodes": [{"id": 5, "type": "text", "text": "kept", "more": {"text": "not"}}]}',
            ["kept"],
        ),
        ('{"nodes": [[{"type": "text", "text": "too deep"}]]}', []),
        ('{"other": [{"type": "text", "text": "elsewhere"}]}', []),
        ('{"\\u006eodes": [{"type": "text", "text": "escaped key"}]}', ["escaped key"]),
        ('{"nodes": [{"type": "text", "text": "\\ud800 alone"}]}', ["\ufffd alone"]),
        (
            '{"nodes": [{"type": "text", "text": "nodes"}, {"type": "text", "text": "{\\"}"}]}',
            ["nodes", '{"}'],
        ),
        ('{"x": ' + "9" * 100_000 + ', "nodes": [{"type": "text", "text": "ok"}]}', ["ok"]),
    ],
)
def test_wrong_types_and_odd_values(data, expected):
    assert texts(parse(data)) == expected


def test_a_huge_canvas_is_read_in_bounded_time():
    one = json.dumps({"id": "a", "type": "text", "text": '```\n[[x]] \\ "quoted" #t' + "\n" * 5})
    data = '{"nodes":[' + ",".join([one] * (MAX_CARDS + 5_000)) + "]}"
    began = time.process_time()

    document = parse(data)

    assert len(document.cards) == MAX_CARDS
    assert [warning.text for warning in document.warnings] == [
        f"only the first {MAX_CARDS:,} cards are read"
    ]
    assert document.warnings[0].is_loss
    assert len({card.heading.slug for card in document.cards}) == MAX_CARDS
    assert time.process_time() - began < 60


def test_one_card_of_ten_megabytes_of_escapes():
    data = '{"nodes":[{"id":"a","type":"text","text":"' + "\\u0041\\n" * 1_200_000 + '"}]}'

    document = parse(data)

    (card,) = document.cards
    assert card.end - card.start == 2_400_000
    assert document.source.byte_of(card.end) == len(data) - len('"}]}')


def test_an_edit_of_a_canvas_is_followed(tmp_path, apps):
    docs = tmp_path / "docs"
    write(docs, "board.canvas", BOARD)
    app = started(apps, docs, tmp_path / "ix")
    assert until(lambda: ask(app, "irrigation").results)

    write(docs, "board.canvas", BOARD.replace("irrigation", "zeppelin"))

    assert until(lambda: ask(app, "zeppelin").results)
