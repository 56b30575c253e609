"""all-MiniLM-L6-v2 as an ONNX graph: token ids (texts, tokens) → mean of the token vectors.

Every text of a run has the same number of tokens, so there is no padding and no mask to get
wrong. LayerNormalization stands alone on purpose: onnxruntime's SkipLayerNormalization, which its
own optimiser would put here, is four times slower on a CPU (specs/0012).
"""

import numpy as np

from ragdocs.embedding.onnx_graph import OnnxGraph
from ragdocs.embedding.precision import Products
from ragdocs.embedding.weights import LAYERS, WIDTH, Tensor, Weights

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
