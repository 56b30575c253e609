"""How much memory indexing and serving need, each in its own process.

Serving (all views caught up, queries answered, communities found) may take 2.5 times the vectors'
bytes and the model:

    serving 100,000 chunks - serving one note with the model  <  2.5 x the vectors' bytes

Serving one note is the interpreter, all imports and the model in use. What the model is of that is
told by serving one note without a model, its libraries imported all the same.
"""

import gc
import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from synthetic_notes import PASSAGES, NoteWriter, SyntheticVectors, config_of

from ragdocs.app import App
from ragdocs.embedding.builtin import DIMENSION, BuiltinEmbedder
from ragdocs.search.requests import QueryRequest

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MEGABYTE = 1_000_000
REAL_EVERY = 97
QUERIES = 100
IN_USE: list[App] = []
"""Kept alive until the memory is measured."""
ONE_NOTE = "# A note\n\n" + "A passage about nothing in particular, again and again. " * 12


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes of a process, now and at peak, and what it reports."""

    now: int
    peak: int
    said: dict[str, int]


def own_memory() -> tuple[int, int]:
    fields = dict[str, int]()
    for line in Path("/proc/self/status").read_text(encoding="utf-8").splitlines():
        name, _, value = line.partition(":")
        if name in ("VmRSS", "VmHWM"):
            fields[name] = int(value.split()[0]) * 1024
    return fields["VmRSS"], fields["VmHWM"]


def in_process(role: str, folder: Path) -> Memory:
    """Runs the role in its own process."""
    done = subprocess.run(
        [sys.executable, __file__, role, str(folder)], stdout=subprocess.PIPE, check=True
    )
    now, peak, said = json.loads(done.stdout.splitlines()[-1])
    return Memory(now, peak, said)


class NoModel(SyntheticVectors):
    """No model, but its libraries are loaded."""

    def __init__(self) -> None:
        super().__init__(BuiltinEmbedder())

    def load(self) -> None:
        from ragdocs.embedding.runtime import load_onnxruntime

        load_onnxruntime()
        import tokenizers  # noqa: F401

    def embed_query(self, text: str) -> "NDArray[np.float32]":
        return self.embed_documents([text])[0]


def import_all(folder: Path) -> dict[str, int]:
    return _serve(App(config_of(folder), NoModel()))


def use_model(folder: Path) -> dict[str, int]:
    return _serve(App(config_of(folder), BuiltinEmbedder()))


def index(folder: Path) -> dict[str, int]:
    """From files to a complete index; some of the vectors are the model's own."""
    app = App(config_of(folder), SyntheticVectors(BuiltinEmbedder(), REAL_EVERY))
    with app.manager() as manager:
        outcome = manager.update()
        manager.fill()
    assert not outcome.failed
    return {"files": outcome.added, "seconds": int(outcome.seconds)}


def serve(folder: Path) -> dict[str, int]:
    """The vectors are synthetic, those of queries are the model's."""
    return _serve(App(config_of(folder), SyntheticVectors(BuiltinEmbedder())))


def _serve(app: App) -> dict[str, int]:
    with app.manager() as manager:
        manager.update()
        manager.update_communities()
        manager.fill()
    with app.reader.snapshot() as snapshot:
        leaves = list(snapshot.select("SELECT title FROM chunks WHERE text NOT NULL LIMIT 1000"))
    for number in range(QUERIES):
        (title,) = leaves[number * 37 % len(leaves)]
        app.search(QueryRequest(queries=(f"{title} and {number}",)))
    IN_USE.append(app)
    gc.collect()
    return {"vectors": len(app.indices.vector or ())}


ROLES = {"imports": import_all, "model": use_model, "index": index, "serve": serve}


def show(what: str, memory: Memory) -> None:
    now, peak = memory.now / MEGABYTE, memory.peak / MEGABYTE
    said = ", ".join(f"{name} {value}" for name, value in memory.said.items())
    print(f"    {what:32} {now:9.0f} {peak:9.0f}   {said}")


def build(folder: Path, chunks: int) -> Memory:
    """Writes the notes, and indexes them in a process of its own."""
    if not (folder / "docs").exists():
        NoteWriter(BuiltinEmbedder(), seed=7).write(folder / "docs", chunks)
    return in_process("index", folder)


def run(folder: Path, large: Path, indexing: Memory) -> None:
    print("(e) memory of processes, in MB       at the end      peak")
    one = folder / "one"
    (one / "docs").mkdir(parents=True)
    (one / "docs" / "a.md").write_text(ONE_NOTE, encoding="utf-8")
    imports, model = in_process("imports", one), in_process("model", one)
    serving = in_process("serve", large)
    show("serving one note, no model", imports)
    show("serving one note", model)
    show(f"indexing {indexing.said['files'] * PASSAGES} chunks", indexing)
    show("serving them", serving)
    vectors = serving.said["vectors"] * DIMENSION * 4
    own = (model.now - imports.now) / MEGABYTE
    print(f"  vectors {vectors / MEGABYTE:.0f} MB, the model {own:.0f} MB")
    print(f"  indexing: {indexing.peak / MEGABYTE:.0f} MB at most (under 1500 MB)")
    for when, used, alone in (
        ("at the end", serving.now, model.now),
        ("peaks", serving.peak, model.peak),
        ("peak beside the end", serving.peak, model.now),
    ):
        ratio = (used - alone) / vectors
        print(f"  (serving - serving one note) / vectors, {when}: {ratio:.2f} (under 2.5)")


def play(role: str, folder: Path) -> None:
    said = ROLES[role](folder)
    print(json.dumps([*own_memory(), said]))


if __name__ == "__main__":
    play(sys.argv[1], Path(sys.argv[2]))
