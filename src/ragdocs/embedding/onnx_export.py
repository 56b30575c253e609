"""An embedding model's ONNX export: which of its files are used, and what they say of it.

Read from a folder as the Hub has it, without loading anything: tokenizer.json, config.json, and of
sentence-transformers modules.json, 1_Pooling, sentence_bert_config.json and
config_sentence_transformers.json.
"""

from __future__ import annotations

import platform
import re
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, cast

from ragdocs.config.choices import Pooling
from ragdocs.config.values import AUTO
from ragdocs.embedding.declared import declared_dimension, declared_prefixes
from ragdocs.embedding.model_folder import CheckedModel, ModelFolder
from ragdocs.embedding.model_hub import exported_files
from ragdocs.embedding.prefixes import Prefixes, chosen_prefixes, known_prefixes
from ragdocs.errors import ModelCorrupt, ModelMissing

if TYPE_CHECKING:
    from ragdocs.config.embedding_section import EmbeddingConfig
    from ragdocs.embedding.verification import FileVerifier

EXPECTED = "config.json, tokenizer.json and onnx/model_quantized.onnx (or another .onnx file)"
MAX_TOKENS = 512
"""Longer windows cost memory by their square. A longer text is split; its vector is the mean."""
_SCHEME = 1
"""Raised whenever the same files begin to give other vectors."""
_FOLDERS = ("onnx", "")
_QUANTISED = ("model_quantized", "model_int8", "model_uint8")
_PLAIN = ("model", "model_optimized", "model_O1", "model_O2", "model_O3", "model_fp16", "model_O4")
_SMALLEST = ("model_q4f16", "model_q4", "model_bnb4")
_DATA = re.compile(r"[._]data(_\d+)?")
_SETTINGS = frozenset(
    {
        "config.json",
        "tokenizer.json",
        "tokenizer_config.json",
        "modules.json",
        "sentence_bert_config.json",
        "config_sentence_transformers.json",
    }
)
_POOLING_KEYS = {
    "pooling_mode_mean_tokens": Pooling.MEAN,
    # The same direction as the mean.
    "pooling_mode_mean_sqrt_len_tokens": Pooling.MEAN,
    "pooling_mode_cls_token": Pooling.CLS,
    "pooling_mode_max_tokens": Pooling.MAX,
    "pooling_mode_lasttoken": Pooling.LAST,
}
_POOLING_NAMES = {
    "mean": Pooling.MEAN,
    "mean_sqrt_len_tokens": Pooling.MEAN,
    "cls": Pooling.CLS,
    "max": Pooling.MAX,
    "lasttoken": Pooling.LAST,
}
# Of models whose exports often come without 1_Pooling; all others take the mean.
_POOLING_FAMILIES = (
    (r"qwen3-embedding|gte[-_]qwen|e5-mistral|bge[-_](multilingual-gemma|en-icl)", Pooling.LAST),
    (r"bge[-_]|arctic-embed|mxbai-embed|gte-.*(v1\.5|modernbert|multilingual)", Pooling.CLS),
)
_COMPUTED_HERE = ("Transformer", "Pooling", "Normalize", "Dropout")


@dataclass(frozen=True, slots=True)
class OnnxExport:
    """All that decides a vector, as the files and the settings have it.

    `is_pooling_set`: by the settings, so that an output of whole vectors is not taken. `guessed`:
    the files say nothing of pooling. `later_layers` are modules that only a graph with an output of
    whole vectors holds.
    """

    folder: Path
    model: CheckedModel
    tokenizer: Path
    max_tokens: int
    pooling: Pooling
    is_pooling_set: bool
    guessed: bool
    lower_case: bool
    prefixes: Prefixes
    dimension: int
    later_layers: tuple[str, ...]

    def identity(self, verifier: FileVerifier) -> str:
        """Raises OSError when a file cannot be read."""
        found = blake2b(digest_size=16)
        for file in (self.model.path, *self.model.data, self.tokenizer):
            found.update(f"{file.name}\0{verifier.sha256(file)}\0".encode())
        pooling = f"{self.pooling}!" if self.is_pooling_set else str(self.pooling)
        return (
            f"onnx:{found.hexdigest()};pooling={pooling};window={self.max_tokens};"
            f"lower={int(self.lower_case)};{self.prefixes.identity};scheme={_SCHEME}"
        )


def read_export(path: Path, settings: EmbeddingConfig) -> OnnxExport:
    """Raises ModelMissing, ModelCorrupt or ModelRefused, with what to do."""
    folder = ModelFolder(path, "embedding model", EXPECTED, "embedding.model")
    try:
        return _read_export(folder, settings)
    except OSError as error:
        raise ModelMissing(
            f"the embedding model's folder {path} cannot be read: {error.strerror}; "
            "check its permissions"
        ) from error


def choose_model(names: Iterable[str]) -> str | None:
    """The file to load of those that a model has: a quantised one that suits this processor, else
    the full one, else a smaller one."""
    there = frozenset(names)
    wanted = (
        f"{folder}/{name}.onnx".lstrip("/")
        for group in ((*_QUANTISED, *_for_processor()), _PLAIN, _SMALLEST)
        for folder in _FOLDERS
        for name in group
    )
    return next((name for name in wanted if name in there), None)


def needed_files(names: Iterable[str], chosen: str) -> list[str]:
    """Of all files of a model on the Hub, those that `read_export` reads."""
    there = sorted(names)
    return [name for name in there if name == chosen or _is_beside(name, chosen) or _is_read(name)]


