"""From bytes on a pipe to messages of the protocol."""

import random

import pytest
from mcp.types import JSONRPCNotification, JSONRPCRequest

from ragdocs.mcp_server.stdio.lines import Lines
from ragdocs.mcp_server.stdio.messages import Refused, parse


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


def test_a_line_that_is_too_long_is_dropped_and_the_next_is_read():
    lines = Lines(limit=10)
    assert list(lines.feed(b"short\n" + b"x" * 8)) == [b"short"]
    assert list(lines.feed(b"x" * 8 + b"\nnext\n")) == [b"next"]
    assert lines.dropped == 1


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


@pytest.mark.parametrize(
    ("line", "request_id"),
    [
        (b"hello", None),
        (b"null", None),
        (b"[]", None),
        (b'[{"jsonrpc":"2.0","id":902,"method":"ping"}]', None),
        (b'{"jsonrpc":"2.0","id":901,"method":"ping"', None),
        (b'{"jsonrpc":"1.0","id":906,"method":"ping"}', 906),
        (b'{"jsonrpc":"2.0","id":"a","method":5}', "a"),
        (b'{"jsonrpc":"2.0","id":910,"method":"tools/list","params":[1]}', 910),
        (b'{"jsonrpc":"2.0","id":1.5,"method":5}', None),
        (b'{"jsonrpc":"2.0","id":true,"method":5}', None),
        (b'{"jsonrpc":"2.0","id":1,"method":"p","params":{"a":' + b"[" * 99_999, None),
    ],
)
def test_what_is_no_message_is_refused_with_its_id_if_it_has_one(line, request_id):
    found = parse(line)
    assert isinstance(found, Refused)
    assert found.request_id == request_id
    assert (found.answer is None) == (request_id is None)
    if found.answer is not None:
        assert found.answer.id == request_id
        assert found.answer.error.code == -32600
