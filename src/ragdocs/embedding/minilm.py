"""Builds the ONNX graph of all-MiniLM-L6-v2, in full or 8-bit precision."""

import json
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeAlias, TypedDict, cast

import numpy as np
from numpy.typing import NDArray

from ragdocs.embedding.model_files import WeightsLayout
from ragdocs.errors import ModelCorrupt

# Writes an ONNX model: only the protobuf messages that an inference graph needs.
#
# The `onnx` package could do this, but adds 33 MB to the install; the wire format takes thirty
# lines. Field numbers are those of onnx.proto. Large constants are not part of the message: the
# session gets them as arrays, so no model file is ever written.

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
# Constants up to this size are part of the message, because the session needs shapes and scalars
# when it plans the graph.
_INLINE_BYTES = 1024


@dataclass
class OnnxGraph:
    """A graph under construction. Each method adds a value and returns its name."""

    constants: dict[str, Array] = field(default_factory=dict[str, Array])
    _nodes: list[bytes] = field(default_factory=list[bytes])
    _inputs: list[bytes] = field(default_factory=list[bytes])

    def constant(self, array: Array) -> str:
        name = f"constant_{len(self.constants)}"
        # `ascontiguousarray` would turn a scalar into a vector of length one.
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
        """The constants that the message refers to by name."""
        return {k: a for k, a in self.constants.items() if a.nbytes > _INLINE_BYTES}

    def serialise(self, output: str, dimensions: tuple[str | int, ...]) -> bytes:
        """The model in onnxruntime's format, with one float output."""
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


# Reads the model's tensors by name, from either file format; linear weights as (inputs, outputs).
#
# The file's hash has been verified, so its layout is known. Sizes are still checked, because a
# wrong slice would silently give wrong vectors. Everything is copied into memory, because a
# memory map would change if the file were changed later.

LAYERS = 6
WIDTH = 384
INNER = 1536
VOCABULARY = 30522
POSITIONS = 512

Tensor: TypeAlias = NDArray[np.float32]
Weights: TypeAlias = Mapping[str, Tensor]


class _Entry(TypedDict):
    dtype: str
    shape: list[int]
    data_offsets: list[int]


def read_weights(path: Path, layout: WeightsLayout) -> Weights:
    data = np.fromfile(path, dtype=np.uint8)
    if layout is WeightsLayout.SAFETENSORS:
        return _from_safetensors(data)
    return _from_onnx_data(data)


def _from_safetensors(data: NDArray[np.uint8]) -> Weights:
    length = int(data[:8].view(np.uint64)[0])
    header = cast(dict[str, _Entry], json.loads(data[8 : 8 + length].tobytes()))
    tensors: dict[str, Tensor] = {}
    for name, shape in _shapes():
        start, end = (8 + length + offset for offset in header[name]["data_offsets"])
        stored = shape[::-1] if _is_linear(name) else shape
        tensor = data[start:end].view(np.float32).reshape(stored)
        tensors[name] = np.array(tensor.T if _is_linear(name) else tensor, order="C")
    return tensors


def _from_onnx_data(data: NDArray[np.uint8]) -> Weights:
    tensors: dict[str, Tensor] = {}
    start = 0
    for name, shape in _shapes():
        end = start + 4 * int(np.prod(shape))
        tensors[name] = data[start:end].view(np.float32).reshape(shape).copy()
        start = end
    if start != len(data):
        raise ModelCorrupt(f"the weights have {len(data)} bytes, not {start}")
    return tensors


def _is_linear(name: str) -> bool:
    return name.endswith(".weight") and name.startswith("encoder.") and "LayerNorm" not in name


def _shapes() -> Iterator[tuple[str, tuple[int, ...]]]:
    """Every tensor by its original name, in the order of the ONNX data file."""
    yield "embeddings.word_embeddings.weight", (VOCABULARY, WIDTH)
    yield "embeddings.token_type_embeddings.weight", (2, WIDTH)
    yield "embeddings.position_embeddings.weight", (POSITIONS, WIDTH)
    yield from _norm("embeddings")
    for layer in range(LAYERS):
        prefix = f"encoder.layer.{layer}"
        for part in ("weight", "bias"):
            for head in ("query", "key", "value"):
                shape = (WIDTH, WIDTH) if part == "weight" else (WIDTH,)
                yield f"{prefix}.attention.self.{head}.{part}", shape
        yield from _linear(f"{prefix}.attention.output", WIDTH, WIDTH)
        yield from _norm(f"{prefix}.attention.output")
        yield from _linear(f"{prefix}.intermediate", WIDTH, INNER)
        yield from _linear(f"{prefix}.output", INNER, WIDTH)
        yield from _norm(f"{prefix}.output")


def _linear(prefix: str, inputs: int, outputs: int) -> Iterator[tuple[str, tuple[int, ...]]]:
    yield f"{prefix}.dense.weight", (inputs, outputs)
    yield f"{prefix}.dense.bias", (outputs,)


