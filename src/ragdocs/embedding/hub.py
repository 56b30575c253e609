"""Models on this disk: finds them by name or folder, chooses their files, and reads their metadata.

Files are checked before a library opens them. Nothing is downloaded here.
"""

from __future__ import annotations

import json
import os
import platform
import re
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import blake2b, file_digest
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, cast

from ragdocs.config.choices import Pooling
from ragdocs.config.values import AUTO
from ragdocs.embedding.base import Prefixes, choose_prefixes, known_prefixes
from ragdocs.embedding.model_files import external_data
from ragdocs.errors import ModelCorrupt, ModelMissing, ModelRefused
from ragdocs.text import advised

if TYPE_CHECKING:
    from types import ModuleType

    from ragdocs.config.settings import EmbeddingConfig
    from ragdocs.embedding.model_files import FileVerifier

# A folder with a model for onnxruntime, checked before the library opens any of its files.
#
# Nothing outside the folder is opened, whatever a link in it or the model names. Nothing in it is
# run: onnxruntime loads a library of operators only on request.

_MAX_MODEL_BYTES = 2**31
_MAX_EXTERNAL_BYTES = 2**32
_MAX_TOKENIZER_BYTES = 100_000_000
_MAX_SETTINGS_BYTES = 10_000_000
_MEMORY_ADDRESS = "_ORT_MEM_ADDR_"


@dataclass(frozen=True, slots=True)
class ModelFolder:
    """Errors mention the model's `kind`, the `expected` files and the `setting` that names the
    folder."""

    path: Path
    kind: str
    expected: str
    setting: str

    def require(self) -> None:
        """Raises ModelMissing if there is no such folder."""
        if not self.path.is_dir():
            raise ModelMissing(
                f"the {self.kind}'s folder {self.path} does not exist; download a model with "
                f"{self.expected} into it, or set {self.setting} to another folder"
            )

    def has(self, name: str) -> bool:
        return (self.path / name).is_file()

    def file(self, name: str) -> Path:
        """Raises ModelMissing for a missing file, ModelRefused for a link out of the folder."""
        path = self.path / name
        if not path.is_file():
            raise self.lacks(name)
        root = self.path.resolve()
        # In the Hub's cache a snapshot's files are links to `blobs` beside `snapshots`.
        if root.parent.name == "snapshots":
            root = root.parent.parent
        if not path.resolve().is_relative_to(root):
            raise ModelRefused(
                f"{path} links to a file outside the model's folder; put the file there instead"
            )
        return path

    def lacks(self, name: str) -> ModelMissing:
        return ModelMissing(
            f"the {self.kind}'s folder {self.path} has no {name}; it needs {self.expected}: "
            "download the missing files, including the ONNX version, from the model's page"
        )

    def tokenizer(self, name: str = "tokenizer.json") -> Path:
        path = self.file(name)
        if path.stat().st_size > _MAX_TOKENIZER_BYTES:
            raise ModelCorrupt(f"{path} has more than {_MAX_TOKENIZER_BYTES:,} bytes")
        return path

    def settings(self, name: str) -> dict[str, object]:
        """The JSON object in a file. Raises ModelCorrupt for anything else."""
        found = self.json(name)
        if not isinstance(found, dict):
            raise ModelCorrupt(f"{self.path / name} is not a JSON object; download it again")
        return cast("dict[str, object]", found)

    def json(self, name: str) -> object:
        path = self.file(name)
        if path.stat().st_size > _MAX_SETTINGS_BYTES:
            raise ModelCorrupt(
                f"{path} has more than {_MAX_SETTINGS_BYTES:,} bytes, too many for settings"
            )
        try:
            return json.loads(path.read_text(encoding="utf-8"))
        except (ValueError, RecursionError) as error:
            raise ModelCorrupt(f"{path} is damaged ({error}); download it again") from error

    def check_model(self, name: str) -> CheckedModel:
        """Raises ModelRefused for a model that reads files elsewhere, ModelCorrupt for a damaged or
        too large one."""
        model = self.file(name)
        if model.stat().st_size > _MAX_MODEL_BYTES:
            raise ModelCorrupt(f"{model} has more than 2 GB, the limit for an ONNX file")
        serialised = model.read_bytes()
        try:
            named = external_data(serialised)
        except (ValueError, RecursionError) as error:
            raise ModelCorrupt(f"{model} is damaged ({error}); download it again") from error
        beside: dict[str, int] = {}
        for location, offset, length in sorted(named):
            path = PurePosixPath(location)
            if path.is_absolute() or ".." in path.parts or "\\" in location or ":" in location:
                raise ModelRefused(
                    f"{model} tries to read {location!r}, which is outside its folder; "
                    "do not use it"
                )
            # onnxruntime takes this for an address in the process's memory.
            if _MEMORY_ADDRESS in location:
                raise ModelRefused(f"{model} tries to read the program's memory; do not use it")
            data = (PurePosixPath(name).parent / path).as_posix()
            size = beside[data] = self.file(data).stat().st_size
            if offset < 0 or length < 0 or offset + length > size:
                raise ModelCorrupt(
                    f"{model} needs {length:,} bytes at offset {offset:,} of {location!r}, which "
                    f"has only {size:,}; download both again"
                )
        if sum(beside.values()) > _MAX_EXTERNAL_BYTES:
            raise ModelCorrupt(
                f"the data files of {model} have more than {_MAX_EXTERNAL_BYTES:,} bytes; use a "
                "smaller or a quantised version"
            )
        has_batch_scales = b"DynamicQuantizeLinear" in serialised
        return CheckedModel(model, tuple(map(self.file, beside)), has_batch_scales)


