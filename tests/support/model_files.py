"""Real models of a few kilobytes and a tiny WordNet, written to a folder on the spot; and folders
of models that try to run code.
"""

import json
import pickle
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
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


def word_tokenizer(words: Sequence[str], truncation: int) -> Tokenizer:
    """One token a word. Truncated and padded as files from the Hub are, for other lengths than a
    query's."""
    ids = {word: number for number, word in enumerate(words)}
    tokenizer = Tokenizer(WordLevel(ids, unk_token="[UNK]"))
    tokenizer.normalizer = Lowercase()
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[(token, ids[token]) for token in ("[CLS]", "[SEP]")],
    )
    tokenizer.enable_truncation(truncation)
    tokenizer.enable_padding(length=9)
    return tokenizer


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
        word_tokenizer(self.vocabulary, truncation=7).save(str(folder / "tokenizer.json"))
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


PREFIXES = ("query", "passage", ":")
WORDS = ("red", "green", "blue", "one", "two", "three", "four", "five", "reset", "password", "sun")
VOCABULARY = (*SPECIAL, *PREFIXES, *WORDS)
DIMENSION = 6
FLOAT16, INT32 = 10, 6


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
        word_tokenizer(VOCABULARY, truncation=4).save(str(folder / "tokenizer.json"))
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


_TEXT = """
how do i sign in to log authentication tomatoes need sun garden and the a storm boats sink what is
this model one text query passage search document : point it at passwords reset
"""
BERT_WORDS = _TEXT.split()


def tokenizer():
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.normalizers import Lowercase
    from tokenizers.pre_tokenizers import Whitespace
    from tokenizers.processors import TemplateProcessing
    from transformers import PreTrainedTokenizerFast

    special = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
    ids = {word: number for number, word in enumerate((*special, *dict.fromkeys(BERT_WORDS)))}
    made = Tokenizer(WordLevel(ids, unk_token="[UNK]"))
    made.normalizer = Lowercase()
    made.pre_tokenizer = Whitespace()
    made.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", ids["[CLS]"]), ("[SEP]", ids["[SEP]"])],
    )
    names = ("pad_token", "unk_token", "cls_token", "sep_token", "mask_token")
    named = dict(zip(names, special, strict=True))
    return PreTrainedTokenizerFast(tokenizer_object=made, model_max_length=64, **named)


def config(dimension, **more):
    from transformers import BertConfig

    return BertConfig(
        vocab_size=len(set(BERT_WORDS)) + 5,
        hidden_size=dimension,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=2 * dimension,
        max_position_embeddings=64,
        **more,
    )


def make_embedding_model(folder: Path, dimension=32, seed=0, prompts=None) -> Path:
    """A sentence-transformers folder: BERT and mean pooling."""
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer
    from transformers import BertModel

    torch.manual_seed(seed)
    bare = folder.parent / f"{folder.name}-bare"
    BertModel(config(dimension)).save_pretrained(bare)
    tokenizer().save_pretrained(bare)
    words = Transformer(str(bare), max_seq_length=32)
    whole = SentenceTransformer(modules=[words, Pooling(dimension)], device="cpu")
    whole.prompts = dict(prompts or {})
    whole.save_pretrained(str(folder), create_model_card=False)
    return folder


def make_cross_encoder(folder: Path, labels=1, seed=0) -> Path:
    import torch
    from transformers import BertForSequenceClassification

    torch.manual_seed(seed)
    BertForSequenceClassification(config(32, num_labels=labels)).save_pretrained(folder)
    tokenizer().save_pretrained(folder)
    return folder


PARTS = {"noun": "n", "verb": "v", "adj": "a", "adv": "r"}
HEAD = b"  1 This is a tiny database for tests.  \n  2 It has two lines of notes.  \n"

SENSES: Mapping[str, Sequence[Sequence[str]]] = {
    "noun": (
        ("car", "auto", "automobile", "motor_vehicle"),
        ("car", "carriage"),
        ("car", "gondola"),
        ("image", "picture"),
        ("child", "kid"),
        ("study", "survey"),
    ),
    "verb": (("remove", "erase", "withdraw", "delete", "cancel"), ("study", "analyse")),
    "adj": (("quick", "fast(p)", "speedy(a)"),),
    "adv": (("quickly", "rapidly"),),
}
EXCEPTIONS = {"noun": "children child\n", "verb": "", "adj": "", "adv": ""}


