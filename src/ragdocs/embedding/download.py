"""Downloads models from the Hugging Face Hub into its cache, file by file.

A model is found there only when its last file is complete: nothing uses an interrupted download,
and the next one continues with the missing files.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TypeAlias

from ragdocs.embedding.foreign_code import PICKLED
from ragdocs.embedding.hub import (
    EXTRA,
    ONNX_REVISION,
    REVISION,
    choose_model,
    find_folder,
    find_model,
    hub_client,
    missing,
    needed_files,
    repo,
    require_extra,
)
from ragdocs.errors import ModelMissing, ModelRefused
from ragdocs.files import replace

OnFile: TypeAlias = Callable[[str, int, int], None]
"""Called before each download with the file's name, its number and the number of files."""

ANSWER_SECONDS = 5.0
"""How long the Hub may take to answer."""
_NEEDED = ("*.json", "*.txt", "*.model", "*.safetensors")
_UNUSED = ("onnx/*", "openvino/*", "*/onnx/*", "*/openvino/*")


@dataclass(frozen=True, slots=True)
class _Part:
    """Which files of a model are fetched, and the revision under which the cache finds them."""

    choose: Callable[[ModuleType, str, list[str]], list[str]]
    revision: str


def find_or_fetch(model: str, cache: Path | None, *, fetch: bool) -> Path:
    """Raises ModelMissing, with advice, if it is not on this disk and cannot be fetched."""
    require_extra()
    if not fetch or Path(model).is_absolute():
        return find_model(model, cache)
    return find_folder(model, cache) or fetch_model(model, cache)


def fetch_model(model: str, cache: Path | None, on_file: OnFile | None = None) -> Path:
    """Fetches the missing files of a model; without `on_file`, silently. Raises ModelMissing."""
    require_extra()
    hub = hub_client()
    part = _Part(_choose_torch, REVISION)
    if on_file is not None:
        return _fetch(hub, model, part, cache, on_file)
    hub.utils.disable_progress_bars()
    try:
        return _fetch(hub, model, part, cache, None)
    finally:
        hub.utils.enable_progress_bars()


def fetch_export(model: str, cache: Path | None, on_file: OnFile) -> Path:
    """Fetches an ONNX export with one file of weights, without the extra. Raises ModelMissing."""
    return _fetch(hub_client(), model, _Part(_choose_export, ONNX_REVISION), cache, on_file)


def _fetch(
    hub: ModuleType, model: str, part: _Part, cache: Path | None, on_file: OnFile | None
) -> Path:
    commit, offered = _list_files(hub, model)
    names = part.choose(hub, model, offered)
    snapshot: Path | None = None
    for number, name in enumerate(names, 1):
        if on_file is not None:
            on_file(name, number, len(names))
        file = _fetch_file(hub, model, commit, name, cache)
        snapshot = snapshot or file.parents[name.count("/")]
    if snapshot is None:
        raise missing(model, "has no model file that can be used here")
    _publish(snapshot.parents[1], part.revision, commit)
    _clear(snapshot.parents[1] / "blobs")
    return snapshot


def _list_files(hub: ModuleType, model: str) -> tuple[str, list[str]]:
    """The newest commit of a model, and its files."""
    try:
        info = hub.HfApi().model_info(repo(model), timeout=ANSWER_SECONDS)
        return str(info.sha), [str(file.rfilename) for file in info.siblings or ()]
    except hub.errors.RepositoryNotFoundError as error:
        raise missing(model, "is not on the Hub, or not public") from error
    # The Hub's client raises classes of its own, of its HTTP library and of the system.
    except Exception as error:
        raise missing(
            model, f"is not on this disk and cannot be fetched ({_first_line(error)})"
        ) from error


def _choose_export(hub: ModuleType, model: str, offered: list[str]) -> list[str]:
    del hub
    chosen = choose_model(offered)
    if chosen is None:
        raise ModelMissing(
            f"the model {model} has no ONNX export: choose one that has a folder `onnx`, such as "
            "intfloat/multilingual-e5-small, or install the extra that runs it on torch: " + EXTRA
        )
    return needed_files(offered, chosen)


def _choose_torch(hub: ModuleType, model: str, offered: list[str]) -> list[str]:
    """Never fetches pickled weights, which run code when they are read."""
    pickled = [name for name in offered if name.endswith(PICKLED)]
    if pickled and not any(name.endswith(".safetensors") for name in offered):
        raise ModelRefused(
            f"the model {model} has its weights only as {pickled[0]}, a pickle. Reading a pickle "
            "runs code, so it is never loaded here: choose a model with safetensors"
        )
    return list(
        hub.utils.filter_repo_objects(
            offered, allow_patterns=list(_NEEDED), ignore_patterns=list(_UNUSED)
        )
    )


def _fetch_file(hub: ModuleType, model: str, commit: str, name: str, cache: Path | None) -> Path:
    """One at a time, in this thread, so that it can be interrupted."""
    try:
        return Path(
            hub.hf_hub_download(
                repo(model), name, revision=commit, cache_dir=cache, etag_timeout=ANSWER_SECONDS
            )
        )
    except Exception as error:
        raise _download_error(model, name, error) from error


def _publish(storage: Path, revision: str, commit: str) -> None:
    """Makes the model visible: the Hub's cache stores the commit to use in this file."""
    ref = storage / "refs" / revision
    new = storage / f"{revision}.{os.getpid()}.new"
    try:
        ref.parent.mkdir(exist_ok=True)
        new.write_text(commit, encoding="utf-8")
        replace(new, ref)
    finally:
        new.unlink(missing_ok=True)


def _clear(blobs: Path) -> None:
    """Removes the remains of killed downloads of files that are complete by now."""
    for part in blobs.glob("*.incomplete"):
        if (blobs / part.name.partition(".")[0]).exists():
            part.unlink(missing_ok=True)


def _download_error(model: str, name: str, error: Exception) -> ModelMissing:
    return missing(
        model,
        f"could not be fetched: the download of {name} failed ({_first_line(error)}). The model "
        "is not used; files already fetched are kept, and the next attempt continues from there",
    )


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