@dataclass(frozen=True, slots=True)
class CheckedModel:
    """A model that reads only these files.

    `has_batch_scales`: it rounds activations by the largest in a batch, so that a text's vector
    depends on the others in its batch.
    """

    path: Path
    data: tuple[Path, ...]
    has_batch_scales: bool


# The files of a cross-encoder's folder, as downloaded from Hugging Face.

NEEDED_FILES = "config.json, tokenizer.json and onnx/model.onnx (or model.onnx)"
MODELS = ("onnx/model.onnx", "model.onnx")
# Cross-encoders are trained with this many. RoBERTa has 514 positions and uses 512; models with
# thousands would only make queries slower, because no passage is that long.
MAX_TOKENS = 512


@dataclass(frozen=True, slots=True)
class CrossEncoderFiles:
    """The files to load, and the maximum number of tokens in a pair."""

    model: Path
    tokenizer: Path
    max_tokens: int


def find_files(folder: Path) -> CrossEncoderFiles:
    """Raises ModelMissing or ModelCorrupt, with advice."""
    found = ModelFolder(folder, "cross-encoder", NEEDED_FILES, "rerank_model")
    try:
        return _find_files(found)
    except OSError as error:
        raise ModelMissing(
            f"the cross-encoder's folder {folder} cannot be read: {error.strerror}; "
            "check its permissions"
        ) from error


def _find_files(folder: ModelFolder) -> CrossEncoderFiles:
    folder.require()
    model = next((name for name in MODELS if folder.has(name)), None)
    if model is None:
        raise folder.lacks(" or ".join(MODELS))
    config = folder.settings("config.json")
    tokenizer = folder.tokenizer()
    return CrossEncoderFiles(
        folder.check_model(model).path, tokenizer, _max_tokens(folder.path, config)
    )


def _max_tokens(folder: Path, config: dict[str, object]) -> int:
    given = config.get("max_position_embeddings", MAX_TOKENS)
    # Not `isinstance`: true is an int too.
    if type(given) is not int or given < 1:
        raise ModelCorrupt(
            f"{folder / 'config.json'}: max_position_embeddings is {given!r}; download it again"
        )
    return min(given, MAX_TOKENS)


# Finds models by name in the Hugging Face Hub's cache, without contacting the Hub. A model is used
# only if it is complete.

