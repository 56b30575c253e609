"""Refuses foreign code: checks a model's folder or arguments before a library sees them.

A model is data from anywhere. Its settings may name Python code to run, classes to import or a
kernel to download, and pickled weights run code when they are read. Any of these is refused, with
the name of the file; the libraries' own switches are set in addition (specs/0064).
"""

import json
import os
import re
import sys
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import cast

from ragdocs.errors import ConfigError, ModelCorrupt, ModelRefused

SAFE_WEIGHTS = ("model.safetensors", "model.safetensors.index.json")
PICKLED = (".bin", ".pt", ".pth", ".ckpt", ".pkl", ".pickle", ".joblib", ".dill")
_OTHER_RUNTIMES = frozenset({"onnx", "openvino", "coreml", "gguf"})
"""Folders with weights for programs other than torch, which are never opened here."""
_NO_SETTINGS = frozenset({"tokenizer.json", "vocab.json", "added_tokens.json"})
"""Their keys are words of a language."""
_INDEX = ".index.json"
_ADAPTER = "adapter_config.json"
_MODEL_FILES = ("config.json", "modules.json", "config_sentence_transformers.json", _ADAPTER)
_MAX_JSON_BYTES = 10_000_000
_MAX_FILES = 2_000
_MODULES = (
    "Asym|BoW|CNN|Dense|Dropout|LayerNorm|LogitScore|LSTM|MLMTransformer|MultiVectorMask|Normalize|"
    "Pooling|Router|SparseAutoEncoder|SparseStaticEmbedding|SpladePooling|StaticEmbedding|"
    "TokenPooling|Transformer|WeightedLayerPooling|WordEmbeddings|WordWeights"
)
_MODULE = re.compile(
    rf"sentence_transformers(\.[a-z_]+)*\.(models|modules)(\.[A-Za-z_]+)*\.({_MODULES})"
)
_OWN_CLASS = re.compile(r"(sentence_transformers|transformers)\.[\w.]+")
_SHARD = re.compile(r"[\w.-]+\.safetensors")
_ACTIVATION = re.compile(r"torch\.nn\.[\w.]+")
_ATTENTION = re.compile(r"[a-z0-9_]+")
_NO = (False, None, 0, "", "0", "false", "no", "off", "none")


def check_folder(folder: Path) -> None:
    """Raises ModelRefused for a folder that would run code, ModelCorrupt for bad settings."""
    files = _files(folder)
    for file in files:
        if file.name == _ADAPTER:
            raise _refusal(file, "is an adapter, which loads another model")
        if file.suffix == ".json" and file.name not in _NO_SETTINGS:
            _check_settings(file)
    for parent in {file.parent for file in files}:
        _check_weights(folder, [file for file in files if file.parent == parent])


def check_arguments(arguments: Mapping[str, object]) -> None:
    """Checks the arguments of a LlamaIndex class: none may allow code to run, nor name a folder
    that would. Raises ConfigError, ModelRefused or ModelCorrupt."""
    for key, value in _walk(arguments):
        if reason := _objection(key, value):
            raise ConfigError(
                f"embedding.arguments: {key} {reason}. Code from a model is never run: remove it, "
                "or use another model"
            )
    for _, value in _walk(arguments):
        if isinstance(value, str) and value and (folder := _model_folder(value)):
            check_folder(folder)


@contextmanager
def without_working_folder() -> Generator[None]:
    """Prevents imports from the working folder, which may be a stranger's."""
    before = sys.path[:]
    sys.path[:] = importable_paths(before)
    try:
        yield
    finally:
        sys.path[:] = before


def importable_paths(places: Sequence[str]) -> list[str]:
    """Leaves out the working folder, however it is spelt."""
    try:
        here = os.path.realpath(os.getcwd())
    except OSError:  # it was deleted
        return [place for place in places if os.path.isabs(place)]
    return [place for place in places if place and os.path.realpath(place) != here]


def _files(folder: Path) -> list[Path]:
    found: list[Path] = []
    for parent, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name not in _OTHER_RUNTIMES and name[0] != "."]
        found += [Path(parent, name) for name in sorted(names)]
        if len(found) > _MAX_FILES:
            raise ModelRefused(
                f"{folder} has more than {_MAX_FILES} files, so it is not a model's folder"
            )
    return found


