"""Which other files an ONNX model names: its external data, found without running anything.

onnxruntime before 1.24 opens whatever path a model gives, and some versions take a special one for
an address in memory, so paths are checked before it sees the file. Field numbers are those of
onnx.proto.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple, TypeAlias

_Messages: TypeAlias = Mapping[str, Mapping[int, str]]

# message → field → the message in it, for every way that leads to a tensor
_WAYS: _Messages = {
    "model": {7: "graph", 20: "training", 25: "function"},
    "training": {1: "graph", 2: "graph"},
    "graph": {1: "node", 5: "tensor", 15: "sparse"},
    "function": {7: "node", 11: "attribute"},
    "node": {5: "attribute"},
    "attribute": {5: "tensor", 6: "graph", 10: "tensor", 11: "graph", 22: "sparse", 23: "sparse"},
    "sparse": {1: "tensor", 2: "tensor"},
    "tensor": {13: "entry"},
}
_VARINT, _EIGHT_BYTES, _BYTES, _FOUR_BYTES = 0, 1, 2, 5
_FIXED = {_EIGHT_BYTES: 8, _FOUR_BYTES: 4}


class ExternalData(NamedTuple):
    """A stretch of another file, as the model gives it. Without a length it is the rest."""

    location: str
    offset: int
    length: int


def external_data(model: bytes) -> frozenset[ExternalData]:
    """Raises ValueError when this is no protobuf message, or gives no numbers."""
    return frozenset(_external(memoryview(model), "model"))


def _external(data: memoryview, message: str) -> Iterator[ExternalData]:
    ways = _WAYS[message]
    told: dict[bytes, bytes] = {}
    for number, content in _fields(data):
        if number not in ways:
            continue
        if ways[number] == "entry":
            entry = dict(_fields(content))
            told[bytes(entry.get(1, b""))] = bytes(entry.get(2, b""))
        else:
            yield from _external(content, ways[number])
    if b"location" in told:
        yield ExternalData(
            told[b"location"].decode("utf-8"),
            int(told.get(b"offset") or 0),
            int(told.get(b"length") or 0),
        )


def _fields(data: memoryview) -> Iterator[tuple[int, memoryview]]:
    """The length-delimited fields of a message; numbers are passed over."""
    place = 0
    while place < len(data):
        tag, place = _varint(data, place)
        kind = tag & 7
        if kind == _VARINT:
            _, place = _varint(data, place)
        elif kind == _BYTES:
            length, start = _varint(data, place)
            place = start + length
            yield tag >> 3, data[start:place]
        elif kind in _FIXED:
            place += _FIXED[kind]
        else:
            raise ValueError(f"a field of the unknown kind {kind}")
    if place > len(data):
        raise ValueError("it ends in the middle of a field")


def _varint(data: memoryview, place: int) -> tuple[int, int]:
    value = shift = 0
    while place < len(data) and shift < 70:
        byte = data[place]
        value |= (byte & 0x7F) << shift
        place, shift = place + 1, shift + 7
        if byte < 0x80:
            return value, place
    raise ValueError("it ends in the middle of a number")