REVISION = "main"
ONNX_REVISION = "ragdocs-onnx"
"""The revision with a complete ONNX export; the one with weights for torch may be another."""
EXTRA = "pip install 'mcp-markdown-ragdocs[huggingface]'"
_OWNER = "sentence-transformers"
"""The owner of a model without one in its name, as in that library."""
_MODEL_FILES = ("config.json", "modules.json")
_WEIGHTS = ("*.safetensors", "pytorch_model*.bin")
_SHARDS = ("model.safetensors.index.json", "pytorch_model.bin.index.json")
_MEANING = (".json", ".txt", ".model", ".safetensors", ".bin")
"""Suffixes of the files that decide what a model answers."""


def find_folder(model: str, cache: Path | None) -> Path | None:
    """The given folder, or the model's folder in the Hub's cache; None if there is no model."""
    path = Path(model)
    if path.is_absolute():
        return path if any((path / name).is_file() for name in _MODEL_FILES) else None
    look_up = hub_client().try_to_load_from_cache
    try:
        found = (look_up(repo(model), name, cache_dir=cache) for name in _MODEL_FILES)
        folder = next((Path(file).parent for file in found if isinstance(file, str)), None)
    except (OSError, ValueError):  # not a possible name
        return None
    # Another program's download may have been interrupted; ours is not found until complete.
    return folder if folder is not None and _has_weights(folder) else None


def find_model(model: str, cache: Path | None) -> Path:
    """Like `find_folder`, but raises ModelMissing with advice if it is not on this disk."""
    require_extra()
    folder = find_folder(model, cache)
    if folder is not None:
        return folder
    if Path(model).is_absolute():
        raise missing(model, f"has no {' or '.join(_MODEL_FILES)}")
    raise missing(model, "is not on this disk")


def find_export_folder(model: str, cache: Path | None) -> Path:
    """The folder of a model's ONNX export. Raises ModelMissing; does not check a given folder."""
    path = Path(model)
    if path.is_absolute():
        return path
    folder = _find_fetched_export(model, cache)
    if folder is None:
        raise missing(model, "has no ONNX export on this disk")
    return folder


def _find_fetched_export(model: str, cache: Path | None) -> Path | None:
    look_up = hub_client().try_to_load_from_cache
    for revision in (ONNX_REVISION, REVISION):
        try:
            found = look_up(repo(model), "tokenizer.json", cache_dir=cache, revision=revision)
        except (OSError, ValueError):  # not a possible name
            return None
        # Another program may have been interrupted, or have fetched other weights.
        if isinstance(found, str) and exported_files(Path(found).parent):
            return Path(found).parent
    return None


def exported_files(folder: Path) -> list[str]:
    """The ONNX models in a model's folder."""
    found = [*folder.glob("*.onnx"), *folder.glob("onnx/*.onnx")]
    return [file.relative_to(folder).as_posix() for file in found if file.is_file()]


def fetched_models(cache: Path | None) -> tuple[str, ...]:
    """The names of the complete models in the Hub's cache; none without the extra."""
    from importlib.util import find_spec

    if find_spec("huggingface_hub") is None:
        return ()
    hub = hub_client()
    try:
        found = hub.scan_cache_dir(cache)
    except (hub.errors.CacheNotFound, OSError, ValueError):  # nothing has been fetched yet
        return ()
    names = sorted(one.repo_id for one in found.repos if one.repo_type == "model")
    return tuple(
        name for name in names if find_folder(name, cache) or _find_fetched_export(name, cache)
    )


def repo(model: str) -> str:
    return model if "/" in model else f"{_OWNER}/{model}"


def digest(folder: Path) -> str:
    """A hash of all files that decide a model's answers; in the Hub's cache, the commit."""
    if folder.parent.name == "snapshots":
        return folder.name
    found = blake2b(digest_size=16)
    for file in sorted(folder.rglob("*")):
        if file.suffix in _MEANING and file.is_file():
            found.update(f"{file.relative_to(folder).as_posix()}\0".encode())
            with file.open("rb") as opened:
                found.update(file_digest(opened, "blake2b").digest())
    return found.hexdigest()


def read_json(file: Path) -> object:
    """None for a file that is missing or not JSON."""
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None