def _check_settings(file: Path) -> None:
    try:
        if file.stat().st_size > _MAX_JSON_BYTES:
            raise ModelCorrupt(
                f"{file} has more than {_MAX_JSON_BYTES:,} bytes, too many for settings"
            )
        settings: object = json.loads(file.read_text(encoding="utf-8"))
        if file.name.endswith(_INDEX):
            _check_index(file, settings)
            return
        for key, value in _walk(settings):
            if reason := _objection(key, value) or _path_objection(key, value):
                raise _refusal(file, f"has {key!r}, which {reason}")
        _check_modules(file, settings)
    except OSError as error:
        raise ModelCorrupt(f"{file} cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise ModelCorrupt(f"{file} is damaged ({error}); fetch it again") from error


def _check_index(file: Path, settings: object) -> None:
    """A shard with another suffix would be read as a pickle; with another path, from anywhere."""
    parts = _table(settings, "weight_map").values() if file.name == SAFE_WEIGHTS[1] else ()
    for part in parts:
        if not isinstance(part, str) or not _SHARD.fullmatch(part):
            raise _refusal(file, f"lists {part!r} as a part of the weights")


def _check_modules(file: Path, settings: object) -> None:
    """Allows only known modules of sentence-transformers as classes to import."""
    named: list[tuple[object, object]] = list(_table(settings, "types").items())
    if file.name == "modules.json" and isinstance(settings, list):
        for entry in cast("list[object]", settings):
            about = cast("dict[str, object]", entry) if isinstance(entry, dict) else {}
            named.append((about.get("path", ""), about.get("type")))
    for path, kind in named:
        if not isinstance(kind, str) or not _MODULE.fullmatch(kind):
            raise _refusal(file, f"names the class {kind!r}, which the library does not define")
        if not isinstance(path, str) or not _is_inside(path):
            raise _refusal(file, f"points to {path!r}, outside the model's folder")


def _table(settings: object, key: str) -> dict[str, object]:
    found = cast("dict[str, object]", settings).get(key) if isinstance(settings, dict) else None
    return cast("dict[str, object]", found) if isinstance(found, dict) else {}


def _check_weights(folder: Path, files: Sequence[Path]) -> None:
    """Pickled files are never read if there are safetensors with the expected name."""
    if any(file.name in SAFE_WEIGHTS for file in files):
        return
    pickled = [file for file in files if file.suffix.lower() in PICKLED]
    if pickled:
        raise ModelRefused(
            f"{pickled[0]} has pickled weights, which run code when they are read, and there is no "
            f"{SAFE_WEIGHTS[0]} beside it: use a model with safetensors, or convert the one in "
            f"{folder} with a program that you trust to do so"
        )


def _walk(value: object, key: str = "", depth: int = 0) -> Iterator[tuple[str, object]]:
    """Every value with its key, at any depth; the items of a list have the list's key."""
    if depth > 100:
        raise ValueError("it is nested too deeply")
    if key:
        yield key, value
    if isinstance(value, Mapping):
        for name, below in cast("Mapping[object, object]", value).items():
            yield from _walk(below, str(name), depth + 1)
    elif isinstance(value, (list, tuple)):
        for below in cast("Sequence[object]", value):
            yield from _walk(below, key, depth + 1)


def _objection(key: str, value: object) -> str:
    """Why a setting is refused, wherever it is; empty if it is allowed."""
    name = re.sub(r"[^a-z0-9]", "", key.lower())
    is_on = not _is_no(value)
    if name in ("trustremotecode", "allowremotecode") and is_on:
        return "runs the model's own code"
    if name in ("allowpickle", "allowdangerousdeserialization") and is_on:
        return "allows pickled files to be read"
    if name in ("weightsonly", "usesafetensors") and value is not None and not is_on:
        return "allows pickled files to be read"
    if "attnimplementation" in name and isinstance(value, str) and not _ATTENTION.fullmatch(value):
        return f"fetches code ({value!r})"
    if name in ("hubkernels", "usekernels", "kernelconfig", "usetimmbackbone") and is_on:
        return "loads code from elsewhere"
    return ""


def _path_objection(key: str, value: object) -> str:
    """The same for settings that only a model's own files have."""
    name = re.sub(r"[^a-z0-9]", "", key.lower())
    if name in ("automap", "custompipelines") and value:
        return "runs the model's own Python code"
    if name in ("subfolder", "coderevision", "cachedir") and value:
        return f"points outside the folder ({value!r})"
    if not isinstance(value, str):
        return ""
    if "activation" in name and "." in value and not _ACTIVATION.fullmatch(value):
        return f"imports and calls {value!r}"
    if name.endswith("class") and "." in value and not _OWN_CLASS.fullmatch(value):
        return f"names the class {value!r}, which the library does not define"
    return ""


def _is_no(value: object) -> bool:
    """Also as a word, as in some files."""
    return (value.strip().lower() if isinstance(value, str) else value) in _NO


def _is_inside(path: str) -> bool:
    given = PurePosixPath(path.replace("\\", "/"))
    return not given.is_absolute() and ".." not in given.parts and ":" not in path


def _model_folder(value: str) -> Path | None:
    """The model's folder if a text is the path of one, else None."""
    folder = Path(os.path.expanduser(value))
    try:
        return folder if any((folder / name).is_file() for name in _MODEL_FILES) else None
    except (OSError, ValueError):
        return None


def _refusal(file: Path, what: str) -> ModelRefused:
    return ModelRefused(
        f"{file} {what}. Code from a model is never run: use another model, or remove this from a "
        "copy, if the model works without it"
    )
