"""The built-in model, which remembers from run to run what it has embedded.

For folders that every run embeds whole. What is remembered holds only for the same weights, code
and libraries: change any of them, and all is embedded anew.
"""

import os
import tempfile
from collections.abc import Sequence
from hashlib import blake2b
from importlib.metadata import version
from pathlib import Path
from typing import TypeAlias
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from ragdocs.embedding import builtin
from ragdocs.embedding.builtin import BuiltinEmbedder

Vectors: TypeAlias = NDArray[np.float32]

FOLDER = Path(__file__).parents[1] / ".pytest_cache" / "vectors"


class RememberingEmbedder(BuiltinEmbedder):
    """`name` is the folder's that is embedded: each has a file of its own."""

    def __init__(self, name: str) -> None:
        super().__init__()
        # Vectors of another kernel are others, if only by a bit.
        self._corpus = name + os.environ.get("OPENBLAS_CORETYPE", "")

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        self.load()  # only then is it known which precision it has
        file = FOLDER / f"{self._corpus}-{_maker(self.identity)}.npz"
        known = _read(file)
        keys = [_hash(text.encode()) for text in texts]
        new = {key: text for key, text in zip(keys, texts, strict=True) if key not in known}
        if new:
            known |= zip(new, super().embed_documents(list(new.values())), strict=True)
            _write(file, known)
        return np.stack([known[key] for key in keys])


def _maker(identity: str) -> str:
    """Another one for whatever could give other vectors."""
    code = sorted(Path(builtin.__file__).parent.rglob("*.py"))
    libraries = [version(name) for name in ("numpy", "onnxruntime", "tokenizers")]
    parts = [identity.encode(), repr(libraries).encode(), *(path.read_bytes() for path in code)]
    return _hash(b"\0".join(parts))


def _hash(text: bytes) -> str:
    return blake2b(text, digest_size=16).hexdigest()


def _read(file: Path) -> dict[str, Vectors]:
    try:
        with np.load(file, allow_pickle=False) as found:
            return dict(zip(found["keys"].tolist(), found["vectors"], strict=True))
    except (OSError, ValueError, KeyError, BadZipFile):
        return {}


def _write(file: Path, known: dict[str, Vectors]) -> None:
    """Whole or not at all: another worker may read it."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=file.parent, suffix=".npz", delete=False) as made:
        np.savez(made, keys=np.array(list(known)), vectors=np.stack(list(known.values())))
    os.replace(made.name, file)
    for older in file.parent.glob(f"{file.stem.rpartition('-')[0]}-*.npz"):
        if older != file:
            older.unlink(missing_ok=True)
