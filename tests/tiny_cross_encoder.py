"""A real cross-encoder of a few hundred bytes: an ONNX graph, a tokenizer and a configuration.

It counts the query's meanings that the passage has too, and its logit grows with their number.
Synonyms have one meaning, which neither keyword search nor word vectors know: so it can be right
where the first ranking is wrong, and it is the graph that finds it out, from the text.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.normalizers import Lowercase
from tokenizers.pre_tokenizers import Whitespace
from tokenizers.processors import TemplateProcessing

from ragdocs.embedding.minilm import OnnxGraph

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")
SEPARATOR = SPECIAL.index("[SEP]")
FLOAT, INT64 = 1, 7
# The logit of a pair is STEP for each shared meaning, less OFFSET.
STEP, OFFSET = 2.0, 3.0
# Above 256 entries the table of meanings is too large for onnx_graph.py to write it inline: the
# model then names a file beside it, as large exports do with `model.onnx_data`.
DATA_FILE = "memory"
EXTERNAL_ENTRIES = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class TinyCrossEncoder:
    """`meanings` are words, or synonyms separated by blanks; all other words are unknown to it."""

    meanings: Sequence[str]
    labels: int = 1
    max_tokens: int = 64
    inputs: tuple[str, ...] = ("input_ids", "attention_mask", "token_type_ids")
    element: str = "int64"
    is_external: bool = False
    path: str = "onnx/model.onnx"

    @property
    def vocabulary(self) -> list[str]:
        return [*SPECIAL, *(word for synonyms in self.meanings for word in synonyms.split())]

    def write(self, folder: Path) -> Path:
        model = folder / self.path
        model.parent.mkdir(parents=True, exist_ok=True)
        serialised, graph = self.graph()
        model.write_bytes(serialised)
        for constant in graph.outside.values():
            (model.parent / DATA_FILE).write_bytes(constant.tobytes())
        self._tokenizer().save(str(folder / "tokenizer.json"))
        config = {"model_type": "bert", "max_position_embeddings": self.max_tokens}
        (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
        return folder

    def graph(self) -> tuple[bytes, OnnxGraph]:
        graph = OnnxGraph()
        for name in self.inputs:
            graph.input(name, self.element, ("pairs", "tokens"))
        logit = _logit(graph, self.inputs, self._table())
        # With several labels the last one is the one that grows.
        others = [graph.node("Neg", logit)] * (self.labels - 1)
        logits = graph.node("Concat", *others, logit, axis=1)
        logits = _within(graph, logits, self.inputs[0], self.max_tokens)
        return graph.serialise(logits, ("pairs", self.labels)), graph

    def _table(self) -> np.ndarray:
        """Token → meaning, from 1; what has none is 0."""
        numbers = [0] * len(SPECIAL)
        for number, synonyms in enumerate(self.meanings, start=1):
            numbers += [number] * len(synonyms.split())
        padding = max(0, EXTERNAL_ENTRIES - len(numbers)) if self.is_external else 0
        return np.array(numbers + [0] * padding, dtype=np.int32)

    def _tokenizer(self) -> Tokenizer:
        ids = {word: number for number, word in enumerate(self.vocabulary)}
        tokenizer = Tokenizer(WordLevel(ids, unk_token="[UNK]"))
        tokenizer.normalizer = Lowercase()
        tokenizer.pre_tokenizer = Whitespace()
        tokenizer.post_processor = TemplateProcessing(
            single="[CLS] $A [SEP]",
            pair="[CLS] $A [SEP] $B:1 [SEP]:1",
            special_tokens=[(token, ids[token]) for token in ("[CLS]", "[SEP]")],
        )
        # As files from the Hub have them: for other lengths than a query's.
        tokenizer.enable_truncation(7)
        tokenizer.enable_padding(length=9)
        return tokenizer


def _logit(graph: OnnxGraph, inputs: tuple[str, ...], table: np.ndarray) -> str:
    """(pairs, 1): how many of the query's tokens have a meaning that the passage has too."""
    ids = graph.node("Cast", inputs[0], to=INT64)
    meanings = graph.node("Gather", graph.constant(table), ids, axis=0)
    meanings = graph.node("Cast", meanings, to=INT64)
    first, second = graph.integers(1), graph.integers(2)
    same = graph.node(
        "Equal", graph.node("Unsqueeze", meanings, second), graph.node("Unsqueeze", meanings, first)
    )
    is_known = _float(graph, graph.node("Greater", meanings, graph.integers(0)))
    of_passage = _of_passage(graph, ids, inputs)
    of_query = graph.node("Sub", graph.scalar(1.0), of_passage)
    if "attention_mask" in inputs:
        is_known = graph.node("Mul", is_known, _float(graph, "attention_mask"))
    passage = graph.node("Unsqueeze", graph.node("Mul", of_passage, is_known), first)
    matches = graph.node("Mul", _float(graph, same), passage)
    matched = graph.node("ReduceMax", matches, axes=[2], keepdims=0)
    shared = graph.node("Mul", matched, graph.node("Mul", of_query, is_known))
    number = graph.node("ReduceSum", shared, first, keepdims=1)
    return graph.node("Sub", graph.node("Mul", number, graph.scalar(STEP)), graph.scalar(OFFSET))


def _of_passage(graph: OnnxGraph, ids: str, inputs: tuple[str, ...]) -> str:
    """1 for the passage's tokens: as told, or all that stand after the first separator."""
    if "token_type_ids" in inputs:
        return _float(graph, "token_type_ids")
    is_separator = _float(graph, graph.node("Equal", ids, graph.integers(SEPARATOR)))
    passed = graph.node("CumSum", is_separator, graph.scalar(1, "int64"), exclusive=1)
    return graph.node("Min", passed, graph.scalar(1.0))


def _within(graph: OnnxGraph, logits: str, ids: str, max_tokens: int) -> str:
    """Adds nothing, and fails beyond the last position, as a model with learnt positions does."""
    tokens = graph.node("Gather", graph.node("Shape", ids), graph.scalar(1, "int64"))
    last = graph.node("Sub", tokens, graph.scalar(1, "int64"))
    positions = graph.constant(np.zeros(max_tokens, dtype=np.int8))
    nothing = graph.node("Cast", graph.node("Gather", positions, last), to=FLOAT)
    return graph.node("Add", logits, nothing)


def _float(graph: OnnxGraph, value: str) -> str:
    return graph.node("Cast", value, to=FLOAT)
