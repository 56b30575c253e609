"""A real embedding model of a few hundred bytes, laid out as an ONNX export on the Hub.

Each word of its vocabulary has a row of random numbers; the graph looks them up and gives them by
token, or their mean. So numpy can say what every vector must be.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.normalizers import Lowercase
from tokenizers.pre_tokenizers import Whitespace
from tokenizers.processors import TemplateProcessing

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")
PREFIXES = ("query", "passage", ":")
WORDS = ("red", "green", "blue", "one", "two", "three", "four", "five", "reset", "password", "sun")
VOCABULARY = (*SPECIAL, *PREFIXES, *WORDS)
DIMENSION = 6
FLOAT, FLOAT16, INT32, INT64 = 1, 10, 6, 7


def table(seed: int = 0) -> np.ndarray:
    shape = (len(VOCABULARY), DIMENSION)
    numbers = np.random.default_rng(seed).normal(size=shape).astype(np.float32)
    numbers[1] = 0  # an unknown word says nothing
    return numbers


def rows(text: str, seed: int = 0) -> np.ndarray:
    """What the graph gives for a text's tokens."""
    ids = [VOCABULARY.index(word) if word in VOCABULARY else 1 for word in text.lower().split()]
    return table(seed)[[2, *ids, 3]]


def unit(vector: np.ndarray) -> np.ndarray:
    return vector / np.linalg.norm(vector)


@dataclass(frozen=True, kw_only=True)
class TinyExport:
    """`outputs`: name → by token ("tokens") or the mean ("mean"). `is_quantised`: activations are
    rounded by the largest of the batch, as onnxruntime's own dynamic quantisation does it."""

    path: str = "onnx/model.onnx"
    inputs: tuple[str, ...] = ("input_ids", "attention_mask", "token_type_ids")
    element: int = INT64
    outputs: Mapping[str, str] = field(default_factory=lambda: {"last_hidden_state": "tokens"})
    is_half: bool = False
    is_quantised: bool = False
    external: str = ""
    seed: int = 0
    pooling: str = "mean_tokens"
    config: Mapping[str, object] = field(default_factory=dict)
    files: Mapping[str, object] = field(default_factory=dict)

    def write(self, folder: Path) -> Path:
        model = folder / self.path
        model.parent.mkdir(parents=True, exist_ok=True)
        model.write_bytes(self.graph())
        if self.external and "/" not in self.external:
            (model.parent / self.external).write_bytes(table(self.seed).tobytes())
        _tokenizer().save(str(folder / "tokenizer.json"))
        config = {"model_type": "bert", "hidden_size": DIMENSION, **self.config}
        files = {"config.json": config, **self.files}
        if self.pooling:
            pooling = {"word_embedding_dimension": DIMENSION, f"pooling_mode_{self.pooling}": True}
            files = {"1_Pooling/config.json": pooling, **files}
        for name, content in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(json.dumps(content), encoding="utf-8")
        return folder

    def graph(self) -> bytes:
        nodes = [_node("Gather", ["table", "input_ids"], ["rows"])]
        last = "rows"
        if self.is_quantised:
            nodes.append(_node("DynamicQuantizeLinear", [last], ["q", "scale", "zero"]))
            nodes.append(_node("DequantizeLinear", ["q", "scale", "zero"], ["rounded"]))
            last = "rounded"
        if self.is_half:
            nodes.append(_node("Cast", [last], ["half"], to=FLOAT16))
            last = "half"
        for name, kind in self.outputs.items():
            operator = {"tokens": "Identity", "mean": "ReduceMean"}[kind]
            axes = {} if kind == "tokens" else {"axes": [1], "keepdims": 0}
            nodes.append(_node(operator, [last], [name], **axes))
        element = FLOAT16 if self.is_half else FLOAT
        graph = b"".join(_bytes(1, node) for node in nodes) + _bytes(2, b"tiny")
        graph += _bytes(5, self._tensor())
        graph += b"".join(_bytes(11, _value(name, self.element, 2)) for name in self.inputs)
        for name, kind in self.outputs.items():
            graph += _bytes(12, _value(name, element, 3 if kind == "tokens" else 2))
        return _integer(1, 8) + _bytes(7, graph) + _bytes(8, _bytes(1, b"") + _integer(2, 17))

    def _tensor(self) -> bytes:
        numbers = table(self.seed)
        message = b"".join(_integer(1, size) for size in numbers.shape)
        message += _integer(2, FLOAT) + _bytes(8, b"table")
        if not self.external:
            return message + _bytes(9, numbers.tobytes())
        entry = _bytes(1, b"location") + _bytes(2, self.external.encode())
        return message + _bytes(13, entry) + _integer(14, 1)


def _tokenizer() -> Tokenizer:
    ids = {word: number for number, word in enumerate(VOCABULARY)}
    tokenizer = Tokenizer(WordLevel(ids, unk_token="[UNK]"))
    tokenizer.normalizer = Lowercase()
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]",
        special_tokens=[(token, ids[token]) for token in ("[CLS]", "[SEP]")],
    )
    # As files from the Hub have them.
    tokenizer.enable_truncation(4)
    tokenizer.enable_padding(length=9)
    return tokenizer


def _node(
    operator: str, inputs: Sequence[str], outputs: Sequence[str], **attributes: int | list[int]
) -> bytes:
    message = b"".join(_bytes(1, name.encode()) for name in inputs)
    message += b"".join(_bytes(2, name.encode()) for name in outputs)
    message += _bytes(4, operator.encode())
    for name, value in attributes.items():
        values = value if isinstance(value, list) else [value]
        number, kind = (8, 7) if isinstance(value, list) else (3, 2)
        numbers = b"".join(_integer(number, one) for one in values)
        message += _bytes(5, _bytes(1, name.encode()) + numbers + _integer(20, kind))
    return message


def _value(name: str, element: int, rank: int) -> bytes:
    shape = b"".join(_bytes(1, _bytes(2, f"d{at}".encode())) for at in range(rank))
    return _bytes(1, name.encode()) + _bytes(2, _bytes(1, _integer(1, element) + _bytes(2, shape)))


def _integer(number: int, value: int) -> bytes:
    return _varint(number << 3) + _varint(value)


def _bytes(number: int, content: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _varint(value: int) -> bytes:
    encoded = bytearray()
    while value >= 0x80:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*encoded, value])