def has_torch_extra() -> bool:
    """Whether the packages that run models on torch are installed."""
    from importlib.util import find_spec

    return all(find_spec(name) for name in ("sentence_transformers", "huggingface_hub"))


def require_extra() -> None:
    """Raises ModelMissing without the packages that run such models."""
    if not has_torch_extra():
        raise ModelMissing(f"to use a model by name, install an extra: {EXTRA}")


def hub_client() -> ModuleType:
    """Imports the Hub's library, without its telemetry."""
    from importlib import import_module

    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")  # read when it is imported
    hub = import_module("huggingface_hub")
    import_module("huggingface_hub.errors")
    import_module("huggingface_hub.utils")
    return hub


def missing(model: str, why: str) -> ModelMissing:
    return ModelMissing(
        f"the model {model} {why}. You can:\n"
        f"  fetch it while there is a network: {advised(f'models fetch {repo(model)}')}\n"
        "  set the path of a folder that contains it, beginning with / or ./\n"
        '  use the built-in model: provider = "builtin", without `model`'
    )


def _has_weights(folder: Path) -> bool:
    """Whether the weights are complete, including all shards."""
    for name in _SHARDS:
        index = read_json(folder / name)
        if isinstance(index, dict):
            parts = cast("dict[str, dict[str, str]]", index).get("weight_map", {}).values()
            return all((folder / part).is_file() for part in set(parts))
    return any(file.is_file() for pattern in _WEIGHTS for file in folder.rglob(pattern))


# Metadata in a model's own files, read without loading the model.


def declared_prefixes(folder: Path) -> Prefixes | None:
    """The prefixes in the model's own files, if any."""
    found = read_json(folder / "config_sentence_transformers.json")
    prompts = cast("dict[str, object]", found).get("prompts") if isinstance(found, dict) else None
    if not isinstance(prompts, dict):
        return None
    said = {str(key): value for key, value in cast("dict[str, object]", prompts).items() if value}
    passages = (said.get(name) for name in ("document", "passage", "text"))
    query, passage = said.get("query"), next((one for one in passages if one), None)
    return Prefixes(str(query or ""), str(passage or "")) if query or passage else None


def declared_dimension(folder: Path) -> int:
    """The dimension of a vector after the last module that declares one; 0 if none does."""
    modules = read_json(folder / "modules.json")
    if not isinstance(modules, list):
        return _number(folder / "config.json", "hidden_size")
    dimension = 0
    for module in cast("list[dict[str, object]]", modules):
        config = folder / str(module.get("path", "")) / "config.json"
        for key in ("hidden_size", "word_embedding_dimension", "embedding_dimension"):
            dimension = _number(config, key) or dimension
        dimension = _number(config, "out_features") or dimension
    return dimension


def _number(file: Path, key: str) -> int:
    found = read_json(file)
    value = cast("dict[str, object]", found).get(key) if isinstance(found, dict) else None
    return value if isinstance(value, int) else 0


# An embedding model's ONNX export: the files that are used, and their metadata.
#
# Read from a folder as on the Hub, without loading anything: tokenizer.json, config.json, and from
# sentence-transformers modules.json, 1_Pooling, sentence_bert_config.json and
# config_sentence_transformers.json.

EXPECTED_EXPORT = (
    "config.json, tokenizer.json and onnx/model_quantized.onnx (or another .onnx file)"
)
_SCHEME = 1
"""Raise it when the same files give other vectors."""
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
# Models whose exports often lack 1_Pooling; all others use the mean.
_POOLING_FAMILIES = (
    (r"qwen3-embedding|gte[-_]qwen|e5-mistral|bge[-_](multilingual-gemma|en-icl)", Pooling.LAST),
    (r"bge[-_]|arctic-embed|mxbai-embed|gte-.*(v1\.5|modernbert|multilingual)", Pooling.CLS),
)
_COMPUTED_HERE = ("Transformer", "Pooling", "Normalize", "Dropout")


