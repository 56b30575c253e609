"""The model's tensors by name, from either container; linear weights as (inputs, outputs).

The file's hash has been verified, so its layout is a fact; sizes are still checked, because a
wrong slice would give vectors that are silently wrong. Everything is copied into memory: a map
of the file would follow whatever happens to the file later.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TypeAlias, TypedDict, cast

import numpy as np
from numpy.typing import NDArray

from ragdocs.embedding.model_files import WeightsLayout
from ragdocs.errors import ModelCorrupt

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
