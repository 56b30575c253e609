"""A folder with a model for onnxruntime, looked at before the library opens any of its files.

Nothing outside the folder is opened, whatever a link in it or the model itself names; nothing in it
is run: onnxruntime loads a library of operators only when told to, and is not told to.
"""

import json
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import cast

from ragdocs.embedding.external_data import external_data
from ragdocs.errors import ModelCorrupt, ModelMissing, ModelRefused

_MAX_MODEL_BYTES = 2**31
_MAX_EXTERNAL_BYTES = 2**32
_MAX_TOKENIZER_BYTES = 100_000_000
_MAX_SETTINGS_BYTES = 10_000_000
_MEMORY_ADDRESS = "_ORT_MEM_ADDR_"


@dataclass(frozen=True, slots=True)
class ModelFolder:
    """`kind` is what the model is called in errors, `expected` the files that such a folder has,
    `setting` where another folder can be named."""

    path: Path
    kind: str
    expected: str
    setting: str

    def require(self) -> None:
        """Raises ModelMissing when there is no such folder."""
        if not self.path.is_dir():
            raise ModelMissing(
                f"the {self.kind}'s folder {self.path} does not exist; download a model with "
                f"{self.expected} into it, or name another folder in {self.setting}"
            )

    def has(self, name: str) -> bool:
        return (self.path / name).is_file()

    def file(self, name: str) -> Path:
        """Raises ModelMissing for a file that is not there, ModelRefused for one elsewhere."""
        path = self.path / name
        if not path.is_file():
            raise self.lacks(name)
        root = self.path.resolve()
        # In the Hub's own cache a snapshot's files are links to `blobs` beside `snapshots`.
        if root.parent.name == "snapshots":
            root = root.parent.parent
        if not path.resolve().is_relative_to(root):
            raise ModelRefused(f"{path} leads out of the model's folder; put the file itself there")
        return path

    def lacks(self, name: str) -> ModelMissing:
        return ModelMissing(
            f"the {self.kind}'s folder {self.path} has no {name}; expected are {self.expected}: "
            "download what is missing from the model's page, its ONNX version included"
        )

    def tokenizer(self, name: str = "tokenizer.json") -> Path:
        path = self.file(name)
        if path.stat().st_size > _MAX_TOKENIZER_BYTES:
            raise ModelCorrupt(f"{path} has more than {_MAX_TOKENIZER_BYTES:,} bytes")
        return path

    def settings(self, name: str) -> dict[str, object]:
        """The JSON object in a file. Raises ModelCorrupt when it holds something else."""
        found = self.json(name)
        if not isinstance(found, dict):
            raise ModelCorrupt(f"{self.path / name} is no JSON object; download it again")
        return cast("dict[str, object]", found)

    def json(self, name: str) -> object:
        path = self.file(name)
        if path.stat().st_size > _MAX_SETTINGS_BYTES:
            raise ModelCorrupt(
                f"{path} has more than {_MAX_SETTINGS_BYTES:,} bytes: no settings have"
            )
        try:
            return json.loads(path.read_text(encoding="utf-8"))
        except (ValueError, RecursionError) as error:
            raise ModelCorrupt(f"{path} is damaged ({error}); download it again") from error

    def check_model(self, name: str) -> "CheckedModel":
        """Raises ModelRefused for a model that wants to read elsewhere, ModelCorrupt for one that
        is damaged or too large."""
        model = self.file(name)
        if model.stat().st_size > _MAX_MODEL_BYTES:
            raise ModelCorrupt(f"{model} has more than 2 GB, which no ONNX file can have")
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
                    f"{model} wants to read {location!r}, which is outside its folder; "
                    "do not use it"
                )
            # onnxruntime takes this for an address in the memory of the process.
            if _MEMORY_ADDRESS in location:
                raise ModelRefused(f"{model} wants to read the program's memory; do not use it")
            data = (PurePosixPath(name).parent / path).as_posix()
            size = beside[data] = self.file(data).stat().st_size
            if offset < 0 or length < 0 or offset + length > size:
                raise ModelCorrupt(
                    f"{model} wants {length:,} bytes at {offset:,} of {location!r}, which has "
                    f"{size:,}; download both again"
                )
        if sum(beside.values()) > _MAX_EXTERNAL_BYTES:
            raise ModelCorrupt(
                f"the data of {model} have more than {_MAX_EXTERNAL_BYTES:,} bytes; use a smaller "
                "or a quantised version"
            )
        has_batch_scales = b"DynamicQuantizeLinear" in serialised
        return CheckedModel(model, tuple(map(self.file, beside)), has_batch_scales)


@dataclass(frozen=True, slots=True)
class CheckedModel:
    """A model that reads nothing but these files.

    `has_batch_scales`: it rounds activations by the largest in a batch, so that a text's vector
    depends on its neighbours there.
    """

    path: Path
    data: tuple[Path, ...]
    has_batch_scales: bool