def _norm(prefix: str) -> Iterator[tuple[str, tuple[int, ...]]]:
    yield f"{prefix}.LayerNorm.weight", (WIDTH,)
    yield f"{prefix}.LayerNorm.bias", (WIDTH,)


# The two ways to compute the model's 36 matrix products. Everything else is the same for both.

# GELU is never below -0.16998, so adding this makes its output non-negative.
GELU_FLOOR = 0.17
# In these channels the model's normalised activations are far larger than in all others, in every
# layer and for every kind of text. They are computed in fp32 (specs/0014).
OUTLIERS = [63, 99, 157, 223, 338]


class Products(Protocol):
    """Adds `x @ weight` to a graph, for x of shape (tokens, inputs)."""

    def product(self, graph: OnnxGraph, x: str, weight: Tensor) -> str: ...

    def product_after_norm(self, graph: OnnxGraph, x: str, weight: Tensor) -> str: ...

    def product_after_gelu(
        self, graph: OnnxGraph, x: str, weight: Tensor, bias: Tensor
    ) -> tuple[str, Tensor]:
        """The product, and the bias to add to it instead of the given one."""
        ...


class Fp32Products:
    """Plain single precision."""

    def product(self, graph: OnnxGraph, x: str, weight: Tensor) -> str:
        return graph.node("MatMul", x, graph.constant(weight))

    def product_after_norm(self, graph: OnnxGraph, x: str, weight: Tensor) -> str:
        return self.product(graph, x, weight)

    def product_after_gelu(
        self, graph: OnnxGraph, x: str, weight: Tensor, bias: Tensor
    ) -> tuple[str, Tensor]:
        return self.product(graph, x, weight), bias


class Int8Products:
    """Integer products: a scale per output channel for weights, and per token for activations.

    onnxruntime's own dynamic quantisation has one scale per batch. With a scale per token, a text's
    vector does not depend on the other texts of its batch, and half as much precision is lost.

    One of the two factors has only 7 bits. Processors without VNNI add two products in 16 bits,
    with saturation: 2 x 255 x 63 and 2 x 127 x 127 fit, 2 x 255 x 127 does not. So every processor
    gives the same result. Measurements decided which factor has 8 bits (specs/0014).
    """

    def product(self, graph: OnnxGraph, x: str, weight: Tensor) -> str:
        quantised, scales = quantise_columns(weight, 63)
        largest = graph.node("ReduceMax", graph.node("Abs", x), axes=[-1], keepdims=1)
        # The scale of an all-zero token would be 0, and 0/0 would make its row NaN.
        largest = graph.node("Max", largest, graph.scalar(1e-30))
        row_scale = graph.node("Mul", largest, graph.scalar(1 / 127))
        rounded = _to_uint8(graph, graph.node("Div", x, row_scale), 128)
        return _integer_product(graph, rounded, 128, quantised, scales, row_scale)

    def product_after_norm(self, graph: OnnxGraph, x: str, weight: Tensor) -> str:
        # The outliers would determine the scale and cost the other channels a bit or two.
        others = np.ones(weight.shape[0], dtype=np.float32)
        others[OUTLIERS] = 0
        product = self.product(graph, graph.node("Mul", x, graph.constant(others)), weight)
        outliers = graph.node("Gather", x, graph.integers(*OUTLIERS), axis=1)
        return graph.node("Gemm", outliers, graph.constant(weight[OUTLIERS]), product)

    def product_after_gelu(
        self, graph: OnnxGraph, x: str, weight: Tensor, bias: Tensor
    ) -> tuple[str, Tensor]:
        # After the shift, GELU's output uses the whole unsigned range. The shift adds the same to
        # the product of every token, so it is subtracted from the bias.
        quantised, scales = quantise_columns(weight, 127)
        shifted = graph.node("Add", x, graph.scalar(GELU_FLOOR))
        largest = graph.node("ReduceMax", shifted, axes=[-1], keepdims=1)
        row_scale = graph.node("Mul", largest, graph.scalar(1 / 127))
        rounded = _to_uint8(graph, graph.node("Div", shifted, row_scale), 0)
        product = _integer_product(graph, rounded, 0, quantised, scales, row_scale)
        added = GELU_FLOOR * quantised.sum(axis=0, dtype=np.int64) * scales
        return product, (bias - added).astype(np.float32)


def quantise_columns(weight: Tensor, largest: int) -> tuple[NDArray[np.int8], Tensor]:
    """Integers in [-largest, largest], and a scale for each column. Zero stays zero."""
    scales = np.abs(weight).max(axis=0) / largest
    scales[scales == 0] = 1
    return np.rint(weight / scales).astype(np.int8), scales.astype(np.float32)


def _to_uint8(graph: OnnxGraph, x: str, zero: int) -> str:
    return graph.node("QuantizeLinear", x, graph.scalar(1.0), graph.scalar(zero, "uint8"))


