"""A cross-encoder's folder, as downloaded from Hugging Face: which of its files are used.

Nothing outside the folder is opened, whatever a link in it or the model itself names.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from ragdocs.embedding.external_data import external_data
from ragdocs.errors import ModelCorrupt, ModelMissing, ModelRefused

EXPECTED = "config.json, tokenizer.json and onnx/model.onnx (or model.onnx)"
MODELS = ("onnx/model.onnx", "model.onnx")
# What cross-encoders are trained with. The RoBERTa kinds have 514 positions and use 512 of them;
# models with thousands would only make a query wait for passages that are never so long.
MAX_TOKENS = 512
_MAX_MODEL_BYTES = 2**31
_MEMORY_ADDRESS = "_ORT_MEM_ADDR_"


@dataclass(frozen=True, slots=True)
class CrossEncoderFiles:
    """The files to load, and how many tokens a pair may have."""

    model: Path
    tokenizer: Path
    max_tokens: int


def find_files(folder: Path) -> CrossEncoderFiles:
    """Raises ModelMissing or ModelCorrupt, with what to do."""
    try:
        return _find_files(folder)
    except OSError as error:
        raise ModelMissing(
            f"the cross-encoder's folder {folder} cannot be read: {error.strerror}; "
            "check its permissions"
        ) from error


def _find_files(folder: Path) -> CrossEncoderFiles:
    if not folder.is_dir():
        raise ModelMissing(
            f"the cross-encoder's folder {folder} does not exist; download a model with {EXPECTED} "
            "into it, or name another folder in rerank_model"
        )
    model = next((folder / name for name in MODELS if (folder / name).is_file()), None)
    if model is None:
        raise _incomplete(folder, " or ".join(MODELS))
    config = _inside(folder, folder / "config.json")
    tokenizer = _inside(folder, folder / "tokenizer.json")
    _check_model(folder, _inside(folder, model))
    return CrossEncoderFiles(model, tokenizer, _max_tokens(config))


def _incomplete(folder: Path, missing: str) -> ModelMissing:
    return ModelMissing(
        f"the cross-encoder's folder {folder} has no {missing}; expected are {EXPECTED}: "
        "download what is missing from the model's page, its ONNX version included"
    )


def _inside(folder: Path, path: Path) -> Path:
    """The path as given, once it is known to be a file and to lead nowhere else."""
    if not path.is_file():
        raise _incomplete(folder, path.relative_to(folder).as_posix())
    root = folder.resolve()
    # In the Hub's own cache a snapshot's files are links to `blobs` beside `snapshots`.
    if root.parent.name == "snapshots":
        root = root.parent.parent
    if not path.resolve().is_relative_to(root):
        raise ModelRefused(f"{path} leads out of the model's folder; put the file itself there")
    return path


def _check_model(folder: Path, model: Path) -> None:
    if model.stat().st_size > _MAX_MODEL_BYTES:
        raise ModelCorrupt(f"{model} has more than 2 GB, which no ONNX file can have")
    try:
        named = external_data(model.read_bytes())
    except (ValueError, RecursionError) as error:
        raise ModelCorrupt(f"{model} is damaged ({error}); download it again") from error
    for location, offset, length in sorted(named):
        path = Path(location)
        if path.is_absolute() or ".." in path.parts or "\\" in location or ":" in location:
            raise ModelRefused(
                f"{model} wants to read {location!r}, which is outside its folder; do not use it"
            )
        # onnxruntime takes this for an address in the memory of the process.
        if _MEMORY_ADDRESS in location:
            raise ModelRefused(f"{model} wants to read the program's memory; do not use it")
        size = _inside(folder, model.parent / path).stat().st_size
        if offset < 0 or length < 0 or offset + length > size:
            raise ModelCorrupt(
                f"{model} wants {length:,} bytes at {offset:,} of {location!r}, which has {size:,};"
                " download both again"
            )


def _max_tokens(config: Path) -> int:
    try:
        found: object = json.loads(config.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ModelCorrupt(f"{config} is damaged ({error}); download it again") from error
    if not isinstance(found, dict):
        raise ModelCorrupt(f"{config} is no JSON object; download it again")
    given = cast(dict[str, object], found).get("max_position_embeddings", MAX_TOKENS)
    # Not `isinstance`: true is an int too.
    if type(given) is not int or given < 1:
        raise ModelCorrupt(f"{config}: max_position_embeddings is {given!r}; download it again")
    return min(given, MAX_TOKENS)
