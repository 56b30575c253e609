"""Models by name: where they are on this disk, and how they get there from the Hugging Face Hub.

A model is fetched whole, and used from its folder only: nothing is asked of the Hub afterwards.
"""

import json
import os
from collections.abc import Iterable
from hashlib import blake2b, file_digest
from pathlib import Path
from typing import TYPE_CHECKING

from ragdocs.errors import ModelMissing

if TYPE_CHECKING:
    from types import ModuleType

EXTRA = "pip install 'mcp-markdown-ragdocs[huggingface]'"
ANSWER_SECONDS = 5.0
"""How long the Hub may take to say anything at all."""
_OWNER = "sentence-transformers"
"""Whose a model without an owner in its name is, as that library has it."""
_MODEL_FILES = ("config.json", "modules.json")
_NEEDED = ("*.json", "*.txt", "*.model", "*.safetensors")
_OLD_WEIGHTS = "pytorch_model*.bin"
_UNUSED = ("onnx/*", "openvino/*", "*/onnx/*", "*/openvino/*")
_MEANING = (".json", ".txt", ".model", ".safetensors", ".bin")
"""Ends of the names of files that decide what a model answers."""


def find_folder(model: str, cache: Path | None) -> Path | None:
    """The folder of a model that is on this disk: the one named, or the one in the Hub's cache."""
    path = Path(model)
    if path.is_absolute():
        return path if any((path / name).is_file() for name in _MODEL_FILES) else None
    look_up = _hub().try_to_load_from_cache
    try:
        found = (look_up(repo(model), name, cache_dir=cache) for name in _MODEL_FILES)
        return next((Path(file).parent for file in found if isinstance(file, str)), None)
    except (OSError, ValueError):  # no name that could be there
        return None


def find_or_fetch(model: str, cache: Path | None, *, fetch: bool) -> Path:
    """Raises ModelMissing, with the ways out, when it is neither here nor can be fetched."""
    require_extra()
    if not fetch or Path(model).is_absolute():
        return find_model(model, cache)
    return find_folder(model, cache) or fetch_model(model, cache, quiet=True)


def find_model(model: str, cache: Path | None) -> Path:
    """As `find_folder`, with the ways out: raises ModelMissing when it is not on this disk."""
    require_extra()
    folder = find_folder(model, cache)
    if folder is not None:
        return folder
    if Path(model).is_absolute():
        raise _missing(model, f"has no {' or '.join(_MODEL_FILES)}")
    raise _missing(model, "is not on this disk")


def fetch_model(model: str, cache: Path | None, *, quiet: bool = False) -> Path:
    """Fetches what is needed of a model and was not fetched before. Raises ModelMissing."""
    require_extra()
    hub = _hub()
    try:
        info = hub.HfApi().model_info(repo(model), timeout=ANSWER_SECONDS)
        names = [file.rfilename for file in info.siblings or ()]
        if quiet:
            hub.utils.disable_progress_bars()
        return Path(
            hub.snapshot_download(
                repo(model),
                cache_dir=cache,
                allow_patterns=list(_wanted(names)),
                ignore_patterns=list(_UNUSED),
                etag_timeout=ANSWER_SECONDS,
            )
        )
    except hub.errors.RepositoryNotFoundError as error:
        raise _missing(model, "is no model of the Hub, or not a public one") from error
    # The Hub's client raises classes of its own, of httpx and of the system.
    except Exception as error:
        said = str(error).strip().splitlines() or [type(error).__name__]
        raise _missing(model, f"is not on this disk and cannot be fetched ({said[0]})") from error
    finally:
        if quiet:
            hub.utils.enable_progress_bars()


def fetched_models(cache: Path | None) -> tuple[str, ...]:
    """The names of the models in the Hub's cache; none without the extra."""
    from importlib.util import find_spec

    if find_spec("huggingface_hub") is None:
        return ()
    hub = _hub()
    try:
        found = hub.scan_cache_dir(cache)
    except (hub.errors.CacheNotFound, OSError, ValueError):  # nothing was fetched yet
        return ()
    return tuple(sorted(one.repo_id for one in found.repos if one.repo_type == "model"))


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


def require_extra() -> None:
    """Raises ModelMissing without the packages that run such models."""
    from importlib.util import find_spec

    if find_spec("sentence_transformers") is None or find_spec("huggingface_hub") is None:
        raise ModelMissing(f"models by name need an extra: {EXTRA}")


def _hub() -> "ModuleType":
    from importlib import import_module

    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")  # read when it is imported
    hub = import_module("huggingface_hub")
    import_module("huggingface_hub.errors")
    import_module("huggingface_hub.utils")
    return hub


def _wanted(names: Iterable[str]) -> tuple[str, ...]:
    """Weights come in several formats: one is enough."""
    has_safetensors = any(name.endswith(".safetensors") for name in names)
    return _NEEDED if has_safetensors else (*_NEEDED, _OLD_WEIGHTS)


def _missing(model: str, why: str) -> ModelMissing:
    return ModelMissing(
        f"the model {model} {why}. Three ways out:\n"
        f"  fetch it while there is a network: ragdocs models fetch {repo(model)}\n"
        "  name a folder that holds it, beginning with / or ./\n"
        '  use the built-in model: provider = "builtin", without `model`'
    )
