"""The pure parts: windows, batches, quantised weights, the ONNX writer, the fallback."""

import os
import sys
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragdocs.embedding import runtime
from ragdocs.embedding.base import (
    MAX_CHARACTERS,
    MAX_TOKENS,
    MAX_WINDOWS,
    NICENESS,
    SPECIAL_TOKENS,
    BatchLimits,
    Tokens,
    batches,
    run_all,
    split_text,
)
from ragdocs.embedding.builtin import BuiltinEmbedder
from ragdocs.embedding.minilm import Fp32Products, Int8Products, OnnxGraph, quantise_columns
from ragdocs.embedding.runtime import load_onnxruntime
from ragdocs.errors import EmbeddingError

ROOM = MAX_TOKENS - SPECIAL_TOKENS


def by_letter(text: str) -> Tokens:
    """A real tokenizer of the simplest kind: every letter that is not a space is a token."""
    text.encode("utf-8")
    ends = [index + 1 for index, letter in enumerate(text) if not letter.isspace()]
    return Tokens([ord(text[end - 1]) for end in ends], ends)


@given(st.integers(0, MAX_WINDOWS * ROOM))
def test_a_text_within_the_cap_loses_nothing(length):
    windowed = split_text("x" * length, by_letter)
    sizes = [len(piece) for piece in windowed.pieces]
    assert sum(sizes) == length
    assert windowed.cut_characters == 0
    assert max(sizes) <= ROOM
    assert max(sizes) - min(sizes) <= 1
    assert len(sizes) == max(1, -(-length // ROOM))


def test_what_is_beyond_the_cap_is_counted():
    cap = MAX_WINDOWS * ROOM
    assert split_text("x" * (cap + 7), by_letter).cut_characters == 7
    endless = split_text("x" * (MAX_CHARACTERS + 1000), by_letter)
    assert endless.cut_characters == MAX_CHARACTERS + 1000 - cap
    assert len(endless.pieces) == MAX_WINDOWS


def test_text_beyond_what_is_looked_at_counts_unless_it_is_blank():
    blank = " " * MAX_CHARACTERS
    assert split_text(f"word{blank}", by_letter).cut_characters == 0
    assert split_text(f"word{blank}end", by_letter).cut_characters == 3


def test_a_lone_surrogate_becomes_the_replacement_character():
    assert split_text("a\ud800b", by_letter).pieces == ([ord("a"), 0xFFFD, ord("b")],)


@given(st.lists(st.integers(2, 256), max_size=80), st.integers(1, 600), st.integers(1, 40))
def test_batches_hold_every_position_once_and_one_length_each(lengths, tokens, size):
    groups = batches(lengths, BatchLimits(tokens, size))
    assert sorted(position for group in groups for position in group) == list(range(len(lengths)))
    for group in groups:
        assert len({lengths[position] for position in group}) == 1
        assert len(group) <= size
        assert len(group) == 1 or len(group) * lengths[group[0]] <= tokens
    longest_first = [lengths[group[0]] for group in groups]
    assert longest_first == sorted(longest_first, reverse=True)


@pytest.mark.parametrize("largest", [63, 127])
def test_quantised_weights_are_within_half_a_step(largest):
    weight = np.random.default_rng(0).normal(size=(40, 7)).astype(np.float32)
    weight[:, 3] = 0
    quantised, scales = quantise_columns(weight, largest)
    assert np.abs(quantised.astype(int)).max() == largest
    assert (np.abs(quantised * scales - weight) <= scales / 2 + 1e-6).all()


@pytest.mark.parametrize("products", [Fp32Products(), Int8Products()])
def test_products_of_a_small_graph_agree_with_numpy(products):
    """Through the ONNX writer and onnxruntime, rows of zeros and very different rows included."""
    random = np.random.default_rng(0)
    x = random.normal(size=(5, 384)).astype(np.float32)
    x[1], x[2], x[3, 99] = 0, x[2] * 1e4, 50
    weight = random.normal(size=(384, 24)).astype(np.float32)
    for build in (products.product, products.product_after_norm):
        graph = OnnxGraph()
        result = build(graph, graph.input("x", "float32", ("rows", 384)), weight)
        found = run(graph, result, 24, x)
        exact = x @ weight
        assert np.abs(found[1]).max() == 0
        error = np.linalg.norm(found - exact, axis=1) / np.maximum(
            np.linalg.norm(exact, axis=1), 1e-9
        )
        assert error.max() < (1e-5 if isinstance(products, Fp32Products) else 0.1)


@pytest.mark.parametrize("products", [Fp32Products(), Int8Products()])
def test_products_after_gelu_agree_with_numpy(products):
    random = np.random.default_rng(0)
    x = np.maximum(random.normal(size=(5, 96)), -0.1699).astype(np.float32)
    weight = random.normal(size=(96, 24)).astype(np.float32)
    bias = random.normal(size=24).astype(np.float32)
    graph = OnnxGraph()
    name = graph.input("x", "float32", ("rows", 96))
    result, corrected = products.product_after_gelu(graph, name, weight, bias)
    found = run(graph, graph.node("Add", result, graph.constant(corrected)), 24, x)
    exact = x @ weight + bias
    assert np.linalg.norm(found - exact) / np.linalg.norm(exact) < 0.02


def run(graph: OnnxGraph, output: str, width: int, x):
    onnxruntime = load_onnxruntime()
    options = onnxruntime.SessionOptions()
    outside = graph.outside
    values = [onnxruntime.OrtValue.ortvalue_from_numpy(array) for array in outside.values()]
    options.add_external_initializers(list(outside), values)
    session = onnxruntime.InferenceSession(
        graph.serialise(output, ("rows", width)), options, providers=["CPUExecutionProvider"]
    )
    return session.run(None, {"x": x})[0]


class BrokenProducts(Int8Products):
    """Arithmetic that a faulty processor or library might give."""

    def product(self, graph, x, weight):
        return super().product(graph, x, -weight)


class UnknownOperator(Int8Products):
    """A graph that this onnxruntime cannot run."""

    def product(self, graph, x, weight):
        return graph.node("NoSuchOperator", x, graph.constant(weight))


@pytest.mark.parametrize("products", [BrokenProducts, UnknownOperator])
def test_int8_that_does_not_work_here_gives_way_to_fp32_and_says_so(
    products, tmp_path, monkeypatch
):
    monkeypatch.setattr(runtime, "Int8Products", products)
    embedder = BuiltinEmbedder(cache_dir=tmp_path, precision="auto")
    assert "precision=int8" in embedder.identity
    embedder.load()
    assert embedder.precision == "fp32"
    assert "precision=fp32" in embedder.identity
    assert "int8 cannot be used here" in embedder.notes[0]


def test_wrong_vectors_are_an_error_when_nothing_is_left_to_fall_back_to(tmp_path, monkeypatch):
    monkeypatch.setattr(runtime, "Fp32Products", BrokenProducts)
    with pytest.raises(EmbeddingError, match="wrong fp32 vectors"):
        BuiltinEmbedder(cache_dir=tmp_path, precision="fp32").load()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lowers single threads")
def test_bulk_work_stands_back_and_the_caller_does_not():
    def niceness():
        return os.getpriority(os.PRIO_PROCESS, threading.get_native_id())

    here, seen = niceness(), []
    run_all(lambda _: seen.append(niceness()), [[0]], threads=2, nice=True)
    run_all(lambda _: seen.append(niceness()), [[0]], threads=2)
    assert seen == [max(here, NICENESS), here]
    assert niceness() == here
