#!/usr/bin/env python3
"""Asks the project's own benchmark as this processor computes and as others would, and counts
the answers that differ.

Each time in a process of its own, from an index of its own. Exits with 1 when another kernel of
numpy, OpenBLAS or FAISS gives another order of passages, or scores further apart than rounding.
onnxruntime cannot be told which instructions to use. In its place every vector of the model is
moved a little, further than rounding moves it, and answers in another order are counted.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING
from zlib import crc32

PROJECT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(PROJECT))

from ragdocs.evaluation.labelled_set import read_set  # noqa: E402
from tests.support.machine import ROUNDING, narrow_environment  # noqa: E402

if TYPE_CHECKING:
    from ragdocs.embedding.base import Embedder

BENCHMARK = PROJECT / "tests" / "fixtures" / "benchmark"
TOP = 10
MOVED = "--moved"
DISTANCE = 1e-4
"""Of a unit vector, in some direction. The widest rounding seen between kernels is 1e-7."""

Answers = dict[str, list[tuple[str, float]]]
"""Query → passages with their scores, best first."""


def main() -> int:
    plain = {name: os.environ[name] for name in os.environ if name not in narrow_environment()}
    base = answers(plain)
    narrow = answers(plain | narrow_environment())
    moved_vectors = answers(plain, MOVED)
    moved, largest = compared(base, narrow)
    print(f"{len(base)} queries, the first {TOP} passages of each")
    tell("narrow kernels of numpy, OpenBLAS and FAISS", moved, largest)
    tell(f"vectors moved by {DISTANCE:g}", *compared(base, moved_vectors))
    return 1 if moved or largest > ROUNDING else 0


def tell(what: str, moved: list[str], largest: float) -> None:
    named = f" ({', '.join(moved)})" if moved else ""
    print(f"{what}: {len(moved)} in another order{named}, scores differ by at most {largest:.1e}")


def compared(one: Answers, other: Answers) -> tuple[list[str], float]:
    """The queries whose passages or order differ, and the largest difference between scores at the
    same rank."""
    moved, largest = [], 0.0
    for query, passages in one.items():
        if [place for place, _ in passages] != [place for place, _ in other[query]]:
            moved.append(query)
        for (_, score), (_, again) in zip(passages, other[query], strict=False):
            largest = max(largest, abs(score - again))
    return moved, largest


def answers(environment: dict[str, str], *options: str) -> Answers:
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "answers.json"
        command = [sys.executable, __file__, "--ask", str(out), *options]
        subprocess.run(command, env=environment | {"HOME": folder}, check=True)
        return json.loads(out.read_text(encoding="utf-8"))


def ask(out: Path, embedder: "Embedder | None") -> None:
    from ragdocs import open_index

    labelled = read_set(BENCHMARK)
    place = {"indexing": {"index_path": str(out.parent / "index")}}
    nothing = out.parent / "settings.toml"
    nothing.touch()
    opened = open_index(labelled.corpus, config_file=nothing, settings=place, embedder=embedder)
    with opened as index:
        found = {
            query.id: [(one.id, one.score) for one in index.search(query.text, top_n=TOP).results]
            for query in labelled.queries
        }
    out.write_text(json.dumps(found), encoding="utf-8")


def moved_embedder() -> "Embedder":
    """The built-in model with slightly changed vectors, always in the same way."""
    import numpy as np

    from ragdocs.embedding.builtin import BuiltinEmbedder

    def move(text: str, vector: np.ndarray) -> np.ndarray:
        direction = np.random.default_rng(crc32(text.encode())).standard_normal(vector.shape)
        moved = vector + DISTANCE * direction / np.linalg.norm(direction)
        return (moved / np.linalg.norm(moved)).astype(np.float32)

    class Moved(BuiltinEmbedder):
        """Embeds texts and queries, and moves each vector separately."""

        def embed_documents(self, texts):  # noqa: ANN001, ANN202
            vectors = super().embed_documents(texts)
            return np.stack([move(*pair) for pair in zip(texts, vectors, strict=True)])

        def embed_query(self, text):  # noqa: ANN001, ANN202
            return move(text, super().embed_query(text))

    return Moved()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--ask"]:
        ask(Path(sys.argv[2]), moved_embedder() if MOVED in sys.argv else None)
    else:
        sys.exit(main())
