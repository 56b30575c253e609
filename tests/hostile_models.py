"""Model folders that try to run code: each writes a marker file as soon as its code runs.

Every one begins as a folder that works, given by the caller.
"""

import json
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path

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