def _is_beside(name: str, chosen: str) -> bool:
    """`model.onnx_data`, `model.onnx_data_1`, `model.onnx.data`"""
    return name.startswith(chosen) and _DATA.fullmatch(name.removeprefix(chosen)) is not None


def _is_read(name: str) -> bool:
    path = PurePosixPath(name)
    return name in _SETTINGS or (path.name == "config.json" and path.match("*_Pooling/config.json"))


def _for_processor() -> tuple[str, ...]:
    """Quantised for one kind of processor: on others their sums overflow, and nothing tells."""
    machine = platform.machine().lower()
    if machine in ("arm64", "aarch64"):
        return ("model_qint8_arm64",)
    if machine not in ("x86_64", "amd64"):
        return ()
    try:
        has_vnni = "avx512_vnni" in Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except (OSError, ValueError):
        has_vnni = False
    vnni = ("model_qint8_avx512_vnni",) if has_vnni else ()
    return (*vnni, "model_quint8_avx2")


def _read_export(folder: ModelFolder, settings: EmbeddingConfig) -> OnnxExport:
    folder.require()
    name = _model_file(folder, settings.model_file)
    config = folder.settings("config.json")
    tokenizer = folder.tokenizer()
    sentence = _optional(folder, "sentence_bert_config.json")
    modules = _modules(folder)
    original = str(config.get("_name_or_path") or "")
    known = declared_prefixes(folder.path)
    if known is None:
        known = known_prefixes(settings.model)
        known = known if known != Prefixes() else known_prefixes(original)
    prefixes = chosen_prefixes(settings.query_prefix, settings.passage_prefix, known)
    pooling = _declared_pooling(folder, modules, prefixes)
    is_set = settings.pooling is not Pooling.AUTO
    return OnnxExport(
        folder=folder.path,
        model=folder.check_model(name),
        tokenizer=tokenizer,
        max_tokens=_window(folder, config, sentence),
        pooling=settings.pooling if is_set else pooling or _known_pooling(settings.model, original),
        is_pooling_set=is_set,
        guessed=not is_set and pooling is None,
        lower_case=sentence.get("do_lower_case") is True,
        prefixes=prefixes,
        dimension=declared_dimension(folder.path),
        later_layers=tuple(kind for kind, _ in modules if kind not in _COMPUTED_HERE),
    )


def _model_file(folder: ModelFolder, wanted: str) -> str:
    if wanted == AUTO:
        chosen = choose_model(exported_files(folder.path))
        if chosen is None:
            raise folder.lacks("onnx/model_quantized.onnx, onnx/model.onnx or the like")
        return chosen
    return wanted


def _optional(folder: ModelFolder, name: str) -> dict[str, object]:
    return folder.settings(name) if folder.has(name) else {}


def _modules(folder: ModelFolder) -> list[tuple[str, str]]:
    """The last part of each module's class, and its folder. Nothing is imported by these names."""
    if not folder.has("modules.json"):
        return []
    found = folder.json("modules.json")
    entries = cast("list[object]", found) if isinstance(found, list) else [None]
    modules: list[tuple[str, str]] = []
    for entry in entries:
        about = cast("dict[str, object]", entry) if isinstance(entry, dict) else {}
        kind, path = about.get("type"), about.get("path", "")
        if not isinstance(kind, str) or not isinstance(path, str):
            raise ModelCorrupt(f"{folder.path / 'modules.json'} is no list of modules")
        modules.append((kind.rpartition(".")[2], path))
    return modules


def _declared_pooling(
    folder: ModelFolder, modules: list[tuple[str, str]], prefixes: Prefixes
) -> Pooling | None:
    """None where no file says it."""
    path = next((path for kind, path in modules if kind == "Pooling"), "1_Pooling")
    name = f"{path}/config.json"
    if not folder.has(name):
        return None
    config = folder.settings(name)
    told = config.get("pooling_mode")
    chosen = {mode for key, mode in _POOLING_KEYS.items() if config.get(key) is True}
    if isinstance(told, str):
        chosen = {_POOLING_NAMES[told]} if told in _POOLING_NAMES else set[Pooling]()
    if len(chosen) != 1 or config.get("pooling_mode_weightedmean_tokens") is True:
        raise ModelCorrupt(
            f"{folder.path / name} asks for a pooling that is not known here: it must be one of "
            "mean, cls, max and last token; set embedding.pooling to choose one"
        )
    if config.get("include_prompt") is False and prefixes != Prefixes():
        raise ModelCorrupt(
            f"{folder.path / name} leaves the prefix out of the pooling, which cannot be done "
            'here: set query_prefix = "" and passage_prefix = "", or use another model'
        )
    return chosen.pop()


def _known_pooling(*names: str) -> Pooling:
    for name in names:
        last = re.split(r"[/\\]", name.rstrip("/\\"))[-1].lower()
        for pattern, pooling in _POOLING_FAMILIES:
            if re.search(pattern, last):
                return pooling
    return Pooling.MEAN


def _window(folder: ModelFolder, config: dict[str, object], sentence: dict[str, object]) -> int:
    told = {
        "config.json: max_position_embeddings": config.get("max_position_embeddings"),
        "sentence_bert_config.json: max_seq_length": sentence.get("max_seq_length"),
    }
    window = MAX_TOKENS
    for place, value in told.items():
        if value is None:
            continue
        # Not `isinstance`: true is an int too.
        if type(value) is not int or value < 1:
            raise ModelCorrupt(f"{folder.path}/{place} is {value!r}; download it again")
        window = min(window, value)
    return window
