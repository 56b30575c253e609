"""The two ways to compute the model's 36 matrix products; the rest is the same for both."""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ragdocs.embedding.onnx_graph import OnnxGraph
from ragdocs.embedding.weights import Tensor

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
        return _integer_product(graph, rounded, 128, (quantised, scales), row_scale)

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
        product = _integer_product(graph, rounded, 0, (quantised, scales), row_scale)
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
    graph: OnnxGraph, x: str, zero: int, weight: tuple[NDArray[np.int8], Tensor], row_scale: str
) -> str:
    quantised, scales = (graph.constant(each) for each in weight)
    zero_point = graph.scalar(zero, "uint8")
    product = graph.node(
        "MatMulIntegerToFloat", x, quantised, graph.scalar(1.0), scales, zero_point
    )
    return graph.node("Mul", product, row_scale)