def write_wordnet(folder: Path, newline: bytes = b"\n") -> Path:
    """With other line ends than LF the offsets no longer count bytes: so comes one real copy."""
    folder.mkdir(parents=True, exist_ok=True)
    for part, kind in PARTS.items():
        data, offsets = HEAD, []
        for words in SENSES[part]:
            offsets.append(len(data))
            listed = " ".join(f"{word} 0" for word in words)
            line = f"{len(data):08d} 00 {kind} {len(words):02x} {listed} 000 | a gloss  \n"
            data += line.encode()
        (folder / f"data.{part}").write_bytes(data.replace(b"\n", newline))
        index = HEAD + b"".join(_index_lines(part, kind, offsets))
        (folder / f"index.{part}").write_bytes(index.replace(b"\n", newline))
        (folder / f"{part}.exc").write_text(EXCEPTIONS[part], encoding="ascii")
    return folder


def _index_lines(part: str, kind: str, offsets: Sequence[int]) -> list[bytes]:
    senses: dict[str, list[int]] = {}
    for words, offset in zip(SENSES[part], offsets, strict=True):
        for word in words:
            senses.setdefault(word.partition("(")[0], []).append(offset)
    uses = 9 if part == "verb" else 1
    lines = []
    for word, found in sorted(senses.items(), key=lambda item: item[0].encode()):
        places = " ".join(f"{offset:08d}" for offset in found)
        lines.append(f"{word} {kind} {len(found)} 2 @ ~ {len(found)} {uses} {places}  \n".encode())
    return lines


SETTINGS = "config.json"
WEIGHTS = "model.safetensors"


