"""Writes an ONNX model: the few protobuf messages that an inference graph needs.

The `onnx` package would do the same and adds 33 MB to the install; the wire format is thirty
lines. Field numbers are those of onnx.proto. Constants stay outside the message and are given to
the session as arrays, so that a model is never copied through a file.
"""

import struct
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Attribute: TypeAlias = int | float | list[int]
Array: TypeAlias = NDArray[Any]

_IR_VERSION = 8
_OPSET = 17
_MICROSOFT = "com.microsoft"
_MICROSOFT_OPS = frozenset(
    {"Attention", "BiasGelu", "EmbedLayerNormalization", "MatMulIntegerToFloat"}
    | {"MultiHeadAttention"}
)
_ELEMENT_TYPES = {"float32": 1, "uint8": 2, "int8": 3, "int32": 6, "int64": 7}
# Constants this small go into the message itself: shapes and scalars must be visible to the
# session when it plans the graph.
_INLINE_BYTES = 1024


@dataclass
class OnnxGraph:
    """A graph under construction: every method returns the name of the value it made."""

    constants: dict[str, Array] = field(default_factory=dict[str, Array])
    _nodes: list[bytes] = field(default_factory=list[bytes])
    _inputs: list[bytes] = field(default_factory=list[bytes])

    def constant(self, array: Array) -> str:
        name = f"constant_{len(self.constants)}"
        # Not ascontiguousarray, which would turn a scalar into a vector of one.
        self.constants[name] = np.asarray(array, order="C")
        return name

    def scalar(self, value: float, dtype: str = "float32") -> str:
        return self.constant(np.array(value, dtype=dtype))

    def integers(self, *values: int) -> str:
        return self.constant(np.array(values, dtype=np.int64))

    def input(self, name: str, element_type: str, dimensions: tuple[str | int, ...]) -> str:
        self._inputs.append(_value_info(name, element_type, dimensions))
        return name

    def node(self, operator: str, *inputs: str, **attributes: Attribute) -> str:
        return self.nodes(operator, inputs, 1, **attributes)[0]

    def nodes(
        self, operator: str, inputs: tuple[str, ...], outputs: int, **attributes: Attribute
    ) -> list[str]:
        number = len(self._nodes)
        names = [f"value_{number}_{index}" for index in range(outputs)]
        message = b"".join(_bytes(1, name) for name in inputs)
        message += b"".join(_bytes(2, name) for name in names)
        message += _bytes(3, f"node_{number}") + _bytes(4, operator)
        message += b"".join(_bytes(5, _attribute(*item)) for item in attributes.items())
        if operator in _MICROSOFT_OPS:
            message += _bytes(7, _MICROSOFT)
        self._nodes.append(message)
        return names

    @property
    def outside(self) -> dict[str, Array]:
        """The constants that the message only names."""
        return {k: a for k, a in self.constants.items() if a.nbytes > _INLINE_BYTES}

    def serialise(self, output: str, dimensions: tuple[str | int, ...]) -> bytes:
        """The model as onnxruntime reads it, with one float output."""
        graph = b"".join(_bytes(1, node) for node in self._nodes) + _bytes(2, "graph")
        graph += b"".join(_bytes(5, _tensor(*item)) for item in self.constants.items())
        graph += b"".join(_bytes(11, each) for each in self._inputs)
        graph += _bytes(12, _value_info(output, "float32", dimensions))
        opsets = _bytes(8, _bytes(1, "") + _integer(2, _OPSET))
        opsets += _bytes(8, _bytes(1, _MICROSOFT) + _integer(2, 1))
        return _integer(1, _IR_VERSION) + _bytes(7, graph) + opsets


def _varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    encoded = bytearray()
    while value >= 0x80:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def _integer(number: int, value: int) -> bytes:
    return _varint(number << 3) + _varint(value)


def _bytes(number: int, value: bytes | str) -> bytes:
    content = value.encode("utf-8") if isinstance(value, str) else value
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _float(number: int, value: float) -> bytes:
    return _varint(number << 3 | 5) + struct.pack("<f", value)


def _attribute(name: str, value: Attribute) -> bytes:
    if isinstance(value, list):
        return _bytes(1, name) + b"".join(_integer(8, each) for each in value) + _integer(20, 7)
    if isinstance(value, int):
        return _bytes(1, name) + _integer(3, value) + _integer(20, 2)
    return _bytes(1, name) + _float(2, value) + _integer(20, 1)


def _tensor(name: str, array: Array) -> bytes:
    message = b"".join(_integer(1, size) for size in array.shape)
    message += _integer(2, _ELEMENT_TYPES[array.dtype.name]) + _bytes(8, name)
    if array.nbytes <= _INLINE_BYTES:
        return message + _bytes(9, array.tobytes())
    return message + _bytes(13, _bytes(1, "location") + _bytes(2, "memory")) + _integer(14, 1)


def _value_info(name: str, element_type: str, dimensions: tuple[str | int, ...]) -> bytes:
    shape = b"".join(
        _bytes(1, _integer(1, size) if isinstance(size, int) else _bytes(2, size))
        for size in dimensions
    )
    tensor = _integer(1, _ELEMENT_TYPES[element_type]) + _bytes(2, shape)
    return _bytes(1, name) + _bytes(2, _bytes(1, tensor))
