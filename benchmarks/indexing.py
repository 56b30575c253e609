"""The cost of indexing compared with embedding alone, a bare directory walk, and a smaller index.

Five questions, each a ratio within one run, and each in a module of its own:

(a) a first build beside embedding the same texts alone; (b) a rebuild with all vectors known
beside the first build: `indexing_build.py`, by the real model
(c) an edited file in a large index beside one in a small index, and how soon it is found:
`indexing_edits.py`
(d) a start with nothing changed beside a bare walk: `indexing_start.py`
(e) memory of indexing and serving: `indexing_memory.py`

Notes are synthetic, and in (c) and (e) vectors too (`synthetic_notes.py`).

    python benchmarks/indexing.py [--parts build start edits memory] [--chunks 100000] ...
"""

import argparse
import os
import platform
import shutil
import sqlite3
import tempfile
from importlib.metadata import version
from pathlib import Path

import indexing_build
import indexing_edits
import indexing_memory
import indexing_start

from ragdocs.embedding.builtin import BuiltinEmbedder

PARTS = ("build", "start", "edits", "memory")


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    arguments.add_argument("--chunks", type=int, default=100_000, help="of the large index")
    arguments.add_argument("--build-chunks", type=int, default=400)
    arguments.add_argument("--files", type=int, default=10_000, help="of the start")
    arguments.add_argument("--rounds", type=int, default=15)
    arguments.add_argument("--build-rounds", type=int, default=3)
    arguments.add_argument("--folder", type=Path, help="keep the large index here, use it again")
    options = arguments.parse_args()
    model = BuiltinEmbedder()
    model.load()
    print(
        f"Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}, "
        f"faiss-cpu {version('faiss-cpu')}, onnxruntime {version('onnxruntime')}, "
        f"{platform.machine()}, {os.cpu_count()} cores, model {model.precision}, "
        f"load {os.getloadavg()[0]:.1f}",
        flush=True,
    )
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        if "build" in options.parts:
            indexing_build.run(folder / "a", model, options.build_chunks, options.build_rounds)
        if "start" in options.parts:
            indexing_start.run(folder / "d", options.files, options.rounds)
        large_parts(options, folder, model)
    print(f"load at the end {os.getloadavg()[0]:.1f}")


def large_parts(options: argparse.Namespace, folder: Path, model: BuiltinEmbedder) -> None:
    large: Path = options.folder or folder / "large"
    if not {"edits", "memory"} & set(options.parts):
        return
    if "memory" in options.parts:
        shutil.rmtree(large / "index", ignore_errors=True)
        indexing = indexing_memory.build(large, options.chunks)
        indexing_memory.run(folder / "e", large, indexing)
    else:
        indexing_memory.build(large, options.chunks)
    if "edits" in options.parts:
        small = folder / "small"
        indexing_memory.build(small, options.chunks // 100)
        indexing_edits.run(small, large, model, options.rounds)


if __name__ == "__main__":
    main()