class Payload:
    """Unpickling it writes the marker."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self):
        return Path.write_text, (self.marker, "ran")


def pickled(marker: Path) -> bytes:
    return pickle.dumps(Payload(marker))


def code(marker: Path) -> str:
    """A module for every class that a setting may name."""
    return (
        f"import pathlib\npathlib.Path({str(marker)!r}).write_text('ran')\n"
        "from transformers import BertConfig, BertModel, PreTrainedTokenizerFast\n"
        "class EvilConfig(BertConfig):\n    model_type = 'evil'\n"
        "class EvilModel(BertModel):\n    config_class = EvilConfig\n"
        "class EvilTokenizer(PreTrainedTokenizerFast):\n    pass\n"
        "class Evil:\n    @staticmethod\n    def load(*_, **__):\n        raise SystemExit\n"
    )


def edit(file: Path, change: Callable[[dict], object]) -> None:
    settings = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    change(settings)
    file.write_text(json.dumps(settings), encoding="utf-8")


def _auto_map(folder: Path, marker: Path) -> str:
    (folder / "evil.py").write_text(code(marker), encoding="utf-8")
    names = {"AutoConfig": "evil.EvilConfig", "AutoModel": "evil.EvilModel"}
    edit(folder / SETTINGS, lambda found: found.update(model_type="evil", auto_map=names))
    return SETTINGS


def _tokenizer_auto_map(folder: Path, marker: Path) -> str:
    (folder / "evil.py").write_text(code(marker), encoding="utf-8")
    names = {"AutoTokenizer": [None, "evil.EvilTokenizer"]}
    kind = {"tokenizer_class": "EvilTokenizer", "auto_map": names}
    edit(folder / "tokenizer_config.json", lambda found: found.update(kind))
    return "tokenizer_config.json"


def _trusting_settings(folder: Path, marker: Path) -> str:
    _auto_map(folder, marker)
    edit(folder / SETTINGS, lambda found: found.pop("auto_map"))
    kept = {"model_args": {"Trust-Remote-Code": "yes"}}
    edit(folder / "sentence_bert_config.json", lambda found: found.update(kept))
    return "sentence_bert_config.json"


def _fetched_attention(folder: Path, marker: Path) -> str:
    wanted = {"_attn_implementation_internal": "someone/kernel:evil"}
    edit(folder / SETTINGS, lambda found: found.update(wanted))
    return SETTINGS


def _imported_activation(folder: Path, marker: Path) -> str:
    wanted = {"sbert_ce_default_activation_function": "evil.Evil"}
    edit(folder / SETTINGS, lambda found: found.update(wanted))
    return SETTINGS


def _pickled_weights(folder: Path, marker: Path) -> str:
    (folder / WEIGHTS).unlink()
    (folder / "pytorch_model.bin").write_bytes(pickled(marker))
    return "pytorch_model.bin"


def _pickled_shards(folder: Path, marker: Path) -> str:
    """A safe index that names a pickle."""
    (folder / WEIGHTS).unlink()
    (folder / "weights.bin").write_bytes(pickled(marker))
    index = {"metadata": {}, "weight_map": {"embeddings.word_embeddings.weight": "weights.bin"}}
    edit(folder / f"{WEIGHTS}.index.json", lambda found: found.update(index))
    return f"{WEIGHTS}.index.json"


def _pickle_of_another_name(folder: Path, marker: Path) -> str:
    (folder / WEIGHTS).unlink()
    (folder / "model.ckpt").write_bytes(pickled(marker))
    return "model.ckpt"


def _adapter(folder: Path, marker: Path) -> str:
    other = folder / "other"
    other.mkdir()
    shutil.copy(folder / SETTINGS, other)
    (other / "pytorch_model.bin").write_bytes(pickled(marker))
    about = {"peft_type": "LORA", "base_model_name_or_path": str(other)}
    edit(folder / "adapter_config.json", lambda found: found.update(about))
    return "adapter_config.json"


def _module_class(folder: Path, marker: Path) -> str:
    (folder / "evil.py").write_text(code(marker), encoding="utf-8")
    return _with_module(folder, "evil.Evil", "")


def _installed_class(folder: Path, marker: Path) -> str:
    """Not of the folder, but still chosen by it."""
    return _with_module(folder, "http.server.test", "")


def _module_elsewhere(folder: Path, marker: Path) -> str:
    outside = folder.parent / "outside"
    outside.mkdir()
    (outside / "pytorch_model.bin").write_bytes(pickled(marker))
    dense = {"in_features": 32, "out_features": 32, "bias": True}
    edit(outside / SETTINGS, lambda found: found.update(dense))
    return _with_module(folder, "sentence_transformers.models.Dense", "../outside")


def _pickled_module(folder: Path, marker: Path) -> str:
    """Beside other safetensors than those that are looked for."""
    dense = folder / "2_Dense"
    dense.mkdir()
    (dense / "pytorch_model.bin").write_bytes(pickled(marker))
    shutil.copy(folder / WEIGHTS, dense / "other.safetensors")
    activation = "torch.nn.modules.linear.Identity"
    about = {"in_features": 32, "out_features": 32, "bias": True, "activation_function": activation}
    edit(dense / SETTINGS, lambda found: found.update(about))
    _with_module(folder, "sentence_transformers.models.Dense", "2_Dense")
    return "2_Dense/pytorch_model.bin"


def _activation_of_a_module(folder: Path, marker: Path) -> str:
    dense = folder / "2_Dense"
    dense.mkdir()
    shutil.copy(folder / WEIGHTS, dense)
    about = {"in_features": 32, "out_features": 32, "activation_function": "evil.Evil"}
    edit(dense / SETTINGS, lambda found: found.update(about))
    _with_module(folder, "sentence_transformers.models.Dense", "2_Dense")
    return "2_Dense/config.json"


def _routed_class(folder: Path, marker: Path) -> str:
    (folder / "evil.py").write_text(code(marker), encoding="utf-8")
    router = folder / "2_Router"
    router.mkdir()
    about = {"types": {"query_0": "evil.Evil"}, "structure": {"query": ["query_0"]}}
    edit(router / "router_config.json", lambda found: found.update(about, parameters={}))
    _with_module(folder, "sentence_transformers.models.Router", "2_Router")
    return "2_Router/router_config.json"


def _with_module(folder: Path, kind: str, path: str) -> str:
    file = folder / "modules.json"
    modules = json.loads(file.read_text(encoding="utf-8"))
    modules.append({"idx": len(modules), "name": "evil", "path": path, "type": kind})
    file.write_text(json.dumps(modules), encoding="utf-8")
    return file.name


HostileMaker = Callable[[Path, Path], str]
"""Changes the folder; returns the file that is to be named."""

ANY_MODEL: tuple[HostileMaker, ...] = (
    _auto_map,
    _tokenizer_auto_map,
    _trusting_settings,
    _fetched_attention,
    _imported_activation,
    _pickled_weights,
    _pickled_shards,
    _pickle_of_another_name,
    _adapter,
)
WITH_MODULES: tuple[HostileMaker, ...] = (
    _module_class,
    _installed_class,
    _module_elsewhere,
    _pickled_module,
    _activation_of_a_module,
    _routed_class,
)
"""For what sentence-transformers made: it lists its modules."""
