"""Models by name: where they are on this disk, in a folder or in the Hugging Face Hub's cache.

A model is used from its folder only, and only when it is whole: nothing is asked of the Hub.
"""

import json
import os
from hashlib import blake2b, file_digest
from pathlib import Path
from typing import TYPE_CHECKING, cast

from ragdocs.errors import ModelMissing
from ragdocs.wording import advised

if TYPE_CHECKING:
    from types import ModuleType

REVISION = "main"
ONNX_REVISION = "ragdocs-onnx"
"""The commit whose ONNX export is whole: that of the weights for torch may be another."""
EXTRA = "pip install 'mcp-markdown-ragdocs[huggingface]'"
_OWNER = "sentence-transformers"
"""Whose a model without an owner in its name is, as that library has it."""
_MODEL_FILES = ("config.json", "modules.json")
_WEIGHTS = ("*.safetensors", "pytorch_model*.bin")
_SHARDS = ("model.safetensors.index.json", "pytorch_model.bin.index.json")
_MEANING = (".json", ".txt", ".model", ".safetensors", ".bin")
"""Ends of the names of files that decide what a model answers."""


def find_folder(model: str, cache: Path | None) -> Path | None:
    """The folder of a model that is on this disk: the one named, or the one in the Hub's cache."""
    path = Path(model)
    if path.is_absolute():
        return path if any((path / name).is_file() for name in _MODEL_FILES) else None
    look_up = hub_client().try_to_load_from_cache
    try:
        found = (look_up(repo(model), name, cache_dir=cache) for name in _MODEL_FILES)
        folder = next((Path(file).parent for file in found if isinstance(file, str)), None)
    except (OSError, ValueError):  # no name that could be there
        return None
    # Another program's download may have been interrupted: ours is not seen before it is whole.
    return folder if folder is not None and _has_weights(folder) else None


def find_model(model: str, cache: Path | None) -> Path:
    """As `find_folder`, with the ways out: raises ModelMissing when it is not on this disk."""
    require_extra()
    folder = find_folder(model, cache)
    if folder is not None:
        return folder
    if Path(model).is_absolute():
        raise missing(model, f"has no {' or '.join(_MODEL_FILES)}")
    raise missing(model, "is not on this disk")


def find_export_folder(model: str, cache: Path | None) -> Path:
    """The folder of a model's ONNX export. Raises ModelMissing; of a folder that is named, nothing
    is asked here."""
    path = Path(model)
    if path.is_absolute():
        return path
    folder = _find_fetched_export(model, cache)
    if folder is None:
        raise missing(model, "is not on this disk as an ONNX export")
    return folder


def _find_fetched_export(model: str, cache: Path | None) -> Path | None:
    look_up = hub_client().try_to_load_from_cache
    for revision in (ONNX_REVISION, REVISION):
        try:
            found = look_up(repo(model), "tokenizer.json", cache_dir=cache, revision=revision)
        except (OSError, ValueError):  # no name that could be there
            return None
        # Another program's download may have been interrupted, or had other weights in mind.
        if isinstance(found, str) and exported_files(Path(found).parent):
            return Path(found).parent
    return None


def exported_files(folder: Path) -> list[str]:
    """The ONNX models in a model's folder."""
    found = [*folder.glob("*.onnx"), *folder.glob("onnx/*.onnx")]
    return [file.relative_to(folder).as_posix() for file in found if file.is_file()]


def fetched_models(cache: Path | None) -> tuple[str, ...]:
    """The names of the whole models in the Hub's cache; none without the extra."""
    from importlib.util import find_spec

    if find_spec("huggingface_hub") is None:
        return ()
    hub = hub_client()
    try:
        found = hub.scan_cache_dir(cache)
    except (hub.errors.CacheNotFound, OSError, ValueError):  # nothing was fetched yet
        return ()
    names = sorted(one.repo_id for one in found.repos if one.repo_type == "model")
    return tuple(
        name for name in names if find_folder(name, cache) or _find_fetched_export(name, cache)
    )


def repo(model: str) -> str:
    return model if "/" in model else f"{_OWNER}/{model}"


def digest(folder: Path) -> str:
    """Of all in a model's folder that decides its answers. In the Hub's cache, its commit."""
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
    """None for a file that is not there or no JSON."""
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
        raise ModelMissing(f"models by name need an extra: {EXTRA}")


def hub_client() -> "ModuleType":
    """The Hub's own library, imported when it is needed, without its telemetry."""
    from importlib import import_module

    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")  # read when it is imported
    hub = import_module("huggingface_hub")
    import_module("huggingface_hub.errors")
    import_module("huggingface_hub.utils")
    return hub


def missing(model: str, why: str) -> ModelMissing:
    return ModelMissing(
        f"the model {model} {why}. Three ways out:\n"
        f"  fetch it while there is a network: {advised(f'models fetch {repo(model)}')}\n"
        "  name a folder that holds it, beginning with / or ./\n"
        '  use the built-in model: provider = "builtin", without `model`'
    )


def _has_weights(folder: Path) -> bool:
    """All parts of them, where they come in several."""
    for name in _SHARDS:
        index = read_json(folder / name)
        if isinstance(index, dict):
            parts = cast("dict[str, dict[str, str]]", index).get("weight_map", {}).values()
            return all((folder / part).is_file() for part in set(parts))
    return any(file.is_file() for pattern in _WEIGHTS for file in folder.rglob(pattern))
