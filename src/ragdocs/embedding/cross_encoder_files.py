"""A cross-encoder's folder, as downloaded from Hugging Face: which of its files are used."""

from dataclasses import dataclass
from pathlib import Path

from ragdocs.embedding.model_folder import ModelFolder
from ragdocs.errors import ModelCorrupt, ModelMissing

EXPECTED = "config.json, tokenizer.json and onnx/model.onnx (or model.onnx)"
MODELS = ("onnx/model.onnx", "model.onnx")
# What cross-encoders are trained with. The RoBERTa kinds have 514 positions and use 512 of them;
# models with thousands would only make a query wait for passages that are never so long.
MAX_TOKENS = 512


@dataclass(frozen=True, slots=True)
class CrossEncoderFiles:
    """The files to load, and how many tokens a pair may have."""

    model: Path
    tokenizer: Path
    max_tokens: int


def find_files(folder: Path) -> CrossEncoderFiles:
    """Raises ModelMissing or ModelCorrupt, with what to do."""
    found = ModelFolder(folder, "cross-encoder", EXPECTED, "rerank_model")
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
