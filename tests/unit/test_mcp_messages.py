"""From bytes on a pipe to messages of the protocol."""

import random

import pytest
from mcp.types import JSONRPCNotification, JSONRPCRequest

from ragdocs.mcp_server.stdio import HEAD_BYTES, Lines, Overlong, Refused, parse


@pytest.mark.parametrize("seed", [20260728])
def test_lines_are_the_same_in_whatever_pieces_they_arrive(seed):
    choose = random.Random(seed)
    whole = b"one\ntwo\r\n\n  \nthree " + "é".encode() * 50 + b"\nrest"
    for _ in range(200):
        lines, found, at = Lines(), [], 0
        while at < len(whole):
            size = choose.randint(1, 9)
            found += lines.feed(whole[at : at + size])
            at += size
        assert found == [b"one", b"two", b"three " + "é".encode() * 50]
        assert lines.end() == b"rest"


def test_of_a_line_that_is_too_long_the_head_is_kept_and_the_next_is_read():
    lines = Lines(limit=10)
    assert list(lines.feed(b"short\n" + b"x" * 8)) == [b"short"]
    assert list(lines.feed(b"y" * 8 + b"\nnext\n")) == [Overlong(b"x" * 8 + b"y" * 8, 16), b"next"]
    assert list(lines.feed(b"z" * 2 * HEAD_BYTES)) == []
    assert list(lines.feed(b"z")) == []
    assert lines.end() == Overlong(b"z" * HEAD_BYTES, 2 * HEAD_BYTES + 1)


def test_a_request_is_read():
    found = parse(b'{"jsonrpc":"2.0","id":1,"method":"ping"}')
    assert isinstance(found, JSONRPCRequest)
    assert isinstance(parse(b'{"jsonrpc":"2.0","method":"x"}'), JSONRPCNotification)


@pytest.mark.parametrize(
    ("line", "text"),
    [
        (rb'{"jsonrpc":"2.0","id":1,"method":"m","params":{"q":"\ud800abc"}}', "?abc"),
        (b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"q":"\xff\xfe"}}', "\ufffd\ufffd"),
        (b'\xef\xbb\xbf{"jsonrpc":"2.0","id":1,"method":"m","params":{"q":"bom"}}', "bom"),
        (rb'{"jsonrpc":"2.0","id":1,"method":"m","params":{"q":"\ud83d\ude00"}}', "\U0001f600"),
    ],
)
def test_what_is_no_text_is_replaced_and_the_request_read(line, text):
    found = parse(line)
    assert isinstance(found, JSONRPCRequest)
    assert found.params == {"q": text}


PARSE_ERROR, INVALID_REQUEST = -32700, -32600
DEEP = b"[" * 100_000 + b"]" * 100_000


@pytest.mark.parametrize(
    ("line", "code", "request_id"),
    [
        (b"hello", PARSE_ERROR, None),
        (b"\0\0", PARSE_ERROR, None),
        (b'{"jsonrpc":"2.0","id":901,"method":"ping"', PARSE_ERROR, None),
        (b"null", INVALID_REQUEST, None),
        (b"[]", INVALID_REQUEST, None),
        (b'[{"jsonrpc":"2.0","id":902,"method":"ping"}]', INVALID_REQUEST, None),
        (b'{"jsonrpc":"1.0","id":906,"method":"ping"}', INVALID_REQUEST, 906),
        (b'{"jsonrpc":"2.0","id":907}', INVALID_REQUEST, 907),
        (b'{"jsonrpc":"2.0","id":"a","method":5}', INVALID_REQUEST, "a"),
        (b'{"jsonrpc":"2.0","id":910,"method":"tools/list","params":[1]}', INVALID_REQUEST, 910),
        (b'{"jsonrpc":"2.0","method":5}', INVALID_REQUEST, None),
        (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', INVALID_REQUEST, None),
        (b'{"jsonrpc":"2.0","id":true,"method":5}', INVALID_REQUEST, None),
        (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', INVALID_REQUEST, None),
        (b'{"jsonrpc":"2.0","id":' + b"9" * 10_000 + b',"method":"ping"}', INVALID_REQUEST, None),
        (b'{"jsonrpc":"2.0","id":3,"method":"p","params":{"a":' + DEEP + b"}}", INVALID_REQUEST, 3),
        (b'{"id":"x","a":{"id":4},"b":' + DEEP + b"}", INVALID_REQUEST, "x"),
        (b'{"a":{"id":4},"b":' + DEEP + b"}", INVALID_REQUEST, None),
        (b'{"a":"\\"id\\":7,","b":' + DEEP + b"}", INVALID_REQUEST, None),
        (
            b'{"jsonrpc":"2.0","id":914,"method":"p","params":{"a":' + b"9" * 10_000 + b"}}",
            INVALID_REQUEST,
            914,
        ),
        (Overlong(b'{"jsonrpc":"2.0","id":916,"method":"p","x":"xx', 1 << 25), -32600, 916),
        (Overlong(b'{"jsonrpc":"2.0","method":"p","params":{"x":"xx', 1 << 25), -32600, None),
        (Overlong(b'{"jsonrpc":"2.0","method":"p","id":9', 1 << 25), -32600, None),  # or 91, or 92
        (Overlong(b"[" * 4096, 1 << 25), INVALID_REQUEST, None),
    ],
    ids=lambda value: str(value)[:60] if isinstance(value, bytes | Overlong) else None,
)
def test_what_is_no_message_is_refused_with_its_id_if_that_can_be_told(line, code, request_id):
    found = parse(line)
    assert isinstance(found, Refused)
    assert found.answer is not None
    assert (found.answer.error.code, found.answer.id) == (code, request_id)


@pytest.mark.parametrize(
    "line",
    [
        b'{"jsonrpc":"2.0","method":"notifications/nope","params":[1]}',
        b'{"jsonrpc":"2.0","id":5,"result":5}',
        b'{"jsonrpc":"2.0","id":5,"error":"no object"}',
    ],
)
def test_what_was_no_request_gets_no_answer(line):
    found = parse(line)
    assert isinstance(found, Refused)
    assert found.answer is None


def test_a_notification_may_speak_of_an_id():
    found = parse(b'{"jsonrpc":"2.0","method":"notifications/x","params":{"id":1.5}}')
    assert isinstance(found, JSONRPCNotification)