@dataclass(frozen=True, slots=True)
class OnnxExport:
    """Everything that decides a vector, from the files and the settings.

    `is_pooling_set`: by the settings, so an output of pooled vectors is not used. `guessed`: the
    files do not declare a pooling. `later_layers` are modules that only a graph with an output of
    pooled vectors contains.
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
        """Raises OSError if a file cannot be read."""
        found = blake2b(digest_size=16)
        for file in (self.model.path, *self.model.data, self.tokenizer):
            found.update(f"{file.name}\0{verifier.sha256(file)}\0".encode())
        pooling = f"{self.pooling}!" if self.is_pooling_set else str(self.pooling)
        return (
            f"onnx:{found.hexdigest()};pooling={pooling};window={self.max_tokens};"
            f"lower={int(self.lower_case)};{self.prefixes.identity};scheme={_SCHEME}"
        )


def read_export(path: Path, settings: EmbeddingConfig) -> OnnxExport:
    """Raises ModelMissing, ModelCorrupt or ModelRefused, with advice."""
    folder = ModelFolder(path, "embedding model", EXPECTED_EXPORT, "embedding.model")
    try:
        return _read_export(folder, settings)
    except OSError as error:
        raise ModelMissing(
            f"the embedding model's folder {path} cannot be read: {error.strerror}; "
            "check its permissions"
        ) from error


def choose_model(names: Iterable[str]) -> str | None:
    """Which of a model's files to load: a quantised one that suits this processor, else the full
    one, else a smaller one."""
    there = frozenset(names)
    wanted = (
        f"{folder}/{name}.onnx".lstrip("/")
        for group in ((*_QUANTISED, *_for_processor()), _PLAIN, _SMALLEST)
        for folder in _FOLDERS
        for name in group
    )
    return next((name for name in wanted if name in there), None)


def needed_files(names: Iterable[str], chosen: str) -> list[str]:
    """The files of a model on the Hub that `read_export` reads."""
    there = sorted(names)
    return [name for name in there if name == chosen or _is_beside(name, chosen) or _is_read(name)]


def _is_beside(name: str, chosen: str) -> bool:
    """`model.onnx_data`, `model.onnx_data_1`, `model.onnx.data`"""
    return name.startswith(chosen) and _DATA.fullmatch(name.removeprefix(chosen)) is not None


def _is_read(name: str) -> bool:
    path = PurePosixPath(name)
    return name in _SETTINGS or (path.name == "config.json" and path.match("*_Pooling/config.json"))


def _for_processor() -> tuple[str, ...]:
    """Files quantised for this kind of processor: on others their sums overflow silently."""
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
    prefixes = choose_prefixes(settings.query_prefix, settings.passage_prefix, known)
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
            raise folder.lacks("onnx/model_quantized.onnx, onnx/model.onnx or similar")
        return chosen
    return wanted


def _optional(folder: ModelFolder, name: str) -> dict[str, object]:
    return folder.settings(name) if folder.has(name) else {}


def _modules(folder: ModelFolder) -> list[tuple[str, str]]:
    """The last part of each module's class name, and its folder. Nothing is imported."""
    if not folder.has("modules.json"):
        return []
    found = folder.json("modules.json")
    entries = cast("list[object]", found) if isinstance(found, list) else [None]
    modules: list[tuple[str, str]] = []
    for entry in entries:
        about = cast("dict[str, object]", entry) if isinstance(entry, dict) else {}
        kind, path = about.get("type"), about.get("path", "")
        if not isinstance(kind, str) or not isinstance(path, str):
            raise ModelCorrupt(f"{folder.path / 'modules.json'} is not a list of modules")
        modules.append((kind.rpartition(".")[2], path))
    return modules


def _declared_pooling(
    folder: ModelFolder, modules: list[tuple[str, str]], prefixes: Prefixes
) -> Pooling | None:
    """None if no file declares it."""
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
            f"{folder.path / name} asks for a pooling that is not supported: use mean, cls, max "
            "or last token; set embedding.pooling to choose one"
        )
    if config.get("include_prompt") is False and prefixes != Prefixes():
        raise ModelCorrupt(
            f"{folder.path / name} excludes the prefix from the pooling, which is not supported: "
            'set query_prefix = "" and passage_prefix = "", or use another model'
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