def _integer_product(
    graph: OnnxGraph,
    x: str,
    zero: int,
    weight: NDArray[np.int8],
    weight_scales: Tensor,
    row_scale: str,
) -> str:
    quantised, scales = graph.constant(weight), graph.constant(weight_scales)
    zero_point = graph.scalar(zero, "uint8")
    product = graph.node(
        "MatMulIntegerToFloat", x, quantised, graph.scalar(1.0), scales, zero_point
    )
    return graph.node("Mul", product, row_scale)


# The graph: token ids (texts, tokens) → mean of the token vectors.
#
# All texts of a run have the same number of tokens, so no padding and no mask are needed.
# LayerNormalization is a separate node on purpose: onnxruntime's optimiser would use
# SkipLayerNormalization, which is four times slower on a CPU (specs/0012).

INPUT = "token_ids"
_HEADS = 12
_EPSILON = 1e-12


def build_graph(weights: Weights, products: Products) -> tuple[bytes, OnnxGraph]:
    """The serialised model, and the graph that holds its constants."""
    builder = _Builder(weights, products)
    output = builder.build()
    return builder.graph.serialise(output, ("texts", WIDTH)), builder.graph


class _Builder:
    def __init__(self, weights: Weights, products: Products) -> None:
        self._weights = weights
        self._products = products
        self.graph = OnnxGraph()
        self._ids = self.graph.input(INPUT, "int32", ("texts", "tokens"))
        shape = self.graph.node("Shape", self._ids)
        self._shape = self.graph.node("Concat", shape, self.graph.integers(WIDTH), axis=0)
        self._flat_shape = self.graph.integers(-1, WIDTH)

    def build(self) -> str:
        x = self._flat(self._embeddings())
        for layer in range(LAYERS):
            x = self._attention(f"encoder.layer.{layer}.attention", x)
            x = self._feed_forward(f"encoder.layer.{layer}", x)
        return self.graph.node("ReduceMean", self._by_text(x), axes=[1], keepdims=0)

    def _embeddings(self) -> str:
        weights, prefix = self._weights, "embeddings"
        # Each input is one segment, so all tokens have the same segment vector.
        segment = weights[f"{prefix}.token_type_embeddings.weight"][0]
        positions = weights[f"{prefix}.position_embeddings.weight"] + segment
        inputs = (
            self._ids,
            "",
            self._constant(f"{prefix}.word_embeddings.weight"),
            self.graph.constant(positions),
            "",
            self._constant(f"{prefix}.LayerNorm.weight"),
            self._constant(f"{prefix}.LayerNorm.bias"),
        )
        return self.graph.nodes("EmbedLayerNormalization", inputs, 2, epsilon=_EPSILON)[0]

    def _attention(self, prefix: str, x: str) -> str:
        heads = [f"{prefix}.self.{head}" for head in ("query", "key", "value")]
        weight = np.concatenate([self._weights[f"{head}.weight"] for head in heads], axis=1)
        bias = np.concatenate([self._weights[f"{head}.bias"] for head in heads])
        together = self._products.product_after_norm(self.graph, x, weight)
        parts = self.graph.nodes(
            "Split", (together, self.graph.integers(WIDTH, WIDTH, WIDTH)), 3, axis=-1
        )
        context = self.graph.node(
            "MultiHeadAttention",
            *(self._by_text(part) for part in parts),
            self.graph.constant(bias),
            num_heads=_HEADS,
        )
        dense = f"{prefix}.output.dense"
        y = self._products.product(
            self.graph, self._flat(context), self._weights[f"{dense}.weight"]
        )
        return self._norm(f"{prefix}.output", self._add(y, self._weights[f"{dense}.bias"]), x)

    def _feed_forward(self, prefix: str, x: str) -> str:
        weights = self._weights
        inner = self._products.product_after_norm(
            self.graph, x, weights[f"{prefix}.intermediate.dense.weight"]
        )
        inner_bias = self._constant(f"{prefix}.intermediate.dense.bias")
        y, bias = self._products.product_after_gelu(
            self.graph,
            self.graph.node("BiasGelu", inner, inner_bias),
            weights[f"{prefix}.output.dense.weight"],
            weights[f"{prefix}.output.dense.bias"],
        )
        return self._norm(f"{prefix}.output", self._add(y, bias), x)

    def _add(self, x: str, bias: Tensor) -> str:
        return self.graph.node("Add", x, self.graph.constant(bias))

    def _norm(self, prefix: str, x: str, residual: str) -> str:
        return self.graph.node(
            "LayerNormalization",
            self.graph.node("Add", x, residual),
            self._constant(f"{prefix}.LayerNorm.weight"),
            self._constant(f"{prefix}.LayerNorm.bias"),
            axis=-1,
            epsilon=_EPSILON,
        )

    def _constant(self, name: str) -> str:
        return self.graph.constant(self._weights[name])

    def _flat(self, x: str) -> str:
        return self.graph.node("Reshape", x, self._flat_shape)

    def _by_text(self, x: str) -> str:
        return self.graph.node("Reshape", x, self._shape)
