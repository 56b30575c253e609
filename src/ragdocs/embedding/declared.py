"""What a model's own files say of it, read without loading it."""

from pathlib import Path
from typing import cast

from ragdocs.embedding.model_hub import read_json
from ragdocs.embedding.prefixes import Prefixes


def declared_prefixes(folder: Path) -> Prefixes | None:
    """Those that the model's own files name, if they do."""
    found = read_json(folder / "config_sentence_transformers.json")
    prompts = cast("dict[str, object]", found).get("prompts") if isinstance(found, dict) else None
    if not isinstance(prompts, dict):
        return None
    said = {str(key): value for key, value in cast("dict[str, object]", prompts).items() if value}
    passages = (said.get(name) for name in ("document", "passage", "text"))
    query, passage = said.get("query"), next((one for one in passages if one), None)
    return Prefixes(str(query or ""), str(passage or "")) if query or passage else None


def declared_dimension(folder: Path) -> int:
    """How many numbers a vector has after the last module that says so; 0 when none does."""
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
