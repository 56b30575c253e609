"""all-MiniLM-L6-v2 as an ONNX graph that we write ourselves, in full or 8-bit precision."""

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

# Writes an ONNX model: the few protobuf messages that an inference graph needs.
#
# The `onnx` package would do the same and adds 33 MB to the install; the wire format is thirty
# lines. Field numbers are those of onnx.proto. Constants stay outside the message and are given to
# the session as arrays, so that a model is never copied through a file.

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


# The model's tensors by name, from either container; linear weights as (inputs, outputs).
#
# The file's hash has been verified, so its layout is a fact; sizes are still checked, because a
# wrong slice would give vectors that are silently wrong. Everything is copied into memory: a map
# of the file would follow whatever happens to the file later.

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
        raise ModelCorrupt(f"the weights hold {len(data)} bytes, not {start}")
    return tensors


def _is_linear(name: str) -> bool:
    return name.endswith(".weight") and name.startswith("encoder.") and "LayerNorm" not in name


def _shapes() -> Iterator[tuple[str, tuple[int, ...]]]:
    """Every tensor by its original name, in the order in which the ONNX data holds them."""
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


# The two ways to compute the model's 36 matrix products; the rest is the same for both.

# GELU is never below -0.16998, so that adding this makes it non-negative.
GELU_FLOOR = 0.17
# The channels in which this model's normalised activations are far larger than in all others, in
# every layer and for every kind of text; computed in fp32 (specs/0014).
OUTLIERS = [63, 99, 157, 223, 338]


class Products(Protocol):
    """Adds `x @ weight` to a graph, for x of shape (tokens, inputs)."""

    def product(self, graph: OnnxGraph, x: str, weight: Tensor) -> str: ...

    def product_after_norm(self, graph: OnnxGraph, x: str, weight: Tensor) -> str: ...

    def product_after_gelu(
        self, graph: OnnxGraph, x: str, weight: Tensor, bias: Tensor
    ) -> tuple[str, Tensor]:
        """The product, and the bias to add to it in place of the one given."""
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
    """Integers: weights with a scale per output channel, activations with a scale per token.

    A scale per token, and not per batch as onnxruntime's own dynamic quantisation has it, keeps a
    text's vector independent of its neighbours and loses half as much precision.

    One of the two factors has 7 bits. Processors without VNNI add two products in 16 bits and
    saturate: 2 x 255 x 63 and 2 x 127 x 127 fit, 2 x 255 x 127 does not. So every processor gives
    the same result. Which factor has 8 was measured (specs/0014).
    """

    def product(self, graph: OnnxGraph, x: str, weight: Tensor) -> str:
        quantised, scales = quantise_columns(weight, 63)
        largest = graph.node("ReduceMax", graph.node("Abs", x), axes=[-1], keepdims=1)
        # A token of zeros has the scale 0: 0/0 would spoil its row.
        largest = graph.node("Max", largest, graph.scalar(1e-30))
        row_scale = graph.node("Mul", largest, graph.scalar(1 / 127))
        rounded = _to_uint8(graph, graph.node("Div", x, row_scale), 128)
        return _integer_product(graph, rounded, 128, quantised, scales, row_scale)

    def product_after_norm(self, graph: OnnxGraph, x: str, weight: Tensor) -> str:
        # Left in, the outliers would set the scale and the other channels lose a bit or two.
        others = np.ones(weight.shape[0], dtype=np.float32)
        others[OUTLIERS] = 0
        product = self.product(graph, graph.node("Mul", x, graph.constant(others)), weight)
        outliers = graph.node("Gather", x, graph.integers(*OUTLIERS), axis=1)
        return graph.node("Gemm", outliers, graph.constant(weight[OUTLIERS]), product)

    def product_after_gelu(
        self, graph: OnnxGraph, x: str, weight: Tensor, bias: Tensor
    ) -> tuple[str, Tensor]:
        # Shifted, GELU's output uses the whole unsigned range; what the shift adds to the product
        # is the same for every token, and is taken off the bias.
        quantised, scales = quantise_columns(weight, 127)
        shifted = graph.node("Add", x, graph.scalar(GELU_FLOOR))
        largest = graph.node("ReduceMax", shifted, axes=[-1], keepdims=1)
        row_scale = graph.node("Mul", largest, graph.scalar(1 / 127))
        rounded = _to_uint8(graph, graph.node("Div", shifted, row_scale), 0)
        product = _integer_product(graph, rounded, 0, quantised, scales, row_scale)
        added = GELU_FLOOR * quantised.sum(axis=0, dtype=np.int64) * scales
        return product, (bias - added).astype(np.float32)


def quantise_columns(weight: Tensor, largest: int) -> tuple[NDArray[np.int8], Tensor]:
    """Integers in [-largest, largest] and a scale for each column; zero stays zero."""
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


# all-MiniLM-L6-v2 as an ONNX graph: token ids (texts, tokens) → mean of the token vectors.
#
# Every text of a run has the same number of tokens, so there is no padding and no mask to get
# wrong. LayerNormalization stands alone on purpose: onnxruntime's SkipLayerNormalization, which its
# own optimiser would put here, is four times slower on a CPU (specs/0012).

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
        # One text, one segment: its vector is the same for every token.
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
